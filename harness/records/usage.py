"""Token usage in disjoint buckets, and what it costs.

Providers disagree on whether cached input is part of input and reasoning part of output. Here the buckets
never overlap; an unknown count is None, never 0 (DESIGN, "Billing").
"""

from __future__ import annotations

from pydantic import Field

from harness.records.base import Record

Count = int | None


class Usage(Record):
    """Tokens of one provider response, or of several added up, in buckets that never overlap."""

    input: Count = Field(default=None, ge=0)  # fresh text: excludes both cache buckets
    cache_read: Count = Field(default=None, ge=0)
    cache_write: Count = Field(default=None, ge=0)
    output: Count = Field(default=None, ge=0)  # excludes reasoning
    reasoning: Count = Field(default=None, ge=0)
    audio_input: Count = Field(default=None, ge=0)  # fresh; not in `input`
    audio_output: Count = Field(default=None, ge=0)  # not in `output`

    @property
    def known(self) -> bool:
        """Whether both sides of the call were reported."""
        return self.input is not None and self.output is not None

    @property
    def total(self) -> int:
        """All reported tokens: a lower bound where something is unknown."""
        text = (self.input or 0) + (self.cache_read or 0) + (self.cache_write or 0) + (self.output or 0)
        return text + (self.reasoning or 0) + (self.audio_input or 0) + (self.audio_output or 0)

    def __add__(self, other: Usage) -> Usage:
        def add(a: Count, b: Count) -> Count:
            return None if a is None and b is None else (a or 0) + (b or 0)

        return Usage(**{name: add(value, getattr(other, name)) for name, value in self})


class Span(Record):
    """A node of a span tree, as far as billing needs it."""

    span: str
    parent: str | None = None
    attempt: int = 1
    provider: str | None = None
    response_id: str | None = None
    model: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    tier: str | None = None  # how it was served, by the service's own word ("batch", "priority"); None: not said
    charged: bool = True  # False for an answer from a local cache, or a call known not to be billed


class Account(Record):
    """What a trial or a run spent, folded from its events. Costs that are not known are None, with a lower bound."""

    usage: Usage | None = None  # None: no model call was made
    calls: int = 0
    calls_without_usage: int = 0
    commands: int = 0
    cost_usd: float | None = None
    cost_at_least_usd: float = 0.0

    @property
    def steps(self) -> int:
        """Model calls or commands, whichever is more: every solver takes steps, with a model or without."""
        return max(self.calls, self.commands)
