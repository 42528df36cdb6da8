"""`harness accept`: review changed expectations of the last run, and write those that are accepted."""

from __future__ import annotations

import difflib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from harness.cli import completion
from harness.cli.options import flag, is_at_terminal, words_option
from harness.cli.output import FAILED, OK, warnings_at_end
from harness.errors import FormatError, Problem
from harness.source.display import clip, did_you_mean, printable
from harness.source.document import real_path, shown_path

if TYPE_CHECKING:
    from harness.authoring.accept import Proposal, Review
    from harness.source.edited_files import EditedFiles

_WIDTH: Final = 300
_QUESTION: Final = "[a]ccept, [r]eject, [s]kip, [e]dit"
_ANSWERS: Final = {
    **dict.fromkeys(("a", "accept"), "accepted"),
    **dict.fromkeys(("r", "reject"), "rejected"),
    **dict.fromkeys(("s", "skip"), "skipped"),
    **dict.fromkeys(("e", "edit"), ""),
}
_EXIT_CODES = """\b
Examples:
  harness accept                      everything that failed in the last run, one by one
  harness accept billing.scenario.yaml -k refund
  harness accept --all                ask once for all changes of one cause
  harness accept --dry-run | git apply
  harness accept --mutant ID          the suggestion of `harness mutate`

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
@click.option(
    "--mutant",
    "mutants",
    multiple=True,
    metavar="ID",
    help="Add the expectation that notices this mutant of `harness mutate`; may be repeated.",
)
def command(
    paths: tuple[str, ...], words: str, together: bool, yes: bool, dry_run: bool, mutants: tuple[str, ...]
) -> int:
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
    if mutants:
        if paths or words or together:
            raise click.UsageError("--mutant names what is added: no PATH, -k or --all beside it")
        return _add(settings.project, mutants, dry_run=dry_run)
    expression = parse(words) if words.strip() else None
    with warnings_at_end():
        found = review(
            settings, paths, None if expression is None else lambda line: expression.holds(_keywords(line))
        )
    if not found.proposals and not found.refused:
        click.echo("nothing failed in the last run: there is nothing to accept")
        return OK
    files = EditedFiles()
    for proposal in found.proposals:  # all are read now: an edit of a file during the review is noticed
        _text(files, proposal)
    if not (yes or dry_run) and is_at_terminal():
        return _Session(found, files, together).ask()
    found.proposals = [each for each in found.proposals if _accept(found, files, each, each.new)]
    _print_refused(found)
    if yes and not dry_run:
        files.save()
        count = sum(len(each.names) for each in found.proposals)
        click.echo(
            f"accepted {count} expectation{'' if count == 1 else 's'}; run the scenarios again to see them pass"
        )
        return FAILED if found.refused else OK
    here = all(each.places[0].file.is_relative_to(real_path(Path())) for each in found.proposals)
    click.echo(files.patch(Path() if here else settings.project), nl=False)
    if not dry_run:
        click.echo("there is no terminal to ask at: nothing was changed; --yes accepts everything", err=True)
    return OK if dry_run else FAILED


def _add(project: Path, mutants: Sequence[str], *, dry_run: bool) -> int:
    """Add the expectations that notice mutants to their scenarios."""
    from harness.authoring.addition import with_expectations
    from harness.mutation.result import stored_results
    from harness.source.edited_files import EditedFiles

    known, files, added = stored_results(project), EditedFiles(), []
    for id_ in mutants:
        if id_ not in known:
            hint = did_you_mean(id_, known, listing=False) or "`harness mutate` lists them"
            raise FormatError(Problem("unknown-mutant", f"no mutant '{id_}' is known here", hint=hint))
        result = known[id_]
        if result.suggested_for is None or result.expect is None:
            why = result.suggestion or f"it is {result.outcome.replace('_', ' ')}"
            raise FormatError(Problem("no-suggestion", f"no expectation is suggested for '{id_}': {why}"))
        suite, _, name = result.suggested_for.partition("::")
        at = Path(suite) if Path(suite).exists() else project / suite
        file = real_path(at)
        try:
            before = files.text(file)
        except (OSError, UnicodeDecodeError) as error:
            raise FormatError(Problem("unreadable-file", f"{suite}: cannot be read: {error}")) from None
        files.edit(file, with_expectations(before, at, name, result.expect))
        added.append(f"added to {result.suggested_for}: {' '.join((result.suggestion or '').split())}")
    if dry_run:
        click.echo(files.patch(project), nl=False)
        return OK
    files.save()
    for text in added:
        click.echo(printable(clip(text, _WIDTH)))
    return OK


def _keywords(line: Any) -> set[str]:
    return {*Path(line["suite"]).parts, line["suite"], line["scenario"], *line["tags"], line["id"]}


_RELIED_ON: Final = "other places rely on its anchor, or it cannot be written in its place"


def _accept(found: Review, files: EditedFiles, proposal: Proposal, new: Any) -> bool:
    """Edit the file of a proposal; if that is impossible, refuse it and return False."""
    after = _edited(files, proposal, new)
    if after is None:
        found.refused += [(name, proposal.places[0].span, _RELIED_ON) for name in proposal.names]
        return False
    files.edit(proposal.places[0].file, after)
    return True


def _edited(files: EditedFiles, proposal: Proposal, new: Any) -> str | None:
    from harness.authoring.places import edited

    return edited(_text(files, proposal), proposal.places, new)


def _text(files: EditedFiles, proposal: Proposal) -> str:
    file = proposal.places[0].file
    try:
        return files.text(file)
    except (OSError, UnicodeDecodeError) as error:
        text = f"{shown_path(file)}: cannot be read: {error}"
        raise FormatError(Problem("unreadable-file", text)) from None


def _print_refused(found: Review) -> None:
    if found.refused:
        click.echo("cannot be accepted:", err=True)
    for name, span, why in found.refused:
        click.echo(printable(f"  {f'{span}: ' if span else ''}{name}: {why}"), err=True)


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
        for number, group in enumerate(self._groups, start=1):
            self._ask(group, f"{number} of {len(self._groups)}")
        _print_refused(self._found)
        for name in self._rejected:
            click.echo(printable(f"rejected: {name}"))
        told = [f"{count} {answer}" for answer, count in self._answers.items() if count]
        click.echo(", ".join(told or ["nothing can be accepted"]))
        return FAILED if self._found.refused or set(self._answers) - {"accepted"} else OK

    def _ask(self, group: Sequence[Proposal], place: str) -> None:
        first, answer = group[0], "e"
        value, after = first.new, _edited(self._files, first, first.new)
        while answer == "e":
            self._show(group, after, place)
            answer = _read_answer()
            if answer == "e":
                typed = _read_value(value)
                made = _edited(self._files, first, typed)
                if why := first.finding.objection(first.path, typed) or ("" if made else _RELIED_ON):
                    click.echo(f"not taken: {why}")
                else:
                    value, after = typed, made
        taken = group
        if answer == "a":
            new = [value, *(each.new for each in group[1:])]
            taken = [
                each
                for each, of in zip(group, new, strict=True)
                if _accept(self._found, self._files, each, of)
            ]
            self._files.save()
        names = [name for each in taken for name in each.names]
        self._rejected += names if answer == "r" else []
        self._answers[_ANSWERS[answer]] += len(names)

    def _show(self, group: Sequence[Proposal], after: str | None, place: str) -> None:
        first, shared = group[0], group[0].places[0].shared
        click.echo()
        click.secho(printable(f"{first.places[0].span}  {first.names[0]}  ({place})"), bold=True)
        for text in first.reason():
            click.echo(printable(f"  {text}"))
        if shared:
            click.secho(f"  it is in {shared}: those that passed may fail with the new value", fg="yellow")
        also = [f"{name} ({each.places[0].span})" for each in group for name in dict.fromkeys(each.names)]
        for name in also[1:]:
            click.echo(printable(f"  also {name}"))
        for line in _diff(_text(self._files, first), after) if after is not None else [f"  {_RELIED_ON}"]:
            click.secho(printable(line), fg={"-": "red", "+": "green"}.get(line[2]))


def _diff(before: str, after: str) -> Iterator[str]:
    """Yield the lines that differ; of long ones, the part around the first difference."""
    lines = [*difflib.unified_diff(before.split("\n"), after.split("\n"), n=0, lineterm="")][2:]
    lines = [line for line in lines if not line.startswith("@@")]
    sides = [next((line[1:] for line in lines if line[0] == sign), "") for sign in "-+"]
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*sides, strict=False)))
    cut = max(0, same - _WIDTH // 4)
    yield from (f"  {line[0]} {'…' if cut else ''}{clip(line[1 + cut :], _WIDTH)}" for line in lines)


def _read_answer() -> str:
    while (given := _read_line(_QUESTION, "? ").lower()) not in _ANSWERS:
        pass
    return given[:1]


def _read_value(proposed: Any) -> Any:
    """Return the value that a person writes in place of the proposed one, as YAML: in $EDITOR, or on a line."""
    import yaml

    from harness.source.document import parse

    in_editor = bool(os.environ.get("VISUAL") or os.environ.get("EDITOR"))
    block = "|" if in_editor and isinstance(proposed, str) and "\n" in proposed else None
    text = yaml.safe_dump(
        proposed,
        allow_unicode=True,
        sort_keys=False,
        width=10**6,
        default_style=block,
        default_flow_style=not in_editor,
    ).removesuffix("...\n")
    while True:
        typed = (
            click.edit(text, extension=".yaml") or text
            if in_editor
            else _read_line("new value, as YAML", default=text.strip())
        )
        try:
            return parse(typed, file="value", yaml="1.2", error=FormatError).value
        except FormatError as error:
            click.echo(f"not YAML: {error.problems[0].one_line}")
        if in_editor:  # there it can be repaired; at the prompt, Enter would give it again
            text = typed


def _read_line(question: str, suffix: str = ": ", default: str | None = None) -> str:
    try:
        return str(click.prompt(question, default, prompt_suffix=suffix)).strip()
    except click.Abort:  # Ctrl-C, or the end of the input
        raise KeyboardInterrupt from None
