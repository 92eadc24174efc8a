"""Dated price tables: what a model's tokens cost, or None when that is not known. Never a guess, never 0.

A model is found by its exact id or by an alias that somebody declared; a prefix or a family resemblance finds
nothing, because it once charged three times the price (CASES K11). Prices are for one call: some rates depend
on how much input the call has, so a bill adds costs, it does not price added-up usage.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pydantic import Field, ValidationError

from harness.records.base import Record
from harness.records.errors import ConfigError
from harness.records.usage import Usage

PER_TOKENS = 1_000_000


class Step(Record):
    """A rate for the whole call when its input, cached included, exceeds `above_tokens`."""

    above_tokens: int = Field(ge=0)
    usd: float = Field(ge=0, allow_inf_nan=False)


class Rate(Record):
    """USD per million tokens of one bucket; of several steps the highest that applies counts."""

    usd: float = Field(ge=0, allow_inf_nan=False)
    steps: tuple[Step, ...] = ()

    def at(self, input_tokens: int) -> float:
        """The rate of a call with that much input."""
        reached = [step for step in self.steps if input_tokens > step.above_tokens]
        return max(reached, key=lambda step: step.above_tokens).usd if reached else self.usd


class Price(Record):
    """What one model's tokens cost. Reasoning costs what output costs. None: no price is known for that bucket."""

    input: Rate
    output: Rate
    cache_read: Rate | None = None
    cache_write: Rate | None = None
    source: str = ""  # the table, its version and date

    @classmethod
    def flat(
        cls,
        *,
        input: float,
        output: float,
        cache_read: float | None = None,
        cache_write: float | None = None,
        source: str = "",
    ) -> Price:
        """A price without steps, from USD per million tokens."""
        return cls(
            input=Rate(usd=input),
            output=Rate(usd=output),
            cache_read=None if cache_read is None else Rate(usd=cache_read),
            cache_write=None if cache_write is None else Rate(usd=cache_write),
            source=source,
        )


class PriceTable(Protocol):
    """A dated table. `version` is recorded with the run; a new table never re-prices history."""

    @property
    def version(self) -> str: ...

    def price(self, model: str, provider: str | None = None) -> Price | None:
        """The price of exactly that model, or None."""
        ...


def cost_usd(usage: Usage | None, price: Price | None) -> float | None:
    """The cost of one call in USD. None when the usage, the price, or the price of a used bucket is unknown.

    A cache bucket that the provider does not report at all is taken as unused.
    """
    if usage is None or price is None or usage.input is None or usage.output is None:
        return None
    input_tokens = usage.input + (usage.cache_read or 0) + (usage.cache_write or 0)
    buckets = (
        (usage.input, price.input),
        (usage.cache_read or 0, price.cache_read),
        (usage.cache_write or 0, price.cache_write),
        (usage.output + (usage.reasoning or 0), price.output),
    )
    cost = 0.0
    for tokens, rate in buckets:
        if tokens and rate is None:
            return None
        if tokens and rate is not None:
            cost += tokens * rate.at(input_tokens)
    return cost / PER_TOKENS


def pricing(table: PriceTable, provider: str | None = None) -> Callable[[str, Usage], float | None]:
    """A function from a model's name and one call's usage to its cost in USD, None when unknown."""
    return lambda model, usage: cost_usd(usage, table.price(model, provider))


@dataclass(frozen=True)
class FixedPrices:
    """A table somebody wrote down, with its date. Used for the simulated model and for private deployments."""

    date: str
    prices: Mapping[str, Price]
    aliases: Mapping[str, str] = field(default_factory=dict)
    name: str = "fixed"

    @property
    def version(self) -> str:
        return f"{self.name} {self.date}"

    def price(self, model: str, provider: str | None = None) -> Price | None:
        return self.prices.get(self.aliases.get(model, model))


@dataclass(frozen=True)
class ChainedPrices:
    """Several tables; the first that knows a model prices it."""

    tables: tuple[PriceTable, ...]

    @property
    def version(self) -> str:
        return " + ".join(table.version for table in self.tables)

    def price(self, model: str, provider: str | None = None) -> Price | None:
        found = (table.price(model, provider) for table in self.tables)
        return next((price for price in found if price is not None), None)


def fixed_prices(table: Mapping[str, Any], *, place: str = "prices") -> FixedPrices:
    """A table from plain values: `date`, optional `name`, `[models."id"]` with `input`, `output`, `cache_read`,
    `cache_write` in USD per million tokens, and optional `[aliases]`. Raises ConfigError naming the key."""
    unknown = sorted(set(table) - {"date", "name", "models", "aliases"})
    if unknown:
        raise ConfigError(f"unknown key {unknown[0]!r}", place=place, remedy="keys are date, name, models, aliases")
    date, models, aliases = table.get("date"), table.get("models"), table.get("aliases", {})
    if not date or not isinstance(models, Mapping) or not isinstance(aliases, Mapping):
        raise ConfigError("a price table needs `date` and a table `models`", place=place)
    name = str(table.get("name", "fixed"))
    prices = {str(model): _flat_price(model, rates, f"{name} {date}", place) for model, rates in models.items()}
    for alias, target in aliases.items():
        if target not in prices:
            raise ConfigError(f"alias {alias!r} is for {target!r}, which has no price", place=f"{place}, aliases")
    return FixedPrices(str(date), prices, {str(a): str(t) for a, t in aliases.items()}, name)


def read_prices(file: str | Path) -> FixedPrices:
    """A fixed table from a TOML file. Raises ConfigError."""
    path = Path(file)
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot be read: {error}", place=str(path)) from error
    return fixed_prices(table, place=str(path))


def _flat_price(model: Any, rates: Any, source: str, place: str) -> Price:
    where = f"{place}, models.{model}"
    if not isinstance(rates, Mapping):
        raise ConfigError("a model's prices are a table", place=where)
    unknown = sorted(set(rates) - {"input", "output", "cache_read", "cache_write"})
    if unknown:
        raise ConfigError(f"unknown key {unknown[0]!r}", place=where)
    if missing := [key for key in ("input", "output") if key not in rates]:
        raise ConfigError(f"{missing[0]} is missing", place=where, remedy="write 0.0 if it is free")
    try:
        return Price.flat(**rates, source=source)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise ConfigError(f"{rates}: {problem['msg']}", place=where) from error
