"""Loki: graph agents, each a folder with a `graph.yaml`.

Section of the documentation                    modules
Directory Structure, Top-Level Fields           `document`, `compile`
Node Types: script, approval, input, end        `script_node`, `human_nodes`, `nodes`
Node Types: agent                               `agent_node`, `ordinary_agent`
Node Types: llm                                 `llm_node`, `tool_loop`, `tool_files`, `tool_universe`
Node Types: rag                                 `rag_node`, `knowledge`
State and Template Syntax, state_updates        `templates`, `state`
Routing & Tolerant-Fail                         `routing`
Structured Output                               `structured`
Validation                                      `rules`, `field_rules`, `template_rules`
max_loop_iterations, timeout                    `lifecycle`
"""
