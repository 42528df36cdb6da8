"""The prompts of manifests as data: ids, kinds, texts and locations, by dialect. Contract: `harness prompts`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.dialects.dialect import Prompt
from harness.dialects.load import load_prompts
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem


@pytest.fixture(autouse=True)
def _in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").touch()


def prompts(files: Mapping[str, str], *more: str, **options: Any) -> list[Prompt]:
    """Return the prompts of the first of these files; `more` are its other documents."""
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    paths = (Path(next(iter(files))), *map(Path, more))
    return list(load_prompts(LoadRequest(paths, folders=(Path.cwd(),), **options)))


def rows(found: list[Prompt]) -> list[tuple[str, str, str, str]]:
    return [(prompt.id, prompt.kind, prompt.text, str(prompt.where)) for prompt in found]


def problems(files: Mapping[str, str], *more: str, **options: Any) -> list[Problem]:
    with pytest.raises(ManifestError) as refusal:
        prompts(files, *more, **options)
    return list(refusal.value.problems)


# ------------------------------------------------------------------ sherma

SHERMA = """\
manifest_version: 1
prompts:
  - {id: greet, instructions: "Greet ${NAME}."}
  - {id: think, instructions_path: texts/think.md}
"""


def test_sherma_has_the_ids_of_its_prompts_and_texts_as_they_are_written() -> None:
    assert rows(prompts({"agents/a.yaml": SHERMA, "agents/texts/think.md": "Think ${hard}.\n"})) == [
        ("greet", "instructions", "Greet ${NAME}.", "agents/a.yaml:3:31"),
        ("think", "instructions", "Think ${hard}.\n", "agents/texts/think.md:1:1"),
    ]


def test_sherma_paths_may_have_variables() -> None:
    files = {"a.yaml": SHERMA.replace("texts/think.md", '"texts/${FILE}"'), "texts/b.md": "B"}
    assert [prompt.text for prompt in prompts(files, env={"FILE": "b.md"})] == ["Greet ${NAME}.", "B"]
    [problem] = problems(files)
    assert (problem.code, str(problem.span)) == ("missing-variable", "a.yaml:4:36")


def test_sherma_sub_agents_with_a_manifest_are_part_of_it() -> None:
    files = {
        "a.yaml": f"{SHERMA}sub_agents:\n"
        "  - {id: b, version: '1', yaml_path: b.yaml}\n"
        "  - {id: c, version: '1', import_path: prompts_agents.c}\n"
        "  - {id: d, version: '1', url: 'https://d.example'}\n",
        "b.yaml": "manifest_version: 1\n"
        "prompts: [{id: inner, instructions: In b.}]\n"
        "sub_agents: [{id: a, version: '1', yaml_path: a.yaml}]\n",
        "far/c.yaml": "manifest_version: 1\nprompts: [{id: far, instructions_path: c.md}]\n",
        "far/c.md": "In c.",
        "prompts_agents.py": "from sherma import DeclarativeAgent\n"
        "c = DeclarativeAgent(id='c', yaml_path='far/c.yaml')\n",
        "texts/think.md": "Think.",
    }
    assert [(prompt.id, str(prompt.where)) for prompt in prompts(files)] == [
        ("greet", "a.yaml:3:31"),
        ("think", "texts/think.md:1:1"),
        ("inner", "b.yaml:2:37"),
        ("far", "far/c.md:1:1"),
    ]


def test_sherma_prompts_are_listed_despite_other_errors_in_a_manifest() -> None:
    assert [prompt.id for prompt in prompts({"a.yaml": f"{SHERMA}agents: 3\n", "texts/think.md": ""})] == [
        "greet",
        "think",
    ]


@pytest.mark.parametrize(
    ("prompt", "code", "place"),
    [
        ("{id: p}", "prompt-source", "a.yaml:2:11"),
        ("{id: p, instructions_path: b.md}", "missing-file", "a.yaml:2:38"),
        ("{id: p, instructions_path: '../../../etc/passwd'}", "path-outside", "a.yaml:2:38"),
        ("{instructions: x}", "missing-key", "a.yaml:2:11"),
        ("{id: p, instructions_path: c.md}", "unreadable-file", "a.yaml:2:38"),
    ],
)
def test_sherma_prompts_that_cannot_be_read_are_located(prompt: str, code: str, place: str) -> None:
    Path("c.md").write_bytes(b"\xff")
    [problem] = problems({"a.yaml": f"manifest_version: 1\nprompts: [{prompt}]\n"})
    assert (problem.code, str(problem.span)) == (code, place)


# ------------------------------------------------------------------ Agent Spec

AGENT = """\
agentspec_version: "25.4.1"
component_type: Agent
name: helper
llm_config: {$component_ref: model}
system_prompt: |
  You help with {{topic}}.
tools: []
"""

FLOW = """\
agentspec_version: "25.4.1"
component_type: Flow
name: flow
nodes:
  - {component_type: LlmNode, name: draft, prompt_template: "Write on {{topic}}."}
  - {component_type: LlmNode, name: judge, prompt_template: {$component_ref: asked}}
  - {component_type: AgentNode, name: ask, agent: {$component_ref: helper}}
metadata: {component_type: LlmNode, name: not_one, prompt_template: nothing}
$referenced_components:
  asked: Is it good?
  unused: {component_type: LlmNode, name: unused, prompt_template: Unused.}
"""


def test_agentspec_prompts_are_those_of_agents_and_nodes() -> None:
    assert rows(prompts({"a.yaml": AGENT})) == [
        ("helper.system_prompt", "system_prompt", "You help with {{topic}}.\n", "a.yaml:5:16")
    ]


def test_agentspec_prompts_are_located_at_their_text_in_every_document() -> None:
    parts = AGENT.replace('agentspec_version: "25.4.1"\n', "")
    parts = "$referenced_components:\n  helper:\n" + "".join(f"    {line}\n" for line in parts.splitlines())
    assert rows(prompts({"flow.yaml": FLOW, "parts.yaml": parts}, "parts.yaml")) == [
        ("draft.prompt_template", "prompt_template", "Write on {{topic}}.", "flow.yaml:5:61"),
        ("judge.prompt_template", "prompt_template", "Is it good?", "flow.yaml:10:10"),
        ("unused.prompt_template", "prompt_template", "Unused.", "flow.yaml:11:68"),
        ("helper.system_prompt", "system_prompt", "You help with {{topic}}.\n", "parts.yaml:6:20"),
    ]


def test_agentspec_prompts_in_json() -> None:
    text = '{"component_type": "Agent", "name": "helper",\n "system_prompt": "Hi \\u00e9"}'
    assert rows(prompts({"a.json": text})) == [
        ("helper.system_prompt", "system_prompt", "Hi é", "a.json:2:19")
    ]


def test_agentspec_components_that_are_aliases_are_listed_once() -> None:
    text = "component_type: Flow\nname: f\nnodes: [&n {component_type: LlmNode, name: n, prompt_template: P}, *n]\n"
    assert [prompt.id for prompt in prompts({"a.yaml": text})] == ["n.prompt_template"]


def test_agentspec_prompts_that_are_not_text_are_all_reported() -> None:
    text = FLOW.replace('"Write on {{topic}}."', "[a]").replace(
        "$component_ref: asked", "$component_ref: askd"
    )
    text = text.replace("Unused.", "{$component_ref: round}") + "  round: {$component_ref: round}\n"
    assert [(problem.code, str(problem.span)) for problem in problems({"a.yaml": text})] == [
        ("wrong-type", "a.yaml:5:61"),
        ("unknown-reference", "a.yaml:6:78"),
        ("circular-reference", "a.yaml:12:27"),
    ]


# ------------------------------------------------------------------ Yagra

YAGRA = """\
version: "1.0"
start_at: sort
end_at: [reply]
params: {prompt_ref: texts/shared.yaml}
nodes:
  - {id: sort, handler: llm, params: {prompt_ref: "texts/prompts.yaml#sort@2"}}
  - {id: reply, handler: llm, params: {prompt_ref: ./texts/prompts.yaml#reply.user}}
  - {id: again, handler: llm, params: {prompt_ref: "texts/prompts.yaml#sort"}}
  - {id: plain, handler: llm}
  - {id: inline, handler: llm, params: {prompt_ref: null, prompt: {system: S, user: U}}}
edges: []
"""

PROMPTS = """\
_meta: {version: "2"}
sort:
  system: You sort.
  user: "{text}"
reply: {user: Reply.}
"""


def test_yagra_prompts_are_those_that_nodes_refer_to_each_once() -> None:
    files = {
        "flows/a.yaml": YAGRA,
        "flows/texts/prompts.yaml": PROMPTS,
        "flows/texts/shared.yaml": "user: All.",
    }
    assert rows(prompts(files)) == [
        ("texts/prompts.yaml#sort.system", "system", "You sort.", "flows/texts/prompts.yaml:3:11"),
        ("texts/prompts.yaml#sort.user", "user", "{text}", "flows/texts/prompts.yaml:4:9"),
        ("texts/prompts.yaml#reply.user", "user", "Reply.", "flows/texts/prompts.yaml:5:15"),
        ("texts/shared.yaml#user", "user", "All.", "flows/texts/shared.yaml:1:7"),
        ("inline.prompt.system", "system", "S", "flows/a.yaml:10:76"),
        ("inline.prompt.user", "user", "U", "flows/a.yaml:10:85"),
    ]


def test_yagra_prompts_that_are_one_text() -> None:
    node = "version: '1'\nstart_at: a\nend_at: [a]\nnodes: [{id: a, handler: llm, params: {%s}}]\nedges: []\n"
    files = {"a.yaml": node % "prompt: Say hello.", "p.yaml": "sort: Sort it.\n"}
    assert rows(prompts(files)) == [("a.prompt", "prompt", "Say hello.", "a.yaml:4:48")]
    files["a.yaml"] = node % "prompt_ref: p.yaml#sort"
    assert rows(prompts(files)) == [("p.yaml#sort", "prompt", "Sort it.", "p.yaml:1:7")]


def test_yagra_subgraphs_are_part_of_a_workflow_and_files_are_named_from_the_outermost() -> None:
    inner = """\
version: "1.0"
start_at: n
end_at: [n]
nodes:
  - {id: n, handler: llm, params: {prompt_ref: "p.yaml#ask"}}
  - {id: back, handler: subgraph, params: {workflow_ref: ../outer.yaml}}
edges: []
"""
    outer = inner.replace("p.yaml#ask", "parts/p.yaml#ask").replace("../outer", "parts/inner")
    files = {"outer.yaml": outer, "parts/inner.yaml": inner, "parts/p.yaml": "ask: Ask.\n"}
    assert rows(prompts(files)) == [("parts/p.yaml#ask", "prompt", "Ask.", "parts/p.yaml:1:6")]


@pytest.mark.parametrize(
    ("reference", "code"),
    [
        ("prompt_ref: texts/prompt.yaml", "missing-file"),
        ('prompt_ref: "texts/prompts.yaml#srt"', "unknown-prompt"),
        ("prompt_ref: 3", "wrong-type"),
        ('prompt_ref: "\\0"', "unreadable-file"),
        ("workflow_ref: nowhere.yaml", "missing-file"),
    ],
)
def test_unresolved_yagra_references_are_located(reference: str, code: str) -> None:
    text = f"start_at: a\nend_at: [a]\nnodes:\n  - id: a\n    handler: subgraph\n    params:\n      {reference}\n"
    [problem] = problems({"a.yaml": text, "texts/prompts.yaml": PROMPTS})
    assert problem.span is not None
    assert (problem.code, problem.span.line) == (code, 7)
