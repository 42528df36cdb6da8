"""Opening a manifest: its document, the objects it imports, and everything that is wrong with it, raised once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem, Span
from harness.source.document import Document, parse, shown_path
from harness.source.imports import ImportProblem, import_object
from harness.source.models import in_file_order
from harness.source.rewriting import Rewrite
from harness.source.static_lookup import is_plain_function, look_up, name_of_tool
from harness.source.yaml import Version


def only_document(
    request: LoadRequest, *, what: str, yaml: Version = "1.1", rewrite: Rewrite | None = None
) -> Document:
    """The one document of a request, from its file or its text; `rewrite` changes the text before it is parsed.

    Raises:
        ManifestError: it cannot be read, or there are several; `what` names it in the message.
    """
    if len(request.paths) > 1:
        text = f"{what} is a single file, and several are named"
        raise ManifestError(Problem("several-manifests", text, request.named_at))
    if request.text is not None:
        return parse(request.text, file=str(request.path), yaml=yaml, rewrite=rewrite)
    request.record(request.path)
    return request.read(request.path, yaml=yaml, named_at=request.named_at, rewrite=rewrite)


@contextmanager
def refuse_deep_nesting(path: Path, text: str) -> Iterator[None]:
    """Refuse a manifest whose parts are nested deeper than Python can follow.

    Raises:
        ManifestError: with this text, instead of a RecursionError.
    """
    try:
        yield
    except RecursionError:
        raise ManifestError(Problem("too-deep", text, Span(shown_path(path), 1, 1))) from None


@dataclass(frozen=True)
class UnimportedObject:
    """An object that is there, and was not imported.

    `tool_name` is its name for models, if that can be known; `is_function`: it is a function without decorators.
    """

    tool_name: str | None = None
    is_function: bool = False


def load_object(dotted: str, folders: Sequence[Path], span: Span, *, imports: bool = True) -> Any:
    """The Python object of an import path that stands at `span`, with `folders` searched before everything else.

    Without `imports` it is only looked up, and stands there as `UnimportedObject`.

    Raises:
        ManifestError: it is not there, or cannot be imported.
    """
    try:
        return _found(dotted, folders, imports)
    except ImportProblem as error:
        raise ManifestError(Problem("import", error.message, span, error.hint)) from None


def _found(dotted: str, folders: Sequence[Path], imports: bool) -> Any:
    if imports:
        return import_object(dotted, folders)
    found = look_up(dotted, folders)
    return UnimportedObject(name_of_tool(found), is_plain_function(found))


def load_hook(hook: Any, request: LoadRequest) -> Any:
    """A hook that the caller installs: the object of its import path, as `load_object` gives it, or the hook itself.

    Raises:
        ManifestError: it cannot be imported.
    """
    try:
        return _found(hook, request.folders, request.imports) if isinstance(hook, str) else hook
    except ImportProblem as error:
        place = error.span or request.span_of_hook(hook)
        raise ManifestError(Problem("import", error.message, place, error.hint)) from None


class Problems:
    """What is wrong with a manifest, as far as it has been read: `errors` refuse it, `warnings` do not."""

    def __init__(self, warnings: Iterable[Problem] = ()) -> None:
        self.errors: list[Problem] = []
        self.warnings: list[Problem] = list(warnings)

    def refuse(self, code: str, text: str, span: Span, hint: str = "") -> None:
        """Add an error."""
        self.errors.append(Problem(code, text, span, hint))

    def add(self, problems: Iterable[Problem]) -> None:
        """Add problems, each by its severity."""
        for problem in problems:
            (self.warnings if problem.severity == "warning" else self.errors).append(problem)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Add what a ManifestError inside tells, and go on after it."""
        try:
            yield
        except ManifestError as error:
            self.errors += error.problems

    def raise_errors(self) -> None:
        """End here if there is any error.

        Raises:
            ManifestError: with all errors, in the order of the file.
        """
        if self.errors:
            raise ManifestError(in_file_order(self.errors))
