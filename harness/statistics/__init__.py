"""Statistics of scores over scenarios."""
