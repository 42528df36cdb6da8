"""Judges: models that grade outputs. What they are asked, what they are shown, and how their answers are read."""
