"""The params of nodes: global parameters are merged in, and `prompt_ref` is replaced by the prompt it refers to.

spec: "Node with Parameters" (prompt_ref), "Global Parameters", validation rule 5.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness.dialects.dialect import Prompt, Tunable
from harness.dialects.kit.manifest import mappings, only_document, temperature
from harness.dialects.request import LoadRequest
from harness.dialects.yagra.document import SUBGRAPH
from harness.errors import ManifestError, Problem, Span
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath, real_path, relative_path
from harness.source.models import describe

PROMPT: Final = "prompt"
PROMPT_REF: Final = "prompt_ref"
MODEL_REF: Final = "model_ref"
MESSAGES: Final = ("system", "user")
"""The keys of a prompt with the texts of the two messages."""
_META: Final = "_meta"

_DOUBLED: Final = re.compile(r"(?<!\{)\{\{\s*(\w+)\s*\}\}(?!\})")
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_BRACES: Final = re.compile(r"\{\{|\}\}")
_BRACE: Final = re.compile(r"[{}]")


@dataclass(frozen=True)
class Reference:
    """The parts of a `prompt_ref`: `file`, `file#key`, `file#a.b`, each optionally with `@version`."""

    file: str
    key: str | None = None
    version: str | None = None

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Parse a `prompt_ref`. A missing file, and a missing key after `#`, is empty text."""
        file, hash_, rest = text.partition("#")
        name, version = _versioned(rest if hash_ else file)
        return cls(file.strip(), name, version) if hash_ else cls(name, None, version)


def _versioned(text: str) -> tuple[str, str | None]:
    """Split text at its last `@` into a name and a version; without both, return the text and None."""
    name, _, version = text.rpartition("@")
    if name.strip() and version.strip():
        return name.strip(), version.strip()
    return text.strip(), None


@dataclass(frozen=True)
class ResolvedPrompt:
    """A prompt that a node refers to.

    `span` is the location of the reference, `path` the path of the prompt in `document`, the prompt file.
    """

    reference: Reference
    document: Document
    path: DocumentPath
    span: Span

    @property
    def value(self) -> Any:
        """The prompt: text, or a mapping such as `{system, user}`."""
        return self.document.at(self.path).value

    @property
    def version(self) -> str | None:
        """The `_meta.version` of the prompt file; None if it has none."""
        value = self.document.value
        meta = value.get(_META) if isinstance(value, dict) else None
        version = meta.get("version") if isinstance(meta, dict) else None
        return str(version) if isinstance(version, (str, int, float)) else None

    def placeholders(self, *, doubled: bool = False) -> Iterator[tuple[str, Span]]:
        """Yield the names of the `{word}` placeholders in its two messages, each once, with their locations.

        With `doubled`, yield those in `{{word}}` instead, which are not filled in.
        """
        seen: set[str] = set()
        for key in MESSAGES:
            template = self.value.get(key) if isinstance(self.value, dict) else None
            if not isinstance(template, str):
                continue
            pattern, text = (_DOUBLED, template) if doubled else (_PLACEHOLDER, _BRACES.sub("  ", template))
            for found in pattern.finditer(text):
                if found[1] not in seen:
                    seen.add(found[1])
                    yield found[1], self.span_of(key, found.start())

    def span_of(self, key: str, offset: int) -> Span:
        """Return the location of the character at `offset` of the message `key`."""
        return self.document.span_in_text((*self.path, key), offset)


def first_stray_brace(template: str) -> int:
    """Return the offset of the first brace that is neither doubled nor part of a `{word}`; 0 if there is none."""
    text = _PLACEHOLDER.sub(lambda found: " " * len(found[0]), _BRACES.sub("  ", template))
    found = _BRACE.search(text)
    return found.start() if found else 0


@dataclass(frozen=True)
class Params:
    """The resolved params of a node: the global ones, overridden by its own, with `prompt` for `prompt_ref`."""

    values: Mapping[str, Any] = field(default_factory=dict)
    prompt: ResolvedPrompt | None = None

    @property
    def output_key(self) -> str:
        """The state key that a model node writes."""
        return str(self.values.get("output_key") or "output")


class MergedParams(NamedTuple):
    """A node as written, with its params merged over the global ones.

    `origins` has the path of the mapping that each key of `values` is from.
    """

    node: Mapping[str, Any]
    values: dict[str, Any]
    origins: Mapping[str, DocumentPath]


class PromptReferences:
    """A resolver of the prompt references of one workflow. Each prompt file is read once."""

    def __init__(self, document: Document, request: LoadRequest) -> None:
        self.document, self.request = document, request
        self._files: dict[Path, Document] = {}

    def params(self) -> list[Params]:
        """Return the resolved params of each node, in order; empty for a document without a list of nodes.

        Raises:
            ManifestError: with the first reference that cannot be resolved.
        """
        return [self._resolved(merged.values, merged.origins) for merged in self.merged_params()]

    def merged_params(self) -> Iterator[MergedParams]:
        """Yield the merged params of each node, with references not resolved.

        Raises:
            ManifestError: a node, or its params, is not a mapping.
        """
        value = self.document.value
        if not isinstance(value, dict):
            return
        shared = self._mapping(value.get("params"), "params")
        nodes = value.get("nodes")
        for index, node in enumerate(nodes if isinstance(nodes, list) else ()):
            path: DocumentPath = ("nodes", index)
            if not isinstance(node, dict):
                text = f"nodes[{index}]: expected a mapping, found {describe(node)}"
                raise self._fault("wrong-type", text, *path)
            own = self._mapping(node.get("params"), *path, "params")
            origins: dict[str, DocumentPath] = dict.fromkeys(shared, ("params",))
            origins.update(dict.fromkeys(own, (*path, "params")))
            yield MergedParams(node, {**shared, **own}, origins)

    def _mapping(self, value: Any, *path: str | int) -> Mapping[str, Any]:
        if value is not None and not isinstance(value, dict):
            raise self._fault("wrong-type", f"params: expected a mapping, found {describe(value)}", *path)
        return value or {}

    def _resolved(self, params: dict[str, Any], origins: Mapping[str, DocumentPath]) -> Params:
        """Replace the reference in merged params by its prompt."""
        if params.get(PROMPT) is not None:
            text = "a prompt inside the workflow is not supported"
            hint = "put it into a file of its own and refer to it: prompt_ref: prompts/mine.yaml#key"
            raise self._fault("unsupported", text, *origins[PROMPT], PROMPT, hint=hint, on_key=True)
        prompt = self.prompt(params, origins)
        params.pop(PROMPT_REF, None)
        if prompt is not None:
            params[PROMPT] = prompt.value
        if MODEL_REF in params:
            text, hint = (
                "model_ref is not supported",
                "describe the model in place: model: {provider: …, name: …}",
            )
            raise self._fault("unsupported", text, *origins[MODEL_REF], MODEL_REF, hint=hint, on_key=True)
        return Params(params, prompt)

    def prompt(self, params: Mapping[str, Any], origins: Mapping[str, DocumentPath]) -> ResolvedPrompt | None:
        """Resolve the `prompt_ref` of merged params; None if there is none.

        Raises:
            ManifestError: the reference cannot be resolved.
        """
        reference = params.get(PROMPT_REF)
        if reference is not None and not isinstance(reference, str):
            text = f"prompt_ref: expected text, found {describe(reference)}"
            raise self._fault("wrong-type", text, *origins[PROMPT_REF], PROMPT_REF)
        if reference is None or not reference.strip():
            return None
        return self._prompt(reference, self.document.span((*origins[PROMPT_REF], PROMPT_REF)))

    def _prompt(self, written: str, where: Span) -> ResolvedPrompt:
        reference = Reference.parse(written)
        if not reference.file or reference.key == "":
            lacking = "file" if not reference.file else "key"
            text = f"prompt_ref '{written}' names no {lacking}"
            hint = "expected file, file#key or file#key.key, each with @version where it is pinned"
            raise ManifestError(Problem("prompt-reference", text, where, hint))
        document = self._file(reference.file, where)
        path = tuple(reference.key.split(".")) if reference.key is not None else ()
        value = document.value
        for step in path:
            if not isinstance(value, dict) or step not in value:
                known = [str(key) for key in value] if isinstance(value, dict) else []
                text = f"there is no prompt '{reference.key}' in {document.file}"
                raise ManifestError(Problem("unknown-prompt", text, where, did_you_mean(step, known)))
            value = value[step]
        return ResolvedPrompt(reference, document, path, where)

    def _file(self, written: str, where: Span) -> Document:
        path = self._found(written, where)
        if path not in self._files:
            self._files[path] = self.request.read(path, yaml="scalar-keys", named_at=where)
        return self._files[path]

    def _found(self, written: str, where: Span) -> Path:
        """Find the file of a reference. A bare path is searched beside the workflow, then in each parent folder."""
        base = self.request.base_path
        if base is not None and is_bare(written):
            for folder in (base, *base.parents):
                path = folder / written
                if os.path.isfile(path) and self.request.may_read(path.resolve()):
                    return self.request.resolve(str(path), where)
        return self.request.resolve(written, where)

    def _fault(
        self, code: str, text: str, *path: str | int, hint: str = "", on_key: bool = False
    ) -> ManifestError:
        where = self.document.key_span(path) if on_key else self.document.span(path)
        return ManifestError(Problem(code, text, where, hint))


def is_bare(written: str) -> bool:
    """True if a path is relative and none of its steps is `.` or `..`."""
    steps = re.split(r"[/\\]", written)
    return not Path(written).is_absolute() and "." not in steps and ".." not in steps


def prompts(request: LoadRequest) -> list[Prompt]:
    """Return the prompts that nodes refer to or contain, each once.

    Raises:
        ManifestError: a reference cannot be resolved, or nodes are malformed.
    """
    return list(dict.fromkeys(_of_workflow(request, real_path(request.path).parent, set())))


def _of_workflow(request: LoadRequest, top: Path, seen: set[Path]) -> Iterator[Prompt]:
    """Yield the prompts of a workflow and its subgraphs, each file once. Ids are relative to the folder `top`."""
    seen.add(real_path(request.path))
    document = only_document(request, what="a Yagra workflow", yaml="scalar-keys")
    references = PromptReferences(document, request)
    for node, values, origins in references.merged_params():
        if values.get(PROMPT) is not None:
            path = (*origins[PROMPT], PROMPT)
            owner = "params" if path[0] == "params" else str(node.get("id"))
            yield from _texts(document.at(path), f"{owner}.{PROMPT}", ".")
        elif (found := references.prompt(values, origins)) is not None:
            file = relative_path(real_path(Path(found.document.file)), top)
            key = found.reference.key
            id_, separator = (f"{file}#{key}", ".") if key else (file, "#")
            yield from _texts(found.document.at(found.path), id_, separator)
        inner = values.get("workflow_ref") if node.get("handler") == SUBGRAPH else None
        if isinstance(inner, str) and inner:
            where = document.span((*origins["workflow_ref"], "workflow_ref"))
            file_of_inner = request.resolve(inner, where)
            if file_of_inner not in seen:
                of_inner = replace(request.for_manifest(file_of_inner, None), named_at=where)
                yield from _of_workflow(of_inner, top, seen)


def _texts(part: Document, id_: str, separator: str) -> Iterator[Prompt]:
    """Yield the texts of a prompt: the text itself, or those in a mapping such as `{system, user}`, at any depth."""
    if isinstance(part.value, str):
        last = re.split("[.#]", id_)[-1]
        yield Prompt(id_, last if last in MESSAGES else PROMPT, part.value, part.span())
    elif isinstance(part.value, dict):
        for key in part.value:
            if key != _META:
                yield from _texts(part.at((key,)), f"{id_}{separator}{key}", ".")


def tunables(request: LoadRequest) -> Sequence[Tunable]:
    """Return the temperature of the global params (owner `params`), then those of the nodes.

    A model without `kwargs` has none.

    Raises:
        ManifestError: the file cannot be read.
    """
    document = only_document(request, what="a Yagra workflow", yaml="scalar-keys")
    workflow = document.value if isinstance(document.value, dict) else {}
    found = _temperature(workflow, "params", ())
    for index, node in mappings(workflow.get("nodes")):
        found += _temperature(node, str(node.get("id")), ("nodes", index))
    return found


def _temperature(owner: object, name: str, path: DocumentPath) -> list[Tunable]:
    within = owner
    for step in ("params", "model", "kwargs"):
        within = within.get(step) if isinstance(within, dict) else None
    return temperature(name, within, (*path, "params", "model", "kwargs"))
