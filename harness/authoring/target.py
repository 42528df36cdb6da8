"""The file that new scenarios are written to: a new one, or one that has others already."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.authoring.setting import Setting
from harness.authoring.writer import appended, file_text
from harness.errors import FormatError, Problem
from harness.report.encoding import replace
from harness.scenario import SUFFIXES
from harness.source.document import Document, read, shown_path


@dataclass
class Target:
    """A scenario file to write to.

    Attributes:
        file: its path.
        head: its keys besides `scenarios`.
        before: the document that exists; None for a new file.
    """

    file: Path
    head: dict[str, Any]
    before: Document | None

    @classmethod
    def at(cls, file: Path, setting: Setting) -> Target:
        """Return the target at a path. The manifest of a new file is that of the setting.

        Raises:
            FormatError: the path is not that of a scenario file, or the file cannot be read, continued or written.
        """
        if not file.name.endswith(SUFFIXES):
            message = f"'{shown_path(file)}' is not the name of a scenario file"
            hint = f"its name ends in {SUFFIXES[0]}: -o {file.with_suffix('').name}{SUFFIXES[0]}"
            raise FormatError(Problem("scenario-file-name", message, hint=hint))
        _require_writable(file)
        if not file.exists():
            return cls(file, {"harness": 1, "manifest": setting.manifest_from(file.parent)}, None)
        before = read(file, yaml="1.2", error=FormatError)
        appended(before.text, file, [{"name": "…"}])  # refused now, before anybody has typed answers
        return cls(file, {key: value for key, value in before.value.items() if key != "scenarios"}, before)

    def keys_for(self, setting: Setting) -> dict[str, Any]:
        """Return the keys of a scenario that the file does not give it: its manifest, if the file has another."""
        named = self.head.get("manifest")
        folder = self.file.parent
        listed = [named] if isinstance(named, str) else named or []
        same = [os.path.abspath(folder / each) for each in listed] == [
            os.path.abspath(each) for each in setting.manifests
        ]
        return {} if same else {"manifest": setting.manifest_from(folder)}

    def unused_name(self, wanted: str, taken: Sequence[str] = ()) -> str:
        """Return the wanted name, or with a number behind it if another scenario has it."""
        known = {*taken}
        if self.before is not None:
            known |= {
                str(each.get("name")) for each in self.before.value["scenarios"] if isinstance(each, dict)
            }
        name, number = wanted, 1
        while name in known:
            number += 1
            name = f"{wanted} ({number})"
        return name

    def text_with(self, scenarios: Sequence[Mapping[str, Any]]) -> str:
        """Return the text of the file with more scenarios.

        Raises:
            FormatError: nothing can be added to the existing file (code `cannot-append`).
        """
        if self.before is None:
            return file_text(self.head, scenarios)
        return appended(self.before.text, self.file, scenarios)

    def write(self, scenarios: Sequence[Mapping[str, Any]]) -> None:
        """Add scenarios to the file, atomically.

        Raises:
            FormatError: the file cannot be written, or was changed since it was read.
        """
        text = self.text_with(scenarios)
        if self.before is not None and read(self.file, yaml="1.2").text != self.before.text:
            message = f"{shown_path(self.file)} was changed in the meantime: nothing was written"
            raise FormatError(
                Problem("file-changed", message, hint="the same command writes to the file as it is now")
            )
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FormatError(
                Problem("report-folder", f"cannot write {shown_path(self.file)}: {error}")
            ) from error
        replace(self.file, text.encode())


def _require_writable(file: Path) -> None:
    """Refuse a path in a folder that cannot be written to, or that cannot be made."""
    folder = next(each for each in file.absolute().parents if os.path.lexists(each))
    why = "" if os.access(folder, os.W_OK | os.X_OK) else "no permission"
    why = why if folder.is_dir() else f"{shown_path(folder)} is no folder"
    if why:
        raise FormatError(Problem("report-folder", f"cannot write {shown_path(file)}: {why}"))
