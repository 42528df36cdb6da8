"""The findings of earlier explorations, which are tried again before anything is drawn.

They are in the folder `.harness/explore` of the project, which git ignores.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from harness.explore.subject import Subject
from harness.explore.written import Keys
from harness.report.encoding import replace
from harness.source.document import relative_path

FORMAT: Final = "harness-explore-known/1"


@dataclass(frozen=True)
class Known:
    """The scenarios of findings by their ids, in `file`."""

    file: Path
    scenarios: Mapping[str, Keys]

    @classmethod
    def of(cls, subject: Subject, project: Path) -> Known:
        """Return what is known of an agent, in a project. A file that cannot be read counts as empty."""
        folder = project / ".harness" / "explore"
        path = relative_path(subject.manifest.resolve(), project)
        digest = sha256(f"{path}::{subject.name}".encode()).hexdigest()[:8]
        file = folder / f"{subject.manifest.name.partition('.')[0]}-{digest}.json"
        try:
            found: Any = json.loads(file.read_text(encoding="utf-8"))
            scenarios = found["findings"] if found["format"] == FORMAT else {}
            return cls(file, {str(each): dict(keys) for each, keys in scenarios.items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(file, {})

    def write(self, scenarios: Mapping[str, Keys]) -> None:
        """Replace what is known; nothing is written where nothing was and is known."""
        if not scenarios and not self.scenarios:
            return
        folder = self.file.parent
        folder.mkdir(parents=True, exist_ok=True)
        (folder.parent / ".gitignore").write_text("*\n", encoding="utf-8")
        text = json.dumps({"format": FORMAT, "findings": dict(scenarios)}, ensure_ascii=False, indent=1)
        replace(self.file, text.encode())
