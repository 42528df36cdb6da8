"""Import this module first in tests that run pytest in their own process (`pytester.runpytest`).

Such a run removes from `sys.modules` the modules that it was the first to import, and extension modules cannot be
imported twice. So they are imported here, before any run.
"""

import importlib

for module in ("celpy.evaluation", "rich.console", "rich.table", "jsonschema", "harness.scenario.run",
               "harness.dialects.sherma.compile", "harness.report.console", "harness.report.results",
               "harness.expressions.lowering", "harness.source.display", "xdist.plugin", "hypothesis"):  # fmt: skip
    importlib.import_module(module)
