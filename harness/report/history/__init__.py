"""The history of a project: a line for each run that was kept, and what became of its figures and scenarios.

revision   which commit and branch the files of a run are of
record     a run as a line of the history
file       the file of these lines: appended to by runs, read line by line
trends     what the lines say together: the runs, and which scenario changed when
text       the same for a terminal
"""
