"""Reads a verdict from the bytes of `reward.json` and `reward.txt`. Pure; strict; no fallback chain.

Harbor's rule that reward.json wins holds only when the two agree: two files that disagree are a conflict, not
a choice (CASES G15). NaN, infinity, a boolean, a string, duplicate keys or an empty object are no verdict.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from harness.records.vocabulary import Outcome, Reason

LARGEST_BYTES = 65_536
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Verdict:
    """A reward with its criteria, or the reason why there is none."""

    reward: float | None = None
    criteria: dict[str, float] | None = None
    reason: Reason | None = None
    detail: str = ""


def read_verdict(json_bytes: bytes | None, text_bytes: bytes | None) -> Verdict:
    """The verdict in the two files; None stands for a file that does not exist."""
    from_json = None if json_bytes is None else _read_json(json_bytes)
    from_text = None if text_bytes is None else _read_text(text_bytes)
    if from_json is None and from_text is None:
        return Verdict(reason=Reason.VERDICT_MISSING, detail="neither reward.json nor reward.txt was written")
    if from_json is None or from_text is None:
        return from_json or from_text or Verdict(reason=Reason.VERDICT_MISSING)
    if from_json.reason is not None or from_text.reason is not None:
        return from_json if from_json.reason is not None else from_text
    if not math.isclose(from_json.reward or 0.0, from_text.reward or 0.0, abs_tol=TOLERANCE):
        detail = f"reward.json says {from_json.reward}, reward.txt says {from_text.reward}"
        return Verdict(reason=Reason.VERDICT_CONFLICT, detail=detail)
    return from_json


def outcome_of(reward: float, pass_at: float) -> Outcome:
    """Passed when the reward reaches `pass_at` within 1e-6: a predicate per trial, never a sum (CASES G14)."""
    return Outcome.PASSED if reward >= pass_at - TOLERANCE else Outcome.FAILED


def _read_text(data: bytes) -> Verdict:
    if len(data) > LARGEST_BYTES:
        return Verdict(reason=Reason.VERDICT_MALFORMED, detail=f"reward.txt is larger than {LARGEST_BYTES} bytes")
    try:
        text = data.decode("ascii").strip()
        number = float(text)
    except ValueError:
        return Verdict(reason=Reason.VERDICT_MALFORMED, detail=f"reward.txt is not one number: {data[:60]!r}")
    if not math.isfinite(number):
        return Verdict(reason=Reason.VERDICT_NOT_FINITE, detail=f"reward.txt says {text}")
    return Verdict(reward=number, criteria={"reward": number})


def _read_json(data: bytes) -> Verdict:
    if len(data) > LARGEST_BYTES:
        return Verdict(reason=Reason.VERDICT_MALFORMED, detail=f"reward.json is larger than {LARGEST_BYTES} bytes")
    try:
        value = json.loads(data, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        return Verdict(reason=Reason.VERDICT_MALFORMED, detail=f"reward.json: {error}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = {"reward": value}
    if not isinstance(value, dict):
        return Verdict(reason=Reason.VERDICT_MALFORMED, detail="reward.json is neither a number nor an object")
    if not value:
        return Verdict(reason=Reason.VERDICT_EMPTY, detail="reward.json has no criteria")
    return _from_criteria(value)


def _from_criteria(value: dict[str, Any]) -> Verdict:
    criteria: dict[str, float] = {}
    for key, number in value.items():
        if isinstance(number, bool) or not isinstance(number, int | float):
            return Verdict(reason=Reason.VERDICT_MALFORMED, detail=f"reward.json: {key!r} is not a number")
        try:
            criteria[key] = float(number)
        except OverflowError:
            return Verdict(reason=Reason.VERDICT_NOT_FINITE, detail=f"reward.json: {key!r} is too large")
        if not math.isfinite(criteria[key]):
            return Verdict(reason=Reason.VERDICT_NOT_FINITE, detail=f"reward.json: {key!r} is {number}")
    reward = criteria["reward"] if "reward" in criteria else min(criteria.values())
    return Verdict(reward=reward, criteria=criteria)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found
