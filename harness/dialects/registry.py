"""The registered dialects, by name or by the content of a manifest.

Dialects come from `DIALECTS` and from installed packages (entry points in the group `harness.dialects`, the name
of the dialect and the module or object that implements it). Each is imported and verified when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from harness.dialects import DIALECTS
from harness.dialects.dialect import BROKEN_HINT, METHODS, Dialect, checked, verify
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem, Span
from harness.source.display import did_you_mean
from harness.source.document import Document, read, shown_path
from harness.source.frames import located_defects
from harness.source.recovery import readable_part
from harness.source.yaml import Version

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
    verified = verify(found, name, origin)
    return verified if name in DIALECTS else cast(Dialect, _OfPackage(verified, origin))


class _OfPackage:
    """A dialect of another package. An exception of one of its members is told as a defect of that package."""

    def __init__(self, dialect: Dialect, origin: str) -> None:
        self._dialect = dialect
        text = f"the dialect '{dialect.name}' of {origin} broke"
        self._broken = Problem("broken-dialect", text, None, BROKEN_HINT)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._dialect, name)
        return partial(self._call, name, found) if name in METHODS else found

    def _call(self, name: str, method: Callable[[Any], Any], given: Path | Document | LoadRequest) -> Any:
        if isinstance(given, Document):
            path, named_at = Path(given.file), None
        else:
            path, named_at = (given, None) if isinstance(given, Path) else (given.path, given.named_at)
        with located_defects(path, named_at, broken=self._broken):
            return checked(name, method(given))


def dialect_of(path: Path, named_at: Span | None = None) -> Dialect:
    """Return the dialect that recognizes the content of a manifest.

    Raises:
        ManifestError: it cannot be read, or no dialect recognizes it.
    """
    if (claiming := _claiming(path)) is not None:
        return claiming
    if path.suffix == ".py" and path.is_file():
        text = f"{shown_path(path)} is a module of Python, not a manifest"
        hint = f"name the agent in it, such as {shown_path(path)}:graph"
        raise ManifestError(Problem("unknown-dialect", text, named_at, hint))
    found = detect_dialect(path, map(dialect_named, names()), named_at)
    if found.error is not None:
        raise found.error
    document = found.document
    if found.dialect is None:
        if (problem := _fragment(document, map(dialect_named, names()))) is not None:
            raise ManifestError(problem)
        text = f"{shown_path(path)} is not a manifest of a known dialect ({', '.join(names())})"
        hint = "if it is one of these, name it: `dialect:` in a scenario, or --dialect"
        if _is_scenario_file(document):
            text = f"{shown_path(path)} is a scenario file, not a manifest"
            hint = "`manifest` names the file of the agent"
        raise ManifestError(Problem("unknown-dialect", text, document.span(), hint))
    return found.dialect


def _claiming(path: Path) -> Dialect | None:
    """Return the first dialect of which a path names an object; see `SupportsObjects`. Most paths are files."""
    if ":" not in path.name:
        return None
    dialects = map(dialect_named, names())
    return next((each for each in dialects if claims(each, path)), None)


def claims(dialect: Dialect, path: Path) -> bool:
    """True if a path names an object of Python that is a manifest of a dialect."""
    claim = getattr(dialect, "claims", None)
    return claim is not None and bool(claim(path))


def _fragment(document: Document, dialects: Iterable[Dialect]) -> Problem | None:
    """Return the problem of a document that is only part of a manifest in some dialect; see `SupportsFragments`."""
    fragments = filter(None, (getattr(dialect, "fragment", None) for dialect in dialects))
    return next(filter(None, (fragment(document) for fragment in fragments)), None)


def _is_scenario_file(document: Document) -> bool:
    return isinstance(document.value, dict) and {"harness", "scenarios"} <= document.value.keys()


class Detection(NamedTuple):
    """The result of looking for the dialect of a file.

    dialect   the first dialect that recognizes it, by its readable part if it cannot be read; None: no dialect does
    document  the parsed file, or its readable part
    error     the reason why it cannot be read in the version of YAML of the dialect (None: in any); or None
    is_whole  False if `document` lacks more than keys that are given twice or are not text
    """

    dialect: Dialect | None
    document: Document
    error: ManifestError | None = None
    is_whole: bool = True


def detect_dialect(path: Path, dialects: Iterable[Dialect], named_at: Span | None = None) -> Detection:
    """Return the first dialect that recognizes a manifest, and the parsed manifest.

    A file is parsed at most once per version of YAML.

    Raises:
        ManifestError: a dialect is broken.
    """
    with located_defects(path, named_at):
        return _detect(path, tuple(dialects), named_at)


def _detect(path: Path, dialects: Sequence[Dialect], named_at: Span | None) -> Detection:
    documents: dict[tuple[Path, Version], Document | ManifestError] = {}
    for dialect in dialects:
        key = (manifest_at(path, dialect), dialect.yaml)
        if key not in documents:
            documents[key] = _read(*key, named_at)
        document = documents[key]
        if isinstance(document, Document) and dialect.detect(document):
            return Detection(dialect, document)
    errors: dict[Path, ManifestError] = {}
    for (file, _), found in documents.items():
        if isinstance(found, ManifestError):
            errors[file] = _in_both(errors[file], found) if file in errors else found
    parts = {file: readable_part(file) for file in errors}
    readable = [found for found in documents.values() if isinstance(found, Document)]
    for dialect in dialects:
        file = manifest_at(path, dialect)
        found = documents[file, dialect.yaml]
        if isinstance(found, ManifestError):
            part = parts[file].document
            # The manifest may be valid only in another version: a key `yes` is a boolean in YAML 1.1 and text in 1.2.
            if any(map(dialect.detect, (*readable, part))) or _fragment(part, [dialect]) is not None:
                return Detection(dialect, part, found)
    may_be_of_another_yaml = any(error.problems[0].code == "syntax" for error in errors.values())
    if readable and (_is_scenario_file(readable[0]) or not may_be_of_another_yaml):
        return Detection(None, readable[0])
    file = next((file for file in errors if file != path), path)
    return Detection(None, parts[file].document, errors[file], parts[file].whole)


def _in_both(first: ManifestError, second: ManifestError) -> ManifestError:
    """Return the problems that a file has in both versions of YAML; if there are none, those of the second."""
    shared = [problem for problem in second.problems if problem in first.problems]
    return ManifestError(shared) if shared else second


def manifest_at(path: Path, dialect: Dialect) -> Path:
    """Return the manifest that a path stands for in a dialect; the path itself if the dialect locates none."""
    return next(iter(dialect.locate(path)), path)


def agents_of(path: Path, dialect: str | None) -> tuple[Dialect, list[str]]:
    """Return a manifest's dialect and its agents, in order; no agents if its sections are malformed.

    Raises:
        ManifestError: the file cannot be read, or is not a manifest.
    """
    with located_defects(path):
        found = dialect_named(dialect) if dialect else dialect_of(path)
        if claims(found, path):  # an object of a module, no document
            return found, []
        return found, list(found.agents(read(manifest_at(path, found), yaml=found.yaml)))


def _read(path: Path, yaml: Version, named_at: Span | None) -> Document | ManifestError:
    try:
        return read(path, yaml=yaml, named_at=named_at)
    except ManifestError as error:
        return error
