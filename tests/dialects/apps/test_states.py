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


OF_OBJECTS = """
    import operator
    from typing import Annotated, Sequence, TypedDict

    from langchain_core.messages import BaseMessage
    from langgraph.graph import MessagesState, StateGraph


    class Line(TypedDict):
        role: str
        content: str


    class State(TypedDict):
        messages: Annotated[Sequence[BaseMessage], operator.add]
        lines: list[Line]
        topic: str


    def kinds(state):
        return {"topic": " ".join(type(each).__name__ for each in [*state["messages"], *state.get("lines", [])])}


    graph = StateGraph(State).add_node(kinds).set_entry_point("kinds").compile()
"""


def test_an_input_has_message_objects_where_the_state_holds_them(run_app: RunApp) -> None:
    found = run_app(
        """
        manifest: app.py:graph
        scenarios:
          - {name: text, input: hi, expect: {state: {topic: HumanMessage}}}
          - name: a list
            input: [{role: user, content: a}, {type: ai, content: b}]
            expect: {state: {topic: HumanMessage AIMessage}}
          - name: a mapping
            input: {messages: [{role: system, content: a}], lines: [{role: user, content: b}]}
            expect: {state: {topic: SystemMessage dict}}
        """,
        {"app.py": OF_OBJECTS},
    )
    assert {name: one.observed.state["topic"] for name, one in found.items() if not one.passed} == {}


def test_keys_that_resemble_one_of_the_state_are_told(run_app: RunApp) -> None:
    """LangGraph drops an input that its schema does not have, and a check of a missing key holds for ever."""
    found = run_app(
        """
        manifest: app.py:graph
        scenarios:
          - name: it
            input: {asked: [], askde: []}
            human: ["yes"]
            expect: {state: {aksed: {$missing: true}, answer: {$missing: true}}, path: [first, ask]}
        """,
        {"app.py": APP},
    )
    assert found["it"].passed, found["it"].checks
    warnings = [text.rpartition("app.scenario.yaml:")[2] for text in found["it"].observed.warnings]
    assert warnings == [
        "6:24: the input is dropped: 'LangGraph' has no 'askde' (did you mean 'asked'?)",
        "8:22: state: 'aksed' is always missing, since nothing in 'LangGraph' has that name (did you mean 'asked'?)",
    ]
