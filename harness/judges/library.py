"""The metrics that `judge: {metric: …}` may name, each with its prompt in `prompts/`.

A prompt is sent as the system message, verbatim; the user message is the material as JSON
(`harness.judges.request`). Source of the definitions: docs/judges.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from harness.errors import FormatError, Problem, Span
from harness.source.display import clip, did_you_mean
from harness.source.document import hint_for_missing, is_special, shown_path

SUFFIX: Final = ".txt"
ANSWER: Final = '"grade"'
"""The key of the answer that every prompt must mention."""
MAX_PROMPT_BYTES: Final = 100_000
"""Maximum size of a prompt file, in bytes."""


@dataclass(frozen=True)
class Metric:
    """A metric of the built-in judges.

    high   the meaning of a grade of 1
    sees   the parts of the material that the judge is shown
    needs  those without which it cannot judge
    """

    name: str
    high: str
    sees: tuple[str, ...]
    needs: tuple[str, ...]


_METRICS: Final = (
    ("faithfulness", "the context supports all that the output states", "context output", "context output"),
    (
        "answer_relevance",
        "the output answers what was asked, and nothing else",
        "input output",
        "input output",
    ),
    ("task_completion", "what was asked for is done", "input tool_calls context output", "input output"),
    (
        "tool_choice",
        "the right tools were called with the right arguments, and no others",
        "input tools tool_calls",
        "input tools",
    ),
    ("refusal", "the output declines to do what was asked", "input output", "input output"),
    ("tone", "the output is courteous, calm and fits who is spoken to", "input output", "output"),
)
METRICS: Final[Mapping[str, Metric]] = {
    name: Metric(name, high, tuple(sees.split()), tuple(needs.split()))
    for name, high, sees, needs in _METRICS
}


@dataclass(frozen=True)
class Prompt:
    """The prompt of a judge. `file` is the user's file that contains it; None for a built-in prompt."""

    text: str
    file: Path | None = None


@cache
def library_prompt(name: str) -> Prompt:
    """Return the built-in prompt of a metric."""
    return Prompt((Path(__file__).parent / "prompts" / f"{name}{SUFFIX}").read_text(encoding="utf-8"))


def project_prompts(folder: Path | None) -> dict[str, Prompt]:
    """Read the prompts of a project, by metric: the files `NAME.txt` in a folder; none if `folder` is None.

    Raises:
        FormatError: there is no such folder, or a file is not named after a metric or is not a valid prompt.
    """
    if folder is None:
        return {}
    where = "setting 'judge_prompts'"
    if not folder.is_dir():
        text = f"{where}: no folder {shown_path(folder)}"
        raise FormatError(Problem("bad-settings", text, None, hint_for_missing(folder)))
    found = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        if path.stem not in METRICS:
            text = f"{where}: {shown_path(path)} is not named after a metric"
            raise FormatError(Problem("bad-settings", text, None, did_you_mean(path.stem, METRICS)))
        found[path.stem] = read_prompt(path)
    return found


def read_prompt(path: Path, named_at: Span | None = None) -> Prompt:
    """Read the prompt in a file. `named_at` is the location that names the file, to which problems point.

    Raises:
        FormatError: the file cannot be read, is empty, is too large, or does not ask for the answer of a judge.
    """

    def refused(code: str, message: str, hint: str = "") -> FormatError:
        return FormatError(Problem(code, f"{shown_path(path)}: {message}", named_at, hint))

    try:
        if is_special(path) or path.is_dir():
            raise refused("not-a-file", "this is not a file")
        with path.open("rb") as stream:
            data = stream.read(MAX_PROMPT_BYTES + 1)
        if len(data) > MAX_PROMPT_BYTES:
            raise refused("too-large", f"a prompt of more than {MAX_PROMPT_BYTES:,} bytes")
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise refused("missing-file", "no such file", hint_for_missing(path)) from None
    except UnicodeDecodeError:
        raise refused("not-text", "not UTF-8", "save it as UTF-8") from None
    except (OSError, ValueError) as error:
        raise refused(
            "unreadable-file", f"cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    if "\0" in text:
        raise refused("not-text", "not a text file: it contains zero bytes")
    if ANSWER not in text:
        shown = clip(" ".join(text.split()), 60) or "nothing"
        hint = f"`harness judges {path.stem if path.stem in METRICS else 'faithfulness'}` prints one to start from"
        message = f'a prompt asks for {{"reason": …, {ANSWER}: …}}, this one does not: {shown}'
        raise refused("bad-value", message, hint)
    return Prompt(text, path)
