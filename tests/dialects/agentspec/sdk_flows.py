"""Flows and agents made with the official SDK, each with scenarios that say what it does.

Together they are made of every component type of the language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pyagentspec import Agent, OpenAiAgent
from pyagentspec.agenticcomponent import AgenticComponent
from pyagentspec.component import Component
from pyagentspec.flows.edges import ControlFlowEdge, DataFlowEdge
from pyagentspec.flows.flow import Flow
from pyagentspec.flows.node import Node
from pyagentspec.flows.nodes import (
    AgentNode,
    ApiNode,
    BranchingNode,
    EndNode,
    FlowNode,
    InputMessageNode,
    LlmNode,
    MapNode,
    OutputMessageNode,
    StartNode,
    ToolNode,
)
from pyagentspec.flows.nodes.mapnode import ReductionMethod
from pyagentspec.llms import (
    LlmGenerationConfig,
    OciGenAiConfig,
    OllamaConfig,
    OpenAiCompatibleConfig,
    OpenAiConfig,
    VllmConfig,
)
from pyagentspec.llms.ociclientconfig import (
    OciClientConfig,
    OciClientConfigWithApiKey,
    OciClientConfigWithInstancePrincipal,
    OciClientConfigWithResourcePrincipal,
    OciClientConfigWithSecurityToken,
)
from pyagentspec.llms.ocigenaiconfig import ModelProvider, ServingMode
from pyagentspec.mcp import (
    MCPTool,
    SessionParameters,
    SSEmTLSTransport,
    SSETransport,
    StdioTransport,
    StreamableHTTPmTLSTransport,
    StreamableHTTPTransport,
)
from pyagentspec.ociagent import OciAgent
from pyagentspec.property import (
    BooleanProperty,
    DictProperty,
    IntegerProperty,
    ListProperty,
    NullProperty,
    NumberProperty,
    ObjectProperty,
    Property,
    StringProperty,
    UnionProperty,
)
from pyagentspec.tools import ClientTool, RemoteTool, ServerTool


@dataclass(frozen=True)
class Case:
    """A component, and what is to be seen when it runs: scenarios as they stand in a scenario file.

    `apart` stands in a document of its own; so does `supplied`, values the SDK never writes, by their keys.
    """

    component: AgenticComponent
    scenarios: str
    apart: Sequence[Component | tuple[Component, str]] = ()
    supplied: Mapping[str, Any] = field(default_factory=dict)


CASES: dict[str, Callable[[], Case]] = {}


def case(build: Callable[[], Case]) -> Callable[[], Case]:
    CASES[build.__name__] = build
    return build


# ------------------------------------------------------------------ words for what the SDK says at length


def flow(name: str, nodes: Sequence[Node], control: str, data: str | None = None, **more: Any) -> Flow:
    """A flow that begins with its first node.

    `control` has lines like `ask -> end` and `check.yes -> end`, `data` has lines like `ask.answer -> end.reply`.
    """
    by_name = {node.name: node for node in nodes}

    def control_edge(line: str) -> ControlFlowEdge:
        left, right = line.split(" -> ")
        source, _, branch = left.partition(".")
        return ControlFlowEdge(
            name=line, from_node=by_name[source], from_branch=branch or None, to_node=by_name[right]
        )

    def data_edge(line: str) -> DataFlowEdge:
        (source, output), (destination, input_) = (side.split(".") for side in line.split(" -> "))
        return DataFlowEdge(
            name=line,
            source_node=by_name[source],
            source_output=output,
            destination_node=by_name[destination],
            destination_input=input_,
        )

    return Flow(
        name=name,
        start_node=nodes[0],
        nodes=list(nodes),
        control_flow_connections=[control_edge(line) for line in _lines(control)],
        data_flow_connections=None if data is None else [data_edge(line) for line in _lines(data)],
        **more,
    )


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def in_a_row(nodes: Sequence[Node]) -> str:
    """The control edges of nodes that run one after another."""
    return "\n".join(f"{one.name} -> {other.name}" for one, other in pairwise(nodes))


def text(title: str, **more: Any) -> StringProperty:
    return StringProperty(title=title, **more)


def integer(title: str, **more: Any) -> IntegerProperty:
    return IntegerProperty(title=title, **more)


def number(title: str) -> NumberProperty:
    return NumberProperty(title=title)


def texts(title: str, **more: Any) -> ListProperty:
    return ListProperty(title=title, item_type=StringProperty(), **more)


def openai() -> OpenAiConfig:
    parameters = LlmGenerationConfig(max_tokens=200, temperature=0.25, top_p=0.5, seed=7, stop=["END"])
    return OpenAiConfig(name="model", model_id="gpt-4o-mini", default_generation_parameters=parameters)


# ------------------------------------------------------------------ flows


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
        flow("signs", nodes, in_a_row(nodes), description="Signs for a garden", metadata={"author": "desk"}),
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
def requests_to_other_servers() -> Case:
    nodes = [
        StartNode(name="start", inputs=[text("harbour"), integer("hours")]),
        ApiNode(
            name="tides",
            url="https://tides.example.test/{{harbour}}",
            http_method="POST",
            api_spec_uri="https://tides.example.test/openapi.json",
            data={"window": {"hours": "{{hours}}", "steps": [1, 2.5, None]}, "raw": True},
            query_params={"unit": "m"},
            headers={"X-Desk": "{{harbour}}"},
            outputs=[number("high")],
        ),
        ToolNode(
            name="book",
            tool=RemoteTool(
                name="book_berth",
                description="Books a berth",
                url="https://berths.example.test/book",
                http_method="PUT",
                data={"depth": "{{depth}}"},
                outputs=[text("stamp")],
            ),
        ),
        ApiNode(name="ring", url="https://bell.example.test/ring", http_method="GET"),
        EndNode(name="end", outputs=[number("high"), text("stamp"), text("answer")]),
    ]
    berths = flow(
        "berths",
        nodes,
        in_a_row(nodes),
        """
        start.harbour -> tides.harbour
        start.hours -> tides.hours
        tides.high -> book.depth
        tides.high -> end.high
        book.stamp -> end.stamp
        ring.response -> end.answer
        """,
    )
    return Case(
        berths,
        """
        - name: requests are rendered, and their answers read
          input: {harbour: brest, hours: 6}
          http:
            - method: POST
              url: https://tides.example.test/brest*
              args:
                json: {$exact: {window: {hours: "6", steps: [1, 2.5, null]}, raw: true}}
                query: {unit: m}
                headers: {x-desk: brest}
              json: {high: 7, low: 1}
            - method: PUT
              url: https://berths.example.test/book
              args: {json: {depth: "7.0"}}
              json: {stamp: b-1}
            - {method: GET, url: "https://bell.example.test/ring", json: {rung: true}}
          expect:
            path: [start, tides, book, ring, end]
            output: {$exact: {high: 7.0, stamp: b-1, answer: '{"rung": true}'}}
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


def pricing() -> Flow:
    """A flow with a tool, whose values flow by name."""
    look = ServerTool(name="price_of", inputs=[text("bread"), text("market")], outputs=[number("price")])
    nodes = [
        StartNode(name="start", inputs=[text("bread"), text("market")]),
        ToolNode(name="look", tool=look),
        EndNode(name="end", outputs=[number("price"), text("bread")]),
    ]
    return flow("pricing", nodes, in_a_row(nodes))


@case
def a_map_without_reducers_appends() -> Case:
    prices = ListProperty(title="prices", item_type=NumberProperty())
    nodes = [
        StartNode(name="start", inputs=[texts("breads"), text("market")]),
        MapNode(name="each", subflow=pricing()),
        EndNode(name="end", outputs=[prices, texts("names")]),
    ]
    bakery = flow(
        "bakery",
        nodes,
        in_a_row(nodes),
        """
        start.breads -> each.iterated_bread
        start.market -> each.iterated_market
        each.collected_price -> end.prices
        each.collected_bread -> end.names
        """,
    )
    return Case(
        bakery,
        """
        - name: a list is iterated, a text is repeated
          input: {breads: [rye, oat], market: quay}
          tools:
            price_of:
              - {args: {bread: rye, market: quay}, return: 3.5}
              - {args: {bread: oat, market: quay}, return: 2}
          expect:
            path: [start, each, end]
            output: {$exact: {prices: [3.5, 2.0], names: [rye, oat]}}
        """,
    )


@case
def a_map_with_reducers_exposes_what_they_name() -> Case:
    levels = [number(title) for title in ("total", "mean", "highest", "lowest", "levels", "unused")]
    read = ServerTool(name="read_gauge", inputs=[text("gauge")], outputs=levels)
    inner = [
        StartNode(name="start", inputs=[text("gauge")]),
        ToolNode(name="read", tool=read),
        EndNode(name="end", outputs=levels),
    ]
    each = MapNode(
        name="each",
        subflow=flow("reading", inner, in_a_row(inner)),
        reducers={
            "total": ReductionMethod.SUM,
            "mean": ReductionMethod.AVERAGE,
            "highest": ReductionMethod.MAX,
            "lowest": ReductionMethod.MIN,
            "levels": ReductionMethod.APPEND,
        },
    )
    nodes = [
        StartNode(name="start", inputs=[texts("iterated_gauge")]),
        each,
        EndNode(name="end", outputs=each.outputs),
    ]
    return Case(
        flow("river", nodes, in_a_row(nodes)),
        """
        - name: three gauges
          input: {iterated_gauge: [upper, weir, mouth]}
          tools:
            read_gauge:
              - args: {gauge: upper}
                return: {total: 2, mean: 2, highest: 2, lowest: 2, levels: 2, unused: 2}
              - args: {gauge: weir}
                return: {total: 3.5, mean: 3.5, highest: 3.5, lowest: 3.5, levels: 3.5, unused: 3.5}
              - args: {gauge: mouth}
                return: {total: 0.5, mean: 0.5, highest: 0.5, lowest: 0.5, levels: 0.5, unused: 0.5}
          expect:
            output:
              $exact:
                collected_total: 6.0
                collected_mean: 2.0
                collected_highest: 3.5
                collected_lowest: 0.5
                collected_levels: [2.0, 3.5, 0.5]
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
    sensors = flow(
        "sensors",
        nodes,
        in_a_row(nodes),
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
def a_client_tool_waits_for_the_client() -> Case:
    held = [text("holder"), BooleanProperty(title="allowed")]
    nodes = [
        StartNode(name="start", inputs=[text("door")]),
        ToolNode(name="scan", tool=ClientTool(name="scan_badge", inputs=[text("door")], outputs=held)),
        EndNode(name="end", outputs=held),
    ]
    return Case(
        flow("door", nodes, in_a_row(nodes)),
        """
        - name: the client resumes with the result
          turns:
            - input: {door: D7}
              expect: {status: interrupted, path: [start, scan]}
            - resume: {holder: Kim, allowed: true}
              expect: {output: {$exact: {holder: Kim, allowed: true}}}
        """,
    )


@case
def mcp_tools_over_every_transport() -> Case:
    files = {"key_file": "client.key", "cert_file": "client.crt", "ca_file": "ca.crt"}
    sse, http = "https://sse.example.test", "https://http.example.test"
    transports = [
        StdioTransport(
            id="stdio",
            name="stdio",
            command="python",
            args=["-m", "server"],
            env={"LEVEL": "info"},
            cwd="servers",
        ),
        SSETransport(id="sse", name="sse", url=sse, headers={"X-Desk": "7"}),
        StreamableHTTPTransport(
            id="http", name="http", url=http, session_parameters=SessionParameters(read_timeout_seconds=5)
        ),
        SSEmTLSTransport(id="sse_mtls", name="sse_mtls", url=sse, **files),
        StreamableHTTPmTLSTransport(id="http_mtls", name="http_mtls", url=http, **files),
    ]
    tools = [
        MCPTool(name="pass_on", client_transport=transport, inputs=[text("word")], outputs=[text("word")])
        for transport in transports
    ]
    nodes = [
        StartNode(name="start", inputs=[text("word")]),
        *(ToolNode(name=f"by_{tool.client_transport.id}", tool=tool) for tool in tools),
        EndNode(name="end", outputs=[text("word")]),
    ]
    data = "\n".join(f"{one.name}.word -> {other.name}.word" for one, other in pairwise(nodes))
    servers = "".join(
        f"""
            {transport.id}:
              tools:
                - name: pass_on
                  input_schema: {{type: object, properties: {{word: {{type: string}}}}, required: [word]}}
                  stubs: [{{args: {{word: "{at}"}}, return: "{at + 1}"}}]"""
        for at, transport in enumerate(transports)
    )
    return Case(
        flow("relay", nodes, in_a_row(nodes), data),
        f"""
        - name: a word goes from server to server
          input: {{word: "0"}}
          mcp: {servers}
          expect:
            path: [start, by_stdio, by_sse, by_http, by_sse_mtls, by_http_mtls, end]
            output: {{word: "5"}}
        """,
        supplied={
            f"{transport}.{name}": value
            for transport in ("sse_mtls", "http_mtls")
            for name, value in files.items()
        },
    )


@case
def models_at_oci_by_every_way_to_sign_in() -> Case:
    where = {"service_endpoint": "https://genai.example.test"}
    profile = {"auth_profile": "DEFAULT", "auth_file_location": "~/.oci/config"}

    def step(
        name: str, client: OciClientConfig, provider: ModelProvider | None, mode: ServingMode
    ) -> LlmNode:
        model = OciGenAiConfig(
            name=f"model_{name}",
            model_id=f"model-{name}",
            compartment_id="ocid1.compartment",
            client_config=client,
            provider=provider,
            serving_mode=mode,
        )
        return LlmNode(name=name, llm_config=model, prompt_template="More: {{text}}", outputs=[text("text")])

    shared, own = ServingMode.ON_DEMAND, ServingMode.DEDICATED
    by_key = OciClientConfigWithApiKey(id="by_key", name="by_key", **where, **profile)
    by_token = OciClientConfigWithSecurityToken(id="by_token", name="by_token", **where, **profile)
    nodes = [
        StartNode(name="start", inputs=[text("text")]),
        step("a", by_key, ModelProvider.META, shared),
        step("b", by_token, ModelProvider.GROK, own),
        step(
            "c", OciClientConfigWithInstancePrincipal(name="instance", **where), ModelProvider.COHERE, shared
        ),
        step("d", OciClientConfigWithResourcePrincipal(name="resource", **where), None, shared),
        EndNode(name="end", outputs=[text("text")]),
    ]
    return Case(
        flow("oci_models", nodes, in_a_row(nodes)),
        """
        - name: one model after another
          input: {text: "0"}
          llm:
            a: [{when: 'request.prompt == "More: 0" && request.model == "model-a"', reply: "1"}]
            b: [{when: 'request.prompt == "More: 1" && request.provider == "oci"', reply: "2"}]
            c: [{when: 'request.prompt == "More: 2"', reply: "3"}]
            d: [{when: 'request.prompt == "More: 3"', reply: "4"}]
          expect: {path: [start, a, b, c, d, end], output: {text: "4"}}
        """,
        supplied={
            "by_key.auth_file_location": "~/.oci/config",
            "by_token.auth_file_location": "~/.oci/config",
        },
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
        flow("ferry", nodes, in_a_row(nodes)),
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


def beekeeper(outputs: list[Property]) -> Agent:
    return Agent(
        name="beekeeper",
        description="Knows bees",
        llm_config=openai(),
        system_prompt="You look after hive {{hive}}.",
        tools=[
            ServerTool(
                name="hive_weight",
                description="Weighs a hive",
                inputs=[text("hive")],
                outputs=[number("weight")],
            ),
            ClientTool(name="visitor_position", outputs=[text("position")]),
            RemoteTool(
                name="weather",
                url="https://weather.example.test/{{place}}",
                http_method="GET",
                outputs=[text("sky")],
            ),
        ],
        outputs=outputs,
    )


@case
def agents_and_flows_as_steps() -> Case:
    archivist = OciAgent(
        id="archivist",
        name="archivist",
        agent_endpoint_id="ocid1.endpoint",
        client_config=OciClientConfigWithInstancePrincipal(
            name="client", service_endpoint="https://oci.test"
        ),
        outputs=[text("shelf")],
    )
    nodes = [
        StartNode(name="start", inputs=[text("hive")]),
        AgentNode(name="consult", agent=beekeeper([text("advice"), integer("urgency")])),
        AgentNode(name="archive", agent=archivist),
        AgentNode(name="price", agent=pricing()),
        EndNode(name="end", outputs=[text("advice"), integer("urgency"), text("shelf"), number("price")]),
    ]
    round_ = flow(
        "round",
        nodes,
        in_a_row(nodes),
        """
        start.hive -> consult.hive
        start.hive -> price.bread
        consult.advice -> price.market
        consult.advice -> end.advice
        consult.urgency -> end.urgency
        archive.shelf -> end.shelf
        price.price -> end.price
        """,
    )
    return Case(
        round_,
        """
        - name: an agent, a remote one, and a flow
          input: {hive: "12"}
          tools:
            hive_weight: {return: 31.5}
            price_of: [{args: {bread: "12", market: add a super}, return: 4}]
          agents: {archivist: {return: s-7}}
          llm:
            consult:
              - tool_calls: [{name: hive_weight, args: {hive: "12"}}]
              - json: {advice: add a super, urgency: 2}
          expect:
            path: [start, consult, archive, price, end]
            output: {$exact: {advice: add a super, urgency: 2, shelf: s-7, price: 4.0}}
        """,
    )


@case
def an_agent_chooses_how_the_flow_goes_on() -> Case:
    clerk = Agent(name="clerk", llm_config=openai(), system_prompt="Be brief.")
    counter = flow(
        "counter",
        [
            StartNode(name="start"),
            AgentNode(name="talk", agent=clerk, branches=["sell", "stop"]),
            EndNode(name="sold"),
            EndNode(name="stopped", branch_name="stopped"),
        ],
        "start -> talk\n talk.sell -> sold\n talk.stop -> stopped",
    )
    return Case(
        counter,
        """
        - name: by the second branch
          input: I only look around
          llm: {talk: [Please do., stop]}
          expect: {path: [start, talk, stopped]}
        """,
    )


@case
def an_agent_at_openai_as_a_step() -> Case:
    assistant = OpenAiAgent(name="assistant", llm_config=openai(), remote_agent_id="asst_1")
    nodes = [StartNode(name="start"), AgentNode(name="ask", agent=assistant), EndNode(name="end")]
    return Case(
        flow("help", nodes, in_a_row(nodes)),
        """
        - name: it hears the conversation and adds to it
          input: Help
          agents: {assistant: [{args: {input: Help}, return: How?}]}
          expect:
            path: [start, ask, end]
            state: {messages: [{type: human, content: Help}, {type: ai, content: How?}]}
        """,
    )


@case
def a_model_and_a_tool_in_a_document_of_their_own() -> Case:
    model = VllmConfig(id="dev_model", name="dev_model", model_id="dev", url="http://dev.example.test")
    tool = ServerTool(id="count_chars", name="count_chars", inputs=[text("text")], outputs=[integer("n")])
    nodes = [
        StartNode(name="start", inputs=[text("title")]),
        LlmNode(
            name="shorten", llm_config=model, prompt_template="Shorten: {{title}}", outputs=[text("text")]
        ),
        LlmNode(
            name="lengthen", llm_config=model, prompt_template="Lengthen: {{text}}", outputs=[text("text")]
        ),
        ToolNode(name="count", tool=tool),
        EndNode(name="end", outputs=[integer("n")]),
    ]
    return Case(
        flow("titles", nodes, in_a_row(nodes)),
        """
        - name: it runs with both documents
          input: {title: On moss}
          tools: {count_chars: [{args: {text: Moss!}, return: 5}]}
          llm:
            shorten: [{when: request.model == "dev", reply: Moss}]
            lengthen: [{when: 'request.prompt == "Lengthen: Moss"', reply: Moss!}]
          expect: {path: [start, shorten, lengthen, count, end], output: {n: 5}}
        """,
        apart=[(model, "the_model"), tool],
    )


# ------------------------------------------------------------------ agents alone


@case
def an_agent_alone() -> Case:
    return Case(
        beekeeper([text("advice")]),
        """
        - name: it uses its tools and gives its outputs
          input: {hive: "12", message: How is it?}
          tools: {hive_weight: {return: 31.5}, visitor_position: {return: gate}}
          http: [{url: "https://weather.example.test/gate", json: {sky: grey}}]
          llm:
            beekeeper:
              - when: request.messages.exists(m, m.content.contains("You look after hive 12."))
                tool_calls: [{name: hive_weight, args: {hive: "12"}}, {name: visitor_position, args: {}}]
              - tool_calls: [{name: weather, args: {place: gate}}]
              - when: request.messages.exists(m, m.content.contains("grey"))
                json: {advice: leave it}
          expect:
            path: [beekeeper, beekeeper_tools, beekeeper, beekeeper_tools, beekeeper]
            output: {$exact: {advice: leave it}}
        """,
    )


@case
def an_agent_at_oci_alone() -> Case:
    client = OciClientConfigWithResourcePrincipal(name="client", service_endpoint="https://oci.test")
    return Case(
        OciAgent(name="harbour", agent_endpoint_id="ocid1.endpoint", client_config=client),
        """
        - name: it is asked
          input: High water?
          agents: {harbour: [{args: {input: High water?}, return: At six.}]}
          expect: {path: [harbour], output: At six.}
        """,
    )
