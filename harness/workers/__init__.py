"""Worker processes, which run scenarios in parallel or isolated from each other."""
