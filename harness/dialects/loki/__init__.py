"""Loki: graph agents, each a folder with a `graph.yaml`.

Section of the documentation                    modules
Directory Structure, Top-Level Fields           `document`, `compile`
Node Types: script, approval, input, end        `nodes`
Node Types: agent, llm; Structured Output       `model_nodes`; tools: `tool_files`, `tool_universe`
Node Types: rag                                 `nodes`, `knowledge`
State and Template Syntax, state_updates        `templates`
Routing & Tolerant-Fail                         `routing`
Validation                                      `rules`, `warnings`
max_loop_iterations, timeout                    `compile`
"""
