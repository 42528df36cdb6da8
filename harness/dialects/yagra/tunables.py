"""The tunables of a workflow: temperatures in `params.model.kwargs`, of nodes and global. Yagra has no tools."""

from __future__ import annotations

from collections.abc import Sequence

from harness.dialects.dialect import Tunable
from harness.dialects.kit.manifest import mappings, only_document, temperature
from harness.dialects.request import LoadRequest
from harness.source.document import DocumentPath


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
