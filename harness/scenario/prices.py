"""What a call of a model costs, in US dollars: by the project's own prices, else by the list of `genai-prices`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from harness.settings import Price

_MILLION: Final = 1_000_000
_LAST: Final = datetime(2100, 1, 1, 12, tzinfo=UTC)
"""A price list has dates, and hours of the day: the last price counts, whenever a run is made."""


class PriceList:
    """The prices of models by their names; `own` are those of the project, which come first."""

    def __init__(self, own: Sequence[Price] = ()) -> None:
        self._own = {price.model: price for price in own}

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> float | None:
        """What one call of a model costs; None where its price is not known. No tokens cost nothing."""
        if not input_tokens and not output_tokens:
            return 0.0
        if (price := self._own.get(model)) is not None:
            return (price.input * input_tokens + price.output * output_tokens) / _MILLION
        return _listed(model, input_tokens, output_tokens)


@lru_cache(maxsize=4096)
def _listed(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """By `genai-prices`, whose list is in the package: nothing is fetched. It takes a tenth of a second to import."""
    try:
        import genai_prices
    except ModuleNotFoundError:  # installed before it was needed: only the project's own prices are known
        return None
    usage = genai_prices.Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        return float(genai_prices.calc_price(usage, model, genai_request_timestamp=_LAST).total_price)
    except LookupError:
        return None
