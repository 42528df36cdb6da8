"""The rules for graph agents: a valid one, and changes that break one rule each.

spec: "graph.yaml Top-Level Fields", "Node Types", "Validation".
"""

from __future__ import annotations

import pytest

from harness.errors import ManifestError
from tests.dialects.loki.loader import Loader
from tests.dialects.loki.valid import FILES, GRAPH, changed


def test_the_valid_graph_has_no_problems(loader: Loader) -> None:
    graph = loader.graph(GRAPH, FILES)
    assert [node.name for node in graph.nodes] == [
        *("read", "weigh", "ask", "note", "send", "recall", "done", "sorry")
    ]
    assert graph.warnings == ()


# the rule: the change that breaks it; the code, a part of the message, the place it points to, the hint
STRUCTURE = {
    "the version": (
        ('version: "1.0"', 'version: "1.1"'),
        "bad-value",
        "version: expected 1.0, found text '1.1'",
        '"1.1"',
        "did you mean '1.0'?",
    ),
    "the version is text": (
        ('version: "1.0"', "version: 1.0"),
        "bad-value",
        "version: expected 1.0",
        "1.0",
        "",
    ),
    "a start": (
        ("start: read\n", ""),
        "missing-key",
        "missing key 'start' in a graph agent",
        "name: desk",
        "",
    ),
    "the start is a node": (
        ("start: read", "start: raed"),
        "unknown-node",
        "there is no node 'raed'",
        "raed",
        "did you mean 'read'?",
    ),
    "types of nodes": (("type: input", "type: form"), "bad-value", "type: expected one of", "form", ""),
    "a type": (("type: input, ", ""), "missing-key", "missing key 'type'", "{question", ""),
    "the id of a node is its key": (("id: ask", "id: aks"), "id-mismatch", "the id 'aks'", "aks", ""),
    "on_other": (
        ("    on_other: note\n", ""),
        "missing-key",
        "missing key 'on_other' in an approval",
        "id: ask",
        "",
    ),
    "a question": (
        ("question: Why?, ", ""),
        "missing-key",
        "missing key 'question' in an input",
        "{type: inp",
        "",
    ),
    "a prompt": (
        ('prompt: "{{initial_prompt}}", ', ""),
        "missing-key",
        "missing key 'prompt' in an llm",
        "{ty",
        "",
    ),
    "a prompt by its name": (
        ('prompt: "{{initial_prompt}}", ', "promt: p, "),
        "missing-key",
        "missing key 'prompt' in an llm",
        "{ty",
        "'promt' is not known: did you mean 'prompt'?",
    ),
    "a type by its name": (
        ("type: input, ", "typ: input, "),
        "missing-key",
        "missing key 'type'",
        "{typ: ",
        "'typ' is not known: did you mean 'type'?",
    ),
    "texts in state_updates": (
        ('{found: "{{output.context}}"}', "{found: 1}"),
        "wrong-type",
        "found: expected text, found the number 1",
        "1",
        "quote it to make it text",
    ),
    "the seconds of a time-out": (
        ("timeout: 60", "timeout: soon"),
        "wrong-type",
        "timeout: expected a number",
        "soon",
        "",
    ),
    "at least one visit": (
        ("_iterations: 5", "_iterations: 0"),
        "bad-value",
        "greater than or equal to 1",
        "0",
        "",
    ),
}
VALIDATOR = {
    "next is a node": (
        ("next: recall", "next: recal"),
        "unknown-node",
        "there is no node 'recal'",
        "recal",
        "did you mean 'recall'?",
    ),
    "a route leads to a node": (
        ("later: note}", "later: nota}"),
        "unknown-node",
        "the route 'later' of node 'ask'",
        "nota",
        "did you mean 'note'?",
    ),
    "on_other is a node": (
        ("on_other: note", "on_other: nota"),
        "unknown-node",
        "on_other of node 'ask'",
        "nota",
        "did you mean 'note'?",
    ),
    "a fallback is a node": (
        ("weigh.py, fallback: sorry", "weigh.py, fallback: sory"),
        "unknown-node",
        "fallback of node 'weigh'",
        "sory",
        "did you mean 'sorry'?",
    ),
    "no cycle": (("> 0, next: send", "> 0, next: ask"), "cycle", "ask → note → ask", "ask", "`_next`"),
    "no edge to itself": (("> 0, next: send", "> 0, next: note"), "cycle", "note → note", "note", "`_next`"),
    "the next of an approval counts, though it is never taken": (
        ("    on_other: note\n", "    on_other: note\n    next: weigh\n"),
        "cycle",
        "weigh → ask → weigh",
        "weigh",
        "",
    ),
    "an option has a route": (
        ("later]", "latter]"),
        "no-route",
        "the option 'latter' has no route",
        "latter",
        "did you mean 'later'?",
    ),
    "a script exists": (
        ("weigh.py,", "wiegh.py,"),
        "missing-file",
        "scripts/wiegh.py",
        "scripts/wiegh.py",
        "weigh.py'?",
    ),
    "a script stands in the project": (
        ("scripts/weigh.py", "../../../weigh.py"),
        "path-outside",
        "outside",
        "../../../weigh.py",
        "allow",
    ),
    "an agent exists": (
        ("agent: courier", "agent: courrier"),
        "unknown-agent",
        "no agent 'courrier'",
        "courrier",
        "did you mean 'courier'?",
    ),
    "an agent is a name": (
        ("agent: courier", "agent: ../agents/courier"),
        "unknown-agent",
        "no agent '../agents/courier'",
        "../agents/courier",
        "",
    ),
    "an agent has a manifest": (
        ("agent: courier", "agent: hollow"),
        "empty-agent",
        "neither a config.yaml nor a graph.yaml",
        "hollow",
        "",
    ),
    "an agent has a manifest that ends in .yaml": (
        ("agent: courier", "agent: yml"),
        "empty-agent",
        "neither a config.yaml nor a graph.yaml",
        "yml",
        "rename config.yml: it must end in .yaml",
    ),
    "documents": (("[./papers/]", "[]"), "no-documents", "'recall' has no documents", "[]", ""),
    "a model has a client": (
        ("tools: [gauge, flood]", "tools: [gauge, flood], model: ':mini'"),
        "unknown-model",
        "there is no model ':mini'",
        "':mini'",
        "write client:name",
    ),
    "a model has a name": (
        ("model: openai:gpt-4o", 'model: " "'),
        "unknown-model",
        "there is no model ' '",
        '" "',
        "leave it out for the model that is active",
    ),
    "a server": (
        ("tools: [gauge, flood]", 'tools: ["mcp:tide"]'),
        "unknown-tool",
        "no tool 'mcp:tide'",
        '"mcp:tide"',
        "did you mean 'mcp:tides'?",
    ),
}


FAULTS = {**STRUCTURE, **VALIDATOR}


@pytest.mark.parametrize("rule", FAULTS)
def test_a_broken_rule_is_located(rule: str, loader: Loader) -> None:
    change, code, message, place, hint = FAULTS[rule]
    problem, *others = loader.problems(changed(change), FILES)
    assert not others
    assert (problem.code, message in problem.message, hint in problem.hint) == (code, True, True), problem
    assert loader.place(problem).startswith(place)


def test_all_errors_of_the_validator_are_reported_at_once(loader: Loader) -> None:
    found = loader.problems(changed(("later]", "latter]"), ("next: recall", "next: recal")), FILES)
    assert [problem.code for problem in found] == ["no-route", "unknown-node"]


def test_each_cycle_is_reported(loader: Loader) -> None:
    cycles = changed(("> 0, next: send", "> 0, next: ask"), ("next: recall", "next: send"))
    assert [problem.code for problem in loader.problems(cycles, FILES)] == ["cycle", "cycle"]


def test_a_tool_is_unknown_if_no_server_can_have_it(loader: Loader) -> None:
    text = changed(("mcp_servers: [tides]\n", ""), ("[gauge, flood]", "[gauge, flod]"))
    (problem,) = loader.problems(text, FILES)
    assert (problem.code, problem.hint, loader.place(problem)) == (
        "unknown-tool",
        "did you mean 'flood'?",
        "flod",
    )


@pytest.mark.parametrize(
    ("entry", "hint"),
    [
        ("mcp:almanac", "add 'almanac' to mcp_servers"),
        ("wind_rose", "add wind_rose.py to global_tools"),
        ("../tools/wind_rose", "known: gauge, flood"),
        ("anchor", "known: gauge, flood"),
    ],
)
def test_the_hint_for_an_unknown_tool_says_how_to_add_it(entry: str, hint: str, loader: Loader) -> None:
    text = changed(("mcp_servers: [tides]\n", ""), ("[gauge, flood]", f"['{entry}']"))
    (problem,) = loader.problems(text, {**FILES, "functions/tools/wind_rose.py": "def run(): ...\n"})
    assert problem.hint == hint


def test_an_agent_behind_a_symbolic_link_must_be_allowed(loader: Loader) -> None:
    outside = loader.folder.parent / "elsewhere/courier"
    outside.mkdir(parents=True)
    (outside / "config.yaml").write_text("instructions: Carry.\n", encoding="utf-8")
    loader.write(FILES)
    (loader.folder / "agents/carrier").symlink_to(outside)
    text = changed(("agent: courier", "agent: carrier"))
    (problem,) = loader.problems(text, FILES)
    assert (problem.code, loader.place(problem)) == ("path-outside", "carrier")
    assert "the agent 'carrier' is outside the folders a manifest may read" in problem.message
    assert "allow_paths" in problem.hint
    loader.graph(text, FILES, allowed=(outside,))


def test_only_folders_with_a_manifest_are_suggested_as_agents(loader: Loader) -> None:
    (problem,) = loader.problems(changed(("agent: courier", "agent: nobody")), FILES)
    assert problem.hint == "known: courier, desk"


def test_a_graph_needs_an_end_node(loader: Loader) -> None:
    text = "start: a\nnodes:\n  a: {type: script, script: scripts/weigh.py}\n"
    (problem,) = loader.problems(text, FILES)
    assert (problem.code, loader.place(problem)) == ("no-end", "nodes")


def test_both_manifests_in_one_folder_are_refused(loader: Loader) -> None:
    (problem,) = loader.problems(GRAPH, {**FILES, "agents/desk/config.yaml": ""})
    assert problem.code == "both-files"
    assert "either config.yaml or graph.yaml" in problem.message


@pytest.mark.parametrize("left_out", ["embedding_model: e", "chunk_size: 9", "chunk_overlap: 1"])
def test_a_knowledge_base_must_be_built_or_fully_specified(left_out: str, loader: Loader) -> None:
    settings = ["embedding_model: e", "chunk_size: 9", "chunk_overlap: 1"]
    files = {name: text for name, text in FILES.items() if not name.endswith("recall.yaml")}

    def text(given: list[str]) -> str:
        return changed(("    documents:", "".join(f"    {line}\n" for line in given) + "    documents:"))

    loader.graph(text(settings), files)
    (problem,) = loader.problems(text([line for line in settings if line != left_out]), files)
    assert (problem.code, loader.place(problem)) == ("not-built", "recall")


def test_variables_give_what_a_knowledge_base_omits(loader: Loader) -> None:
    files = {name: text for name, text in FILES.items() if not name.endswith("recall.yaml")}
    env = {"COYOTE_RAG_EMBEDDING_MODEL": "e", "LOKI_RAG_CHUNK_SIZE": "9", "COYOTE_RAG_CHUNK_OVERLAP": "1"}
    loader.graph(GRAPH, files, env=env)
    with pytest.raises(ManifestError) as refusal:
        loader.graph(GRAPH, files, env={**env, "COYOTE_RAG_CHUNK_SIZE": "none"})
    (problem,) = refusal.value.problems
    assert (problem.code, loader.place(problem)) == ("bad-value", "recall")
    assert "COYOTE_RAG_CHUNK_SIZE" in problem.message


def test_a_knowledge_base_that_is_not_built_needs_its_documents(loader: Loader) -> None:
    text = changed(
        (
            "    documents: [./papers/]\n",
            "    documents: [./papers/, ./paper/, a.md, 'https://a.example', 'git:b']\n",
        ),
        (
            "    state_updates: {found",
            "    embedding_model: e\n    chunk_size: 9\n    chunk_overlap: 1\n    state_updates: {found",
        ),
    )
    files = {name: text for name, text in FILES.items() if not name.endswith("recall.yaml")}
    found = loader.graph(text, {**files, "agents/desk/papers/b.md": "", "agents/desk/b.md": ""}).warnings
    assert [(warning.code, loader.place(warning)) for warning in found] == [
        ("missing-file", "./paper/"),
        ("missing-file", "a.md"),
    ]
    assert "the knowledge base of node 'recall' cannot be built" in found[0].message
    loader.write({"agents/desk/recall.yaml": "files: {}\n"})
    assert loader.graph(text).warnings == ()


@pytest.mark.parametrize("rule", sorted(VALIDATOR.keys() - {"a script stands in the project"}))
def test_without_validation_errors_of_the_validator_are_ignored(rule: str, loader: Loader) -> None:
    loader.graph(changed(VALIDATOR[rule][0], ("timeout: 60", "validate_before_run: false")), FILES)


def test_files_outside_are_refused_even_without_validation(loader: Loader) -> None:
    text = changed(("scripts/weigh.py", "../../../weigh.py"), ("timeout: 60", "validate_before_run: false"))
    assert [problem.code for problem in loader.problems(text, FILES)] == ["path-outside"]


def test_the_name_of_an_agent_is_that_of_its_manifest_or_folder(loader: Loader) -> None:
    assert loader.graph(GRAPH, FILES).name == "desk"
    assert loader.graph(changed(("name: desk\n", "")), FILES).name == "desk"
    assert loader.graph(GRAPH, FILES, agent="desk").name == "desk"
    assert loader.graph(changed(("name: desk", 'name: ""')), FILES).name == "desk"


def test_an_agent_is_requested_by_its_name_or_folder(loader: Loader) -> None:
    text = changed(("name: desk", "name: front"))
    assert {loader.graph(text, FILES, agent=asked).name for asked in ("front", "desk")} == {"front"}
    with pytest.raises(ManifestError, match="this graph agent is 'front', but 'back' was requested"):
        loader.graph(text, FILES, agent="back")
