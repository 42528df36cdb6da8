"""The sherma dialect: LangGraph agents in one YAML file, with CEL for everything dynamic.

`document` is what a manifest may say, `compile` turns one into a Graph, `nodes` is what each node does.
"""
