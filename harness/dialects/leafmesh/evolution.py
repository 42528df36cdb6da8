"""The `evolution` section of a mesh, and its test scenarios as scenarios of the harness. NOTES 15.1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.dialects.leafmesh.mesh_file import open_mesh
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError
from harness.graph.to_json import to_json
from harness.source.document import Document


def scenarios(request: LoadRequest) -> Sequence[Document]:
    """Return `evolution.test_scenarios` as scenario documents. spec: "`test_scenarios` — Scenario Dict Fields".

    Raises:
        ManifestError: the mesh is invalid, or a test scenario names an unknown entry point.
    """
    mesh_file = open_mesh(request)
    nowhere = [problem for problem in mesh_file.warnings if problem.code == "unknown-entry-point"]
    if nowhere:
        raise ManifestError([replace(problem, severity="error") for problem in nowhere])
    found = []
    for number, test in enumerate(mesh_file.mesh.evolution.test_scenarios):
        at = mesh_file.document.at(("evolution", "test_scenarios", number))
        values = {
            "name": test.name if test.name is not None else f"scenario_{number + 1}",
            "entry_point": test.entry_point,
            "input": test.input,
            "weight": test.weight,
            "timeout": test.timeout,
            "expect": {"output": to_json(test.expected_outcome)},  # an output is JSON, so dates become texts
        }
        found.append(at.moved("expected_outcome", "expect", "output").with_value(values))
    return found


def section(request: LoadRequest) -> Document | None:
    """Return the section as it is written; None if the mesh has none. spec: "EvolutionConfig".

    Raises:
        ManifestError: the mesh is invalid.
    """
    document = open_mesh(request).document
    return document.at(("evolution",)) if isinstance(document.value.get("evolution"), dict) else None
