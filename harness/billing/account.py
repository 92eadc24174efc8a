"""What a trial spent, folded from its events: the same arithmetic live, after a crash, and in a report.

A model call is a bracket (`model.request`) around its HTTP attempts (`model.attempt`) and its answer
(`model.call`). The answer carries the usage of the attempt that succeeded, so that attempt is not billed
beside it. A failed attempt is billed when its usage is known, and is missing coverage when it may have been
charged (a stream that was cut); one that is known not to have been charged is neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harness.billing.fold import Bill, fold
from harness.records.event import Event
from harness.records.usage import Account, Span, Usage

PriceOf = Callable[[str, Usage], float | None]  # model and usage of one call -> USD, None when unknown

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
    """The billing spans of a trial's model calls. Ids of brackets are the events' own."""
    calls: dict[str, _Call] = {}
    for event in events:
        name = event.parent if event.kind == ATTEMPT else event.span
        if event.kind in (REQUEST, ATTEMPT, ANSWER, FAILED):
            calls.setdefault(name or f"event {event.seq}", _Call()).take(event)
    return [span for name, call in calls.items() for span in call.spans(name, price)]


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
        provider = None if self.answer is None else self.answer.get("gen_ai.provider.name")
        spans = [Span(span=name, parent=self.parent)]
        for number, attempt in enumerate(self._unanswered(), start=1):
            usage = _usage(attempt.get("usage"))
            if usage is None and not _may_be_charged(attempt):
                continue
            spans.append(
                Span(
                    span=f"{name}/attempt {attempt.get('number', number)}",
                    parent=name,
                    provider=provider,
                    response_id=attempt.get("response_id"),
                    model=self.model,
                    usage=usage,
                    cost_usd=price(self.model, usage) if usage is not None and price is not None else None,
                    charged=attempt.get("charged") is not False,
                )
            )
        if self.answer is not None:
            spans.append(self._answer_span(self.answer, name, provider, price))
        elif not self.failed and (not self.attempts or self.attempts[-1].get("error")):
            # The process died, or the clock ran out, while the call was under way: it may be on the invoice.
            spans.append(Span(span=f"{name}/unanswered", parent=name, model=self.model))
        return spans

    def _answer_span(self, answer: Mapping[str, Any], name: str, provider: str | None, price: PriceOf | None) -> Span:
        usage, cost = _usage(answer.get("usage")), answer.get("cost_usd")
        if cost is None and usage is not None and price is not None:
            cost = price(self.model, usage)
        return Span(
            span=f"{name}/answer",
            parent=name,
            provider=provider,
            response_id=answer.get("gen_ai.response.id"),
            model=self.model,
            usage=usage,
            cost_usd=cost,
            charged=answer.get("charged") is not False,
        )

    def _unanswered(self) -> list[Mapping[str, Any]]:
        """The attempts that the answer does not stand for: it is the record of the last one that went well."""
        if self.answer is None:
            return self.attempts
        good = [attempt for attempt in self.attempts if not attempt.get("error") and (attempt.get("status") or 0) < 400]
        return [attempt for attempt in self.attempts if not good or attempt is not good[-1]]


def _may_be_charged(attempt: Mapping[str, Any]) -> bool:
    """Whether an attempt without usage may be on the invoice: a cut stream may, a refusal is known not to be."""
    return attempt.get("charged") is not False


def _usage(plain: Any) -> Usage | None:
    """Usage with both sides known; less is no usage to bill by."""
    if plain is None:
        return None
    usage = Usage.model_validate(plain)
    return usage if usage.known else None
