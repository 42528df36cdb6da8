"""GitHub Actions output: annotations on the lines that failed, and summary.md in the summary of the job."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from harness.report.formatting import plural, short_name
from harness.report.junit import split_location
from harness.report.reading import read_lines
from harness.report.repeats import NOT_PASSED
from harness.source.display import allow_command, clip, in_actions, printable

Line = Mapping[str, Any]
_MAX_ANNOTATIONS: Final = 10
"""The number of annotations of one kind that GitHub shows per step."""
_MAX_LENGTH: Final = 1_000
_MAX_SUMMARY: Final = 1 << 20
_LEFT_OUT: Final = b"\nAnother summary.md is left out here: the summary of a step may take 1 MiB.\n"


def report_to_github(folder: Path, write: Callable[[str], object]) -> None:
    """Annotate failures, and append summary.md to the job summary. Does nothing outside GitHub Actions.

    Args:
        folder: the results of a run that has ended.
        write: is called with each line of output.
    """
    if not in_actions():
        return
    for command in commands(read_lines(folder), _root()):
        write(allow_command(command))
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with suppress(OSError):
            _append(Path(summary), (folder / "summary.md").read_bytes() + b"\n")


def _append(summary: Path, page: bytes) -> None:
    """Append a page to the step summary, or a note that it is left out: GitHub ignores summaries over 1 MiB."""
    taken = summary.stat().st_size if summary.exists() else 0
    if taken + len(page) > _MAX_SUMMARY - len(_LEFT_OUT):
        page = _LEFT_OUT if taken + len(_LEFT_OUT) <= _MAX_SUMMARY else b""
    with summary.open("ab") as file:
        file.write(page)


def commands(lines: Iterable[Line], root: Path) -> Iterator[str]:
    """Yield workflow commands: at most ten annotations, one for each cause of failures, then a count of the rest."""
    seen, more = set[Any](), 0
    for line in lines:
        reason = line["fault"] or (line["id"], line["variant"])
        if line["verdict"] not in NOT_PASSED or reason in seen:
            continue
        if len(seen) == _MAX_ANNOTATIONS:
            more += 1
            continue
        seen.add(reason)
        yield _annotation(line, root)
    if more:
        yield f"::notice::{plural(more, 'more run')} did not pass, see summary.md"


def _annotation(line: Line, root: Path) -> str:
    failed = [check for check in line["checks"] if not check["passed"]]
    causes = line["cause"].split(", ")
    named = [check for check in failed if short_name(check["name"]) in causes]
    error = [line["error"]["where"]] if line["error"] else []
    places = [*_locations(named), *error, *_locations(failed), line["where"]]
    found = next(filter(None, (_in_repository(where, root) for where in places)), {})
    variant = f" [variant {line['variant']}]" if line["variant"] else ""
    title = printable(line["scenario"] + variant)
    texts = [f"{check['name']}: {check['message'] or 'not met'}" for check in named] or [line["cause"]]
    text = printable(clip("\n".join(texts), _MAX_LENGTH), keep_newlines=True)
    properties = ",".join(f"{name}={_property(value)}" for name, value in (found | {"title": title}).items())
    return f"::error {properties}::{_data(text)}"


def annotate_survivors(mutants: Iterable[Mapping[str, Any]], write: Callable[[str], object]) -> None:
    """Annotate the mutants that no scenario noticed, at most ten. Does nothing outside GitHub Actions."""
    survivors = [each for each in mutants if each["outcome"] == "survived"] if in_actions() else []
    for each in survivors[:_MAX_ANNOTATIONS]:
        found = _in_repository(f"{each['where']}:1", _root()) | {
            "title": printable(f"survived: {each['id']}")
        }
        text = printable(clip(f"{each['diff']}\n{each['suggestion'] or ''}", _MAX_LENGTH), keep_newlines=True)
        properties = ",".join(f"{name}={_property(value)}" for name, value in found.items())
        write(allow_command(f"::warning {properties}::{_data(text)}"))
    if len(survivors) > _MAX_ANNOTATIONS:
        more = plural(len(survivors) - _MAX_ANNOTATIONS, "more mutant")
        write(allow_command(f"::notice::{more} survived, see mutation.json"))


def _locations(checks: Iterable[Mapping[str, Any]]) -> list[str | None]:
    return [check.get("where") for check in checks]


def _in_repository(where: str | None, root: Path) -> dict[str, str]:
    """Return a location as properties of an annotation; empty for a file outside the repository."""
    found = split_location(where)
    if found is None:
        return {}
    file, line, column = found
    with suppress(ValueError, OSError):
        inside = Path(file).resolve().relative_to(root.resolve())
        return {"file": inside.as_posix(), "line": str(line), "col": str(column)}
    return {}


def _root() -> Path:
    """Return the root of the repository: `GITHUB_WORKSPACE`, or the nearest parent folder with `.git`."""
    here = Path.cwd()
    if (said := os.environ.get("GITHUB_WORKSPACE")) and here.is_relative_to(said):
        return Path(said)
    return next((at for at in (here, *here.parents) if (at / ".git").exists()), here)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
