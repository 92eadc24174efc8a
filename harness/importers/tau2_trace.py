"""What a tau2 simulation holds beside its messages' words that bears witness to them. Pure.

Messages are numbered from 0 without a gap, timed in order, and their costs add up to the stated ones; beside a message
stands the provider's own answer, with the calls as it made them; a simulated user ends with a token. What of this is
there is compared, and the first contradiction told. Ticks of a voice simulation are numbered and timed alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.importers.consistency import since_epoch_s
from harness.importers.reports import listed, mapping
from harness.importers.steps import number, parsed
from harness.records.archive import Fault, Trace

_TOKENS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
_USER = "user_simulator"  # the implementation that ends with one of these
_TOLERANCE_USD = 1e-6
_CLOCK_BACK_S = (3540.0, 3660.0)  # a local clock without its zone goes back an hour once a year
_ALL_OF_IT = frozenset({Fault.DROPPED, Fault.SWAPPED})
Count = Callable[[Sequence[Mapping[str, Any]]], int]  # messages, or ticks -> how many steps they become
Broken = tuple[int, str]  # the index of a message or tick, and what is wrong there


class _Witness(NamedTuple):
    """One kind of evidence: what it would show, and where it is broken."""

    by: str
    shows: frozenset[Fault]
    broken: Broken | None = None


def trace_of(value: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], user: str, steps_of: Count) -> Trace:
    """The trace of a simulation, of its messages or, where there are none, its ticks, which `steps_of` counts as well.
    `user` is the header's word for the simulated user."""
    ticks = [mapping(tick) for tick in listed(value.get("ticks"))]
    entries = messages or ticks
    numbers = "turn_idx" if messages else "tick_id"
    found = [one for one in (_numbers(entries, numbers), _times(entries)) if one is not None]
    if messages:
        found += [one for one in (_copies(messages), _costs(value, messages), _end(value, messages, user)) if one]
    shows = frozenset[Fault]().union(*(one.shows for one in found))
    if {"costs", "copies"} <= {one.by for one in found}:  # a call beside others in its turn has no cost of its own
        shows |= {Fault.DROPPED}
    broken = min((one.broken for one in found if one.broken is not None), default=None)
    return Trace(
        by=tuple(one.by for one in found),
        shows=tuple(sorted(shows)),
        broken=None if broken is None else (steps_of(entries[: broken[0]]), broken[1]),
    )


def _numbers(entries: Sequence[Mapping[str, Any]], key: str) -> _Witness | None:
    numbers = [entry.get(key) for entry in entries]
    if not numbers or not all(type(one) is int for one in numbers):
        return None
    wrong = next((at for at, one in enumerate(numbers) if one != at), None)
    what = f"{key} {numbers[wrong]} stands where {wrong} belongs" if wrong is not None else ""
    return _Witness(key, _ALL_OF_IT, None if wrong is None else (wrong, what))


def _times(entries: Sequence[Mapping[str, Any]]) -> _Witness | None:
    """Times that are all there, no two alike."""
    written = [entry.get("timestamp") for entry in entries]
    moments = [since_epoch_s(one) if isinstance(one, str) else None for one in written]
    known = [moment for moment in moments if moment is not None]
    if not known or len(known) < len(entries):
        return None
    shows = frozenset({Fault.SWAPPED}) if len(set(known)) == len(known) else frozenset[Fault]()
    for at in range(1, len(known)):
        back = known[at - 1] - known[at]
        if back > 0 and not _CLOCK_BACK_S[0] <= back <= _CLOCK_BACK_S[1]:
            return _Witness("timestamp", shows, (at, f"timestamp {written[at]} follows {written[at - 1]}"))
    return _Witness("timestamp", shows)


def _costs(value: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> _Witness | None:
    """The costs of each side's messages add up to what is stated of the side; what is missing may be anything."""
    told = []
    for role, key in (("assistant", "agent_cost"), ("user", "user_cost")):
        stated = number(value.get(key))
        costs = [number(message.get("cost")) for message in messages if message.get("role") == role]
        known = [cost for cost in costs if cost is not None]
        if not stated or len(known) < len(costs):
            continue
        total = math.fsum(known)
        if abs(total - stated) > _TOLERANCE_USD * max(1.0, stated):
            what = f"{key} is {stated:g}, and the costs of its messages add up to {total:g}"
            return _Witness("costs", frozenset({Fault.END}), (len(messages), what))
        told.append(role)
    return _Witness("costs", frozenset({Fault.END})) if "assistant" in told else None


def _copies(messages: Sequence[Mapping[str, Any]]) -> _Witness | None:
    """The provider's own answer beside every message with calls."""
    copied: list[tuple[int, Mapping[str, Any], list[Any]]] = []
    for at, message in enumerate(messages):
        if message.get("tool_calls"):
            copy = _copy(message)
            if copy is None:
                return None
            copied.append((at, message, copy))
    if not copied:
        return None
    for at, message, copy in copied:
        wrong = next(_differences(listed(message["tool_calls"]), copy), "")
        if wrong:
            return _Witness("copies", frozenset({Fault.ARGUMENT}), (at, wrong))
    return _Witness("copies", frozenset({Fault.ARGUMENT}))


def _copy(message: Mapping[str, Any]) -> list[Any] | None:
    """The calls as the provider's answer has them; None where it is not kept."""
    raw = mapping(message.get("raw_data"))
    choices = listed(raw.get("choices"))
    kept = mapping(mapping(choices[0] if choices else raw).get("message"))
    return listed(kept["tool_calls"]) if kept.get("tool_calls") else None


def _differences(calls: Sequence[Any], copies: Sequence[Any]) -> Iterator[str]:
    if len(calls) != len(copies):
        yield f"the provider's answer has {len(copies)} calls, the message {len(calls)}"
    for call, copy in zip(calls, copies, strict=False):
        call, function = mapping(call), mapping(mapping(copy).get("function"))
        name, wanted = call.get("name"), function.get("name")
        if name != wanted:
            yield f"the provider's answer calls {wanted}, the message {name}"
        elif call.get("arguments") != parsed(function.get("arguments")):
            yield f"the provider's answer calls {name} with other arguments"


def _end(value: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], user: str) -> _Witness | None:
    """A simulated user that ended the episode said so with a token."""
    if value.get("termination_reason") != "user_stop" or user != _USER:
        return None
    last = messages[-1]
    if last.get("role") == "user" and any(token in str(last.get("content")) for token in _TOKENS):
        return _Witness("the user's last words", frozenset({Fault.END}))
    what = "it ended by user_stop, and its last message is no user's that says so"
    return _Witness("the user's last words", frozenset({Fault.END}), (len(messages), what))
