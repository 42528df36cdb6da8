"""The gate: whether a run is good enough, by the rules of a project, also against an earlier run.

policy     the rules, from pyproject.toml or a file of their own
parts      what rules are held against: the whole run, or the part that one of `by` names
rules      each rule: its figure, its bound, the scenarios responsible
changes    the rules that compare figures with those of the baseline, pair by pair
judge      a run, a policy and a baseline: the verdict
text       the verdict for a terminal, `markdown` for a pull request
"""
