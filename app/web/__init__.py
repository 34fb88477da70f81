"""What every page needs: address, session, form, figure, background search, login.

answers          answers as the pages ask for them: each search is made once for
                 everybody who asks the same
copy_button      a button that copies a text: seen at once, and reached by the keyboard
figure           a chart on a page, with a takeaway for who cannot see it and its data
                 and picture as files
first_look       what the Plan page shows while the whole catalogue is searched: the
                 usual accelerators
first_look_note  the note of a first look, and the wait for the whole answer behind it
form             the scenario form in the sidebar, drawn from the field table of
                 core.scenario.Scenario
form_part        a part of the form that is closed at first: what is inside is drawn
                 while it is open
form_words       what the form calls the choices of a field, and what it says in an
                 empty one
fragment         parts of a page that are drawn alone when somebody opens them or
                 chooses something in them
link             which scenario the page shows: the address bar and the session, kept as
                 one
login            the login: a door in front of every page where one is set up, and who
                 is logged in
owner            who is asking: the owner of saved scenarios
rerun_log        each rerun of the page in the log, and its id for who sees something go
                 wrong
searches         answers by their questions: searched in the background, once for
                 everybody, kept for a while
selection        which plan a page is about: the one that the link names, or the
                 recommended one
view_query       what a page shows beside its scenario, in the address: show_days=25 and
                 so on
"""
