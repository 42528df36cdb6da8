"""Versions of the document, and the features that a later one adds. spec: "Versioning"."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.dialects.agentspec.configurations import AGENT, PARTS, VERSION, agent
from tests.dialects.agentspec.configurations import MODEL as SMALL
from tests.dialects.agentspec.flow_texts import MODEL, flow_of
from tests.dialects.agentspec.loader import Loader

KNOWN = "25.4.1, 25.4.2, 26.1.0, 26.1.2, 26.2.0, 26.3.1"


def test_json_and_yaml_give_the_same_configuration(loader: Loader) -> None:
    from_yaml = loader.agent(VERSION + AGENT)
    from_json = loader.agent(json.dumps(yaml.safe_load(VERSION + AGENT)), json=True)
    assert from_yaml.model_dump(exclude={"llm_config"}) == from_json.model_dump(exclude={"llm_config"})
    assert from_yaml.llm_config.model_dump() == from_json.llm_config.model_dump()


@pytest.mark.parametrize("version", ["25.4.1", "25.4.2", "26.1.0", "26.1.2", "26.2.0", "26.3.1", "'25.4.1'"])
def test_a_known_version(loader: Loader, version: Any) -> None:
    assert loader.graph(f"agentspec_version: {version}\n{AGENT}").warnings == ()


def test_an_old_version_is_read_as_the_first(loader: Loader) -> None:
    [warning] = loader.graph("agentspec_version: 25.4.0\n" + AGENT).warnings
    assert (warning.code, warning.severity) == ("old-version", "warning")
    assert warning.message == "agentspec_version 25.4.0 is read as 25.4.1"
    assert loader.place(warning) == "25.4.0"


def test_without_a_version_the_newest_is_assumed(loader: Loader) -> None:
    [warning] = loader.graph(AGENT).warnings
    assert (warning.code, warning.severity) == ("no-version", "warning")
    assert warning.message == "no agentspec_version: 26.3.1 is assumed"


@pytest.mark.parametrize(
    ("version", "code", "message"),
    [
        ("26.1.1", "unknown-version", f"agentspec_version 26.1.1 is unknown; known versions: {KNOWN}"),
        ("''", "unknown-version", f"agentspec_version  is unknown; known versions: {KNOWN}"),
        ("25.4", "wrong-type", "agentspec_version: expected text, found the number 25.4"),
        ("null", "wrong-type", "agentspec_version: expected text, found nothing (null)"),
        ("[25.4.1]", "wrong-type", "agentspec_version: expected text, found a list"),
    ],
)
def test_an_unknown_version(loader: Loader, version: Any, code: Any, message: Any) -> None:
    problem = loader.problem(f"agentspec_version: {version}\n{AGENT}")
    assert (problem.code, problem.message) == (code, message)
    assert loader.place(problem) == version


def test_a_version_is_only_allowed_at_the_top(loader: Loader) -> None:
    text = agent(tools="[{component_type: ServerTool, name: t, agentspec_version: 25.4.1}]")
    problem = loader.problem(text)
    assert problem.message == "'t': unknown key 'agentspec_version' in a ServerTool"


@pytest.mark.parametrize("version", ["agentspec_version: 25.4.2\n", ""])
def test_later_fields_may_have_neutral_values(loader: Loader, version: Any) -> None:
    later = "{component_type: ServerTool, name: t, requires_confirmation: false}"
    text = version + AGENT + f"human_in_the_loop: true\ntoolboxes: []\ntools: [{later}]\n"
    loader.configuration(text)


@pytest.mark.parametrize(
    ("fields", "since"),
    [
        ({"llm_config": SMALL.replace("}", ", api_provider: other}")}, "26.1.2"),
        ({"llm_config": SMALL.replace("}", ", url: 'http://x.test'}")}, "26.1.2"),
    ],
    ids=["provider", "url"],
)
def test_later_fields_that_do_not_work_are_refused_with_their_version(
    loader: Loader, fields: dict[str, str], since: str
) -> None:
    problem = loader.problem(agent(**fields).replace("25.4.1", "26.3.1"))
    assert problem.code == "unsupported"
    assert problem.message.endswith(f", of Agent Spec {since}, is not supported")


def test_neutral_fields_of_a_model_work(loader: Loader) -> None:
    fields = "provider: openai, api_provider: openai, api_type: chat_completions, api_key: k, url: null"
    text = AGENT.replace("model_id: m", f"model_id: m, {fields}, retry_policy: null")
    assert loader.graph("agentspec_version: 26.1.2\n" + text).warnings == ()
    told = loader.graph("agentspec_version: 25.4.2\n" + text).warnings
    assert [warning.message.split(":")[1] for warning in told] == [
        f" '{key}' in an OpenAiConfig" for key in ("provider", "api_provider", "url", "retry_policy")
    ]
    assert {warning.hint for warning in told} == {"say agentspec_version: 26.1.2"}


@pytest.mark.parametrize("version", ["25.4.1", "25.4.0"])
def test_a_later_field_in_an_earlier_version_works_with_a_warning(loader: Loader, version: str) -> None:
    *_, warning = loader.graph(agent(toolboxes="[]").replace("25.4.1", version)).warnings
    assert (warning.code, warning.severity, loader.place(warning)) == (
        "later-version",
        "warning",
        "toolboxes",
    )
    assert (
        warning.message
        == f"'guide': 'toolboxes' in an Agent: new in 25.4.2, and this configuration says {version}"
    )
    assert warning.hint == "say agentspec_version: 25.4.2"


LATER_VALUES = {
    "outputs": (
        "{component_type: LlmNode, name: it, llm_config: {$component_ref: model}, prompt_template: x,"
        " outputs: [{title: stars, type: integer}]}",
        "[{title: stars, type: integer}]",
        "outputs other than one string",
    ),
    "data": (
        "{component_type: ApiNode, name: it, url: 'http://x.test', http_method: POST, data: [1]}",
        "[1]",
        "data other than a mapping",
    ),
}


@pytest.mark.parametrize(("node", "place", "what"), LATER_VALUES.values(), ids=LATER_VALUES)
def test_a_later_value_in_25_4_1_works_with_a_warning(
    loader: Loader, node: str, place: str, what: str
) -> None:
    text = flow_of("X").replace("{name: it, X}", node) + f"  model: {MODEL}\n"
    assert [warning.code for warning in loader.graph(text).warnings] == []

    [warning] = loader.graph(text.replace("25.4.2", "25.4.1")).warnings
    assert (warning.code, warning.severity, loader.place(warning)) == ("later-version", "warning", place)
    assert warning.message == f"'it': {what}: new in 25.4.2, and this configuration says 25.4.1"


def test_a_later_field_with_a_value_that_does_not_work_is_refused_without_advice_to_change_the_version(
    loader: Loader,
) -> None:
    problem = loader.problem(agent(llm_config=SMALL.replace("}", ", url: far}")))
    assert (problem.code, loader.place(problem), problem.hint) == ("unsupported", "far", "")
    assert problem.message.endswith("'url' other than nothing (null), of Agent Spec 26.1.2, is not supported")


def test_the_version_to_write_is_the_first_with_all_that_is_needed(loader: Loader) -> None:
    [warning] = loader.graph(AGENT).warnings
    assert (warning.code, warning.hint) == ("no-version", "say agentspec_version: 25.4.1")
    [warning] = loader.graph(AGENT + "toolboxes: []\n").warnings
    assert (warning.code, warning.hint) == ("no-version", "say agentspec_version: 25.4.2")


def test_a_later_field_is_only_allowed_in_its_components(loader: Loader) -> None:
    confused = agent(requires_confirmation="false").replace("25.4.1", "25.4.2")
    assert loader.problem(confused).message == "'guide': unknown key 'requires_confirmation' in an Agent"


UNSUPPORTED = {
    "AnthropicLlmConfig": "26.3.1",
}


@pytest.mark.parametrize(("later", "since"), UNSUPPORTED.items())
def test_a_component_type_that_is_not_supported_is_told_with_its_version(
    loader: Loader, later: str, since: str
) -> None:
    problem = loader.problem(f"agentspec_version: 26.3.1\ncomponent_type: {later}\nname: crew\n")
    assert (problem.code, loader.place(problem)) == ("unsupported", later)
    assert problem.message == f"component type '{later}', of Agent Spec {since}, is not supported"


@pytest.mark.parametrize(
    ("version", "hint"),
    [
        ("31.4.0", "it uses nothing newer, so write agentspec_version: 26.3.1"),
        ("26.3.10", "it uses nothing newer, so write agentspec_version: 26.3.1"),
        ("25.3.1", ""),
        ("next", ""),
        (f"'{'9' * 5000}.1'", ""),
    ],
)
def test_a_later_version_without_its_new_features_may_be_run(loader: Loader, version: str, hint: str) -> None:
    assert loader.problem(f"agentspec_version: {version}\n{AGENT}").hint == hint


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (AGENT, "component_type: Swarm\nname: crew\n"),
        ("Help.\n", "Help.\nfancy: []\n"),
        ("Help.\n", "Help.\ntransforms: [x]\n"),
        ("Help.\n", "Help.\ninputs: [{title: x, type: string}]\n"),
    ],
)
def test_a_known_version_is_not_advised_where_the_document_would_not_load(
    loader: Loader, old: str, new: str
) -> None:
    problem = loader.problem(f"agentspec_version: 31.4.0\n{AGENT}".replace(old, new))
    assert (problem.code, problem.hint) == ("unknown-version", "")


def test_the_version_of_every_document_counts(loader: Loader) -> None:
    newer = VERSION.replace("25.4.1", "31.4.0")
    problems = loader.problems(newer + AGENT, newer + PARTS)
    assert {problem.hint for problem in problems} == {
        "it uses nothing newer, so write agentspec_version: 26.3.1"
    }
    assert [
        problem.hint for problem in loader.problems(newer + AGENT, PARTS + "agentspec_version: 1.2.3\n")
    ] == ["", ""]


@pytest.mark.parametrize("field", ["agents", "flows"])
def test_empty_lists_that_wayflow_exports_are_ignored(loader: Loader, field: str) -> None:
    [warning] = loader.graph(agent(**{field: "[]"})).warnings
    assert (warning.code, warning.severity, loader.place(warning)) == ("unknown-key", "warning", field)
    assert warning.message == f"'guide': '{field}' is not a key of Agent; it is empty, so it is ignored"


@pytest.mark.parametrize("field", ["agents", "flows"])
@pytest.mark.parametrize("value", ["[a]", "null", "{}"])
def test_lists_with_items_that_wayflow_exports_are_refused(loader: Loader, field: str, value: str) -> None:
    problem = loader.problem(agent(**{field: value}))
    assert (problem.code, loader.place(problem)) == ("unsupported", value)


def test_only_a_flow_has_an_exported_state(loader: Loader) -> None:
    assert loader.problem(agent(state="[]")).code == "unknown-key"


@pytest.mark.parametrize(
    ("text", "found"), [("[1]", "a list"), ("hello", "text 'hello'"), ("5", "the number 5")]
)
def test_a_document_is_a_mapping(loader: Loader, text: Any, found: Any) -> None:
    problem = loader.problem(text)
    assert (problem.code, problem.message) == ("wrong-type", f"a configuration is a mapping, found {found}")


def test_a_time_that_yaml_reads_as_a_number_is_a_warning(loader: Loader) -> None:
    text = agent(
        inputs="[{type: string, title: t, default: 12:30}]", system_prompt="'{{t}}'", metadata="{x: 7:00}"
    )
    [warning] = loader.graph(text).warnings
    assert (warning.code, loader.place(warning)) == ("sexagesimal", "12:30")
