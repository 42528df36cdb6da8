"""Compare two runs: the scenarios that changed, and the first event where the traces of a scenario differ.

comparison        the scenarios of both runs, sorted by how they changed
difference        a difference between two traces, as text and as data
first_difference  the first event where two traces differ: a route, a prompt, a reply, a call, an update
sentences         an event of a trace in one line
values            the places where two values differ
words             the difference of two texts, by lines and words
explained         the checks and the first difference of each scenario that is shown
text              the comparison for a terminal
whole             one scenario in full: both conversations, line by line
"""
