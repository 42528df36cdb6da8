"""Imports point one way. The order, and what each piece must not know: docs/architecture.md."""

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

# A piece may import what stands on lines above its own, never what stands beside it.
LAYERS = [
    {"budget", "errors", "installation", "statistics", "units"},
    {"source"},
    {"expressions"},
    {"matchers"},
    {"time", "settings"},
    {"graph"},
    {"engine", "draw", "judges", "secrets", "interception"},
    {"dialects", "world"},
    {"recording"},
    {"scenario"},
    {"serve"},
    {"report"},
    {"calibration", "gate", "selection", "workers"},
    {"variants"},
    {"evolution"},
    {"plugin", "cli"},
]
LAYER = {piece: number for number, pieces in enumerate(LAYERS) for piece in pieces}

HEAVY = {
    "celpy",
    "hypothesis",
    "jsonschema",
    "langchain_core",
    "langgraph",
    "mcp",
    "numpy",
    "pydantic",
    "rich",
    "vcr",
}


class Import(NamedTuple):
    """An import statement, at the head of a module or inside a function."""

    module: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.imported}"


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if path.name == "__init__.py" else parts)


MODULES = {module_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def read() -> Iterator[Import]:
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
    """All imports of the package. Reading them takes a second, in which no test is collected."""
    return tuple(read())


def piece(module: str) -> str:
    """The piece a module of ours belongs to; `harness` itself is none."""
    return module.split(".")[1] if "." in module else ""


def within(imported: str, package: str) -> bool:
    return imported == package or imported.startswith(f"{package}.")


def test_every_piece_has_its_place_in_the_order() -> None:
    pieces = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert pieces - {"__init__", "__pycache__"} == set(LAYER)


def test_imports_point_one_way() -> None:
    ours = [i for i in imports() if within(i.module, "harness") and within(i.imported, "harness")]
    crossing = [i for i in ours if piece(i.imported) in LAYER and piece(i.module) != piece(i.imported)]
    wrong = [str(i) for i in crossing if LAYER[piece(i.imported)] >= LAYER.get(piece(i.module), -1)]
    assert wrong == []


def test_no_module_imports_itself_in_a_circle() -> None:
    # Inside packages too, and in functions and under TYPE_CHECKING: a type that two modules need is in a third.
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
    ("package", "unknown"), [(package, unknown) for package, names in FORBIDDEN.items() for unknown in names]
)
def test_a_piece_does_not_know_what_is_not_its_subject(package: str, unknown: str) -> None:
    assert [str(i) for i in imports() if within(i.module, package) and within(i.imported, unknown)] == []


def test_the_graph_is_data_and_knows_none_of_the_rest() -> None:
    ours = {
        i.imported for i in imports() if within(i.module, "harness.graph") and within(i.imported, "harness")
    }
    assert {piece(name) for name in ours} == {"errors", "graph", "units"}


def test_workers_begin_to_import_before_the_command_has_imported_anything() -> None:
    ours = {i.imported for i in imports() if i.module == "harness.workers.fork_server"}
    assert {name for name in ours if within(name, "harness")} == set()


def test_dialects_do_not_know_each_other() -> None:
    def dialect(module: str) -> str:
        parts = module.split(".")
        return parts[2] if within(module, "harness.dialects") and len(parts) > 2 else ""

    packages = {path.parent.name for path in (ROOT / "dialects").glob("*/__init__.py")} - {"kit"}
    pairs = [(i, dialect(i.module), dialect(i.imported)) for i in imports()]
    assert [str(i) for i, one, other in pairs if {one, other} <= packages and one != other] == []


def test_only_the_superstep_scheduler_and_its_parts_call_langgraph() -> None:
    callers = {i.module.removeprefix("harness.engine.") for i in imports() if within(i.imported, "langgraph")}
    parts = {"translation", "checkpoints", "collision", "endless", "tool_messages", "untraced"}
    assert callers == {"superstep", *parts}


FRONT_DOORS = ["harness", "harness.plugin", "harness.cli.main"]
DETECTION = ["harness.dialects.registry", *DIALECTS.values()]


@pytest.mark.parametrize("module", [*FRONT_DOORS, *DETECTION])
def test_importing_a_front_door_is_cheap(module: str) -> None:
    # pytest loads the plugin in every run of every project the package is installed in; a manifest without
    # `dialect:` is shown to every dialect.
    code = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY & set(done.stdout.split()) == set()
