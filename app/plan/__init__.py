"""The answer: the recommended plan, the ranked table, one plan in detail.

answer_document   the answer as blocks: the sentence, the ranked plans, the exclusions,
                  the assumptions
answer_section    sections of several pages: the list that selects a plan, and what a
                  search excluded
as_json           one answer as JSON: the documented, versioned schema of runcast plan
                  --json
batch_words       a warning of a batch that leaves a run too few steps
cards             the cards at the top of the Plan page: a number each, its range, its
                  machines
chart_tables      tables of the chart of cost against time: its plans, limits and ends,
                  and the selected plan
charts            the chart of cost against time, from a table of document
decided           why the recommended plan is recommended, in one or two sentences
document          an answer as rows and columns for charts, tables and CSV files
figures           the charts of the Plan page, built once per answer for all users
input_words       the inputs of a forecast in words: names, units, values, and what
                  widens its interval
inputs_json       all inputs of an answer as JSON
ordered_section   what of the Plan page depends on the order of its plans: answer, ranked
                  table, choice, links
page              the Plan page: the answer first, then the choice, then the chosen plan in
                  detail
part_charts       where the bytes of a GPU and the seconds of a step go, as charts
planned           the scenario and the plan that a command is about
products          the ranked table on a page: each product once, with its best plan and in
                  how many regions it is sold
quote_section     quotes on the Plan page: type one in, see them listed, change, remove or
                  keep them
similar_runs      the published runs that moved a forecast, with their weights
words             an answer in words: one sentence, the coverage line, labels and badges
"""
