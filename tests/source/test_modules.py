"""Lookup of objects by dotted path in the source of their modules, without imports."""

import sys
from pathlib import Path

import pytest

from harness.source.imports import ImportProblem, import_object
from harness.source.modules import look_up, name_of_tool

MODULE = """\
raise RuntimeError("it was imported")

from os import path as where
import json, xml.dom

LIMIT: int = 3
first, (second, *rest) = 1, (2, 3)

try:
    from fast import run
except ImportError as error:
    def run(): ...
else:
    with open("x") as file:
        deep = 1

def _hidden(): ...
async def ask(): ...
@tool
def find(q): ...
@tools.tool
def search(q): ...
@tool("another")
def named(q): ...

class Hook:
    def before(self): ...
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lone_module.py").write_text(MODULE)
    (tmp_path / "starred.py").write_text("from os.path import *\n")
    (tmp_path / "lazy.py").write_text("def __getattr__(name): ...\n")
    (tmp_path / "torn.py").write_text("def (:\n")
    (tmp_path / "boxes/small").mkdir(parents=True)
    (tmp_path / "boxes/__init__.py").write_text("from .round import lid\n")
    (tmp_path / "boxes/small/one.py").write_text("lid = 1\n")
    return tmp_path


@pytest.mark.parametrize(
    "dotted",
    [
        *(
            f"lone_module.{name}"
            for name in (
                *("where", "json", "xml", "LIMIT", "first", "second", "rest", "run", "deep", "file"),
                *("_hidden", "ask", "find", "Hook", "Hook.before"),
            )
        ),
        "starred.join",
        "lazy.anything",
        "boxes.lid",
        "boxes.small.one.lid",
        "json.dumps",
        "sys.path",
    ],
)
def test_an_existing_object_is_found(folder: Path, dotted: str) -> None:
    look_up(dotted, [folder])
    assert "lone_module" not in sys.modules


@pytest.mark.parametrize(
    ("dotted", "hint"),
    [
        ("lone_modul.find", "did you mean 'lone_module'?"),
        ("boxes.lyd", "did you mean 'lid'?"),
        ("boxes.smal.one.lid", ""),
        ("no_such_module_here.x", "looked in "),
        ("lone", ""),
    ],
)
def test_a_missing_object_is_reported_as_an_import_reports_it(folder: Path, dotted: str, hint: str) -> None:
    (folder / "boxes/__init__.py").write_text("lid = 1\n")
    with pytest.raises(ImportProblem) as found:
        look_up(dotted, [folder])
    with pytest.raises(ImportProblem) as imported:
        import_object(dotted, [folder])
    assert found.value.message == imported.value.message
    assert found.value.hint.startswith(hint)


def test_a_name_that_a_module_does_not_bind(folder: Path) -> None:
    with pytest.raises(
        ImportProblem, match=r"the module 'lone_module' has no 'fnd'\n    did you mean 'find'\?"
    ):
        look_up("lone_module.fnd", [folder])


def test_a_module_that_cannot_be_parsed(folder: Path) -> None:
    with pytest.raises(ImportProblem, match=r"module torn raised SyntaxError: .*torn.py:1") as caught:
        look_up("torn.x", [folder])
    assert caught.value.span is not None


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("find", "find"),
        ("search", "search"),
        ("ask", "ask"),
        ("named", None),
        ("Hook", None),
        ("LIMIT", None),
    ],
)
def test_the_name_that_models_know_a_tool_by(folder: Path, name: str, offered: str | None) -> None:
    assert name_of_tool(look_up(f"lone_module.{name}", [folder])) == offered
