"""For tests that run pytest in their process: import this first.

Such a run forgets the modules it was the first to import, and extension modules do not survive being imported twice:
so they are imported here, before any run.
"""

import importlib

for module in ("celpy.evaluation", "rich.console", "rich.table", "jsonschema", "harness.scenario.run",
               "harness.dialects.sherma.compile", "harness.report.console", "harness.report.results",
               "harness.expressions.lowering", "harness.source.excerpt", "xdist.plugin", "hypothesis"):  # fmt: skip
    importlib.import_module(module)
