"""Value matchers: the language of expected values in `state`, `output`, `args` and other keys of a scenario."""
