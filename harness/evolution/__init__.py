"""A genetic search for a better agent: its prompts, temperatures and tool lists.

config      the settings of the search          lineage    the files it writes, and continues from
space       the genes of a manifest             search     the genetic algorithm
genome      one variation of the manifest       selection  parents of the next generation
mutation    changes to single genes             crossover  one genome from two
mutator     prompts rewritten by a model        holdout    scenarios that only confirm the winner
    study       the whole search, from arguments to files

Source: docs/evolution.md.
"""
