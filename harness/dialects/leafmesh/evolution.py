"""The test scenarios of a mesh, as scenarios. NOTES 15.1."""

from __future__ import annotations

from collections.abc import Sequence

from harness.dialects.kit.manifest import Problems
from harness.dialects.leafmesh.opening import open_mesh
from harness.dialects.request import LoadRequest
from harness.errors import Problem
from harness.source.document import Document
from harness.source.suggest import did_you_mean


def scenarios(request: LoadRequest) -> Sequence[Document]:
    """`evolution.test_scenarios`. spec: "`test_scenarios` — Scenario Dict Fields".

    Raises:
        ManifestError: the mesh is refused, or one of them enters it where it has no entry.
    """
    opened = open_mesh(request)
    entries = dict.fromkeys([*(entry.name for entry in opened.mesh.entry_points), *opened.mesh.agents])
    problems = Problems()
    found = []
    for number, test in enumerate(opened.mesh.evolution.test_scenarios):
        at = opened.document.at(("evolution", "test_scenarios", number))
        if test.entry_point not in entries:
            text = f"there is no entry point '{test.entry_point}'"
            hint = did_you_mean(test.entry_point, entries)
            problems.add([Problem("unknown-entry-point", text, at.span(("entry_point",)), hint)])
        values = {
            "name": test.name if test.name is not None else f"scenario_{number + 1}",
            "entry_point": test.entry_point,
            "input": test.input,
            "weight": test.weight,
            "timeout": test.timeout,
            "expect": {"output": test.expected_outcome},
        }
        found.append(at.moved("expected_outcome", "expect", "output").with_value(values))
    problems.raise_errors()
    return found
