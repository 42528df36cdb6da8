"""Compilation of the workflows that subgraph nodes refer to. spec: "Subgraph Node"."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from harness.dialects.request import LoadRequest
from harness.dialects.yagra.document import NodeSpec
from harness.dialects.yagra.prompts import Params
from harness.errors import ManifestError, Problem, Span
from harness.graph.model import Graph
from harness.source.document import Document, shown_path
from harness.source.models import describe
from harness.source.suggest import nearest

Load = Callable[[LoadRequest, "Subgraphs"], Graph]


class Subgraphs:
    """A compiler of the subgraphs of a workflow, at any depth. Each file is compiled once.

    Args:
        load: compiles a workflow with the given compiler of its subgraphs.
        within: the files that are being compiled, the outermost first.
        compiled: the graphs compiled so far.
    """

    def __init__(
        self, load: Load, within: tuple[Path, ...], compiled: dict[Path, Graph] | None = None
    ) -> None:
        self._load, self._within = load, within
        self._compiled = {} if compiled is None else compiled

    def compile(
        self, node: NodeSpec, params: Params, index: int, document: Document, request: LoadRequest
    ) -> Graph:
        """Compile the workflow that the subgraph node at `index` refers to.

        Raises:
            ManifestError: it does not exist, or has problems; each problem names the node.
        """
        path: tuple[str | int, ...] = ("nodes", index, "params", "workflow_ref")
        where = document.span(path)
        reference = params.values.get("workflow_ref")
        if not reference or not isinstance(reference, str):
            found = "" if not reference else f": expected text, found {describe(reference)}"
            text = f"the subgraph node '{node.id}' needs 'workflow_ref' in its params{found}"
            near = nearest("workflow_ref", set(params.values) - {"workflow_ref"}, cutoff=0.5)
            hint = f"'{near}' is not known: did you mean 'workflow_ref'?" if near else ""
            raise ManifestError(Problem("no-workflow-ref", text, where, hint))
        try:
            return self._compile_file(request.resolve(reference, where), request, where)
        except ManifestError as error:
            raise ManifestError(_with_subgraph(node, error.problems)) from None

    def _compile_file(self, path: Path, request: LoadRequest, where: Span) -> Graph:
        if path in self._within:
            circle = [*self._within[self._within.index(path) :], path]
            text = f"subgraphs contain each other: {' → '.join(map(shown_path, circle))}"
            raise ManifestError(Problem("circular-reference", text, where))
        if path not in self._compiled:
            inner = Subgraphs(self._load, (*self._within, path), self._compiled)
            self._compiled[path] = self._load(
                replace(request.for_manifest(path, None), named_at=where), inner
            )
        return self._compiled[path]


def subgraph_warnings(node: NodeSpec, graph: Graph) -> list[Problem]:
    """Return the warnings of a node's subgraph. Those of keys are left out, since the outer state may have them."""
    return _with_subgraph(node, (w for w in graph.warnings if w.unless is None or w.unless.kind != "key"))


def _with_subgraph(node: NodeSpec, problems: Iterable[Problem]) -> list[Problem]:
    """Prefix the message of each problem with the subgraph node."""
    return [replace(problem, message=f"subgraph '{node.id}': {problem.message}") for problem in problems]
