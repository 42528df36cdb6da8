"""The history of a project: a file with one line for each run that was kept.

revision   the commit and the branch of a run, read from `.git`
record     a run as a line of the history
file       append to the file, and read it line by line
folder     the record of a results folder that is not in the file
trends     the runs side by side, and how each scenario changed over them
text       the trends for a terminal
"""
