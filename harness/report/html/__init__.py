"""report.html: a run as one page that opens from disk (docs/report.md)."""
