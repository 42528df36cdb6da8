"""Results of runs: writing, reading, summaries, and reports for the terminal, Markdown, HTML and other tools."""
