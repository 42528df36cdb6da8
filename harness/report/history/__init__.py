"""The history of a project: a file with one line for each run that was kept.

record     a run as a line of the history, with its commit and its branch, read from `.git`
file       append to the file, and read it line by line
trends     the runs side by side, and how each scenario changed over them
text       the trends for a terminal, and for report.html
"""
