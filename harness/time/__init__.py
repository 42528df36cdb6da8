"""Virtual time: the clock of a run, time-outs, and concurrent waiting."""
