"""The overhead of the harness, as ratios measured in one run: `python -m benchmarks`."""
