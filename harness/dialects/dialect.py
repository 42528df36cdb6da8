"""The interface of a dialect's front end, and its verification."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Final, Literal, Protocol, cast, get_args

from harness.dialects.prompt import Prompt
from harness.dialects.request import LoadRequest
from harness.dialects.tunable import Tunable
from harness.errors import ManifestError, Problem
from harness.graph.model import Graph
from harness.source.document import Document

YamlVersion = Literal["1.1", "1.2", "templated"]


class Dialect(Protocol):
    """A front end: a module, or any object, with these members. Importing it must be cheap.

    Everything that reads a manifest raises `ManifestError` with all problems it found.
    """

    @property
    def name(self) -> str:
        """The name in scenarios, and the name under which the dialect is registered."""

    @property
    def title(self) -> str:
        """What its manifests are, in a few words."""

    @property
    def yaml(self) -> YamlVersion:
        """The version of YAML its manifests are written in, known before one is parsed."""

    def locate(self, path: Path) -> Sequence[Path]:
        """The files a path stands for: the manifest, then documents it draws components from.

        A file stands for itself, whether it exists or not. Of a folder, the files of the manifest in it; none
        where the dialect has no use for the folder. Nothing is parsed.
        """

    def detect(self, document: Document) -> bool:
        """True if the document, of a located manifest, is of this dialect. Must not raise."""

    def agents(self, document: Document) -> Sequence[str]:
        """The names of the agents a manifest defines, in order; none where its sections are not as they should be."""

    def prompts(self, request: LoadRequest) -> Sequence[Prompt]:
        """Every prompt of a manifest and of the manifests that are part of it, in the order of the files."""

    def load(self, request: LoadRequest) -> Graph:
        """The compiled graph of the agent that a request asks for."""


class WithScenarios(Dialect, Protocol):
    """A dialect whose manifests have scenarios of their own."""

    def scenarios(self, request: LoadRequest) -> Sequence[Document]:
        """The scenarios in a manifest, each a mapping with keys of docs/scenario-format.md, and their places."""


class WithTunables(Dialect, Protocol):
    """A dialect whose temperatures and lists of tools can be varied."""

    def tunables(self, request: LoadRequest) -> Sequence[Tunable]:
        """The temperatures and lists of tools of the main document of a manifest."""


class WithFragments(Dialect, Protocol):
    """A dialect that has documents which are only parts of its manifests."""

    def fragment(self, document: Document) -> Problem | None:
        """What keeps a document from being a manifest, if it is such a part; None for any other. Must not raise."""


class WithEvolution(Dialect, Protocol):
    """A dialect whose manifests say how they are to be evolved."""

    def evolution(self, request: LoadRequest) -> Document | None:
        """The section that says so, with the keys of LeafMesh's `evolution`; None where a manifest has none."""


def lazy_function(path: str) -> Callable[[LoadRequest], Any]:
    """A member that is a function of another module, `package.module:function`, imported when it is called."""

    def member(request: LoadRequest) -> Any:
        return resolve_name(path)(request)

    return member


def single_file(path: Path) -> Sequence[Path]:
    """`locate` of a dialect whose manifests are one file: the file itself, and nothing for a folder."""
    return () if os.path.isdir(path) else (path,)  # of a name no file can have, Path.is_dir would raise


BROKEN_HINT: Final = "correct or uninstall it; where `dialect:` names another dialect, it is not needed"

_TEXTS: Final = ("name", "title")


def _methods(protocol: type) -> Mapping[str, Any]:
    members = vars(protocol).items()
    return {name: each for name, each in members if inspect.isfunction(each) and not name.startswith("_")}


_METHODS: Final = _methods(Dialect)
_OPTIONAL: Final = {
    name: method
    for protocol in (WithScenarios, WithTunables, WithFragments, WithEvolution)
    for name, method in _methods(protocol).items()
}


def verify(found: Any, name: str, origin: str) -> Dialect:
    """The object as the dialect that is registered under `name`; `origin` says in messages who registers it.

    Raises:
        ManifestError: members are missing or wrong (code `broken-dialect`), all of them in one error.
    """
    faults = [
        Problem("broken-dialect", f"the dialect '{name}' of {origin} {fault}", None, BROKEN_HINT)
        for fault in _faults(found, name)
    ]
    if faults:
        raise ManifestError(faults)
    return cast(Dialect, found)


def _faults(found: Any, name: str) -> Iterator[str]:
    missing = [member for member in (*_TEXTS, "yaml", *_METHODS) if not hasattr(found, member)]
    yield from (f"has no member '{member}'" for member in missing)
    present = {member: getattr(found, member) for member in (*_TEXTS, "yaml") if member not in missing}
    for member in _TEXTS:
        if member in present and not (isinstance(present[member], str) and present[member].strip()):
            yield f"has a '{member}' that is not text: {present[member]!r}"
    if isinstance(present.get("name"), str) and present["name"] != name:
        yield f"says that its 'name' is {present['name']!r}"
    if "yaml" in present and present["yaml"] not in get_args(YamlVersion):
        yield f"has a 'yaml' that is not one of {', '.join(get_args(YamlVersion))}: {present['yaml']!r}"
    for member, method in {**_METHODS, **_OPTIONAL}.items():
        if hasattr(found, member):
            yield from _method_faults(member, getattr(found, member), method)


def _method_faults(member: str, found: Any, method: Any) -> Iterator[str]:
    """The faults of a method; one without a signature in Python is not checked further."""
    if not callable(found):
        yield f"has a '{member}' that cannot be called: {found!r}"
        return
    parameters = [name for name in inspect.signature(method).parameters if name != "self"]
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*parameters)
    except TypeError:
        yield f"has a '{member}' with the wrong signature: {signature}, not ({', '.join(parameters)})"
