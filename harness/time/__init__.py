"""Virtual time: the clock of a run, and waiting side by side on it."""
