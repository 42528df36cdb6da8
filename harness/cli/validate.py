"""`harness validate`: report all problems of manifests and scenario files, without a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path

import click

from harness.cli import output as exit_code
from harness.cli.load_options import LoadOptions, agent_option, load_options, with_env_option
from harness.cli.options import PATH, flag
from harness.cli.output import as_json, print_problems, stdout_to_stderr
from harness.cli.selection import agents_to_load, manifests_below, misnamed
from harness.dialects.load import load_graph, load_scenarios
from harness.dialects.registry import agents_of
from harness.errors import FormatError, ManifestError, Problem, SourceError, Span, WorkerDied
from harness.graph.model import Graph
from harness.graph.names import inner_graphs, names_of, nested_problems
from harness.graph.native import NativeGraph
from harness.report.formatting import plural
from harness.scenario import SUFFIXES
from harness.scenario.app_process import in_own_process, is_app, is_available
from harness.scenario.app_server import conditions_of_imports
from harness.scenario.cassette import shared_cassettes
from harness.scenario.graph_warnings import Subject, Unanswered, subject, warnings_alone, warnings_in
from harness.scenario.idle_settings import idle_settings, misspelt_prices
from harness.scenario.load import build_scenarios, discover, load_file
from harness.scenario.model import Scenario, load_request, problems_of_native_keys
from harness.scenario.names import unknown_names
from harness.settings import Settings
from harness.source.document import real_path, shown_path
from harness.source.frames import located_defects
from harness.source.imports import ImportProblem, import_object
from harness.source.modules import look_up
from harness.units import DEFAULT_NOW


@dataclass
class Files:
    """The files found at the paths of a command line, each once.

    unreadable  the problems of other files in folders that cannot be read: templates and data, it seems
    misnamed    warnings about scenario files with the name of another file
    """

    scenarios: dict[Path, None] = field(default_factory=dict)
    manifests: dict[Path, None] = field(default_factory=dict)
    unreadable: dict[Path, Problem] = field(default_factory=dict)
    misnamed: list[Problem] = field(default_factory=list)


@dataclass
class Seen:
    """The facts about agents that scenario files tell, once they are checked.

    ruled_out   load warnings of manifests that do not apply in a scenario
    unanswered  what the agents call, and what the scenarios answer
    recorded    the scenarios that name a cassette
    models      the models of the agents
    """

    ruled_out: set[Subject] = field(default_factory=set)
    unanswered: Unanswered = field(default_factory=Unanswered)
    recorded: list[Scenario] = field(default_factory=list)
    models: set[str] = field(default_factory=set)


def collect(paths: Sequence[Path], dialect: str | None) -> Files:
    """Collect the files: scenario files by name, manifests in folders by content; any other file must be a manifest.

    So must a file in a folder that cannot be read, if the folder has neither manifests nor scenario files.

    Raises:
        FormatError: a path does not exist, or there is nothing to check (code `nothing-to-validate`).
        ManifestError: there is no such dialect.
    """
    files = Files()
    for path in discover(paths):
        (files.scenarios if path.name.endswith(SUFFIXES) else files.manifests)[path] = None
    for folder in (path for path in paths if path.is_dir()):
        found = manifests_below(folder, dialect)
        if found.manifests or discover([folder]):
            files.manifests |= dict.fromkeys(found.manifests)
            files.unreadable |= found.unreadable
        else:
            files.manifests |= dict.fromkeys(found.unreadable)
        files.misnamed += misnamed([folder])
    if not files.scenarios and not files.manifests and not files.misnamed:
        where = ", ".join(shown_path(path) for path in paths)
        message = f"neither a manifest nor a scenario file (*{SUFFIXES[0]}) in {where}"
        raise FormatError(Problem("nothing-to-validate", message))
    return files


def problems(files: Files, options: LoadOptions) -> Iterator[tuple[Path | None, Problem]]:
    """Yield all problems of the files, each once, with the file that was checked.

    If a problem is both an error and a warning, the error is kept.
    """
    found: dict[tuple[str, object, str], tuple[Path | None, Problem]] = {}
    for path, problem in _all_problems(files, options):
        same = (problem.code, problem.span, problem.message)
        if same not in found or found[same][1].severity != "error":
            found[same] = path, problem
    yield from found.values()
    told = {(problem.code, problem.span) for _, problem in found.values()}
    for path, problem in files.unreadable.items():
        if (problem.code, problem.span) not in told:  # a scenario may name the file
            text = f"{shown_path(path)} is left out, as it cannot be read: {problem.message}"
            yield path, replace(problem, message=text, severity="warning")


def _all_problems(files: Files, options: LoadOptions) -> Iterator[tuple[Path | None, Problem]]:
    seen = Seen()
    for path in files.scenarios:
        yield from _located(path, scenario_file_problems(path, options, seen))
    for problem in shared_cassettes(seen.recorded, options.projects):  # they can be replayed, not recorded
        yield None, replace(problem, severity="warning")
    for path in files.manifests:
        yield from _located(path, manifest_problems(path, options, seen))
    yield from ((None, problem) for problem in seen.unanswered.problems())
    yield from ((None, problem) for problem in files.misnamed)
    for settings in _projects(files, options):
        for problem in (*idle_settings(settings), *misspelt_prices(settings, seen.models)):
            yield None, problem


def _projects(files: Files, options: LoadOptions) -> Iterable[Settings]:
    """Return the settings of each project of the files, once. Invalid ones are reported where they are used."""
    found = {}
    for path in (*files.scenarios, *files.manifests):
        with suppress(FormatError):
            settings = options.projects.of(path)
            found[settings.project] = settings
    return found.values()


def _located(path: Path, problems: Iterator[Problem]) -> Iterator[tuple[Path, Problem]]:
    """Yield the problems of a file, then those that end their search."""
    try:
        with located_defects(path):
            yield from ((path, problem) for problem in problems)
    except SourceError as error:
        yield from ((path, problem) for problem in error.problems)


def scenario_file_problems(path: Path, options: LoadOptions, seen: Seen) -> Iterator[Problem]:
    """Yield the problems of a scenario file, and of the manifests that its scenarios run.

    What other files need to know is added to `seen`.

    Raises:
        FormatError: with the problems of the file itself.
    """
    found: dict[Problem, None] = {}
    of_apps: dict[Hashable, list[Scenario]] = {}
    for each in load_file(path, options.projects.of(path)).scenarios:
        if each.cassette is not None:
            seen.recorded.append(each)
        try:
            scenario = each.whole()
        except FormatError as error:
            found |= dict.fromkeys(error.problems)
            continue
        options.add_user(scenario)
        found |= dict.fromkeys(scenario.warnings)
        if (app := _app(scenario.manifests[0], scenario.dialect, scenario.agent, options)) is not None:
            of_apps.setdefault(app, []).append(scenario)
        else:
            found |= dict.fromkeys(_scenario_problems(scenario, options, seen))
    for scenarios in of_apps.values():
        found |= dict.fromkeys(_alone(path, partial(_problems_of_all, path, scenarios, options, seen)))
    yield from (with_env_option(problem) for problem in found)


def _app(manifest: Path, dialect: str | None, agent: str | None, options: LoadOptions) -> Hashable:
    """Return the key of an app that is imported here, None for anything else.

    Each is imported in a process of its own: two apps may have packages of one name.
    """
    if not options.imports or not is_available() or not is_app(manifest, dialect):
        return None
    name, of_object, _ = manifest.name.partition(":")
    return manifest.with_name(name) if of_object else manifest, agent


def _alone(path: Path, check: Callable[[], list[Problem]]) -> list[Problem]:
    """Return the problems that a check finds in a process of its own."""

    def checked() -> list[Problem]:
        with conditions_of_imports(DEFAULT_NOW):
            return check()

    try:
        return in_own_process(checked)
    except WorkerDied as died:
        return [Problem(died.code, str(died), Span(shown_path(path), 1, 1))]


def _problems_of_all(
    path: Path, scenarios: Iterable[Scenario], options: LoadOptions, seen: Seen
) -> list[Problem]:
    """Return the problems of scenarios of an app, which this process imports."""
    found = _located(path, chain.from_iterable(_scenario_problems(one, options, seen) for one in scenarios))
    return [problem for _, problem in found]


def _scenario_problems(scenario: Scenario, options: LoadOptions, seen: Seen) -> Iterator[Problem]:
    """Yield the problems of a scenario that its manifest tells."""
    graph = None
    if scenario.expect.values.get("status") != "invalid":
        try:
            graph = _graph(scenario, options)
        except ManifestError as error:
            yield from error.problems
    # After the graph is loaded, since a manifest may make modules importable.
    yield from _not_importable(scenario, options)
    if graph is None:
        return
    yield from problems_of_native_keys(scenario, graph)
    settings = options.projects.of(scenario.file)
    seen.models |= _models(graph)
    seen.unanswered.add(scenario, graph, settings)
    names = unknown_names(scenario, graph, settings, lambda other: _graph(other, options))
    if isinstance(graph, NativeGraph):  # what an app calls is known when it runs
        wrong = [problem for problem in names if problem.severity == "error"]
        names = [] if graph.has_tasks else wrong
    warnings = warnings_in(scenario, graph)
    seen.ruled_out |= set(map(subject, graph.warnings)).difference(map(subject, warnings))
    yield from [*warnings, *graph.notes, *names, *nested_problems(graph)]
    yield from _tool_problems(graph, [scenario])


def _tool_problems(graph: Graph, scenarios: Iterable[Scenario]) -> Iterator[Problem]:
    """Yield the problems of tools, given the functions of the MCP servers that these scenarios script."""
    functions: dict[str, list[str]] = {}
    for name, server in (each for one in scenarios for world in one.worlds for each in world.mcp.items()):
        if not server.real and server.error is None:
            functions.setdefault(name, []).extend(tool.name for tool in server.tools)
    yield from graph.tool_problems(functions)
    for inner in inner_graphs(graph):  # a scenario may answer in place of a nested graph
        if isinstance(inner, Graph):
            yield from (replace(each, severity="warning") for each in inner.tool_problems(functions))


def _models(graph: Graph) -> set[str]:
    """Return the names of the models of a graph and of those inside it, as far as they are known."""
    names = names_of(graph)
    return set(names.names.get("llm", ())) if names is not None else set()


def _not_importable(scenario: Scenario, options: LoadOptions) -> Iterator[Problem]:
    """Yield a problem for each import path of a tool, handler or custom check that cannot be resolved."""
    folders = load_request(scenario, options.projects.of(scenario.file)).folders
    for dotted, span in [
        *((entry.function, entry.span) for _, entry in scenario.world.real() if entry.function),
        *(
            (item["call"], each.spans[f"custom[{index}]"])
            for each in scenario.expectations
            for index, item in enumerate(each.values.get("custom", ()))
        ),
    ]:
        try:
            (import_object if options.imports else look_up)(dotted, folders)
        except ImportProblem as error:
            yield Problem("import", error.message, span, error.hint)


def _graph(scenario: Scenario, options: LoadOptions) -> Graph:
    """Load the manifest of a scenario, with its settings."""
    request = load_request(scenario, options.projects.of(scenario.file))
    request = replace(request, env={**request.env, **options.env}, imports=options.imports)
    return load_graph(request, scenario.dialect)


def manifest_problems(path: Path, options: LoadOptions, seen: Seen) -> Iterator[Problem]:
    """Yield the problems of a manifest, its agents (or the chosen one), and the scenarios inside it.

    Load warnings that do not apply in a scenario are left out: where they do, its scenarios have them.
    A manifest that can only not be run by itself, such as a single tool, has no problems.

    Raises:
        ManifestError: the file cannot be read, or is not a manifest.
    """
    found: dict[Problem, None] = {}
    dialect, agents = agents_of(path, options.dialect)
    for agent in agents_to_load(agents, options.agent):
        check = partial(_agent_problems, path, agent, dialect.name, options, seen)
        app = _app(path, dialect.name, agent, options)
        found |= dict.fromkeys(check() if app is None else _alone(path, check))
    try:
        own = load_scenarios(options.request(path, None), dialect.name)
        build_scenarios(own or (), path, dialect.name)
    except ManifestError as error:
        found |= dict.fromkeys(error.problems)
    yield from (with_env_option(problem) for problem in found)


def _agent_problems(
    path: Path, agent: str | None, dialect: str, options: LoadOptions, seen: Seen
) -> list[Problem]:
    """Return the problems of one agent of a manifest."""
    try:
        graph = load_graph(options.request(path, agent), dialect)
    except ManifestError as error:
        return [problem for problem in error.problems if problem.code != "not-runnable"]
    seen.models |= _models(graph)
    of_tools = _tool_problems(graph, options.users.get(real_path(path), ()))
    return [
        *warnings_alone(graph, seen.ruled_out),
        *graph.notes,
        *nested_problems(graph),
        # What is certain is an error of the scenario, unless it expects that its manifest is refused.
        *(each for each in of_tools if each.severity != "error"),
    ]


@click.command("validate")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=PATH)
@agent_option
@load_options
@flag("--imports", help="Import tools, handlers and hooks; this runs their modules.")
@flag("--strict", help="Treat warnings as errors.")
@flag("--json", "json_", help="Print the problems as a JSON list.")
def command(
    paths: tuple[Path, ...],
    options: LoadOptions,
    imports: bool,
    strict: bool,
    json_: bool,
) -> int:
    """Check manifests and scenario files without running them.

    PATH is a manifest, a scenario file (*.scenario.yaml), or a folder of both; in a folder, YAML and JSON files that
    are not manifests are skipped, with a warning if they cannot be read. All problems are reported at once. A ${VAR}
    without a value is a problem: set it with --env, or check the scenario files that set it in the same call. Nothing
    is imported unless --imports is given: tools, handlers and hooks are looked up in the source of their modules. MCP
    servers are not contacted.

    Exits with 2 if there are errors, else with 0. With --strict, warnings are errors. Notes are remarks without an
    effect on runs.
    """
    options.imports = imports
    files = collect(paths, options.dialect)
    with stdout_to_stderr(json_):
        found = list(problems(files, options))
    if strict:
        found = [
            (at, replace(each, severity="error") if each.severity == "warning" else each)
            for at, each in found
        ]
    if json_:
        listed = [as_json(problem, shown_path(path) if path else "") for path, problem in found]
        click.echo(json.dumps(listed, indent=2))
    else:
        print_problems((problem for _, problem in found), err=False)
        click.echo(_counts(files, [problem for _, problem in found]))
    return exit_code.BAD_INPUT if any(problem.severity == "error" for _, problem in found) else exit_code.OK


def _counts(files: Files, found: Sequence[Problem]) -> str:
    looked_at = f"{plural(len(files.manifests), 'manifest')}, {plural(len(files.scenarios), 'scenario file')}"
    by_severity = Counter(problem.severity for problem in found)
    counts = [plural(by_severity[name], name) for name in ("error", "warning") if by_severity[name]]
    return f"{looked_at}: {', '.join(counts) or 'no problems'}"
