"""Agent Spec 25.4.1, with additions of 25.4.2: agents and flows, which consist of components.

Section of the specification                    models               behaviour
Base Component, Input/output schemas            `component`          `configuration` (reads them)
Input and output properties                     `properties`         `types`, `casts` (compatibility)
Agent, RemoteAgent, Conversation                `agents`             `agent_graph`, `conversation`
LLM                                             `llm_configs`
Tools, MCP                                      `tools`, `transports` `tool_calls`, `remote_calls`
Flow, Node, edges                               `flows`              `flow_graph`, `data_flow`
Standard library of nodes                       `flows`              `node_bodies`, `map_node`
Symbolic references, disaggregated components   `document`           `references`, `tables`
Validation of specified inputs/outputs                               `rules`, `flow_rules`
Ecosystem of plugins                            `plugins`
Serialization                                                        `serialize`

`compile` turns a configuration into a Graph. `graphs` compiles each flow and agent in it, once.
"""
