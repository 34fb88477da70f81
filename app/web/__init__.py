"""What every page needs: address, session, form, figure, background search, login.

answers          answers for the pages: each question is searched once and shared by
                 all sessions
collection       garbage collection of the server: what lives as long as it does is
                 left out
copy_button      a button that copies a text to the clipboard
figure           a chart on a page, with a text alternative, and its data and picture
                 as files
first_look       what the Plan page shows while the whole catalogue is searched: the
                 usual accelerators, a note, and the wait for the whole answer
form             the scenario form in the sidebar, drawn from the field table of
                 core.scenario.Scenario
form_part        a collapsible part of the form: its fields are drawn only while it is
                 open
form_start       the top of the form: examples, a reset, and the task, which brings its
                 usual values
form_words       the form's labels for the choices of a field, and its placeholders
fragment         parts of a page that rerun on their own when opened or edited
link             which scenario the page shows: keeps the address bar and the session
                 in step
login            the login page, where a login is set up, and the name of the user
model_words      a model in one line: its parameters, the active ones, and its kind of
                 attention
owner            who is asking: the owner of saved scenarios
rerun_log        a log line for each rerun of the page, with an id to report when
                 something fails
searches         a cache of answers by question, filled by searches in the background
selection        which plan a page is about: the one that the link names, or the
                 recommended one
tabs             the row of tabs on every page: five pages, and the others under More
view_query       page settings in the address that are not part of the scenario, such as
                 show_days=25
"""
