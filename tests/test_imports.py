"""The layers of the package: which part may import which. The order comes from docs/architecture.md."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import harness
from harness.dialects import DIALECTS

ROOT = Path(harness.__file__).parent

# A part may import parts on earlier lines, but none on its own line.
LAYERS = [
    {"budget", "ctrl_c", "errors", "installation", "statistics", "units"},
    {"time"},
    {"source"},
    {"expressions"},
    {"matchers"},
    {"settings"},
    {"graph", "chance"},
    {"interception"},
    {"engine", "draw", "judges", "secrets"},
    {"dialects", "world"},
    {"recording"},
    {"scenario"},
    {"serve"},
    {"report"},
    {"calibration", "gate", "selection", "traces", "workers"},
    {"authoring", "cluster"},
    {"api", "variants"},
    {"evolution", "explore"},
    {"mutation", "strategies"},
    {"plugin", "cli"},
]
LAYER = {part: number for number, parts in enumerate(LAYERS) for part in parts}

HEAVY = {
    "celpy",
    "hypothesis",
    "jsonschema",
    "langchain_core",
    "langgraph",
    "mcp",
    "numpy",
    "pandas",
    "pydantic",
    "rich",
    "vcr",
}


class Import(NamedTuple):
    """An import statement, at the top of a module or inside a function."""

    module: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.imported}"


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if path.name == "__init__.py" else parts)


MODULES = {module_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def read_imports() -> Iterator[Import]:
    for module, path in MODULES.items():
        package = path.relative_to(ROOT.parent).parts[:-1]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (Import(module, alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = [*package[: len(package) - node.level + 1]] if node.level else []
                source = ".".join([*base, node.module] if node.module else base)
                for alias in node.names:
                    name = f"{source}.{alias.name}"
                    yield Import(module, name if name in MODULES else source, node.lineno)


@cache
def imports() -> tuple[Import, ...]:
    """Return all imports of the package but those of its public names, which are loaded when they are used.

    They are read on first use, since it takes a second.
    """
    return tuple(each for each in read_imports() if each.module != harness.__name__)


def part(module: str) -> str:
    """Return the part that a module of the package belongs to; an empty text for `harness` itself."""
    return module.split(".")[1] if "." in module else ""


def within(imported: str, package: str) -> bool:
    return imported == package or imported.startswith(f"{package}.")


def test_every_part_has_a_layer() -> None:
    parts = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert parts - {"__init__", "__pycache__"} == set(LAYER)


def test_no_part_imports_a_part_of_its_own_or_a_later_layer() -> None:
    ours = [i for i in imports() if within(i.module, "harness") and within(i.imported, "harness")]
    crossing = [i for i in ours if part(i.imported) in LAYER and part(i.module) != part(i.imported)]
    wrong = [str(i) for i in crossing if LAYER[part(i.imported)] >= LAYER.get(part(i.module), -1)]
    assert wrong == []


def test_no_module_imports_itself_through_others() -> None:
    # This includes imports in functions and under TYPE_CHECKING: a type that two modules need belongs in a third.
    imported = {
        module: {i.imported for i in imports() if i.module == module} & set(MODULES) for module in MODULES
    }

    def reached(module: str) -> set[str]:
        found: set[str] = set()
        waiting = [module]
        while waiting:
            new = imported[waiting.pop()] - found
            found |= new
            waiting += new
        return found

    assert {module for module in MODULES if module in reached(module)} == set()


def test_the_check_sees_imports_inside_functions() -> None:
    assert any(
        i.module == "harness.matchers.plain" and i.imported == "harness.expressions.cel" for i in imports()
    )


RUNS_LANGGRAPH = {"harness.dialects.langgraph.graphs"}
"""They make graphs of LangGraph from other callables."""
FORBIDDEN = {
    "harness.graph": ["harness.dialects", "harness.source", "langgraph", "yaml", "pytest"],
    "harness.engine": ["harness.dialects", "harness.source", "yaml", "pytest"],
    "harness.expressions": ["harness.graph", "langgraph", "yaml", "pytest"],
    "harness.source": ["harness.dialects", "langgraph", "pytest"],
    "harness.dialects": ["langgraph", "pytest"],
    "harness.world": ["harness.dialects", "harness.scenario", "pytest"],
    "harness.scenario": ["pytest", "langgraph"],
    "harness.report": ["harness.scenario.run", "harness.world", "langgraph", "pytest"],
}


@pytest.mark.parametrize(
    ("package", "forbidden"), [(package, name) for package, names in FORBIDDEN.items() for name in names]
)
def test_a_part_imports_nothing_that_is_forbidden_to_it(package: str, forbidden: str) -> None:
    ours = [i for i in imports() if within(i.module, package) and i.module not in RUNS_LANGGRAPH]
    assert [str(i) for i in ours if within(i.imported, forbidden)] == []


def test_the_graph_imports_no_other_part_but_errors_and_units() -> None:
    ours = {
        i.imported for i in imports() if within(i.module, "harness.graph") and within(i.imported, "harness")
    }
    assert {part(name) for name in ours} == {"errors", "graph", "units"}


def test_the_fork_server_of_workers_imports_nothing_of_the_package() -> None:
    ours = {i.imported for i in imports() if i.module == "harness.workers.fork_server"}
    assert {name for name in ours if within(name, "harness")} == set()


def test_dialects_do_not_import_each_other() -> None:
    def dialect(module: str) -> str:
        parts = module.split(".")
        return parts[2] if within(module, "harness.dialects") and len(parts) > 2 else ""

    packages = {path.parent.name for path in (ROOT / "dialects").glob("*/__init__.py")} - {"kit"}
    pairs = [(i, dialect(i.module), dialect(i.imported)) for i in imports()]
    assert [str(i) for i, one, other in pairs if {one, other} <= packages and one != other] == []


def test_only_the_superstep_and_the_native_scheduler_and_their_parts_call_langgraph() -> None:
    callers = {i.module.removeprefix("harness.engine.") for i in imports() if within(i.imported, "langgraph")}
    native = {"native", "native_savers", "native_visits", "native_levels"} | RUNS_LANGGRAPH
    assert callers == {"superstep", "translation", "callables", "too_many_steps", "versions"} | native


ENTRY_POINTS = ["harness", "harness.plugin", "harness.cli.main"]
DETECTION = ["harness.dialects.registry", *DIALECTS.values()]


def test_importing_the_package_loads_nothing_of_it() -> None:
    # `import harness` takes a few milliseconds: its names are loaded when they are used.
    code = """import sys; before = {*sys.modules}; import harness; print(*sorted({*sys.modules} - before))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = {name for name in done.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names}
    assert ours == {"harness"}


@pytest.mark.parametrize("module", [*ENTRY_POINTS, *DETECTION])
def test_importing_an_entry_point_loads_no_heavy_library(module: str) -> None:
    # pytest loads the plugin in every run of every project the package is installed in; a manifest without
    # `dialect:` is passed to every dialect.
    code = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY & set(done.stdout.split()) == set()
