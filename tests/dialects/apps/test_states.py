"""The state of an app: what may be its input, and what it is after a pause."""

from tests.dialects.apps.conftest import RunApp, error_of

APP = """
    from typing import TypedDict

    from langgraph.graph import START, StateGraph
    from langgraph.types import interrupt


    class State(TypedDict):
        asked: list[str]


    def first(state):
        return {"asked": ["first"]}


    def ask(state):
        state["asked"].append("ask")
        answer = interrupt("go on?")
        return {"asked": [*state["asked"], answer]}


    builder = StateGraph(State)
    builder.add_node(first)
    builder.add_node(ask)
    builder.add_edge(START, "first")
    builder.add_edge("first", "ask")
    graph = builder.compile()
"""


def test_a_change_of_the_state_in_place_is_not_there_after_a_pause(run_app: RunApp) -> None:
    (outcome,) = run_app(
        """
        manifest: app.py:graph
        scenarios:
          - name: it
            turns:
              - {input: {asked: []}, expect: {status: interrupted}}
              - {resume: "yes", expect: {state: {asked: [first, ask, "yes"]}}}
        """,
        {"app.py": APP},
    ).values()
    assert outcome.passed, outcome.checks


def test_text_is_no_input_of_a_state_without_messages(run_app: RunApp) -> None:
    found = run_app("manifest: app.py:graph\nscenarios: [{name: it, input: hi}]", {"app.py": APP})
    assert error_of(found["it"]) == (
        "the state has no 'messages' that text could be: input must be a mapping with some of asked"
    )
