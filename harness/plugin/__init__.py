"""The pytest plugin: every scenario is an item, and pytest's own options work on it as usual.

`*.scenario.yaml` and `*.scenario.yml` are collected (`collection`), each scenario is run as an item (`item`), and
its results go to the report folder (`reporter`, docs/results.md), from xdist workers through the reports they
send. The package is loaded by every pytest run where it is installed, so everything heavy is imported where it is
used.
"""

from __future__ import annotations

from harness.plugin.collection import pytest_collect_file, pytest_collection, pytest_collection_modifyitems
from harness.plugin.item import pytest_runtest_makereport, pytest_runtest_protocol
from harness.plugin.leaving import pytest_sessionfinish, pytest_unconfigure
from harness.plugin.options import pytest_addoption
from harness.plugin.reporter import pytest_configure
from harness.plugin.selection import pytest_add_selection_options, pytest_report_collectionfinish
from harness.plugin.transfer import pytest_report_from_serializable, pytest_report_to_serializable

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
