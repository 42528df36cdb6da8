"""The interface of a front end, and the check that an object implements it.

`Dialect` has the required members. The protocols derived from it add one optional member each.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, Protocol, cast, get_args

from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem, Span
from harness.graph.model import Graph
from harness.source.document import Document, DocumentPath
from harness.source.yaml import Version


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text that a manifest gives to language models.

    id     the name by which variants refer to it; its form depends on the dialect
    kind   the dialect's term for the text, such as `system_prompt`
    text   the text as written, without variables or placeholders filled in
    where  the location of the text, in the manifest or in a file of its own
    """

    id: str
    kind: str
    text: str
    where: Span


@dataclass(frozen=True)
class Tunable:
    """A temperature, or a list of tools, in the main document of a manifest.

    kind   `temperature` or `tools`
    owner  the name of the agent, node or model that it belongs to
    path   its path in the document; a temperature need not be written yet
    value  the temperature (None: not written), or the names of the tools in order
    pool   for `tools`: the tools that the list may contain, by name, as they are written in the document
    """

    kind: Literal["temperature", "tools"]
    owner: str
    path: DocumentPath
    value: Any = None
    pool: Mapping[str, Any] = field(default_factory=dict)


YamlVersion = Literal["1.1", "1.2", "templated"]
"""The versions of YAML that are offered to dialects of packages. `Version` has more."""


class Dialect(Protocol):
    """A front end: a module, or any object, with these members. Importing it must be cheap.

    Members that take a request raise `ManifestError`, with all problems they found. Any other exception of a dialect
    that comes in a package of its own is told as a defect of that package.

    `LoadRequest.imports` is False under `harness validate` and in the search for what changed: then nothing of the
    user's may be imported. `harness.dialects.kit.manifest.load_object` returns an `UnimportedObject` in place of the
    object, which has none of its attributes and cannot be called.
    """

    @property
    def name(self) -> str:
        """The name of the dialect in scenarios and in the registry."""

    @property
    def title(self) -> str:
        """A description of its manifests in a few words."""

    @property
    def yaml(self) -> Version:
        """The version of YAML that its manifests are parsed as."""

    def locate(self, path: Path) -> Sequence[Path]:
        """Return the files that a path stands for: the manifest, then documents that hold components of it.

        A file stands for itself, even if it does not exist. A folder stands for the files of the manifest in it;
        the result is empty if the dialect does not read folders, or not this one. Nothing is parsed.
        """

    def detect(self, document: Document) -> bool:
        """True if the document of a located manifest is written in this dialect. Must not raise."""

    def agents(self, document: Document) -> Sequence[str]:
        """Return the names of the agents that a manifest defines, in order; none if its sections are malformed."""

    def prompts(self, request: LoadRequest) -> Sequence[Prompt]:
        """Return every prompt of a manifest and of the manifests nested in it, in the order of the files."""

    def load(self, request: LoadRequest) -> Graph:
        """Compile the graph of the agent that a request names.

        The code of an error that a correct manifest cannot be run by itself is `not-runnable`.
        """


class SupportsScenarios(Dialect, Protocol):
    """A dialect whose manifests may contain scenarios."""

    def scenarios(self, request: LoadRequest) -> Sequence[Document]:
        """Return the scenarios in a manifest, each a located mapping with the keys of docs/scenario-format.md."""


class SupportsTunables(Dialect, Protocol):
    """A dialect whose temperatures and tool lists can be varied."""

    def tunables(self, request: LoadRequest) -> Sequence[Tunable]:
        """Return the temperatures and tool lists of the main document of a manifest."""


class SupportsFragments(Dialect, Protocol):
    """A dialect with documents that are only part of a manifest."""

    def fragment(self, document: Document) -> Problem | None:
        """Return the problem with using such a part as a manifest; None for any other document. Must not raise."""


class SupportsObjects(Dialect, Protocol):
    """A dialect whose manifests may be objects of Python: `graph.py:graph`."""

    def claims(self, path: Path) -> bool:
        """True if a path names an object rather than a file. Must not raise."""

    def preload(self, request: LoadRequest) -> Sequence[str]:
        """Import what a request names, and return the folders that its modules are in."""


class SupportsEvolution(Dialect, Protocol):
    """A dialect whose manifests may configure their evolution."""

    def evolution(self, request: LoadRequest) -> Document | None:
        """Return the section with the keys of LeafMesh's `evolution`; None if the manifest has none."""


def lazy_function(path: str) -> Callable[[LoadRequest], Any]:
    """Return a member that calls the function at `path` (`package.module:function`), imported at the first call."""
    module, _, name = path.partition(":")

    def member(request: LoadRequest) -> Any:
        return getattr(import_module(module), name)(request)

    return member


def single_file(path: Path) -> Sequence[Path]:
    """Implement `locate` for a dialect whose manifests are single files: nothing is found for a folder."""
    return () if os.path.isdir(path) else (path,)  # Path.is_dir raises for names that no file can have


BROKEN_HINT: Final = "correct or uninstall it; where `dialect:` names another dialect, it is not needed"

_TEXTS: Final = ("name", "title")


def _methods(protocol: type) -> Mapping[str, Any]:
    members = vars(protocol).items()
    return {
        name: member for name, member in members if inspect.isfunction(member) and not name.startswith("_")
    }


_REQUIRED: Final = _methods(Dialect)
_PROTOCOLS: Final = (
    Dialect,
    SupportsScenarios,
    SupportsTunables,
    SupportsFragments,
    SupportsObjects,
    SupportsEvolution,
)
METHODS: Final = {name: method for each in _PROTOCOLS for name, method in _methods(each).items()}
"""The methods of a dialect, required and optional."""

_SEQUENCES: Final = {
    "locate": Path,
    "agents": str,
    "prompts": Prompt,
    "scenarios": Document,
    "tunables": Tunable,
}
"""The methods that return a sequence, each with the class of its items."""


def checked(method: str, returned: Any) -> Any:
    """Return what a method of a dialect returned; a sequence as a list.

    Raises:
        TypeError: it is not of the class that the interface names.
    """
    items = list(returned) if method in _SEQUENCES else [returned]
    wanted = {**_SEQUENCES, "load": Graph}.get(method, object)
    for item in items:
        if not isinstance(item, wanted):
            raise TypeError(f"'{method}' returned a {type(item).__name__}, and a {wanted.__name__} is needed")
    return items if method in _SEQUENCES else returned


def verify(found: Any, name: str, origin: str) -> Dialect:
    """Return `found` if it implements the dialect registered under `name`.

    Args:
        found: the registered module or object.
        name: the name under which it is registered.
        origin: the package or module that registers it, for messages.

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
    missing = [member for member in (*_TEXTS, "yaml", *_REQUIRED) if not hasattr(found, member)]
    yield from (f"has no member '{member}'" for member in missing)
    present = {member: getattr(found, member) for member in (*_TEXTS, "yaml") if member not in missing}
    for member in _TEXTS:
        if member in present and not (isinstance(present[member], str) and present[member].strip()):
            yield f"has a '{member}' that is not text: {present[member]!r}"
    if isinstance(present.get("name"), str) and present["name"] != name:
        yield f"says that its 'name' is {present['name']!r}"
    if "yaml" in present and present["yaml"] not in get_args(Version):
        yield f"has a 'yaml' that is not one of {', '.join(get_args(YamlVersion))}: {present['yaml']!r}"
    for member, method in METHODS.items():
        if hasattr(found, member):
            yield from _method_faults(member, getattr(found, member), method)


def _method_faults(member: str, found: Any, method: Any) -> Iterator[str]:
    """Yield the faults of a method. Parameters are checked only if Python knows the signature."""
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
