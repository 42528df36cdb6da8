"""The checks of `expect`. The docstring of each is its row in the format's documentation."""
