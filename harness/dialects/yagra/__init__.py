"""Yagra: LangGraph workflows in YAML, with handlers in Python.

Section of the documentation                    modules
Top-Level Structure, Validation Rules           `document`, `rules`, `prompt_warnings`
State Schema                                    `state`, `state_warnings`
Node Specification, Node Handler Signature      `nodes`, `handlers`
Node with Parameters, Global Parameters         `prompts`; `model_nodes`, `structured`, `streaming`, `model_warnings`
Edge Specification, Fan-Out Edge                `routing`
Resilience                                      `resilience`
Subgraph Node                                   `subgraph`

`compile` turns a workflow into a Graph; `lifecycle` converts its input and its output.
"""
