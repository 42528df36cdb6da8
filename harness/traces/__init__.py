"""Traces of other tools, read as the traces of runs.

Each format is read into spans (`spans`), values of any wrapping become messages and data (`messages`), and one module
tells the conversations from the spans (`conversations`). `reading.read_traces` is the entrance.
"""
