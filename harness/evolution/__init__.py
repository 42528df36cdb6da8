"""A genetic search for a better agent: its prompts, temperatures and tool lists.

config      what the search may do               lineage    the files it writes, and goes on from
space       what of a manifest can be varied     search     generations, until it stops
genome      one variation of it                  selection  parents of the next generation
mutation    one gene becomes another             crossover  two genomes become one
rewriting   a model rewrites a prompt            holdout    scenarios that only confirm the winner
    study       all of it, from arguments to files

Source: docs/evolution.md.
"""
