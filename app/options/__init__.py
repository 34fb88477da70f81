"""Every plan of an answer, filtered, as a map, and up to four side by side.

change              what a change of a scenario file costs: two forecasts, their difference, and
                    guardrails
charts              the heatmap of the Options page
command             runcast diff
compare_section     plans side by side on the Options page: the pinned ones, or those of two
                    links
document            the table of every ranked plan of an answer: filtered, sorted, in one
                    unit of money
families            the best layout of each family on a plan's machines, and why a family is
                    out
families_section    layouts side by side on the Compare page: the best of each family, and a
                    layout of the user's
filters             the filter, sort and unit widgets of the Options page
heatmap             the cells of the heatmap: the best plan of every accelerator at every
                    cloud
heatmap_section     the heatmap of the Options page: the best plan of each GPU at each cloud
page                the Compare page: every plan of the answer, and up to four of
                    them side by side
side_by_side        the comparison table: each quantity of each plan, and its difference
                    from the first plan
side_by_side_words  the differences of each compared plan from the first, in sentences:
                    three terms each of time, dollars and memory
two_links           a second, pasted link: its scenario, and where it differs from the
                    page's own
"""
