"""What a trial spent, folded from its events: the same arithmetic live, after a crash, and in a report.

A model call is a bracket (`model.request`) around its HTTP attempts (`model.attempt`) and its answer
(`model.call`). The answer carries the usage of the attempt that succeeded, so that attempt is not billed
beside it. A failed attempt is billed when its usage is known, and is missing coverage when it may have been
charged (a stream that was cut); one that is known not to have been charged is neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harness.billing.fold import Bill, fold
from harness.billing.usage import normalise
from harness.records.event import Event
from harness.records.usage import Account, Span, Usage

PriceOf = Callable[[str, Usage, str | None], float | None]  # model, usage and tier of one call -> USD, None: unknown

SPAN = "span"  # of a tree that was recorded elsewhere
# Where records of a response name the service tier; Anthropic's usage object has it inside.
_TIERS = (
    "openai.response.service_tier",
    "gen_ai.openai.response.service_tier",
    "gen_ai.response.service_tier",
    "service_tier",
)

REQUEST, ATTEMPT, ANSWER, FAILED, COMMAND = (
    "model.request",
    "model.attempt",
    "model.call",
    "model.failed",
    "exec.started",
)


def accountant(price: PriceOf | None = None) -> Callable[[Iterable[Event]], Account]:
    """A function from a trial's events to its account; `price` prices attempts that only know their usage."""
    return lambda events: account(events, price)


def account(events: Iterable[Event], price: PriceOf | None = None) -> Account:
    """Fold a trial's events. A trial without model calls cost nothing; that is known, not assumed."""
    relevant = [event for event in events if event.kind in (REQUEST, ATTEMPT, ANSWER, FAILED, COMMAND)]
    calls = sum(event.kind == ANSWER for event in relevant)
    commands = sum(event.kind == COMMAND and event.phase == "interaction" for event in relevant)
    if all(event.kind == COMMAND for event in relevant):
        return Account(commands=commands, cost_usd=0.0)
    bill = fold(spans_of(relevant, price))
    return Account(
        usage=bill.usage,
        calls=calls,
        calls_without_usage=len(bill.missing),
        commands=commands,
        cost_usd=_cost(bill),
        cost_at_least_usd=bill.cost_at_least_usd,
    )


def _cost(bill: Bill) -> float | None:
    # Calls of which none was charged, nor may have been: nothing to pay.
    return 0.0 if not bill.billed and not bill.missing else bill.cost_usd


def spans_of(events: Iterable[Event], price: PriceOf | None = None) -> list[Span]:
    """The billing spans of a trial's model calls. Ids of brackets are the events' own.

    Where a span tree was recorded (an imported one), its spans are the calls, and the only ones.
    """
    events = list(events)
    recorded = [recorded_span(e.payload, e.span, e.parent) for e in events if e.kind == SPAN and e.span is not None]
    if recorded:
        return recorded
    calls: dict[str, _Call] = {}
    for event in events:
        name = event.parent if event.kind == ATTEMPT else event.span
        if event.kind in (REQUEST, ATTEMPT, ANSWER, FAILED):
            calls.setdefault(name or f"event {event.seq}", _Call()).take(event)
    return [span for name, call in calls.items() for span in call.spans(name, price)]


def recorded_span(payload: Mapping[str, Any], span: str, parent: str | None) -> Span:
    """The billing span of a `span` event."""
    usage, cost = payload.get("usage"), payload.get("cost_usd")
    return Span(
        span=span,
        parent=parent,
        provider=_word(payload.get("gen_ai.provider.name")),
        response_id=_word(payload.get("gen_ai.response.id")),
        model=_word(payload.get("gen_ai.response.model")),
        usage=Usage.model_validate(usage) if isinstance(usage, dict) else None,
        cost_usd=cost if isinstance(cost, (int, float)) and 0 <= cost < math.inf else None,
        tier=tier_of(payload),
    )


def tier_of(payload: Mapping[str, Any]) -> str | None:
    """The service tier that a response was served at, where its record says so."""
    raw = payload.get("usage_raw")
    inside = raw.get("service_tier") if isinstance(raw, Mapping) else None
    return next((tier for name in _TIERS if (tier := _word(payload.get(name)))), None) or _word(inside)


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


class _Call:
    """The events of one model call."""

    def __init__(self) -> None:
        self.parent: str | None = None
        self.model: str = "unknown"
        self.attempts: list[Mapping[str, Any]] = []
        self.answer: Mapping[str, Any] | None = None
        self.failed = False  # ended by the service's refusal: nothing more is under way

    def take(self, event: Event) -> None:
        if event.kind == ATTEMPT:
            self.attempts.append(event.payload)
            return
        if event.kind == FAILED:
            self.failed = True
            return
        self.parent = event.parent
        named = event.payload.get("gen_ai.response.model") or event.payload.get("gen_ai.request.model")
        self.model = str(named or self.model)
        if event.kind == ANSWER:
            self.answer = event.payload

    def spans(self, name: str, price: PriceOf | None) -> list[Span]:
        """The attempts that were or may have been charged, the answer last, all under the call's own name: a call
        recorded again inside another one lies below it, and is not billed twice."""
        provider = None if self.answer is None else self.answer.get("gen_ai.provider.name")
        ends: list[dict[str, Any]] = []
        for attempt in self._unanswered():
            usage = _usage(attempt)
            if usage is None and not _may_be_charged(attempt):
                continue
            ends.append(
                {
                    "provider": provider,
                    "response_id": attempt.get("response_id"),
                    "usage": usage,
                    "cost_usd": self._priced(usage, price),
                    "charged": _may_be_charged(attempt),
                }
            )
        if self.answer is not None:
            usage, cost, tier = _usage(self.answer), self.answer.get("cost_usd"), tier_of(self.answer)
            ends.append(
                {
                    "provider": provider,
                    "response_id": self.answer.get("gen_ai.response.id"),
                    "usage": usage,
                    "cost_usd": self._priced(usage, price, tier) if cost is None else cost,
                    "charged": _may_be_charged(self.answer),
                    "tier": tier,
                }
            )
        elif not self.failed and (not self.attempts or self.attempts[-1].get("error")):
            # The process died, or the clock ran out, while the call was under way: it may be on the invoice.
            ends.append({})
        spans = [
            Span(span=name, parent=self.parent, attempt=number, model=self.model, **end)
            for number, end in enumerate(ends, start=1)
        ]
        return spans or [Span(span=name, parent=self.parent)]

    def _priced(self, usage: Usage | None, price: PriceOf | None, tier: str | None = None) -> float | None:
        return price(self.model, usage, tier) if usage is not None and price is not None else None

    def _unanswered(self) -> list[Mapping[str, Any]]:
        """The attempts that the answer does not stand for: it is the record of the last one that went well."""
        if self.answer is None:
            return self.attempts
        good = [attempt for attempt in self.attempts if not attempt.get("error") and (attempt.get("status") or 0) < 400]
        return [attempt for attempt in self.attempts if not good or attempt is not good[-1]]


def _may_be_charged(attempt: Mapping[str, Any]) -> bool:
    """Whether an attempt or answer may be on the invoice: a cut stream may, a refusal is known not to be."""
    return attempt.get("charged") is not False


def _usage(payload: Mapping[str, Any]) -> Usage | None:
    """Usage with both sides known, ours or (`usage_raw`) as a provider put it; less is no usage to bill by."""
    plain = payload.get("usage")
    if plain is None:
        return normalise(payload.get("usage_raw"))
    usage = Usage.model_validate(plain)
    return usage if usage.known else None
