"""The page of one run, for notebooks."""

from __future__ import annotations

import html
import tempfile
from pathlib import Path

from harness.report.html.page import PAGE, write_page
from harness.report.results import ResultsWriter
from harness.scenario.outcome import Outcome


def page_of(outcome: Outcome) -> str:
    """Return the page of a run as HTML to embed: a frame of its own, whose script reaches nothing around it."""
    with tempfile.TemporaryDirectory() as folder:
        with ResultsWriter(folder) as writer:
            writer.add(outcome)
        write_page(Path(folder))
        page = (Path(folder) / PAGE).read_text(encoding="utf-8")
    frame = 'sandbox="allow-scripts" style="border: 0; width: 100%; height: 40rem"'
    return f'<iframe {frame} srcdoc="{html.escape(page)}"></iframe>'
