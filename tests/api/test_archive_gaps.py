"""What an archive should hold and does not: by its plan, by the row that it breaks off in, or at least one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api.archive_gaps import Missing, missing_of, parts_of, unfinished_row
from harness.records.archive import CUT, ArchiveRun, Finding

CUT_OFF = Finding(rule=CUT, place="a.json", what="the document ends inside it", unread=True)
BROKEN = Finding(rule="archive.unreadable", place="a.json", what="not JSON", unread=True)


def missing(run: ArchiveRun, found: set[tuple[str, int]], *unread: Finding) -> Missing:
    return missing_of([run], {run.key: {slot: slot for slot in found}}, parts_of(unread))


def grid(tasks: int, repeats: int) -> list[tuple[str, int]]:
    return [(str(task), repeat) for repeat in range(repeats) for task in range(tasks)]


@given(st.integers(2, 8), st.integers(2, 5), st.data())
def test_a_file_without_a_plan_that_is_cut_off_lacks_the_rest_of_its_row_at_least(
    tasks: int, repeats: int, data: st.DataObject
) -> None:
    """Trial by trial; cut somewhere in the last trial that was begun."""
    written = grid(tasks, repeats)
    kept = written[: (repeats - 1) * tasks + data.draw(st.integers(1, tasks - 1))]
    found = missing(ArchiveRun("run", "s"), set(kept), CUT_OFF)
    assert [slot for _, slot in found.named] == written[len(kept) :]
    assert (found.at_least, found.unnamed) == (True, 0)


def test_rows_may_be_tasks() -> None:
    there = [("a", n) for n in range(4)] + [("b", n) for n in range(4)] + [("c", 0), ("c", 1)]
    assert unfinished_row(there) == [("c", 2), ("c", 3)]


@pytest.mark.parametrize(
    "there",
    [
        [("a", 0)],  # one row: what a whole one would be is not known
        [("a", 0), ("b", 0), ("a", 1), ("b", 1)],  # rows that are all whole
        [("a", 0), ("b", 3), ("c", 2)],  # no rows: each task has a trial of its own
        [("a", 0), ("b", 0), ("c", 0), ("a", 1), ("d", 1)],  # the last one is no part of the first
    ],
)
def test_where_there_is_no_such_row_at_least_one_is_missing(there: list[tuple[str, int]]) -> None:
    found = missing(ArchiveRun("run", "s"), set(there), CUT_OFF)
    assert (found.named, found.count, found.at_least) == ((), 1, True)


def test_a_stated_plan_says_exactly_how_many_are_missing_cut_or_not() -> None:
    run = ArchiveRun("run", "s", tasks=("a", "b"), repeats=2)
    for unread in ((), (CUT_OFF,), (CUT_OFF, CUT_OFF), (BROKEN,)):
        found = missing(run, {("a", 0), ("b", 0), ("a", 1)}, *unread)
        assert (found.names, found.count, found.at_least) == (("b/1",), 1, False)


def test_a_plan_of_which_nothing_is_there() -> None:
    assert missing(ArchiveRun("x", "s", tasks=("a", "b"), repeats=1), set()).names == ("x:a/0", "x:b/0")


def test_one_cut_is_one_part_however_often_it_is_told() -> None:
    assert parts_of([CUT_OFF, CUT_OFF, BROKEN]) == (2, True)
    assert parts_of([]) == (0, False)


def test_what_cannot_be_read_in_a_whole_file_is_one_episode_each() -> None:
    found = missing(ArchiveRun("run", "s"), {("a", 0)}, BROKEN, BROKEN)
    assert (found.count, found.at_least, found.names) == (2, False, ())


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ({"b": "c", "c": "d"}, ("b/0",)),  # each names another task: what is missing is what no content names
        ({"a": "b", "b": "c", "c": "b"}, ("d/0",)),  # two of one task: of a and d, the one that no label has either
        ({"a": "b", "b": "b", "c": "b"}, ("d/0",)),
        ({}, ("d/0",)),
    ],
)
def test_a_plan_lacks_what_no_content_names_and_no_more_than_there_is_room_for(
    content: dict[str, str], names: tuple[str, ...]
) -> None:
    run = ArchiveRun("run", "s", tasks=("a", "b", "c", "d"), repeats=1)
    found = {(label, 0): (content.get(label, label), 0) for label in "abc"}
    lacks = missing_of([run], {"run": found}, parts_of(()))
    assert (lacks.names, len(found) + lacks.count) == (names, 4)
