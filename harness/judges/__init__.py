"""Judges: models that grade outputs. Their prompts, the parts of a run they see, and the parsing of their answers."""
