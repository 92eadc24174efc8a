"""What tokens cost: rates per bucket, and the cost of one call.

Prices are for one call: some rates depend on how much input the call has, so a bill adds costs, it does not
price added-up usage.
"""

from __future__ import annotations

from pydantic import Field

from harness.records.base import Record
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


STANDARD_TIERS = frozenset({"default", "standard", "on_demand"})  # the words of services for the ordinary price


class Price(Record):
    """What one model's tokens cost. Reasoning costs what output costs. None: no price is known for that bucket.

    `tiers` are the prices of other ways to be served (`batch`, `flex`, `priority`), by the service's own word.
    """

    input: Rate
    output: Rate
    cache_read: Rate | None = None
    cache_write: Rate | None = None
    audio_input: Rate | None = None
    audio_output: Rate | None = None
    tiers: tuple[tuple[str, Price], ...] = ()
    source: str = ""  # the table, its version and date
    assumed: tuple[str, ...] = ()  # what of this the table does not say: each an upper bound, and how it was made

    @classmethod
    def flat(
        cls,
        *,
        input: float,
        output: float,
        cache_read: float | None = None,
        cache_write: float | None = None,
        audio_input: float | None = None,
        audio_output: float | None = None,
        source: str = "",
    ) -> Price:
        """A price without steps, from USD per million tokens."""
        return cls(
            input=Rate(usd=input),
            output=Rate(usd=output),
            cache_read=None if cache_read is None else Rate(usd=cache_read),
            cache_write=None if cache_write is None else Rate(usd=cache_write),
            audio_input=None if audio_input is None else Rate(usd=audio_input),
            audio_output=None if audio_output is None else Rate(usd=audio_output),
            source=source,
        )

    def of_tier(self, tier: str | None) -> Price | None:
        """The price of a service tier; None when there is none in the table: half price is nobody's guess."""
        if tier is None or tier.lower() in STANDARD_TIERS:
            return self
        return dict(self.tiers).get(tier.lower())


def cost_usd(usage: Usage | None, price: Price | None) -> float | None:
    """The cost of one call in USD. None when the usage, the price, or the price of a used bucket is unknown.

    A cache bucket that the provider does not report at all is taken as unused.
    """
    if usage is None or price is None or usage.input is None or usage.output is None:
        return None
    input_tokens = sum(part or 0 for part in (usage.input, usage.cache_read, usage.cache_write, usage.audio_input))
    buckets = (
        (usage.input, price.input),
        (usage.cache_read or 0, price.cache_read),
        (usage.cache_write or 0, price.cache_write),
        (usage.output + (usage.reasoning or 0), price.output),
        (usage.audio_input or 0, price.audio_input),
        (usage.audio_output or 0, price.audio_output),
    )
    cost = 0.0
    for tokens, rate in buckets:
        if tokens and rate is None:
            return None
        if tokens and rate is not None:
            cost += tokens * rate.at(input_tokens)
    return cost / PER_TOKENS
