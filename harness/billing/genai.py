"""The `genai-prices` tables behind our stricter look-up.

The package matches models by rules such as "starts with"; here only the model's id counts, or a reference that
its rules name in full. Its tables carry dates from which prices hold, and a run fixes the day it asks for.
Nothing is fetched: the tables are those of the installed package, whose version is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from importlib.metadata import version
from typing import Any

from harness.billing.price import Price, Rate, Step, cost_usd
from harness.records.usage import Usage


def _today() -> date:
    return datetime.now(UTC).date()


@dataclass(frozen=True)
class GenaiPrices:
    """A :class:`harness.billing.prices.PriceTable` of public list prices as of one day (UTC).

    `provider` is an id ("openai") or the service's URL. Without one, all providers that list a model must agree,
    else nobody knows which one bills. `aliases` maps names that a service uses (dated ids, deployment names) to
    ids of the table.
    """

    provider: str | None = None
    as_of: date = field(default_factory=_today)
    aliases: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"genai-prices {version('genai-prices')}, as of {self.as_of.isoformat()}"

    def price(self, model: str) -> Price | None:
        """The price of exactly `model`. None as well for prices by the hour of the day and for fees per request:
        those are not a price per token."""
        asked = self.aliases.get(model, model)
        found = {self._price(entry) for entry in _entries(asked, self.provider)}
        return found.pop() if len(found) == 1 else None

    def cost_usd(self, model: str, usage: Usage, tier: str | None = None) -> float | None:
        """The cost of one call of exactly `model`, served at `tier`, or None when it is not known."""
        price = self.price(model)
        return cost_usd(usage, None if price is None else price.of_tier(tier))

    def _price(self, entry: Any) -> Price | None:
        from genai_prices import types

        prices = entry.prices
        if not isinstance(prices, types.ModelPrice):
            if any(isinstance(choice.constraint, types.TimeOfDateConstraint) for choice in prices):
                return None
            prices = entry.get_prices(datetime.combine(self.as_of, time(12), UTC))
        if prices.requests_kcount or prices.input_mtok is None or prices.output_mtok is None:
            return None
        fresh = _rate(prices.input_mtok)
        return Price(
            input=fresh,
            output=_rate(prices.output_mtok),
            # A table without a cache price lists no discount: cached input costs what input costs.
            cache_read=fresh if prices.cache_read_mtok is None else _rate(prices.cache_read_mtok),
            cache_write=fresh if prices.cache_write_mtok is None else _rate(prices.cache_write_mtok),
            source=self.label,
        )


def known_service(url: str) -> str | None:
    """The name of the public provider whose service answers at this address, or None."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        return str(get_snapshot().find_provider(None, None, url).name)
    except LookupError:
        return None


def _entries(model: str, provider: str | None) -> Iterator[Any]:
    from genai_prices.data_snapshot import get_snapshot

    snapshot = get_snapshot()
    providers = snapshot.providers
    if provider is not None:
        by_url = "://" in provider
        try:
            providers = [snapshot.find_provider(None, None if by_url else provider, provider if by_url else None)]
        except LookupError:
            return
    for candidate in providers:
        # Two passes: an id beats another entry's alias of the same name.
        exact = [entry for entry in candidate.models if entry.id == model]
        yield from exact or [entry for entry in candidate.models if _names_in_full(entry.match, model)][:1]


def _names_in_full(rule: Any, model: str) -> bool:
    """Whether a matching rule names the model itself, as a whole, and not something that it begins with."""
    from genai_prices import types

    if isinstance(rule, types.ClauseEquals):
        return bool(rule.equals == model)
    return isinstance(rule, types.ClauseOr) and any(_names_in_full(part, model) for part in rule.or_)


def _rate(value: Any) -> Rate:
    if isinstance(value, Decimal):
        return Rate(usd=float(value))
    return Rate(
        usd=float(value.base),
        steps=tuple(Step(above_tokens=tier.start, usd=float(tier.price)) for tier in value.tiers),
    )
