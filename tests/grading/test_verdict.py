"""Verdict files, read strictly."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.grading.verdict import LARGEST_BYTES, outcome_of, read_verdict
from harness.records.vocabulary import Outcome, Reason


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_finite_number_is_read_back_from_either_file(number: float) -> None:
    assert read_verdict(None, repr(number).encode()).reward == number
    assert read_verdict(json.dumps({"reward": number}).encode(), None).reward == number
    both = read_verdict(json.dumps(number).encode(), f" {number!r}\n".encode())
    assert (both.reward, both.reason) == (number, None)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_give_a_finite_reward_or_a_reason(json_bytes: bytes, text_bytes: bytes) -> None:
    verdict = read_verdict(json_bytes, text_bytes)
    assert (verdict.reward is None) != (verdict.reason is None)
    assert verdict.reward is None or math.isfinite(verdict.reward)


@pytest.mark.parametrize(
    ("json_bytes", "text_bytes", "reason"),
    [
        (None, None, Reason.VERDICT_MISSING),
        (None, b"", Reason.VERDICT_MALFORMED),
        (None, b"nan", Reason.VERDICT_NOT_FINITE),
        (None, b"-inf", Reason.VERDICT_NOT_FINITE),
        (None, b"1e400", Reason.VERDICT_NOT_FINITE),
        (None, b"1 1", Reason.VERDICT_MALFORMED),
        (None, "१".encode(), Reason.VERDICT_MALFORMED),
        (b"{}", None, Reason.VERDICT_EMPTY),
        (b"[]", None, Reason.VERDICT_MALFORMED),
        (b"true", None, Reason.VERDICT_MALFORMED),
        (b'{"reward": true}', None, Reason.VERDICT_MALFORMED),
        (b'{"reward": "0.5"}', None, Reason.VERDICT_MALFORMED),
        (b'{"reward": null}', None, Reason.VERDICT_MALFORMED),
        (b'{"reward": NaN}', None, Reason.VERDICT_NOT_FINITE),
        (b'{"reward": 1e400}', None, Reason.VERDICT_NOT_FINITE),
        (b'{"reward": 1' + b"0" * 400 + b"}", None, Reason.VERDICT_NOT_FINITE),
        (b'{"reward": 1, "reward": 0}', None, Reason.VERDICT_MALFORMED),
        (b'{"reward": 1}', b"0", Reason.VERDICT_CONFLICT),
        (b'{"reward": 1}', b"oops", Reason.VERDICT_MALFORMED),
        (b"[" * 60_000, None, Reason.VERDICT_MALFORMED),
        (None, b"1" * (LARGEST_BYTES + 1), Reason.VERDICT_MALFORMED),
    ],
)
def test_what_is_no_verdict(json_bytes: bytes | None, text_bytes: bytes | None, reason: Reason) -> None:
    verdict = read_verdict(json_bytes, text_bytes)
    assert (verdict.reason, verdict.reward) == (reason, None)
    assert verdict.detail


def test_several_criteria_must_all_hold() -> None:
    verdict = read_verdict(b'{"format": 1, "content": 0.5}', None)
    assert verdict.reward == 0.5
    assert verdict.criteria == {"format": 1.0, "content": 0.5}


@pytest.mark.parametrize(
    ("reward", "outcome"),
    [(0.5, Outcome.FAILED), (0.999999, Outcome.PASSED), (1.0000001, Outcome.PASSED), (0.0, Outcome.FAILED)],
)
def test_a_pass_is_a_predicate_per_trial(reward: float, outcome: Outcome) -> None:
    assert outcome_of(reward, 1.0) is outcome
