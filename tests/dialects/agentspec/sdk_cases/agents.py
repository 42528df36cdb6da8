"""Agents, alone and as nodes of a flow."""

from __future__ import annotations

from pyagentspec import Agent, OpenAiAgent
from pyagentspec.flows.nodes import (
    AgentNode,
    EndNode,
    StartNode,
)
from pyagentspec.llms.ociclientconfig import (
    OciClientConfigWithInstancePrincipal,
    OciClientConfigWithResourcePrincipal,
)
from pyagentspec.ociagent import OciAgent
from pyagentspec.property import (
    Property,
)
from pyagentspec.tools import ClientTool, RemoteTool, ServerTool

from tests.dialects.agentspec.sdk_cases.case import (
    Case,
    case,
    flow,
    in_a_row,
    integer,
    number,
    openai,
    text,
)
from tests.dialects.agentspec.sdk_cases.maps import pricing


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
    round_ = in_a_row(
        "round",
        nodes,
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
        in_a_row("help", nodes),
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
