"""sherma, manifest version 1: LangGraph agents in one YAML file, with CEL for everything dynamic.

Section of the document               model       implementation
manifest_version, prompts, llms,      `document`  `compile`, `agent`, `prompt_list`
  hooks, agents, default_llm
tools, mcp_servers                    `document`  `tools`, `lifecycle`
skills                                `document`  `agent` (cards), `nodes` (their tools)
sub_agents                            `document`  `sub_agents` (local and remote agents)
input_schema, output_schema           `document`  `lifecycle`
graph: nodes, on_error                `document`  `nodes`, `call_llm`
graph: edges, branches                `document`  `lifecycle`
Hooks                                 `hooks`     `server_hooks`, `registries`, `chat_model`, `lifecycle`, `stand_in`
Environment variable substitution                 `harness.source.environment`

`compile` turns a manifest into a Graph; `rules` reports its errors, `warnings` probable mistakes.
"""
