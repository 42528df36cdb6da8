"""A genetic search for a better agent: its prompts, temperatures and tool lists.

config        the settings of the search
genome        the genes of a manifest, one variation of it, crossover and mutation
mutator       prompts rewritten by a model, or recombined from their sentences
lineage       scored genomes and their files; how parents are selected
search        the genetic algorithm
confirmation  the scenarios that only confirm the winner
patch         the winner as a patch of the manifest
folder        the files of a search, and what it continues from
study         the whole search, from arguments to files

Source: docs/evolution.md.
"""
