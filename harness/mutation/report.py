"""The folder of results: mutation.json, and the page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from harness.mutation.result import Mutation
from harness.report.encoding import replace, unwritable
from harness.report.folder_check import refuse_foreign
from harness.report.html.mutation import page
from harness.report.html.page import PAGE

JSON: Final = "mutation.json"


def write_report(folder: Path, mutation: Mutation, shapes: Mapping[str, Mapping[str, Any]]) -> Path:
    """Write the results of mutants into a folder, and return it.

    Raises:
        FormatError: it has other files, or cannot be written.
    """
    refuse_foreign(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    text = json.dumps(mutation.as_json(), indent=1, ensure_ascii=False)
    replace(folder / JSON, f"{text}\n".encode())
    replace(folder / PAGE, page(mutation.as_json(), shapes).encode())
    return folder
