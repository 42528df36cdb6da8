"""What a run leaves behind: the results file, its summary, and what the console shows."""
