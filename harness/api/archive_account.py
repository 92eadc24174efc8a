"""What an imported episode used and how it ended, from its steps and from what its source says of the whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from harness.billing.account import ANSWER, SPAN, account, spans_of
from harness.billing.fold import Bill, fold
from harness.billing.usage import buckets, normalise
from harness.importers.consistency import instant
from harness.records.archive import ArchiveEpisode
from harness.records.event import Event
from harness.records.grade import TrialResult
from harness.records.usage import Account, Usage
from harness.records.vocabulary import Outcome, Reason, StopReason


def with_usage(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A payload with its usage in disjoint buckets beside the source's own; None where that is no usage."""
    return {**payload, "usage": buckets(payload["usage_raw"])}


class _Call(NamedTuple):
    """All that billing reads of an event; every one has a span of its own."""

    kind: str
    payload: Mapping[str, Any]
    span: str | None
    parent: str | None


class Spending:
    """Takes the agent's own model calls and spans, payload and place in the tree, in order."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._flat = True

    def take(self, kind: str, payload: Mapping[str, Any], span: str | None, parent: str | None) -> None:
        cost = payload.get("cost_usd")
        if cost is not None and not (isinstance(cost, (int, float)) and 0 <= cost < math.inf):
            payload = {**payload, "cost_usd": None}  # no cost that anybody was charged
        self._calls.append(_Call(kind, payload, span, parent))
        self._flat = self._flat and _stands_alone(self._calls[-1])

    def account(self) -> Account | None:
        """What they used, from the span tree where there is one; None without any."""
        if not self._calls:
            return None
        if self._flat and len({call.span for call in self._calls}) == len(self._calls):
            return _added(self._calls)
        if any(call.kind == SPAN for call in self._calls):
            return _of_bill(fold(spans_of(cast("list[Event]", self._calls))))
        return account(cast("list[Event]", self._calls))


def _stands_alone(call: _Call) -> bool:
    """A charged answer that no other can be, or lie below: of those a bill is the plain sum."""
    payload = call.payload
    return (
        call.kind == ANSWER
        and call.parent is None
        and payload.get("gen_ai.response.id") is None
        and payload.get("charged") is not False
    )


def _added(calls: Sequence[_Call]) -> Account:
    """:func:`harness.billing.account.account` of answers that stand alone, without the tree."""
    used = [call.payload for call in calls if _is_known(call.payload.get("usage"))]
    lacking = len(calls) - len(used)
    costs = [payload.get("cost_usd") for payload in used]
    known = [float(cost) for cost in costs if cost is not None]
    at_least = math.fsum(known)
    return Account(
        usage=_sum([payload["usage"] for payload in used]),
        calls=len(calls),
        calls_without_usage=lacking,
        cost_usd=at_least if len(known) == len(calls) else None,
        cost_at_least_usd=at_least,
    )


def _is_known(usage: Mapping[str, Any] | None) -> bool:
    return usage is not None and usage["input"] is not None and usage["output"] is not None


def _sum(usages: Sequence[Mapping[str, int | None]]) -> Usage | None:
    if not usages:
        return None
    reported = {name: [count for u in usages if (count := u[name]) is not None] for name in Usage.model_fields}
    return Usage(**{name: sum(counts) if counts else None for name, counts in reported.items()})


def _of_bill(bill: Bill) -> Account:
    return Account(
        usage=bill.usage,
        calls=bill.calls,
        calls_without_usage=len(bill.missing),
        cost_usd=bill.cost_usd,
        cost_at_least_usd=bill.cost_at_least_usd,
    )


class Ending(NamedTuple):
    """How an episode ended, as its source says; enums by value."""

    outcome: str
    reason: str | None
    detail: str
    stop: str
    stop_detail: str
    reward: float | None
    flags: tuple[str, ...]
    usage: Any
    tokens: int | None
    cost_usd: float | None
    step_count: int | None
    seconds: float | None
    finished: str


def ending_of(episode: ArchiveEpisode) -> Ending:
    """What :func:`result_of` needs of an episode."""
    return Ending(
        outcome=episode.outcome.value,
        reason=None if episode.reason is None else episode.reason.value,
        detail=episode.detail[:4000],
        stop=episode.stop.value,
        stop_detail=episode.stop_detail[:4000],
        reward=episode.reward,
        flags=episode.flags,
        usage=episode.usage,
        tokens=episode.tokens,
        cost_usd=episode.cost_usd,
        step_count=episode.step_count,
        seconds=episode.seconds,
        finished=episode.finished,
    )


def as_conflict(ending: Ending) -> Ending:
    """The end of an episode of which the archive holds another record, with another outcome."""
    detail = f"the archive holds another record of this trial with another outcome; this one: {ending.detail}"
    verdict = Outcome.INVALID.value, Reason.VERDICT_CONFLICT.value
    return ending._replace(outcome=verdict[0], reason=verdict[1], detail=detail[:4000])


def result_of(ending: Ending, account: Account | None, *, trial: str) -> TrialResult:
    """How an episode ended. What its source says of the whole goes before what its steps add up to."""
    usage = account.usage if account is not None and account.usage is not None else normalise(ending.usage)
    cost = ending.cost_usd if ending.cost_usd is not None else account.cost_usd if account is not None else None
    steps = ending.step_count if ending.step_count is not None else account.calls if account is not None else None
    finished = instant(ending.finished)
    return TrialResult(
        trial=trial,
        outcome=Outcome(ending.outcome),
        reason=None if ending.reason is None else Reason(ending.reason),
        detail=ending.detail,
        stop=StopReason(ending.stop),
        stop_detail=ending.stop_detail,
        reward=ending.reward,
        flags=ending.flags,
        usage=usage,
        calls=account.calls if account is not None else 0,
        calls_without_usage=account.calls_without_usage if account is not None else 0,
        steps=steps,
        cost_usd=cost,
        cost_at_least_usd=account.cost_at_least_usd if account is not None and cost is None else cost or 0.0,
        seconds=ending.seconds,
        tokens=ending.tokens if usage is None else None,
        finished_at=finished.isoformat() if finished is not None else "",
    )
