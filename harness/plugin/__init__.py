"""The pytest plugin: every scenario is a test item, and pytest's own options work as usual.

`*.scenario.yaml` and `*.scenario.yml` are collected (`collection`), each scenario is run as an item (`item`), and its
results are written to the report folder (`reporter`, docs/results.md). Workers of xdist send them with their reports.
Every run of pytest loads this package if it is installed, so heavy modules are imported only where they are used.
"""

from __future__ import annotations

from harness.plugin.collection import pytest_collect_file, pytest_collection, pytest_collection_modifyitems
from harness.plugin.item import (
    pytest_report_from_serializable,
    pytest_report_to_serializable,
    pytest_runtest_makereport,
    pytest_runtest_protocol,
)
from harness.plugin.options import pytest_addoption
from harness.plugin.reporter import pytest_configure, pytest_sessionfinish, pytest_unconfigure
from harness.plugin.selection import pytest_add_selection_options, pytest_report_collectionfinish

__all__ = [
    "pytest_add_selection_options",
    "pytest_addoption",
    "pytest_collect_file",
    "pytest_collection",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_report_collectionfinish",
    "pytest_report_from_serializable",
    "pytest_report_to_serializable",
    "pytest_runtest_makereport",
    "pytest_runtest_protocol",
    "pytest_sessionfinish",
    "pytest_unconfigure",
]
