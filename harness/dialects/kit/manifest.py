"""Opening a manifest: its document, the Python objects it names, its problems, and the texts and lists in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import isclass
from pathlib import Path
from typing import Any, Final

from harness.dialects.dialect import Tunable
from harness.dialects.request import LoadRequest
from harness.engine.context import RunContext
from harness.errors import HarnessError, ManifestError, Problem, Span, WorldError
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath, parse, shown_path
from harness.source.imports import ImportProblem, import_object
from harness.source.location import Rewrite
from harness.source.models import describe, in_file_order
from harness.source.modules import is_plain_class, is_plain_function, look_up, name_of_tool
from harness.source.yaml import Version


def only_document(
    request: LoadRequest, *, what: str, yaml: Version = "1.1", rewrite: Rewrite | None = None
) -> Document:
    """Parse the only document of a request, from its file or its text.

    Args:
        request: the request.
        what: the kind of manifest, for the message that there are several files.
        yaml: the version of YAML.
        rewrite: changes the text before it is parsed.

    Raises:
        ManifestError: it cannot be read, or the request has several files.
    """
    if len(request.paths) > 1:
        text = f"{what} is a single file, but several are named"
        raise ManifestError(Problem("several-manifests", text, request.named_at))
    if request.components:
        text = f"{what} is a single file, so there are no 'components' of others"
        span = next(iter(request.components_at.values()), request.named_at)
        raise ManifestError(Problem("several-manifests", text, span))
    if request.text is not None:
        return parse(request.text, file=str(request.path), yaml=yaml, rewrite=rewrite)
    request.record(request.path)
    return request.read(request.path, yaml=yaml, named_at=request.named_at, rewrite=rewrite)


@contextmanager
def refusing(code: str, what: str, span: Span) -> Iterator[None]:
    """Raise a ManifestError "`what`: the error" instead of an error in the block that is not one of ours."""
    try:
        yield
    except (WorldError, ManifestError):
        raise
    except Exception as error:
        raise ManifestError(Problem(code, f"{what}: {error}", span)) from None


@contextmanager
def refuse_deep_nesting(path: Path, text: str) -> Iterator[None]:
    """Raise a ManifestError with this text instead of a RecursionError in the block."""
    try:
        yield
    except RecursionError:
        raise ManifestError(Problem("too-deep", text, Span(shown_path(path), 1, 1))) from None


@dataclass(frozen=True)
class UnimportedObject:
    """A Python object that exists in a source file and was not imported: it has no other attributes, and no value.

    tool_name    its name for models, if the source tells
    is_function  True if it is a function without decorators
    is_class     True if it is a class without decorators
    """

    tool_name: str | None = None
    is_function: bool = False
    is_class: bool = False


def load_object(dotted: str, folders: Sequence[Path], span: Span, *, imports: bool = True) -> Any:
    """Import the Python object at the import path `dotted`, which is written at `span`.

    `folders` are searched before `sys.path`. If `imports` is False, the object is looked up in the source without
    running it, and an `UnimportedObject` is returned.

    Raises:
        ManifestError: it does not exist, or cannot be imported.
    """
    try:
        return _found(dotted, folders, imports)
    except ImportProblem as error:
        raise ManifestError(Problem("import", error.message, span, error.hint)) from None


def _found(dotted: str, folders: Sequence[Path], imports: bool) -> Any:
    if imports:
        return import_object(dotted, folders)
    found = look_up(dotted, folders)
    return UnimportedObject(name_of_tool(found), is_plain_function(found), is_plain_class(found))


def is_class(found: Any) -> bool:
    """True if an object of `load_object` is a class, as far as its source tells if it was not imported."""
    return found.is_class if isinstance(found, UnimportedObject) else isclass(found)


def load_hook(hook: Any, request: LoadRequest) -> Any:
    """Return a hook that the caller installs: the object at its import path (see `load_object`), or itself.

    Raises:
        ManifestError: it cannot be imported.
    """
    try:
        return _found(hook, request.folders, request.imports) if isinstance(hook, str) else hook
    except ImportProblem as error:
        place = error.span or request.span_of_hook(hook)
        raise ManifestError(Problem("import", error.message, place, error.hint)) from None


# ------------------------------------------------------------------ problems, and inputs


class Problems:
    """The problems of a manifest collected so far. `errors` refuse it, `warnings` do not."""

    def __init__(self, warnings: Iterable[Problem] = ()) -> None:
        self.errors: list[Problem] = []
        self.warnings: list[Problem] = list(warnings)

    def refuse(self, code: str, text: str, span: Span, hint: str = "") -> None:
        """Add an error."""
        self.errors.append(Problem(code, text, span, hint))

    def warn(self, code: str, text: str, span: Span, hint: str = "") -> None:
        """Add a warning."""
        self.warnings.append(Problem(code, text, span, hint, "warning"))

    def add(self, problems: Iterable[Problem]) -> None:
        """Add problems to the errors or the warnings, by their severity."""
        for problem in problems:
            (self.warnings if problem.severity == "warning" else self.errors).append(problem)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Catch a ManifestError in the block and add its problems."""
        try:
            yield
        except ManifestError as error:
            self.errors += error.problems

    def raise_errors(self) -> None:
        """Raise all errors, if there are any.

        Raises:
            ManifestError: with the errors in the order of the file.
        """
        if self.errors:
            raise ManifestError(in_file_order(self.errors))


class BadInput(HarnessError):
    """An input that the agent cannot take."""

    code = "bad-input"


def input_values(value: Any, text_key: str, expected: str) -> Mapping[str, Any]:
    """Return an input as a mapping: text becomes the value of `text_key`, None an empty mapping.

    Raises:
        BadInput: the input is none of these. The message begins with `expected` ("an input is …").
    """
    if value is None:
        return {}
    if isinstance(value, str):
        return {text_key: value}
    if not isinstance(value, Mapping):
        raise BadInput(f"{expected}, not {describe(value)}")
    return value


def warn_dropped_inputs(names: Iterable[str], known: Iterable[str], why: str, run: RunContext) -> None:
    """Warn that the inputs `names` are dropped. `why` completes the sentence; `known` names are suggested."""
    options = list(known)
    for name in names:
        hint = did_you_mean(str(name), options)
        run.warn(f"input '{name}' is dropped: {why}" + (f" ({hint})" if hint else ""))


# ------------------------------------------------------------------ tunables


ToolName = Callable[[Any], str | None]
"""A function from a tool as written to its name; None if it has none."""


def mappings(value: Any) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Yield the mappings in a mapping or a list, each with its key or index."""
    if isinstance(value, dict):
        items: Iterable[tuple[Any, Any]] = value.items()
    else:
        items = enumerate(value if isinstance(value, list) else ())
    yield from ((key, item) for key, item in items if isinstance(item, dict))


def temperature(owner: str, within: Any, path: DocumentPath, default: float | None = None) -> list[Tunable]:
    """Return the temperature of the mapping `within` at `path`, as a list of one; empty if it is not a number."""
    if not isinstance(within, dict):
        return []
    value = within.get("temperature")
    if value is None:
        value = default
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return []
    return [Tunable("temperature", owner, (*path, "temperature"), value)]


def tool_lists(
    lists: Iterable[tuple[str, DocumentPath, Any]], name: ToolName, further: Iterable[Any] = ()
) -> list[Tunable]:
    """Return the tunables of tool lists. The pool of each is the tools of all lists, and `further` ones.

    Args:
        lists: the owner, path and value of each list. A list with a tool that has no name is left out.
        name: returns the name of a tool.
        further: tools that no list has.
    """
    found = [
        (owner, path, value)
        for owner, path, value in lists
        if isinstance(value, list) and value and all(name(tool) for tool in value)
    ]
    pool: dict[str, Any] = {}
    for tool in [*(tool for _, _, value in found for tool in value), *further]:
        if (known := name(tool)) is not None:
            pool.setdefault(known, tool)
    return [
        Tunable("tools", owner, path, tuple(dict.fromkeys(str(name(tool)) for tool in value)), pool)
        for owner, path, value in found
    ]


def tunables_in(
    section: str, owners: Sequence[tuple[str, Mapping[str, Any]]], default: float | None = None
) -> list[Tunable]:
    """Return the temperatures, then the lists of names of tools, of mappings in a section, by their keys."""
    found = [each for name, owner in owners for each in temperature(name, owner, (section, name), default)]
    lists = ((name, (section, name, "tools"), owner.get("tools")) for name, owner in owners)
    return [*found, *tool_lists(lists, lambda tool: tool if isinstance(tool, str) and tool else None)]


# ------------------------------------------------------------------ placeholders in texts


def placeholders(value: Any, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield the placeholders in a text, or in the texts of lists and mappings at any depth, keys included."""
    if isinstance(value, str):
        yield from pattern.finditer(value)
    elif isinstance(value, Mapping):
        for key, held in value.items():
            yield from placeholders(key, pattern)
            yield from placeholders(held, pattern)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from placeholders(item, pattern)


def fill(value: Any, pattern: re.Pattern[str], text_of: Callable[[re.Match[str]], str]) -> Any:
    """Return a text, list or mapping with each placeholder replaced by `text_of` its match.

    Placeholders in the inserted text are not expanded.
    """
    if isinstance(value, str):
        return pattern.sub(text_of, value)
    if isinstance(value, Mapping):
        return {fill(key, pattern, text_of): fill(held, pattern, text_of) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [fill(item, pattern, text_of) for item in value]
    return value


_FENCE: Final = re.compile(r"(`{3,})(?:[\w+-]+(?=[\s\[{\"]))?\s*(.*?)\s*\1", re.DOTALL)


def strip_code_fence(text: str) -> str:
    """Return the trimmed text; if all of it is one code fence, the content of the fence."""
    text = text.strip()
    found = _FENCE.fullmatch(text)
    return found[2] if found else text
