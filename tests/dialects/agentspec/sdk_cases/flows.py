"""Flows: branches, loops, defaults and casts."""

from __future__ import annotations

from pyagentspec.flows.nodes import (
    BranchingNode,
    EndNode,
    FlowNode,
    InputMessageNode,
    LlmNode,
    OutputMessageNode,
    StartNode,
    ToolNode,
)
from pyagentspec.llms import (
    OllamaConfig,
    OpenAiCompatibleConfig,
    VllmConfig,
)
from pyagentspec.property import (
    BooleanProperty,
    DictProperty,
    IntegerProperty,
    NullProperty,
    NumberProperty,
    ObjectProperty,
    StringProperty,
    UnionProperty,
)
from pyagentspec.tools import ClientTool, ServerTool

from tests.dialects.agentspec.sdk_cases.case import (
    Case,
    case,
    flow,
    in_a_row,
    integer,
    number,
    openai,
    text,
    texts,
)


@case
def values_flow_by_name_and_have_defaults() -> Case:
    beds = integer("beds", default=2, description="How many beds")
    spacing = UnionProperty(title="spacing", any_of=[NumberProperty(), NullProperty()], default=None)
    nodes = [
        StartNode(
            name="start", inputs=[text("crop"), beds, spacing], metadata={"canvas": {"x": 12, "y": [-4]}}
        ),
        LlmNode(
            name="label",
            description="Writes what goes on the sign",
            llm_config=openai(),
            prompt_template="Sign for {{crop}} in {{ beds }} beds, {{spacing}} apart",
            metadata={"note": "{{no_placeholder}}"},
        ),
        EndNode(name="end", outputs=[text("generated_text"), beds]),
    ]
    return Case(
        in_a_row("signs", nodes, description="Signs for a garden", metadata={"author": "desk"}),
        """
        - name: a value, a default, and nothing
          input: {crop: leek}
          llm:
            label:
              - when: >-
                  request.prompt == "Sign for leek in 2 beds, null apart" && request.provider == "openai" &&
                  request.params.seed == 7 && request.params.temperature == 0.25
                reply: Leek x2
          expect:
            path: [start, label, end]
            output: {$exact: {generated_text: Leek x2, beds: 2}}
        """,
    )


@case
def several_ends_after_a_branching() -> Case:
    stars, topics = integer("stars"), texts("topics")
    reviews = flow(
        "reviews",
        [
            StartNode(name="start", inputs=[text("text")]),
            LlmNode(
                name="rate",
                llm_config=VllmConfig(name="vllm", model_id="llama-3.3", url="http://models.example.test/v1"),
                prompt_template="Rate: {{text}}",
                outputs=[stars, topics],
            ),
            BranchingNode(
                name="by_stars", mapping={"4": "good", "5": "good", "1": "bad"}, inputs=[text("rating")]
            ),
            EndNode(name="good", branch_name="good", outputs=[stars, topics]),
            EndNode(name="bad", branch_name="bad", outputs=[stars]),
            EndNode(name="rest", outputs=[stars, topics]),
        ],
        """
        start -> rate
        rate -> by_stars
        by_stars.good -> good
        by_stars.bad -> bad
        by_stars.default -> rest
        """,
        """
        start.text -> rate.text
        rate.stars -> by_stars.rating
        rate.stars -> good.stars
        rate.topics -> good.topics
        rate.stars -> bad.stars
        rate.stars -> rest.stars
        rate.topics -> rest.topics
        """,
        outputs=[stars, texts("topics", default=[])],
    )
    return Case(
        reviews,
        """
        - name: five stars are good
          input: {text: …}
          llm: {rate: [{json: {stars: 5, topics: [soup]}}]}
          expect: {path: [start, rate, by_stars, good], output: {$exact: {stars: 5, topics: [soup]}}}
        - name: one star is bad, and the flow's default stands for the topics
          input: {text: …}
          llm: {rate: [{json: {stars: 1, topics: [noise]}}]}
          expect: {path: [start, rate, by_stars, bad], output: {$exact: {stars: 1, topics: []}}}
        - name: three stars are neither
          input: {text: …}
          llm: {rate: [{json: {stars: 3, topics: [noise]}}]}
          expect: {path: [start, rate, by_stars, rest], output: {$exact: {stars: 3, topics: [noise]}}}
        """,
    )


@case
def a_flow_used_twice_is_left_by_several_branches() -> Case:
    loan = ServerTool(
        name="loan_status",
        description="Is a book there?",
        inputs=[text("book")],
        outputs=[text("status"), integer("days")],
    )
    check = flow(
        "loan_check",
        [
            StartNode(name="start", inputs=[text("book")]),
            ToolNode(name="look_up", tool=loan),
            BranchingNode(name="decide", mapping={"free": "lend", "out": "queue"}),
            EndNode(name="lent", branch_name="lent", outputs=[integer("days")]),
            EndNode(name="queued", branch_name="queued", outputs=[integer("days")]),
            EndNode(name="refused", outputs=[]),
        ],
        """
        start -> look_up
        look_up -> decide
        decide.lend -> lent
        decide.queue -> queued
        decide.default -> refused
        """,
        """
        start.book -> look_up.book
        look_up.status -> decide.branching_mapping_key
        look_up.days -> lent.days
        look_up.days -> queued.days
        """,
        outputs=[integer("days", default=0)],
    )
    desk = flow(
        "loan_desk",
        [
            StartNode(name="start", inputs=[text("book"), text("other")]),
            FlowNode(name="first", subflow=check),
            FlowNode(name="second", subflow=check),
            ToolNode(name="again", tool=loan),
            OutputMessageNode(name="say", message="Wait {{days}} days"),
            EndNode(name="end", outputs=[integer("days")]),
            EndNode(name="sorry", branch_name="sorry", outputs=[integer("days")]),
        ],
        """
        start -> first
        first.lent -> end
        first.queued -> say
        first.next -> second
        second.lent -> again
        second.queued -> say
        second.next -> sorry
        again -> end
        say -> end
        """,
        """
        start.book -> first.book
        start.other -> second.book
        start.other -> again.book
        first.days -> say.days
        second.days -> say.days
        first.days -> end.days
        second.days -> end.days
        again.days -> end.days
        second.days -> sorry.days
        """,
    )
    return Case(
        desk,
        """
        - name: at once
          input: {book: Emma, other: Persuasion}
          tools: {loan_status: {return: {status: free, days: 21}}}
          expect: {path: [start, first, end], output: {$exact: {days: 21}}}
        - name: another time
          input: {book: Emma, other: Persuasion}
          tools: {loan_status: {return: {status: out, days: 9}}}
          expect: {path: [start, first, say, end], output: {$exact: {days: 9}}}
        - name: another book
          input: {book: Emma, other: Persuasion}
          tools:
            loan_status:
              - {args: {book: Emma}, return: {status: lost, days: 9}}
              - {args: {book: Persuasion}, return: {status: free, days: 14}}
          expect: {path: [start, first, second, again, end], output: {$exact: {days: 14}}}
        - name: no book
          input: {book: Emma, other: Persuasion}
          tools: {loan_status: {return: {status: lost, days: 9}}}
          expect: {path: [start, first, second, sorry], output: {$exact: {days: 0}}}
        """,
    )


@case
def a_loop_goes_on_until_the_judge_is_content() -> Case:
    model = OllamaConfig(name="ollama", model_id="gemma3", url="http://localhost:11434")
    judge = OpenAiCompatibleConfig(name="judge", model_id="judge-1", url="http://judge.example.test")
    loop = flow(
        "draft_loop",
        [
            StartNode(name="start", inputs=[text("topic")]),
            LlmNode(
                name="draft", llm_config=model, prompt_template="Draft: {{topic}}", outputs=[text("text")]
            ),
            LlmNode(name="judge", llm_config=judge, prompt_template="Judge: {{text}}"),
            BranchingNode(name="enough", mapping={"good": "good"}),
            LlmNode(name="rewrite", llm_config=model, prompt_template="Improve: {{text}}"),
            EndNode(name="end", outputs=[text("text")]),
        ],
        """
        start -> draft
        draft -> judge
        judge -> enough
        enough.good -> end
        enough.default -> rewrite
        rewrite -> judge
        """,
        """
        start.topic -> draft.topic
        draft.text -> judge.text
        draft.text -> rewrite.text
        draft.text -> end.text
        judge.generated_text -> enough.branching_mapping_key
        rewrite.generated_text -> judge.text
        rewrite.generated_text -> rewrite.text
        rewrite.generated_text -> end.text
        """,
    )
    return Case(
        loop,
        """
        - name: two rounds
          input: {topic: moss}
          llm:
            draft: [{when: request.provider == "ollama", reply: v1}]
            judge:
              - {when: request.prompt.endsWith("v1") && request.provider == "openai_compatible", reply: bad}
              - {when: request.prompt.endsWith("v2"), reply: bad}
              - {when: request.prompt.endsWith("v3"), reply: good}
            rewrite:
              - {when: 'request.prompt == "Improve: v1"', reply: v2}
              - {when: 'request.prompt == "Improve: v2"', reply: v3}
          expect:
            path: [start, draft, judge, enough, rewrite, judge, enough, rewrite, judge, enough, end]
            output: {text: v3}
        """,
    )


@case
def values_are_cast_on_their_way() -> Case:
    box = ObjectProperty(title="box", properties={"width": NumberProperty(), "name": StringProperty()})
    record = ClientTool(
        name="record_values",
        inputs=[
            integer("whole"),
            integer("flag"),
            text("note"),
            DictProperty(title="tags", value_type=StringProperty()),
        ],
        outputs=[text("receipt")],
    )
    nodes = [
        StartNode(
            name="start",
            inputs=[
                number("reading"),
                BooleanProperty(title="is_on"),
                DictProperty(title="tags", value_type=IntegerProperty()),
                box,
            ],
        ),
        ToolNode(name="record", tool=record),
        EndNode(name="end", outputs=[text("receipt"), text("remark", default="none")]),
    ]
    sensors = in_a_row(
        "sensors",
        nodes,
        """
        start.reading -> record.whole
        start.is_on -> record.flag
        start.box -> record.note
        start.tags -> record.tags
        record.receipt -> end.receipt
        """,
    )
    return Case(
        sensors,
        """
        - name: numbers, booleans and objects
          input: {reading: 7.9, is_on: true, tags: {a: 1}, box: {width: 2, name: n}}
          tools: {record_values: {return: r-1}}
          expect:
            calls:
              - tool: record_values
                args: {whole: 7, flag: 1, note: '{"width": 2.0, "name": "n"}', tags: {a: "1"}}
            output: {$exact: {receipt: r-1, remark: none}}
        """,
    )


@case
def messages_to_and_from_the_user() -> Case:
    nodes = [
        StartNode(name="start", inputs=[text("pier")]),
        OutputMessageNode(name="greet", message="Welcome to pier {{pier}}."),
        InputMessageNode(name="ask", message="How many seats from {{pier}}?", outputs=[text("seats")]),
        InputMessageNode(name="listen"),
        EndNode(name="end", outputs=[text("seats"), text("user_input")]),
    ]
    return Case(
        in_a_row("ferry", nodes),
        """
        - name: they share one conversation
          input: {pier: B}
          human: {ask: [four], listen: [at noon]}
          expect:
            path: [start, greet, ask, listen, end]
            output: {$exact: {seats: four, user_input: at noon}}
            state:
              messages:
                - {type: ai, content: Welcome to pier B.}
                - {type: ai, content: "How many seats from B?"}
                - {type: human, content: four}
                - {type: human, content: at noon}
        """,
    )
