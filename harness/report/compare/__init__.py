"""Two runs compared: which scenarios changed and how, and the first event where the traces of one differ.

comparison        the scenarios of both runs, sorted by what became of them
difference        a difference between two traces, as it is read and as data
first_difference  the first event where two traces differ: a route, a prompt, a reply, a call, an update
sentences         an event of a trace as a sentence
values            the places where two values differ
words             what differs between two texts, by words and lines
explained         for the scenarios that are shown: their checks, and the first difference of their traces
text              all of this for a terminal
whole             one scenario in full: both conversations, line by line
"""
