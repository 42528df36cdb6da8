"""harness: run declarative agents for real, offline, in a simulated world, and test what they do."""

__version__ = "0.1.0"
DISTRIBUTION = "agent-scenarios"  # what pip installs; the package and the command are `harness`
