"""What the harness costs, as ratios taken in one run: `python -m benchmarks`."""
