"""Dated price tables: what a model's tokens cost, or None when that is not known. Never a guess, never 0.

A model is found by its exact id, or by an alias or a pattern that somebody declared; a prefix or a family
resemblance finds nothing, because it once charged three times the price (CASES K11). The table's label is
recorded with the run, so that a new table never re-prices history.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from harness.billing.genai import GenaiPrices
from harness.billing.price import Price, Rate, cost_usd
from harness.records.errors import ConfigError
from harness.records.usage import Usage

__all__ = ["FixedPrices", "GenaiPrices", "PriceTable", "fixed_prices", "load_prices"]

# How many times the price of input a cache bucket costs at most: reading is never dearer than input, and writing costs
# twice as much on the dearest list of a provider's own.
BOUNDS = {"cache_read": 1.0, "cache_write": 2.0}


class PriceTable(Protocol):
    """A dated table; `label` says which one, of which day."""

    @property
    def label(self) -> str: ...

    def price(self, model: str) -> Price | None:
        """The price of exactly that model, or None."""
        ...

    def cost_usd(self, model: str, usage: Usage, tier: str | None = None) -> float | None:
        """The cost of one call of exactly that model, served at `tier`, or None when it is not known."""
        ...


@dataclass(frozen=True)
class FixedPrices:
    """A table somebody wrote down, with its date. Used for the simulated model and for private deployments.

    A pattern, in which `*` stands for any text, prices whatever has no price of its own; a model that two patterns
    fit has none, because nobody said which.
    """

    date: str
    prices: Mapping[str, Price]
    aliases: Mapping[str, str] = field(default_factory=dict)
    name: str = "fixed"
    patterns: Mapping[str, Price] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"{self.name} {self.date}"

    def price(self, model: str) -> Price | None:
        known = self.prices.get(self.aliases.get(model, model))
        if known is not None:
            return known
        fitting = [price for pattern, price in self.patterns.items() if _fits(model, pattern)]
        return fitting[0] if len(fitting) == 1 else None

    def cost_usd(self, model: str, usage: Usage, tier: str | None = None) -> float | None:
        price = self.price(model)
        return cost_usd(usage, None if price is None else price.of_tier(tier))


def fixed_prices(table: Mapping[str, Any], *, place: str = "prices") -> FixedPrices:
    """A table from plain values, as docs/prices.md has it: `date`, optional `name`, `[models."id"]` with `input`,
    `output` and optional `cache_read`, `cache_write`, `audio_input`, `audio_output` in USD per million tokens, optional
    `[models."id".tiers.batch]` and `[patterns."id-*"]` likewise, and optional `[aliases]`. A cache price that is left
    out is an upper bound (`Price.assumed`). Raises ConfigError naming the key."""
    keys = ("date", "name", "models", "patterns", "aliases")
    unknown = sorted(set(table) - set(keys))
    if unknown:
        raise ConfigError(f"unknown key {unknown[0]!r}", place=place, remedy=f"keys are {', '.join(keys)}")
    date = table.get("date")
    models, patterns, aliases = (table.get(key, {}) for key in ("models", "patterns", "aliases"))
    written = table.keys() & {"models", "patterns"}
    if not date or not written or not all(isinstance(part, Mapping) for part in (models, patterns, aliases)):
        raise ConfigError("a price table needs `date` and a table `models` (or `patterns`)", place=place)
    name = str(table.get("name", "fixed"))
    prices = {str(model): _flat_price(model, rates, f"{name} {date}", place) for model, rates in models.items()}
    fitting = {str(model): _flat_price(model, rates, f"{name} {date}", place) for model, rates in patterns.items()}
    for alias, target in aliases.items():
        if target not in prices:
            raise ConfigError(f"alias {alias!r} is for {target!r}, which has no price", place=f"{place}, aliases")
    return FixedPrices(str(date), prices, {str(a): str(t) for a, t in aliases.items()}, name, fitting)


def load_prices(file: str | Path) -> FixedPrices:
    """A fixed table from a TOML file. Raises ConfigError."""
    path = Path(file)
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot be read: {error}", place=str(path)) from error
    return fixed_prices(table, place=str(path))


def _fits(model: str, pattern: str) -> bool:
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.split("*")), model, re.DOTALL) is not None


def _flat_price(model: Any, rates: Any, source: str, place: str) -> Price:
    where = f"{place}, models.{model}"
    if not isinstance(rates, Mapping):
        raise ConfigError("a model's prices are a table", place=where)
    tiers = rates.get("tiers", {})
    if not isinstance(tiers, Mapping):
        raise ConfigError("tiers are a table of tables", place=where, remedy='write [models."id".tiers.batch]')
    rates = {key: value for key, value in rates.items() if key != "tiers"}
    unknown = sorted(set(rates) - {"input", "output", "audio_input", "audio_output", *BOUNDS})
    if unknown:
        raise ConfigError(f"unknown key {unknown[0]!r}", place=where)
    if missing := [key for key in ("input", "output") if key not in rates]:
        raise ConfigError(f"{missing[0]} is missing", place=where, remedy="write 0.0 if it is free")
    try:
        price = Price.flat(**rates, source=source)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise ConfigError(f"{rates}: {problem['msg']}", place=where) from error
    served = {
        str(tier).lower(): _flat_price(f"{model}.tiers.{tier}", own, source, place) for tier, own in tiers.items()
    }
    return _bounded(price).model_copy(update={"tiers": tuple(served.items())})


def _bounded(price: Price) -> Price:
    """Cache prices that a table leaves out, from above: a call that a service reports as partly cached has a cost all
    the same, and a cost budget holds."""
    left_out = [bucket for bucket in BOUNDS if getattr(price, bucket) is None]
    rates = {bucket: Rate(usd=price.input.usd * BOUNDS[bucket]) for bucket in left_out}
    said = tuple(f"{bucket} counts {BOUNDS[bucket]:g} × the price of input" for bucket in left_out if price.input.usd)
    return price.model_copy(update={**rates, "assumed": said})
