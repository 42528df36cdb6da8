"""Runs scenarios on the workers of a Dask cluster, which have the same code, or are given it."""
