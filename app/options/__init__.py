"""Every plan of an answer, filtered, as a map, and up to four side by side.

charts              the heatmap of the Options page
compare_section     plans side by side, on the Options page: those that are pinned, or those
                    of two links
document            every ranked plan of an answer as a table: filtered, in an order, in one
                    unit of money
filters             the filters, the order and the unit of the Options page, as widgets that
                    a keyboard reaches
heatmap             who is best with which GPU: the best plan of every accelerator at every
                    cloud, as cells
heatmap_section     the heatmap of the Options page: the best plan of each GPU at each cloud
page                the Options & compare page: every plan of the answer, and up to four of
                    them side by side
side_by_side        plans side by side: each quantity of each, and what it differs by from
                    the first of them
side_by_side_words  what sets compared plans apart, in sentences: each against the first,
                    three terms of time, of dollars and of memory
two_links           another link, pasted beside the one of the page: what it asks, and where
                    the two differ
words               what the Options page says of its list: how much is priced, what is left
                    out, what is shown
"""
