"""The temperatures of models, in the `kwargs` of a node's or the workflow's `params.model`. Yagra has no tools."""

from __future__ import annotations

from collections.abc import Sequence

from harness.dialects.kit.manifest import only_document
from harness.dialects.kit.tuning import mappings, temperature
from harness.dialects.request import LoadRequest
from harness.dialects.tunable import Tunable
from harness.source.document import DocumentPath


def tunables(request: LoadRequest) -> Sequence[Tunable]:
    """Those of the workflow's params (`params`), then those of its nodes, where the model has `kwargs`.

    Raises:
        ManifestError: the file cannot be read.
    """
    document = only_document(request, what="a Yagra workflow")
    workflow = document.value if isinstance(document.value, dict) else {}
    found = _of(workflow, "params", ())
    for at, node in mappings(workflow.get("nodes")):
        found += _of(node, str(node.get("id")), ("nodes", at))
    return found


def _of(owner: object, name: str, path: DocumentPath) -> list[Tunable]:
    within = owner
    for step in ("params", "model", "kwargs"):
        within = within.get(step) if isinstance(within, dict) else None
    return temperature(name, within, (*path, "params", "model", "kwargs"))
