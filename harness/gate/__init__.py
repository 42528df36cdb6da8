"""The gate: decides if a run is good enough, by the rules of a project, also compared with an earlier run.

policy     the rules, from pyproject.toml or a separate file
ruling     the result of a rule, and the scenarios that it applies to: the whole run, or a part named in `by`
rules      each rule: its figure, its bound, the affected scenarios
changes    the rules that compare figures with those of the baseline, pair by pair
warnings   what makes a verdict worth little
judge      the verdict on a run, from a policy and a baseline
text       the verdict for a terminal, and as Markdown for a pull request
"""
