"""Yagra: LangGraph workflows in YAML, with handlers in Python.

Section of the documentation                    modules
Top-Level Structure, Validation Rules           `document`, `rules`, `warnings`
State Schema                                    `nodes`, `warnings`
Node Specification, Node Handler Signature      `nodes`
Node with Parameters, Global Parameters         `prompts`, `model_nodes`
Edge Specification, Fan-Out Edge                `compile`
Resilience                                      `nodes`
Subgraph Node                                   `compile`, `nodes`

`compile` turns a workflow into a Graph.
"""
