"""The type of `--budget`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from harness.budget import Budget


class BudgetType(click.ParamType["Budget"]):
    """What may be spent: `200` model calls, or `$1.50`."""

    name = "budget"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Budget:
        from harness.budget import parse

        try:
            return parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
