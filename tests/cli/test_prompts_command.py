"""`harness prompts`: the listing, its JSON, and errors. Ids: tests/dialects/test_prompts.py."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fixtures import Invoke, WriteFile

MANIFEST = """\
manifest_version: 1
prompts:
  - {id: greet, instructions: "Greet ${NAME}."}
  - {id: think, instructions_path: think.md}
"""


@pytest.fixture(autouse=True)
def _manifest(write: WriteFile) -> None:
    write("a.yaml", MANIFEST)
    write("think.md", "Think.\nTwice.\n")


def test_prompts_are_listed_with_their_places(invoke: Invoke) -> None:
    result = invoke("prompts", "a.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "greet  instructions  a.yaml:3:31\n    Greet ${NAME}.\n\n"
        "think  instructions  think.md:1:1\n    Think.\n    Twice.\n"
    )


def test_prompts_are_listed_as_json(invoke: Invoke) -> None:
    assert json.loads(invoke("prompts", "a.yaml", "--json").stdout) == [
        {"id": "greet", "kind": "instructions", "text": "Greet ${NAME}.", "where": "a.yaml:3:31"},
        {"id": "think", "kind": "instructions", "text": "Think.\nTwice.\n", "where": "think.md:1:1"},
    ]


def test_a_manifest_without_prompts(invoke: Invoke, write: WriteFile, counter: str) -> None:
    write("counter.yaml", counter)
    assert invoke("prompts", "counter.yaml").stdout == "no prompts\n"
    assert json.loads(invoke("prompts", "counter.yaml", "--json").stdout) == []


def test_an_id_that_several_prompts_have_is_a_warning(invoke: Invoke, write: WriteFile) -> None:
    write("a.yaml", MANIFEST.replace("think,", "greet,"))
    for options in ((), ("--json",)):
        result = invoke("prompts", "a.yaml", *options)
        assert result.exit_code == 0
        assert "warning: the id 'greet' is ambiguous: 2 prompts have it: a.yaml:3:31, think.md:1:1" in (
            result.stderr
        )
        assert "ambiguous" not in result.stdout


def test_control_characters_are_escaped_and_secrets_replaced_on_a_terminal(
    invoke: Invoke, write: WriteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "sk-4f9a8b7c6d5e")
    write("think.md", "\x1b[31mred\nkey sk-4f9a8b7c6d5e, code tok-1234567")
    told = invoke("prompts", "a.yaml", "--env", "CODE_TOKEN=tok-1234567").stdout
    assert "    \\x1b[31mred\n    key <secret:ACME_API_KEY>, code <secret:CODE_TOKEN>\n" in told


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["nowhere.yaml"], "no such file"),
        (["a.scenario.yaml"], "give the manifest that it names"),
        (["think.md"], "not a manifest of a known dialect"),
        (["."], "this is a folder"),
        (["loop.yaml"], "loop.yaml: cannot be read: Too many levels of symbolic links"),
        (["a.yaml", "--dialect", "shermi"], "did you mean 'sherma'?"),
        (["a.yaml", "--with", "think.md"], "is a single file"),
        (["broken.yaml"], "broken.yaml:2:38: error: file 'nowhere.md' does not exist [missing-file]"),
    ],
)
def test_an_invalid_argument_or_manifest_is_an_error(
    invoke: Invoke, write: WriteFile, args: Any, told: str
) -> None:
    write("broken.yaml", "manifest_version: 1\nprompts: [{id: p, instructions_path: nowhere.md}]\n")
    Path("loop.yaml").symlink_to("loop.yaml")
    result = invoke("prompts", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr


def test_the_command_is_listed_and_has_help(invoke: Invoke) -> None:
    assert "List the prompts of a manifest, with file and line." in invoke("--help").stdout
    assert "Usage: harness prompts [OPTIONS] MANIFEST" in invoke("prompts", "--help").stdout


def test_the_prompts_of_an_app_are_texts_of_its_modules_which_are_not_imported(
    invoke: Invoke, write: WriteFile
) -> None:
    write("texts.py", '"""Texts."""\n\nRULES = "Be brief and polite."\nraise SystemExit("imported")\n')
    write("app.py", "import texts\nimport missing\n\n\ndef run(state):\n    return ask(system=texts.RULES)\n")
    write("langgraph.json", '{"graphs": {"one": "./app.py:run"}}')
    for manifest in ("langgraph.json", "app.py:run"):
        assert invoke("prompts", manifest).stdout == (
            "texts:RULES  constant  texts.py:3:9\n    Be brief and polite.\n"
        )
        (listed,) = json.loads(invoke("prompts", manifest, "--json").stdout)
        assert listed["id"] == "texts:RULES"


def test_an_app_without_prompts_has_none(invoke: Invoke, write: WriteFile) -> None:
    write("app.py", "def run(state):\n    return {}\n")
    assert invoke("prompts", "app.py:run").stdout == "no prompts\n"
