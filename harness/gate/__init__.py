"""The gate: decides if a run is good enough, by the rules of a project, also compared with an earlier run.

policy     the rules, from pyproject.toml or a separate file
parts      the scenarios that rules apply to: the whole run, or a part named in `by`
rules      each rule: its figure, its bound, the affected scenarios
changes    the rules that compare figures with those of the baseline, pair by pair
judge      the verdict on a run, from a policy and a baseline
text       the verdict for a terminal; `markdown` for a pull request
"""
