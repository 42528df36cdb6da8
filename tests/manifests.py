"""Manifests that several folders of tests use."""

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
"""A sherma agent with one node, which counts to one and asks nobody."""
