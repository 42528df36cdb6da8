"""Agent Spec 25.4.1, with additions up to 26.3.1: agents and flows, which consist of components.

Section of the specification                    models               behaviour
Base Component, Input/output schemas            `component`          `configuration` (reads them)
Input and output properties                     `properties`         `types` (compatibility)
Agent, RemoteAgent, Swarm, ManagerWorkers       `agents`             `agent_graph`, `team_graph`
LLM, OCI, databases, transports                 `connections`
Transforms                                      `transforms`
Tools, MCP                                      `tools`              `tool_calls`
Flow, Node, edges, Conversation                 `flows`              `flow_graph`, `data_flow`
Standard library of nodes                       `flows`              `node_bodies`
Versioning, symbolic references                 `document`           `references`, `dialect`
Validation of specified inputs/outputs                               `rules`, `data_rules`
Ecosystem of plugins, Serialization             `plugins`

`compile` turns a configuration into a Graph, and each flow and agent in it once.
"""
