"""Value matchers: what `state`, `output`, `args` and the other expectations are written with."""
