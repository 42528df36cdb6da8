"""Reads and validates a mesh file: its fields, and the rules between them.

Nothing is imported or compiled here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from harness.dialects.kit.manifest import Problems, only_document
from harness.dialects.leafmesh.condition_warnings import condition_warnings
from harness.dialects.leafmesh.connector_document import Connector
from harness.dialects.leafmesh.connectors import read_connectors
from harness.dialects.leafmesh.document import Mesh
from harness.dialects.leafmesh.environment import Environment
from harness.dialects.leafmesh.fields import with_fallbacks
from harness.dialects.leafmesh.infrastructure import Local
from harness.dialects.leafmesh.no_effect import no_effect_notes
from harness.dialects.leafmesh.references import References
from harness.dialects.leafmesh.rules import rule_problems
from harness.dialects.leafmesh.strict_fields import field_problems
from harness.dialects.leafmesh.unknown_keys import unknown_keys
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem
from harness.source.document import Document
from harness.source.models import in_file_order, validate

_WHAT: Final = "a LeafMesh mesh"


@dataclass(frozen=True)
class MeshFile:
    """A valid mesh, and its document.

    connectors  by agent, for agents with a framework or an integration; fallback variables are filled in
    warnings    in the order of the file
    notes       fields that have no effect in a simulated run
    """

    mesh: Mesh
    document: Document
    connectors: Mapping[str, Connector]
    warnings: tuple[Problem, ...]
    notes: tuple[Problem, ...]


def open_mesh(request: LoadRequest) -> MeshFile:
    """Read and validate the mesh file of a request.

    Raises:
        ManifestError: lists all errors, in the order of the file.
    """
    environment = Environment(request.env)
    with environment.values_redacted():
        return _open(request, environment)


def _open(request: LoadRequest, environment: Environment) -> MeshFile:
    document = _document(request, environment)
    problems = Problems(environment.warnings(document))
    mesh = Mesh()
    with problems.collecting():
        mesh = validate(Mesh, document)
    if not isinstance(document.value, dict) or not isinstance(document.value.get("agents", {}), dict):
        problems.raise_errors()
    problems.add(field_problems(document))
    problems.add(rule_problems(document))
    problems.add(References(document).problems())
    found, of_connectors = read_connectors(document, request.env)
    problems.add(of_connectors)
    problems.add(unknown_keys(Mesh, document))
    if problems.errors:
        causes = [problem for problem in problems.warnings if _may_explain(problem, problems.errors)]
        raise ManifestError([*in_file_order(problems.errors), *in_file_order(causes)])
    problems.add(_default_entry(mesh, document))
    problems.add(condition_warnings(mesh, document))
    local = with_fallbacks(mesh.mesh.local or Local(), request.env)
    if local.model_fields_set:  # setting an empty section would select this provider
        mesh.mesh.local = local
    warnings = map(environment.redacted, in_file_order(problems.warnings))
    return MeshFile(
        mesh, document, found, tuple(warnings), tuple(in_file_order(no_effect_notes(mesh, document)))
    )


def _may_explain(warning: Problem, errors: Sequence[Problem]) -> bool:
    """True if a warning may explain errors, so that it is shown with them.

    A missing key may be misspelt; a value may be wrong because a variable on its line is not set.
    """
    if warning.code == "missing-variable" and warning.span is not None:
        return any(error.span is not None and error.span.line == warning.span.line for error in errors)
    return warning.code == "unknown-key" and bool(warning.hint)


def _document(request: LoadRequest, environment: Environment) -> Document:
    """Return the file with its variables replaced.

    Raises:
        ManifestError: it cannot be parsed. The hint says so if it could be without the values of its variables.
    """
    try:
        return only_document(request, what=_WHAT, rewrite=environment.rewrite)
    except ManifestError as error:
        problems = error.problems
    if environment.names and problems[0].span is not None:
        only_document(request, what=_WHAT, yaml="templated")  # raises if the values are not the cause
        names = ", ".join(f"${{{name}}}" for name in environment.names)
        hint = f"the file can be read as it is written, but not with the values of its variables: {names}"
        problems = tuple(replace(problem, hint=hint) for problem in problems)
    raise ManifestError(problems)


def _default_entry(mesh: Mesh, document: Document) -> Iterator[Problem]:
    """Remove the default entry point if its agent does not exist, with a warning."""
    if "entry_points" not in mesh.model_fields_set and mesh.entry_points[0].target not in mesh.agents:
        text = f"there are no entry_points, and no agent '{mesh.entry_points[0].target}' for the default one"
        hint = "a scenario can name an agent to enter"
        yield Problem("no-entry-point", text, document.span(), hint, "warning")
        mesh.entry_points = []
