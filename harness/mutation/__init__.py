"""Mutation: one small fault at a time in an agent, to see which of them the scenarios notice (docs/mutate.md)."""
