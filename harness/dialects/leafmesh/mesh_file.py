"""A mesh file: its fields and the rules between them; its prompts, its scenarios and the section `evolution`.

Nothing is imported or compiled here. Ids of prompts are `<agent>.prompt`, `<agent>.context_parts.<key>`,
`<agent>.narration` and `manager.prompt`; their variables are not replaced.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import yaml as pyyaml

from harness.dialects.dialect import Prompt, Tunable
from harness.dialects.kit.manifest import Problems, mappings, only_document, tunables_in
from harness.dialects.kit.rules import warning
from harness.dialects.leafmesh.dialect import EACH, texts
from harness.dialects.leafmesh.document import Mesh
from harness.dialects.leafmesh.field_rules import (
    condition_warnings,
    field_problems,
    no_effect_notes,
    read_connectors,
    unknown_keys,
)
from harness.dialects.leafmesh.fields import Connector, Local, with_fallbacks
from harness.dialects.leafmesh.rules import References, rule_problems
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem
from harness.graph.to_json import to_json
from harness.source.document import Document
from harness.source.location import Lines, Replacement, Rewritten
from harness.source.models import describe, in_file_order, validate

_OPENING: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)([:}])")
_END: Final = re.compile(r"[}\r\n]")
_SHELL_OPERATORS: Final = ("-", "=", "?", "+")
"""Operators after the colon of a shell default, as in `${VAR:-default}`."""
_NUMBER: Final = re.compile(r"[-+][\d .()/-]*\d")
_HARMLESS: Final = 3  # characters; values up to this length are not treated as secrets
_LOADER: Final[Any] = getattr(pyyaml, "CSafeLoader", pyyaml.SafeLoader)


# ------------------------------------------------------------------ variables


class Environment:
    """The variables that a mesh file may use. `names` are the variables found so far, in order."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self.names: dict[str, None] = {}
        self._unset: dict[str, tuple[_Reference, str, str]] = {}  # first use, message and hint of a warning

    def rewrite(self, text: str) -> Rewritten:
        """Replace each variable by its value, else its default, else nothing. Comments are left alone."""
        found = _outside_comments(text)
        return Rewritten(text, [Replacement(each.start, each.end, self._value(each)) for each in found])

    def _value(self, found: _Reference) -> str:
        self.names[found.name] = None
        if found.name in self._values:
            return self._values[found.name]
        if (why := _unset_warning(found)) is not None:
            self._unset.setdefault(found.name, (found, *why))
        return found.default or ""

    def warnings(self, document: Document) -> Iterator[Problem]:
        """Yield a warning for each variable that is not set and has no default or a suspicious one."""
        lines = Lines(document.text)
        for found, text, hint in self._unset.values():
            yield warning("missing-variable", text, lines.span(document.file, found.start, found.end), hint)

    def redacted(self, problem: Problem) -> Problem:
        """Return the problem with values of variables replaced by their names, also where a value is clipped."""
        message = problem.message
        values = [(form, name) for name in self.names for form in _shown_forms(self._values.get(name, ""))]
        for value, name in sorted(values, key=lambda pair: -len(pair[0])):
            message = _redact_clipped(message.replace(value, f"${{{name}}}"), value, f"${{{name}}}")
        return replace(problem, message=message)


def _shown_forms(value: str) -> Iterator[str]:
    """Yield the forms in which messages may show a value: whole, on one line, one line of it; also as repr."""
    forms = [value, " ".join(value.split()), *(line.strip() for line in value.splitlines())]
    for form in dict.fromkeys([*forms, *(repr(form)[1:-1] for form in forms)]):
        if len(form.strip()) > _HARMLESS:
            yield form


def _redact_clipped(message: str, value: str, name: str) -> str:
    """Replace the longest prefix of the value that an ellipsis follows by the name."""
    for end in (found.start() for found in re.finditer("…", message)):
        for length in range(min(len(value), end), _HARMLESS, -1):
            if message.endswith(value[:length], 0, end):
                return message[: end - length] + name + message[end:]
    return message


class _Reference(NamedTuple):
    """A variable at `text[start:end]`; `default` is None if it has none."""

    start: int
    end: int
    name: str
    default: str | None


def _unset_warning(found: _Reference) -> tuple[str, str] | None:
    """Return message and hint of the warning about a variable that is not set; None if its default is plain."""
    unset = f"the environment variable {found.name} is not set"
    if found.default is None:
        hint = (
            "give it a value under 'env' in the scenario or in [tool.harness], or a default: ${NAME:default}"
        )
        return f"{unset}: it is empty", hint
    if "${" in found.default:
        text = f"{unset}, and its default ends at the first }}: '{found.default}'"
        return text, "a default cannot contain a variable"
    first, rest = found.default[:1], found.default[1:]
    if first in _SHELL_OPERATORS and not _NUMBER.fullmatch(found.default):
        hint = f"it begins right after the colon, unlike that of a shell: ${{{found.name}:{rest}}}"
        return f"{unset}, and its default is '{found.default}', with the '{first}'", hint
    return None


def _references(text: str) -> Iterator[_Reference]:
    """Yield the variables of a text. A default ends at the first `}` of its line."""
    at, end = 0, None
    while opening := _OPENING.search(text, at):
        start, at = opening.span()
        if opening[2] == "}":
            yield _Reference(start, at, opening[1], None)
            continue
        if end is None or end.start() < at:  # otherwise the previous search still applies
            end = _END.search(text, at)
        if end is None:
            return
        if end[0] == "}":
            yield _Reference(start, end.end(), opening[1], text[at : end.start()])
            at = end.end()


def _outside_comments(text: str) -> Iterator[_Reference]:
    tokens: Sequence[tuple[int, int]] | None = None
    after, in_doubt = 0, False
    for found in _references(text):
        line_start = text.rfind("\n", after, found.start) + 1
        in_doubt = (in_doubt and not line_start) or text.find("#", line_start or after, found.start) >= 0
        after = found.end
        if in_doubt:  # a '#' precedes it on its line
            tokens = _tokens(text) if tokens is None else tokens
            at = bisect_right(tokens, (found.start, len(text))) - 1
            if found.start >= tokens[at][1]:
                continue
        yield found


def _tokens(text: str) -> list[tuple[int, int]]:
    """Return the spans of a YAML text's tokens, in order, with variables read as plain words.

    After a syntax error, the rest of the text is one token.
    """
    words = Rewritten(
        text, [Replacement(each.start, each.end, "x" * (each.end - each.start)) for each in _references(text)]
    )
    tokens = [(0, 0)]
    try:
        for token in pyyaml.scan(words.text, Loader=_LOADER):
            start, end = token.start_mark.index, token.end_mark.index
            if getattr(token, "style", None) in ("|", ">"):  # its first line may hold a comment
                start = max(text.find("\n", start, end), start)
            tokens.append((start, end))
    except pyyaml.YAMLError:
        tokens.append((tokens[-1][1], len(text)))
    return tokens


# ------------------------------------------------------------------ the mesh


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
    try:
        return _open(request, environment)
    except ManifestError as error:
        raise ManifestError(map(environment.redacted, error.problems)) from None


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
    found = read_connectors(document, request.env, problems)
    problems.add(unknown_keys(Mesh, document))
    if problems.errors:
        causes = [problem for problem in problems.warnings if _may_explain(problem, problems.errors)]
        raise ManifestError([*in_file_order(problems.errors), *in_file_order(causes)])
    problems.add(_default_entry(mesh, document))
    problems.add(condition_warnings(mesh, document))
    local = with_fallbacks(mesh.mesh.local or Local(), request.env)
    if local.model_fields_set:  # setting an empty section would select this provider
        mesh.mesh.local = local
    warnings = tuple(map(environment.redacted, in_file_order(problems.warnings)))
    notes = tuple(in_file_order(no_effect_notes(mesh, document)))
    return MeshFile(mesh, document, found, warnings, notes)


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
        yield warning("no-entry-point", text, document.span(), hint)
        mesh.entry_points = []


# ------------------------------------------------------------------ its scenarios, evolution, prompts and tunables


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
            **{key: getattr(test, key) for key in ("entry_point", "input", "weight", "timeout")},
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


_PROMPTS: Final = (
    ("agents", EACH, "prompt"),
    ("agents", EACH, "context_parts", EACH),
    ("agents", EACH, "narration"),
    ("manager", "prompt"),
)


def prompts(request: LoadRequest) -> list[Prompt]:
    """Return the prompts in the order of the file.

    Raises:
        ManifestError: the file cannot be parsed, or `agents` is not a mapping.
    """
    document = only_document(request, what=_WHAT, yaml="templated")
    agents = document.value.get("agents", {}) if isinstance(document.value, dict) else document.value
    if not isinstance(agents, dict):
        text = f"agents: expected a mapping, found {describe(agents)}"
        raise ManifestError(Problem("wrong-type", text, document.span(("agents",))))
    found = []
    for pattern in _PROMPTS:
        for path, text in texts(document.value, *pattern):
            id_ = [str(step) for step in (path[1:] if path[0] == "agents" else path)]
            found.append(Prompt(".".join(id_), id_[1], text, document.span(path)))
    return sorted(found, key=lambda prompt: (prompt.where.line, prompt.where.column))


_DEFAULT: Final = 0.1
"""The temperature of an agent that has none."""


def tunables(request: LoadRequest) -> Sequence[Tunable]:
    """Return the tunable values, in file order. A missing temperature has the documented default.

    Raises:
        ManifestError: the file cannot be parsed.
    """
    document = only_document(request, what=_WHAT, yaml="templated")
    written = document.value.get("agents") if isinstance(document.value, dict) else None
    agents = [
        (str(name), agent) for name, agent in mappings(written) if agent.get("agent_type", "llm") == "llm"
    ]
    return tunables_in("agents", agents, _DEFAULT)
