"""The registered dialects: those of the table, and those of installed packages (entry points `harness.dialects`).

The name of an entry point is the name of its dialect, its value the module or object that is the dialect. Each is
imported, and verified, when it is first needed.
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
    """The entry points of the front ends by name: first those of packages, which never replace one of ours.

    Raises:
        ManifestError: two packages have a dialect of the same name (code `broken-dialect`).
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
    """The names of the dialects that can be run."""
    return list(registered())


@cache
def dialect_named(name: str) -> Dialect:
    """The dialect of that name.

    Raises:
        ManifestError: there is none (code `unknown-dialect`), or it is not as it should be (`broken-dialect`).
    """
    if name not in registered():
        hint = did_you_mean(name, names())
        raise ManifestError(Problem("unknown-dialect", f"no dialect '{name}' can be run", None, hint))
    point = registered()[name]
    origin = _origin(point)
    try:
        found = point.load()
    except (Exception, SystemExit) as error:  # whatever a package does when it is imported
        text = f"the dialect '{name}' of {origin} cannot be imported: {type(error).__name__}: {error}"
        raise ManifestError(Problem("broken-dialect", text, None, BROKEN_HINT)) from error
    return verify(found, name, origin)


def dialect_of(path: Path, named_at: Span | None = None) -> Dialect:
    """The dialect a manifest is written in, by its content.

    Raises:
        ManifestError: it cannot be read, or no dialect knows it.
    """
    dialect, document = detect_dialect(path, map(dialect_named, names()), named_at)
    if dialect is None:
        if (problem := _fragment(document)) is not None:
            raise ManifestError(problem)
        text = f"{shown_path(path)} is a manifest of no known dialect ({', '.join(names())})"
        hint = "if it is one of these, name it: `dialect:` in a scenario, or --dialect"
        if _is_scenario_file(document):
            text = f"{shown_path(path)} is a scenario file, and no manifest"
            hint = "`manifest` names the file of the agent"
        raise ManifestError(Problem("unknown-dialect", text, document.span(), hint))
    return dialect


def _fragment(document: Document) -> Problem | None:
    """The problem of a document that is a part of the manifests of some dialect."""
    described = (getattr(dialect_named(name), "fragment", None) for name in names())
    return next((found for each in described if each and (found := each(document)) is not None), None)


def _is_scenario_file(document: Document) -> bool:
    return isinstance(document.value, dict) and {"harness", "scenarios"} <= document.value.keys()


def detect_dialect(
    path: Path, dialects: Iterable[Dialect], named_at: Span | None = None
) -> tuple[Dialect | None, Document]:
    """The first of the dialects that recognizes a manifest, and the manifest as that dialect reads it.

    A file is parsed at most once for each version of YAML.

    Raises:
        ManifestError: the manifest cannot be read in any version that one of the dialects is written in; or none
            recognizes it, and it cannot be parsed in one of the versions, or is of a dialect as another one reads it.
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
        # A key `yes` is a boolean in one version of YAML and text in another.
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
    """What is wrong with a file in two versions of YAML; all that is wrong in the second if they share nothing."""
    shared = [problem for problem in second.problems if problem in first.problems]
    return ManifestError(*shared) if shared else second


def manifest_at(path: Path, dialect: Dialect) -> Path:
    """The manifest that a path stands for in a dialect; the path itself where the dialect knows none."""
    return next(iter(dialect.locate(path)), path)


def _read(path: Path, yaml: YamlVersion, named_at: Span | None) -> Document | ManifestError:
    try:
        return read(path, yaml=yaml, named_at=named_at)
    except ManifestError as error:
        return error
