"""`harness accept`: review changed expectations of the last run, and write those that are accepted."""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from harness.cli import completion
from harness.cli.options import flag, words_option
from harness.cli.output import FAILED, OK, warnings_at_end
from harness.errors import FormatError, Problem
from harness.source.display import clip, printable
from harness.source.document import shown_path

if TYPE_CHECKING:
    from harness.authoring.accept import Proposal, Review
    from harness.source.edited_files import EditedFiles

_WIDTH: Final = 300
_QUESTION: Final = "[a]ccept, [r]eject, [s]kip, [e]dit"
_ANSWERS: Final = {"a": "accepted", "r": "rejected", "s": "skipped"}
_EXIT_CODES = """\b
Examples:
  harness accept                      everything that failed in the last run, one by one
  harness accept billing.scenario.yaml -k refund
  harness accept --all                ask once for all changes of one cause
  harness accept --dry-run | git apply

\b
Exit codes:
  0  all that failed is accepted, nothing failed, or --dry-run
  1  something is left: rejected, skipped, or to be edited by hand; or there
     is no terminal to ask at, and no --yes
  2  a file or an argument is wrong
  3  interrupted; what was accepted before is written
"""


@click.command("accept", epilog=_EXIT_CODES)
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=completion.scenario_paths)
@words_option
@flag("--all", "together", help="Ask once for all changes of one cause.")
@flag("--yes", help="Accept everything without a question.")
@flag("--dry-run", help="Print the patch that accepts everything, and change nothing.")
def command(paths: tuple[str, ...], words: str, together: bool, yes: bool, dry_run: bool) -> int:
    """Review changed expectations of the last run, and write the new values into the scenario files.

    PATH is a file, a folder or FILE::NAME of the last run (default: all of it). Each failed expectation is shown
    as a diff of its file, with the reason, and accepted, rejected, skipped or edited. Accepting changes that value
    alone; everything else in the file stays as it is. An expectation that any run would satisfy is not written, and
    nothing is written into files that changed since the run.
    """
    from harness.authoring.accept import review
    from harness.selection.keywords import parse
    from harness.settings import load_settings
    from harness.source.edited_files import EditedFiles

    settings = load_settings()
    expression = parse(words) if words.strip() else None
    with warnings_at_end():
        found = review(
            settings, paths, None if expression is None else lambda line: expression.holds(_keywords(line))
        )
    files = EditedFiles()
    if not found.proposals and not found.refused:
        click.echo("nothing failed in the last run: there is nothing to accept")
        return OK
    is_asked = not (yes or dry_run) and sys.stdin.isatty() and sys.stdout.isatty()
    if is_asked:
        return _Session(found, files, together).ask()
    _accept_all(found, files)
    _print_refused(found)
    if yes and not dry_run:
        files.save()
        click.echo(_accepted(len(found.proposals)))
        return FAILED if found.refused else OK
    click.echo(files.patch(Path.cwd()), nl=False)
    if not dry_run:
        click.echo("there is no terminal to ask at: nothing was changed; --yes accepts everything", err=True)
    return OK if dry_run else FAILED


def _keywords(line: Any) -> set[str]:
    return {*Path(line["suite"]).parts, line["suite"], line["scenario"], *line["tags"], line["id"]}


def _accept_all(found: Review, files: EditedFiles) -> None:
    for proposal in [*found.proposals]:
        after = _edited(files, proposal, proposal.new)
        if after is None:
            found.proposals.remove(proposal)
            found.refused += [(name, proposal.places[0].span, _RELIED_ON) for name in proposal.names]
        else:
            files.edit(proposal.places[0].file, after)


_RELIED_ON: Final = "other places rely on its anchor, or it cannot be written in its place"


def _edited(files: EditedFiles, proposal: Proposal, new: Any) -> str | None:
    """Return the text of the file with a new value; None if it cannot be written.

    Raises:
        FormatError: the file cannot be read.
    """
    from harness.authoring.places import edited

    file = proposal.places[0].file
    try:
        return edited(files.text(file), proposal.places, new)
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(
            Problem("unreadable-file", f"{shown_path(file)}: cannot be read: {error}")
        ) from None


def _print_refused(found: Review) -> None:
    if found.refused:
        click.echo("cannot be accepted:", err=True)
    for name, span, why in found.refused:
        click.echo(printable(f"  {f'{span}: ' if span else ''}{name}: {why}"), err=True)


def _accepted(count: int) -> str:
    return (
        f"accepted {count} expectation{'' if count == 1 else 's'}; run the scenarios again to see them pass"
    )


class _Session:
    """The review at a terminal. Each answer is written at once, so that Ctrl-C loses none."""

    def __init__(self, found: Review, files: EditedFiles, together: bool) -> None:
        self._found, self._files = found, files
        self._groups = [
            list(group)
            for _, group in groupby(found.proposals, key=lambda each: each.cause if together else id(each))
        ]
        self._answers: Counter[str] = Counter()
        self._rejected: list[str] = []

    def ask(self) -> int:
        """Go through the proposals, and return the exit code."""
        for number, (first, *others) in enumerate(self._groups, start=1):
            self._ask(first, others, f"{number} of {len(self._groups)}")
        _print_refused(self._found)
        for name in self._rejected:
            click.echo(printable(f"rejected: {name}"))
        told = [f"{count} {answer}" for answer, count in self._answers.items()]
        click.echo(", ".join(told or ["nothing can be accepted"]))
        return FAILED if self._found.refused or set(self._answers) - {"accepted"} else OK

    def _ask(self, first: Proposal, others: Sequence[Proposal], place: str) -> None:
        value, after = first.new, _edited(self._files, first, first.new)
        while True:
            if after is None:
                self._found.refused += [(name, first.places[0].span, _RELIED_ON) for name in first.names]
                for each in others[:1]:
                    self._ask(each, others[1:], place)
                return
            self._show(first, others, after, place)
            answer = _read_answer()
            if answer != "e":
                break
            edited = _read_value(value)
            why = first.finding.objection(first.path, edited)
            changed = _edited(self._files, first, edited)
            if why or changed is None:
                click.echo(f"not taken: {why or _RELIED_ON}")
            else:
                value, after = edited, changed
        self._answer(answer, [first, *others], value)

    def _answer(self, answer: str, proposals: Sequence[Proposal], value: Any) -> None:
        names = [name for each in proposals for name in each.names]
        if answer == "r":
            self._rejected += names
        taken = len(names)
        for each in proposals if answer == "a" else ():
            after = _edited(self._files, each, value if each is proposals[0] else each.new)
            if after is None:
                taken -= len(each.names)
                self._found.refused += [(name, each.places[0].span, _RELIED_ON) for name in each.names]
            else:
                self._files.edit(each.places[0].file, after)
        self._files.save()
        self._answers[_ANSWERS[answer]] += taken

    def _show(self, first: Proposal, others: Sequence[Proposal], after: str, place: str) -> None:
        span, shared = first.places[0].span, first.places[0].shared
        names = list(dict.fromkeys(first.names))
        click.echo()
        click.secho(printable(f"{span}  {names[0]}  ({place})"), bold=True)
        for text in first.reason():
            click.echo(printable(f"  {text}"))
        if shared:
            click.secho(f"  it is in {shared}: those that passed may fail with the new value", fg="yellow")
        for name in [
            *names[1:],
            *(f"{name} ({each.places[0].span})" for each in others for name in each.names),
        ]:
            click.echo(printable(f"  also {name}"))
        for line in _diff(self._files.text(first.places[0].file), after):
            click.secho(printable(line), fg={"-": "red", "+": "green"}.get(line[2]))


def _diff(before: str, after: str) -> Iterator[str]:
    """Yield the lines that differ; of long ones, the part around the first difference."""
    lines = [*difflib.unified_diff(before.split("\n"), after.split("\n"), n=0, lineterm="")][2:]
    lines = [line for line in lines if not line.startswith("@@")]
    pairs = zip(
        (line for line in lines if line[0] == "-"), (line for line in lines if line[0] == "+"), strict=False
    )
    same = min((_common(one[1:], other[1:]) for one, other in pairs), default=0)
    cut = max(0, same - _WIDTH // 4)
    for line in lines:
        yield f"  {line[0]} {'…' if cut else ''}{clip(line[1 + cut :], _WIDTH)}"


def _common(one: str, other: str) -> int:
    return next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)


def _read_answer() -> str:
    while True:
        try:
            given = click.prompt(_QUESTION, prompt_suffix="? ").strip().lower()
        except click.Abort:
            raise KeyboardInterrupt from None
        if given[:1] in ("a", "r", "s", "e") and _QUESTION.replace("[", "").replace("]", "").find(given) >= 0:
            return str(given[:1])


def _read_value(proposed: Any) -> Any:
    """Return the value that a person writes in place of the proposed one, as YAML: in $EDITOR, or on a line."""
    import os

    import yaml

    from harness.source.document import parse

    block = "|" if isinstance(proposed, str) and "\n" in proposed else None
    text = yaml.safe_dump(proposed, allow_unicode=True, sort_keys=False, width=10**6, default_style=block)
    text = text.removesuffix("...\n")
    while True:
        if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
            text = click.edit(text, extension=".yaml") or text
        else:
            try:
                text = click.prompt("new value, as YAML", default=text.strip())
            except click.Abort:
                raise KeyboardInterrupt from None
        try:
            return parse(text, file="value", yaml="1.2", error=FormatError).value
        except FormatError as error:
            click.echo(f"not YAML: {error.problems[0].one_line}")
            if not click.confirm("write it again", default=True):
                return proposed
