"""Scenarios: reading their files, running them, and judging the runs."""

from __future__ import annotations

from typing import Final

SUFFIXES: Final = (".scenario.yaml", ".scenario.yml")
"""The ends of the names of scenario files."""

YAML: Final = (".yaml", ".yml")
"""The ends of the names of manifests that may have scenarios of their own, and of scenario files."""
