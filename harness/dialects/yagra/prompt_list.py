"""The prompts of a workflow and its subgraphs, as data.

The id of a text in a prompt file is `<file>#<key>`, with the file relative to the folder of the outermost workflow
and a dotted key. The id of a text in the workflow itself is `<node>.prompt` (`<node>.prompt.system`, …). Such
prompts are listed, although loading the workflow refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from harness.dialects.dialect import Prompt
from harness.dialects.kit.manifest import only_document
from harness.dialects.request import LoadRequest
from harness.dialects.yagra.document import SUBGRAPH
from harness.dialects.yagra.prompts import PROMPT, MergedParams, PromptReferences
from harness.source.document import Document, real_path, relative_path

_MESSAGES: Final = ("system", "user")
_META: Final = "_meta"


def prompts(request: LoadRequest) -> list[Prompt]:
    """Return the prompts that nodes refer to or contain, each once.

    Raises:
        ManifestError: a reference cannot be resolved, or nodes are malformed.
    """
    listing = _Listing(real_path(request.path).parent)
    return list(dict.fromkeys(listing.of_workflow(request)))


class _Listing:
    """A search for prompts in workflows. Each file is visited once; `top` is the folder that ids are relative to."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._seen: set[Path] = set()

    def of_workflow(self, request: LoadRequest) -> Iterator[Prompt]:
        """Yield the prompts of a workflow and its subgraphs."""
        self._seen.add(real_path(request.path))
        document = only_document(request, what="a Yagra workflow", yaml="scalar-keys")
        references = PromptReferences(document, request)
        for merged in references.merged_params():
            if merged.values.get(PROMPT) is not None:
                path = (*merged.origins[PROMPT], PROMPT)
                owner = "params" if path[0] == "params" else str(merged.node.get("id"))
                yield from _texts(document.at(path), f"{owner}.{PROMPT}", ".")
            elif (found := references.prompt(merged.values, merged.origins)) is not None:
                file = relative_path(real_path(Path(found.document.file)), self._top)
                key = found.reference.key
                id_, separator = (f"{file}#{key}", ".") if key else (file, "#")
                yield from _texts(found.document.at(found.path), id_, separator)
            if merged.node.get("handler") == SUBGRAPH:
                yield from self._of_subgraph(merged, document, request)

    def _of_subgraph(
        self, merged: MergedParams, document: Document, request: LoadRequest
    ) -> Iterator[Prompt]:
        reference = merged.values.get("workflow_ref")
        if isinstance(reference, str) and reference:
            where = document.span((*merged.origins["workflow_ref"], "workflow_ref"))
            path = request.resolve(reference, where)
            if path not in self._seen:
                yield from self.of_workflow(replace(request.for_manifest(path, None), named_at=where))


def _texts(part: Document, id_: str, separator: str) -> Iterator[Prompt]:
    """Yield the texts of a prompt: the text itself, or those in a mapping such as `{system, user}`, at any depth."""
    if isinstance(part.value, str):
        last = re.split("[.#]", id_)[-1]
        yield Prompt(id_, last if last in _MESSAGES else PROMPT, part.value, part.span())
    elif isinstance(part.value, dict):
        for key in part.value:
            if key != _META:
                yield from _texts(part.at((key,)), f"{id_}{separator}{key}", ".")
