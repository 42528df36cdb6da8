"""Compare two runs: the scenarios that changed, and the first event where the traces of a scenario differ.

comparison        the scenarios of both runs, sorted by how they changed
explanation       the checks that changed and the first difference of the traces, for each scenario that is shown
first_difference  the first event where two traces differ (a route, a prompt, a reply, a call, an update), as text and
                  as data; the places where two JSON values differ
text_diff         the difference of two texts, by lines and words
text              the comparison for a terminal
full_text         one scenario in full: both conversations, line by line
"""
