"""Prices of model calls in US dollars: those of the project, or else those of the package `genai-prices`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from harness.settings import Price

_MILLION: Final = 1_000_000
_LAST: Final = datetime(2100, 1, 1, 12, tzinfo=UTC)
"""Prices may depend on the date and hour; a fixed late moment selects the latest price, whenever a run is made."""


class PriceList:
    """Prices of models by name. Those of the project (`own`) have priority."""

    def __init__(self, own: Sequence[Price] = ()) -> None:
        self._own = {price.model: price for price in own}

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> float | None:
        """Return the cost of one call, or None if the price of the model is unknown.

        A call without tokens costs 0.
        """
        if not input_tokens and not output_tokens:
            return 0.0
        if (price := self._own.get(model)) is not None:
            return (price.input * input_tokens + price.output * output_tokens) / _MILLION
        return _listed(model, input_tokens, output_tokens)


@lru_cache(maxsize=4096)
def _listed(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """Return the cost by `genai-prices`, whose list is part of the package: nothing is fetched.

    It is imported only when needed, since that takes 0.1 s.
    """
    try:
        import genai_prices
    except ModuleNotFoundError:  # an older installation without it: only the project's own prices are known
        return None
    usage = genai_prices.Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        return float(genai_prices.calc_price(usage, model, genai_request_timestamp=_LAST).total_price)
    except LookupError:
        return None
