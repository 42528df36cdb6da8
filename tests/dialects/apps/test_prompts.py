"""Prompts of apps: texts in their modules, found without importing them and replaced while they are imported.

Source: docs/langgraph.md, "Prompts".
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from harness.dialects.load import load_prompts
from harness.dialects.request import LoadRequest
from harness.scenario.app_process import close_apps
from harness.source.document import real_path
from harness.source.python_texts import import_with, with_text
from tests.versions import declarative

MODULES = {
    "desk/__init__.py": "",
    "desk/prompts.py": '''\
        """Prompts of the desk, which you should not see in the list."""

        from textwrap import dedent

        RULES = "Be kind. " + "Always answer in French."
        SYSTEM_PROMPT = dedent("""
            You are a clerk.
            Serve {guest}.
        """)
        NOTE = "You never promise money that the desk does not have."
        QUERY = "SELECT name FROM guests WHERE id = 1 AND is_open"
        GREETING_PROMPT = f"Hello from {__name__}, how are you?"
        PROMPT_NAME = "clerk"
        ''',
    "desk/agent.py": """\
        import dataclasses
        import json
        from urllib.request import Request, urlopen

        from desk.prompts import RULES, SYSTEM_PROMPT
        from . import prompts


        @dataclasses.dataclass
        class Settings:
            system_prompt: str = dataclasses.field(
                default="Serve the guest well.", metadata={"is": "a prompt of some kind"}
            )


        def answer(letter):
            told = [
                {"role": "system", "content": RULES + SYSTEM_PROMPT.format(guest="Ada") + prompts.NOTE},
                {"role": "assistant", "content": "What can I do?"},
                {"role": "user", "content": "Here is the letter:"},
                {"role": "user", "content": letter},
            ]
            body = json.dumps({"model": "gpt-4o", "messages": told}).encode()
            asked = Request("https://api.openai.com/v1/chat/completions", body, {"Content-Type": "application/json"})
            with urlopen(asked) as response:
                return json.load(response)["choices"][0]["message"]["content"]
        """,
}
SUITE = """\
harness: 1
manifest: langgraph.json
scenarios:
  - name: an answer
    input: Where is my parcel?
    allow_unused: true
    llm:
      answer:
        - {when: 'request.messages[0].content.contains("Always answer in French.")', reply: Bonjour}
        - {reply: Hello}
    expect: {output: Bonjour}
"""


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with an app whose prompts are in a module of their own."""
    monkeypatch.chdir(tmp_path)
    for name, text in MODULES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(dedent(text))
    Path("langgraph.json").write_text('{"graphs": {"desk": "./desk/agent.py:answer"}}')
    Path("desk.scenario.yaml").write_text(SUITE)
    Path("pyproject.toml").write_text("[tool.harness]\n")
    return tmp_path


def listed(manifest: str) -> dict[str, str]:
    """The prompts of an app: their texts by id."""
    return {each.id: each.text for each in load_prompts(LoadRequest((Path(manifest),)))}


def test_constants_that_reach_a_model_or_look_like_prompts_are_listed() -> None:
    found = listed("langgraph.json")
    assert list(found) == [
        "desk.agent:Settings.system_prompt",
        "desk.agent:answer.told.user",
        "desk.prompts:RULES",
        "desk.prompts:SYSTEM_PROMPT",
        "desk.prompts:NOTE",
    ]
    assert found["desk.prompts:RULES"] == "Be kind. Always answer in French."
    assert found["desk.agent:Settings.system_prompt"] == "Serve the guest well."


def test_a_graph_in_another_language_does_not_hide_the_prompts_of_the_others() -> None:
    graphs = {"mail": "./desk/agent.py:answer", "web": "./web.ts:graph"}
    Path("langgraph.json").write_text(json.dumps({"graphs": graphs, "dependencies": ["."]}))
    assert "desk.prompts:RULES" in listed("langgraph.json")


def test_a_variant_replaces_a_constant_before_any_module_has_it() -> None:
    variants = {
        "harness": 1,
        "variants": [{"name": "short", "prompts": {"desk.prompts:RULES": "Be brief. Ünder."}}],
    }
    Path("variants.yaml").write_text(json.dumps(variants))
    command = ["score", "desk.scenario.yaml", "--variants", "variants.yaml", "--json", "scores.json"]
    done = CliRunner().invoke(cli, command)
    close_apps()
    (changed,) = json.loads(Path("scores.json").read_text())["changed"]
    assert (changed["variant"], changed["verdicts"]) == ("short", ["passed", "failed"]), done.output
    assert "was 'Hello'" in changed["checks"][0]


@declarative
def test_evolve_finds_a_better_constant_and_writes_a_patch_of_its_module() -> None:
    wanted = SUITE.replace("Always answer", "Never answer").replace("an answer", "answer ${case.n}")
    wanted += "    cases: [{n: 1}, {n: 2}, {n: 3}, {n: 4}]\n"
    mutator = "{reply: 'Be kind. Never answer in French.', times: any}"
    Path("desk.scenario.yaml").write_text(
        wanted.replace("    llm:\n", f"    llm:\n      mutator: [{mutator}]\n", 1)
    )
    keys = {"mutation_rate": 1.0}
    Path("evolution.yaml").write_text(json.dumps(keys))
    small = ("--population", "3", "--generations", "2", "--config", "evolution.yaml")
    done = CliRunner().invoke(cli, ["evolve", "langgraph.json", "desk.scenario.yaml", *small])
    close_apps()
    assert done.exit_code == 0, done.output
    patch = Path("reports/evolution/winner.patch").read_text()
    assert "+++ b/desk/prompts.py" in patch
    assert re.search(r'^\+[A-Z]+ = "Be kind\. Never answer in French\."$', patch, re.M)


def test_mutants_of_prompts_have_their_place_in_the_module_and_are_noticed() -> None:
    done = CliRunner().invoke(
        cli, ["mutate", "desk.scenario.yaml", "--operator", "prompt", "--json", "found.json"]
    )
    close_apps()
    mutants = {
        each["id"].rpartition("desk.prompts:")[2]: each
        for each in json.loads(Path("found.json").read_text())["mutants"]
    }
    french = mutants["RULES:sentence-2-dropped"]
    assert (french["where"], french["outcome"]) == ("desk/prompts.py:5", "killed"), done.output
    assert '+RULES = "Be kind. "' in french["diff"]
    guest = mutants["SYSTEM_PROMPT:guest-dropped"]
    assert (guest["where"], guest["outcome"]) == ("desk/prompts.py:6", "survived")
    assert "'Serve Ada.'" in guest["suggestion"]


@pytest.mark.parametrize(
    ("source", "new", "after"),
    [
        ('X = ("a"\n     "b")\n', "c", 'X = ("c")\n'),
        ("X = 'a'\n", "c", "X = 'c'\n"),
        ("é = 1; X = 'ü' + 'b'  # kept\n", 'it\'s "c"', "é = 1; X = 'it\\'s \"c\"'  # kept\n"),
        ('X = """a\nb"""\n', "c\nd\n", 'X = """c\nd\n"""\n'),
        ('X = "a"\n', 'c\\n"""\nd"', 'X = """c\\\\n\\"\\"\\"\nd\\""""\n'),
    ],
)
def test_a_text_is_changed_in_source_where_it_begins(source: str, new: str, after: str) -> None:
    (line, column) = next(
        (number, text.index(quote) + 1)
        for number, text in enumerate(source.split("\n"), 1)
        for quote in ("'", '"')
        if quote in text
    )
    assert with_text(source, line, column, new) == after


def test_the_parts_of_an_f_string_are_no_texts_and_a_module_that_is_imported_keeps_its_own(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Path("late.py")
    source.write_text('X = f"a {1}"\nY = "b"\n')
    assert with_text(source.read_text(), 1, 5, "c") is None
    monkeypatch.syspath_prepend(desk)
    file = real_path(source)
    try:
        assert import_with({file: {(1, 5): "c", (2, 5): "d"}}) == []
        late = importlib.import_module("late")
        assert (late.X, late.Y) == ("a 1", "d")
        assert import_with({file: {(2, 5): "e"}}) == [file]
    finally:
        import_with({})
