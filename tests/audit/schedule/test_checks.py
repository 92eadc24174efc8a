"""When alerts are looked at, and how a sink that is down is asked again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from harness.audit.schedule.checks import Checks

START = datetime(2026, 3, 1, tzinfo=UTC)


def test_messages_that_wait_are_sent_again_ever_later_but_never_later_than_a_quarter_of_an_hour() -> None:
    now, checks = START, Checks(START, every_s=3600)
    pauses = []
    for _ in range(8):
        assert checks.is_due(now)
        checks = checks.after(now, waiting=True)
        pauses.append((checks.due - now).total_seconds())
        now = checks.due
    assert pauses == [60, 120, 240, 480, 900, 900, 900, 900]
    checks = checks.after(now, waiting=False)
    assert (checks.due - now, checks.failures) == (timedelta(hours=1), 0)


def test_a_firing_that_left_something_undelivered_brings_the_look_forward() -> None:
    checks = Checks(START + timedelta(hours=1), every_s=3600)
    assert checks.by(START + timedelta(seconds=60)).due == START + timedelta(seconds=60)
    assert checks.by(START + timedelta(hours=2)).due == START + timedelta(hours=1)


def test_a_clock_that_went_back_does_not_silence_it() -> None:
    checks = Checks(START, every_s=3600)
    assert not checks.is_due(START - timedelta(minutes=59))
    assert checks.is_due(START - timedelta(days=1))
