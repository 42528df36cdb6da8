"""Disaggregated documents after the main one. spec: "Disaggregated components"."""

from __future__ import annotations

from typing import Any

import pytest

from harness.dialects.agentspec.dialect import prompts
from harness.dialects.agentspec.tools import RemoteTool
from tests.dialects.agentspec.configurations import (
    AGENT,
    MODEL,
    PARTS,
    TABLE,
    VERSION,
    agent,
    codes,
    entry,
    ref,
    tool,
)
from tests.dialects.agentspec.loader import Loader

MAIN = agent(system_prompt=ref("prompt"), tools=f"[{ref('tool')}]")


def test_components_come_from_documents_after_the_main_one(loader: Loader) -> None:
    root = loader.agent(MAIN, PARTS)
    assert (root.system_prompt, root.tools[0].name) == ("Help.", "tool")
    two = loader.agent(MAIN, TABLE + entry("prompt", "Go."), TABLE + entry("tool", tool("other")))
    assert (two.system_prompt, two.tools[0].name) == ("Go.", "other")


def test_components_may_refer_to_other_documents_and_to_the_main_one(loader: Loader) -> None:
    main = agent(tools=f"[{ref('tool')}]") + TABLE + entry("url", "http://x")
    remote = "{component_type: RemoteTool, name: t, http_method: GET, url: {$component_ref: url}}"
    parts = VERSION + TABLE + entry("tool", ref("remote")) + entry("remote", remote)
    [found] = loader.agent(main, parts).tools
    assert isinstance(found, RemoteTool)
    assert found.url == "http://x"


def test_a_missing_component(loader: Loader) -> None:
    problem = loader.problem(MAIN, TABLE + entry("prompt", "Help."))
    assert (problem.code, loader.place(problem)) == ("unknown-reference", "tool")
    assert codes(loader.problems(MAIN)) == ["unknown-reference", "unknown-reference"]


def test_a_component_of_the_wrong_kind(loader: Loader) -> None:
    problem = loader.problem(
        MAIN, TABLE + entry("prompt", "Help.") + entry("tool", MODEL.replace("small", "s"))
    )
    assert problem.message == "'guide': expected a tool, found the OpenAiConfig 'model'"
    assert loader.place(problem) == ref("tool")


VARIANTS = TABLE + entry("en", "Help.") + entry("fr", "Aide.") + entry("few", f"[{tool('one')}]")


def test_a_component_may_stand_for_another_id(loader: Loader) -> None:
    main = agent(system_prompt=ref("prompt"), tools=ref("tools"))
    for key, prompt in (("en", "Help."), ("fr", "Aide.")):
        root = loader.agent(main, VARIANTS, components={"prompt": key, "tools": "few"})
        assert (root.system_prompt, [tool.name for tool in root.tools]) == (prompt, ["one"])


def test_a_component_may_stand_for_two_ids_and_its_own(loader: Loader) -> None:
    main = agent(tools=f"[{ref('a')}, {ref('b')}, {ref('tool')}]")
    first, second, third = loader.agent(main, PARTS, components={"a": "tool", "b": "tool"}).tools
    assert first is second is third


@pytest.mark.parametrize(
    ("components", "code", "message", "hint"),
    [
        (
            {"prompt": "frr", "tool": "few"},
            "unknown-reference",
            "no component 'frr' is defined, which 'prompt' stands for",
            "did you mean 'fr'?",
        ),
        (
            {"prompt": "fr", "tool": "en"},
            "wrong-component",
            "'tool' is used as a component, but it is text 'Help.'",
            "",
        ),
        (
            {"prompt": "fr", "tool": "few", "en": "fr"},
            "duplicate-reference",
            "'en' is in a table of components already, so it cannot stand for 'fr'",
            "",
        ),
    ],
)
def test_a_component_that_cannot_stand_for_an_id(
    loader: Loader, components: dict[str, str], code: str, message: str, hint: str
) -> None:
    problem = loader.problems(MAIN, VARIANTS.replace("[", "").replace("]", ""), components=components)[0]
    assert (problem.code, problem.message, problem.hint) == (code, message, hint)


def test_an_id_that_nothing_refers_to_is_a_warning(loader: Loader) -> None:
    main = agent(system_prompt=ref("prompt"))
    [warning] = loader.graph(
        main + TABLE + entry("prompt", "Go."), VARIANTS, components={"promt": "fr"}
    ).warnings
    assert (warning.code, warning.message) == (
        "unknown-reference",
        "nothing refers to 'promt', which stands for 'fr'",
    )


def test_the_prompts_are_those_of_the_components_that_stand_for_ids(loader: Loader) -> None:
    request = loader.request(agent(system_prompt=ref("prompt")), VARIANTS, components={"prompt": "fr"})
    assert [prompt.text for prompt in prompts(request)] == ["Aide."]


def test_a_component_in_two_documents(loader: Loader) -> None:
    problem = loader.problem(MAIN, PARTS, TABLE + entry("tool", tool()))
    assert problem.code == "duplicate-reference"
    assert problem.span is not None
    assert problem.span.file.endswith("document_2.yaml")


def test_unused_components_of_other_documents_are_not_checked(loader: Loader) -> None:
    assert loader.graph(MAIN, PARTS + entry("other", "{component_type: Nonsense}")).warnings == ()


@pytest.mark.parametrize(
    ("parts", "code", "message"),
    [
        ("[1]", "wrong-type", "a configuration is a mapping, found a list"),
        (
            "$referenced_components: [1]",
            "wrong-type",
            "$referenced_components: expected a mapping, found a list",
        ),
        (
            VERSION,
            "missing-key",
            "missing key '$referenced_components' in a document of disaggregated components",
        ),
        (
            PARTS + "name: parts\n",
            "unknown-key",
            "unknown key 'name' in a document of disaggregated components",
        ),
        (
            VERSION + AGENT + PARTS,
            "wrong-component",
            "this is an Agent of its own; the documents after the first have only $referenced_components",
        ),
        (
            "$component_ref: tool\n" + PARTS,
            "wrong-component",
            "this is a configuration of its own; the documents after the first have only $referenced_components",
        ),
        (
            PARTS + "agentspec_version: 1.2.3\n",
            "unknown-version",
            "agentspec_version 1.2.3 is unknown; known versions: 25.4.1, 25.4.2, 26.1.0, 26.1.2, 26.2.0, 26.3.1",
        ),
    ],
)
def test_the_form_of_a_disaggregated_document(loader: Loader, parts: Any, code: Any, message: Any) -> None:
    problem = loader.problem(MAIN, parts)
    assert (problem.code, problem.message) == (code, message)
    assert problem.span is not None
    assert problem.span.file.endswith("document_1.yaml")


def test_a_disaggregated_document_cannot_be_run(loader: Loader) -> None:
    problem = loader.problem(VERSION + PARTS)
    assert (problem.code, problem.message) == (
        "no-component",
        "there is no top-level component to run",
    )
    assert (
        problem.hint == "a document of disaggregated components comes after the document that refers to them"
    )


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        (VERSION + "name: x\n", "missing-key", "missing key 'component_type'", "such as Agent or Flow"),
        (VERSION, "missing-key", "missing key 'component_type'", "such as Agent or Flow"),
        (
            VERSION + "component_typ: Flow\n",
            "missing-key",
            "missing key 'component_type'",
            "it is written 'component_typ' here",
        ),
        (
            "name: x\n" + PARTS,
            "missing-key",
            "missing key 'component_type'",
            "such as Agent or Flow",
        ),
        (
            "manifest_version: 1\nagents: {}\n",
            "no-component",
            "this is not an Agent Spec configuration: it has no component_type at the top",
            "",
        ),
    ],
)
def test_a_document_without_a_root_component(
    loader: Loader, text: Any, code: Any, message: Any, hint: Any
) -> None:
    problem = loader.problem(text)
    assert (problem.code, problem.message, problem.hint) == (code, message, hint)


@pytest.mark.parametrize("key", ["agent_spec_version", "agentSpecVersion", "agentspec-version"])
def test_a_version_that_is_misspelt(loader: Loader, key: Any) -> None:
    problem = loader.problem(f"{key}: 25.4.1\n{AGENT}")
    assert (problem.code, problem.message) == ("unknown-key", f"unknown key '{key}' at the top")
    assert (loader.place(problem), problem.hint) == (key, "did you mean 'agentspec_version'?")
