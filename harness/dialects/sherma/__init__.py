"""sherma, manifest version 1: LangGraph agents in one YAML file, with CEL for everything dynamic.

Section of the document               model                 implementation
manifest_version, prompts, llms,      `document`            `manifest_compiler`
  hooks, agents, default_llm
tools, mcp_servers                    `document`            `tools`, `tool_node`
skills                                `document`, `skills`  `skill_tools`
sub_agents                            `document`            `sub_agents`, `a2a` (remote agents)
input_schema, output_schema           `document`            `lifecycle`
graph: nodes, on_error                `graph_document`      `nodes` (`call_llm`, `tool_node`), `visit`
graph: edges, branches                `graph_document`      `routing`
Hooks                                 `hooks`               `visit`, `lifecycle`, `registries`
Environment variable substitution                           `harness.source.environment`

`compile` turns a manifest into a Graph; `rules` reports its errors, `warnings` probable mistakes.
"""
