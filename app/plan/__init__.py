"""The answer: the recommended plan, the ranked table, one plan in detail.

answer_document   the answer as blocks: the sentence, the ranked plans, what was left out,
                  what is assumed
as_json           one answer as JSON: the documented, versioned schema of runcast plan
                  --json
charts            charts of ready columns
choice_section    the list of plans to select one from, on each page that is about one
                  plan
document          an answer as rows and columns: what the charts draw, the tables list
                  and the CSV holds
excluded_section  what a search left out, and why: closed at first, unless it is the
                  whole answer
figures           the charts of the Plan page, each built once for everybody who looks
                  at the same answer
input_words       the inputs of a forecast in words: names, units, values, and what
                  widens its interval
inputs_json       what the numbers of an answer are computed from, as JSON: runcast
                  recompute needs no more
neighbours        beside a forecast: the published runs that are most like it, and how well
                  they were forecast
neighbours_table  measured runs beside a plan, as the rows and the sentence that the page
                  shows
page              the Plan page: the answer first, then the choice, then the chosen plan in
                  detail
planned           the plan that a command is about: what was typed as a scenario, and what its
                  search found
words             an answer in words: one sentence, the coverage line, labels and badges
"""
