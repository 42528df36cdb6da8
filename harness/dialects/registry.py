"""The registered dialects, by name or by the content of a manifest.

Dialects come from `DIALECTS` and from installed packages (entry points in the group `harness.dialects`, the name
of the dialect and the module or object that implements it). Each is imported and verified when it is first needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

from harness.dialects import DIALECTS
from harness.dialects.dialect import BROKEN_HINT, Dialect, YamlVersion, verify
from harness.errors import ManifestError, Problem, Span
from harness.source.document import Document, read, shown_path
from harness.source.suggest import did_you_mean

GROUP: Final = "harness.dialects"


@cache
def registered() -> Mapping[str, EntryPoint]:
    """Return the entry points of all dialects by name. A package cannot replace a dialect of `DIALECTS`.

    Raises:
        ManifestError: two packages register the same name (code `broken-dialect`).
    """
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        if found.setdefault(point.name, point).value != point.value:
            both = f"{_origin(found[point.name])} and {_origin(point)}"
            text = f"two packages have a dialect '{point.name}': {both}"
            raise ManifestError(Problem("broken-dialect", text, None, BROKEN_HINT))
    ours = {name: EntryPoint(name, module, GROUP) for name, module in DIALECTS.items()}
    return {**found, **ours}


def _origin(point: EntryPoint) -> str:
    return f"the package '{point.dist.name}' ({point.value})" if point.dist else point.value


def names() -> list[str]:
    """Return the names of the registered dialects."""
    return list(registered())


@cache
def dialect_named(name: str) -> Dialect:
    """Import and verify the dialect with this name.

    Raises:
        ManifestError: it is not registered (code `unknown-dialect`), or it is broken (`broken-dialect`).
    """
    if name not in registered():
        hint = did_you_mean(name, names())
        raise ManifestError(Problem("unknown-dialect", f"there is no dialect '{name}'", None, hint))
    point = registered()[name]
    origin = _origin(point)
    try:
        found = point.load()
    except (Exception, SystemExit) as error:  # importing a package can raise anything
        text = f"the dialect '{name}' of {origin} cannot be imported: {type(error).__name__}: {error}"
        raise ManifestError(Problem("broken-dialect", text, None, BROKEN_HINT)) from error
    return verify(found, name, origin)


def dialect_of(path: Path, named_at: Span | None = None) -> Dialect:
    """Return the dialect that recognizes the content of a manifest.

    Raises:
        ManifestError: it cannot be read, or no dialect recognizes it.
    """
    dialect, document = detect_dialect(path, map(dialect_named, names()), named_at)
    if dialect is None:
        if (problem := _fragment(document)) is not None:
            raise ManifestError(problem)
        text = f"{shown_path(path)} is not a manifest of a known dialect ({', '.join(names())})"
        hint = "if it is one of these, name it: `dialect:` in a scenario, or --dialect"
        if _is_scenario_file(document):
            text = f"{shown_path(path)} is a scenario file, not a manifest"
            hint = "`manifest` names the file of the agent"
        raise ManifestError(Problem("unknown-dialect", text, document.span(), hint))
    return dialect


def _fragment(document: Document) -> Problem | None:
    """Return the problem of a document that is only part of a manifest in some dialect; see `SupportsFragments`."""
    fragments = (getattr(dialect_named(name), "fragment", None) for name in names())
    return next(
        (found for fragment in fragments if fragment and (found := fragment(document)) is not None), None
    )


def _is_scenario_file(document: Document) -> bool:
    return isinstance(document.value, dict) and {"harness", "scenarios"} <= document.value.keys()


def detect_dialect(
    path: Path, dialects: Iterable[Dialect], named_at: Span | None = None
) -> tuple[Dialect | None, Document]:
    """Return the first dialect that recognizes a manifest (None: no dialect does), and the parsed manifest.

    A file is parsed at most once per version of YAML.

    Raises:
        ManifestError: the manifest cannot be read in any version of YAML that the dialects use. Or no dialect
            recognizes it, and it is not valid YAML in one of the versions, or a dialect would recognize it if it
            were parsed in another version.
    """
    dialects = tuple(dialects)
    documents: dict[tuple[Path, YamlVersion], Document | ManifestError] = {}
    for dialect in dialects:
        key = (manifest_at(path, dialect), dialect.yaml)
        if key not in documents:
            documents[key] = _read(*key, named_at)
        document = documents[key]
        if isinstance(document, Document) and dialect.detect(document):
            return dialect, document
    readable = [found for found in documents.values() if isinstance(found, Document)]
    for dialect in dialects:
        found = documents[manifest_at(path, dialect), dialect.yaml]
        # The manifest may be valid only in another version: a key `yes` is a boolean in YAML 1.1 and text in 1.2.
        if isinstance(found, ManifestError) and any(map(dialect.detect, readable)):
            raise found
    errors: dict[Path, ManifestError] = {}
    for (file, _), found in documents.items():
        if isinstance(found, ManifestError):
            errors[file] = _in_both(errors[file], found) if file in errors else found
    may_be_of_another_yaml = any(error.problems[0].code == "syntax" for error in errors.values())
    if readable and (_is_scenario_file(readable[0]) or not may_be_of_another_yaml):
        return None, readable[0]
    raise next((error for file, error in errors.items() if file != path), None) or errors[path]


def _in_both(first: ManifestError, second: ManifestError) -> ManifestError:
    """Return the problems that a file has in both versions of YAML; if there are none, those of the second."""
    shared = [problem for problem in second.problems if problem in first.problems]
    return ManifestError(*shared) if shared else second


def manifest_at(path: Path, dialect: Dialect) -> Path:
    """Return the manifest that a path stands for in a dialect; the path itself if the dialect locates none."""
    return next(iter(dialect.locate(path)), path)


def _read(path: Path, yaml: YamlVersion, named_at: Span | None) -> Document | ManifestError:
    try:
        return read(path, yaml=yaml, named_at=named_at)
    except ManifestError as error:
        return error
