"""Due times: daylight saving time in Berlin both ways, the two day fields, and lines that are none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.audit.schedule.cron import CronLine

BERLIN = "Europe/Berlin"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def due(line: str, after: str, count: int, zone: str = BERLIN) -> list[str]:
    return [found.strftime("%m-%d %H:%M") for found in CronLine(line, zone).next(at(after), count)]


@pytest.mark.parametrize(
    ("line", "after", "expected"),
    [
        # 2026-03-29 02:00 CET is 03:00 CEST: 02:30 is not there, and due when the clocks are set, at 01:00 UTC.
        ("30 2 * * *", "2026-03-28T12:00", ["03-29 01:00", "03-30 00:30", "03-31 00:30"]),
        ("30 2 * * *", "2026-03-29T01:00", ["03-30 00:30", "03-31 00:30"]),
        ("*/30 * * * *", "2026-03-29T00:20", ["03-29 00:30", "03-29 01:00", "03-29 01:30"]),
        # 2026-10-25 03:00 CEST is 02:00 CET: 02:30 is there twice, at 00:30 and 01:30 UTC, and due the first time.
        ("30 2 * * *", "2026-10-24T12:00", ["10-25 00:30", "10-26 01:30"]),
        ("30 2 * * *", "2026-10-25T00:30", ["10-26 01:30"]),
        ("30 2 * * *", "2026-10-25T01:15", ["10-26 01:30"]),  # within the second one
        ("30 2 * * *", "2026-10-25T01:30", ["10-26 01:30"]),
        ("*/30 * * * *", "2026-10-25T00:20", ["10-25 00:30", "10-25 01:00", "10-25 01:30", "10-25 02:00"]),
        ("0 12 * * *", "2026-10-24T12:00", ["10-25 11:00", "10-26 11:00"]),
    ],
)
def test_daylight_saving_time_in_berlin(line: str, after: str, expected: list[str]) -> None:
    assert due(line, after, len(expected)) == expected


def test_a_zone_without_daylight_saving_time_knows_no_gap() -> None:
    assert due("30 2 * * *", "2026-03-28T12:00", 2, "UTC") == ["03-29 02:30", "03-30 02:30"]


def test_either_day_field_is_enough_when_both_are_given_and_sunday_is_0_and_7() -> None:
    # 2026-06-01 is a Monday.
    assert due("0 0 3 * MON", "2026-05-31T00:00", 3, "UTC") == ["06-01 00:00", "06-03 00:00", "06-08 00:00"]
    assert due("0 0 * * 0", "2026-06-01T00:00", 1) == due("0 0 * * 7", "2026-06-01T00:00", 1)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("61 * * * *", "not a cron line: bad minute"),
        ("* * * *", "has 5 fields .* not 4"),
        ("@daily", "has 5 fields"),
        ("0 0 0 * * *", "not 6"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("a b c d e", "not a cron line"),
    ],
)
def test_what_is_no_cron_line_is_refused(line: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        CronLine(line, BERLIN)


@pytest.mark.parametrize("zone", ["Europe/Berlim", "", "Europe", "../etc/passwd", "/etc/localtime"])
def test_what_is_no_zone_is_refused(zone: str) -> None:
    with pytest.raises(ValueError, match="there is no time zone"):
        CronLine("0 0 * * *", zone)


def test_words() -> None:
    assert CronLine("30 2 * * *", BERLIN).words == "At 02:30 every day"


@given(
    line=st.sampled_from(["* * * * *", "*/7 * * * *", "30 2 * * *", "15 1-4 * * *", "0 */3 * * 1-5", "0 3 29 2 *"]),
    start=st.integers(0, 60 * 24 * 365),
    minutes=st.integers(0, 60 * 24 * 9),
    share=st.floats(0, 1),
)
def test_times_between_are_those_after_wherever_a_span_is_cut(
    line: str, start: int, minutes: int, share: float
) -> None:
    cron = CronLine(line, BERLIN)
    begin = at("2026-01-01T00:00") + timedelta(minutes=start)
    end = begin + timedelta(minutes=minutes)
    middle = begin + (end - begin) * share
    whole = cron.between(begin, end)
    assert cron.between(begin, middle) + cron.between(middle, end) == whole
    assert all(begin < due <= end for due in whole)
    assert list(whole) == sorted(set(whole))


def test_a_year_away_is_counted_by_its_last_month_or_as_it_is() -> None:
    begin, end = at("2025-01-15T00:00"), at("2026-01-15T00:00")
    often = CronLine("* * * * *", "UTC").between(begin, end)
    assert (often[-1], len(often)) == (end, 32 * 24 * 60)
    seldom = CronLine("0 0 1 6 *", "UTC").between(begin, end)
    assert seldom == (at("2025-06-01T00:00"),)
