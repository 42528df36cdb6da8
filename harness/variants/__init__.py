"""Variants of agents: other prompts, models, parameters, variables or manifests, scored against the baseline."""
