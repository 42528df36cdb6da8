"""The scenario format: reading scenario files, running scenarios, and evaluating the runs."""

from __future__ import annotations

from typing import Final

SUFFIXES: Final = (".scenario.yaml", ".scenario.yml")
"""File name suffixes of scenario files."""

YAML: Final = (".yaml", ".yml")
"""File name suffixes of scenario files, and of manifests that may contain scenarios."""
