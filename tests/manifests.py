"""Manifests that tests in several folders use."""

COUNTER = """\
manifest_version: 1
agents:
  counter:
    state: {fields: [{name: count, type: int, default: 0}]}
    graph:
      entry_point: add
      nodes: [{name: add, type: set_state, args: {values: {count: state.count + 1}}}]
      edges: []
"""
"""A sherma agent with one node that adds 1 to `count` and calls no model."""

HELPER = """\
llms: [{id: fast, version: "1.0.0", provider: openai, model_name: gpt-4o-mini}]
default_llm: {id: fast}
agents:
  helper:
    state: {fields: [{name: messages, type: list, default: []}]}
    graph:
      entry_point: answer
      nodes:
        - name: answer
          type: call_llm
          args:
            prompt:
              - {role: system, content: 'prompts["answer"]["instructions"]'}
              - {role: messages, content: state.messages}
            state_updates: {messages: "[llm_response]"}
      edges: [{source: answer, target: __end__}]
"""
"""A sherma manifest without its `prompts`: an agent that answers with the prompt `answer`."""

ASKING = """\
manifest_version: 1
llms: [{id: m, version: "1.0.0", provider: openai, model_name: "${MODEL}"}]
agents:
  asking:
    state: {fields: [{name: messages, type: list, default: []}]}
    graph:
      entry_point: ask
      nodes:
        - name: ask
          type: call_llm
          args:
            llm: {id: m}
            prompt: [{role: messages, content: state.messages}]
            state_updates: {messages: '[llm_response]'}
      edges: []
"""
"""A sherma agent with one node that calls the model `${MODEL}`."""

USES_TOOLS = """\
agents:
  guide:
    state: {fields: [{name: messages, type: list, default: []}]}
    graph:
      entry_point: say
      nodes:
        - name: say
          type: call_llm
          args:
            prompt: [{role: messages, content: state.messages}]
            use_tools_from_registry: true
            state_updates: {messages: '[llm_response]'}
      edges: []
"""
"""The `agents` of a sherma manifest: an agent whose model may use all tools of the manifest."""

CALLS_TOOL = """\
component_type: Flow
agentspec_version: 25.4.1
name: flow
start_node: {$component_ref: start}
nodes: [{$component_ref: start}, {$component_ref: call}, {$component_ref: end}]
control_flow_connections:
  - {component_type: ControlFlowEdge, name: a, from_node: {$component_ref: start}, to_node: {$component_ref: call}}
  - {component_type: ControlFlowEdge, name: b, from_node: {$component_ref: call}, to_node: {$component_ref: end}}
data_flow_connections: []
$referenced_components:
  start: {component_type: StartNode, id: start, name: start}
  call: {component_type: ToolNode, id: call, name: call, tool: TOOL}
  end: {component_type: EndNode, id: end, name: end}
"""
"""An Agent Spec flow with one node, which calls the tool that replaces `TOOL`."""
