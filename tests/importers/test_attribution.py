"""The grader's replay is found wherever it stands, and what cannot be told is said to be ambiguous."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.importers.attribution import Call, Confidence, attribute
from harness.importers.tau_bench import executed

_TOOLS = st.builds(lambda name, n: (name, {"n": n}), st.sampled_from(["read", "book"]), st.integers(0, 2))
_SAID = st.integers(0, 2).map(lambda n: ("respond", {"content": f"word {n}"}))
_TRANSFER: Call = ("transfer_to_human_agents", {"summary": "s"})
_ADDED: list[Call] = [
    ("respond", {"content": "You have been transferred to a human agent. Please hold on."}),
    ("respond", {"content": "Goodbye."}),
]


@given(st.lists(_TOOLS | _SAID, max_size=8), st.lists(_TOOLS, max_size=3), st.lists(_SAID, max_size=2), st.booleans())
def test_with_a_model_log_the_replay_has_its_size_and_content(
    before: list[Call], reference: list[Call], after: list[Call], transferred: bool
) -> None:
    trigger = [_TRANSFER] if transferred else [("respond", {"content": "bye"})]
    done = [*before, *trigger, *after]
    log = [*before, *trigger, *reference, *after]
    found = attribute(log, reference, done)
    assert len(found.grader) == len(reference)
    assert [log[index] for index in sorted(found.grader)] == reference
    if found.confidence is Confidence.MATCHED and reference:
        assert found.copies == (len(before) + 1,)


@given(st.lists(_TOOLS | _SAID, min_size=1, max_size=8), st.lists(_TOOLS, min_size=1, max_size=3))
def test_without_a_replay_a_matched_list_is_all_the_agents(done: list[Call], reference: list[Call]) -> None:
    assert attribute(done, reference, done).grader == frozenset()


def test_a_replay_in_the_middle_is_found_by_position_not_by_being_last() -> None:
    log: list[Call] = [("read", {}), _TRANSFER, ("book", {"id": 1}), ("respond", {"content": "bye"})]
    found = attribute(log, [("book", {"id": 1}), _TRANSFER], [log[0], log[1], log[3]])
    assert (found.grader, found.copies, found.confidence) == (frozenset({2}), (2,), Confidence.MATCHED)


def test_an_agent_that_did_the_same_is_told_from_the_replay_by_its_place() -> None:
    book: Call = ("book", {"id": 1})
    log = [("respond", {"content": "a"}), book, ("respond", {"content": "a"}), book]
    done = [("respond", {"content": "a"}), book, ("respond", {"content": "a"})]
    assert attribute(log, [book], done).copies == (3,)
    # Only right after an ending does the grader act.
    assert attribute([("respond", {"content": "a"}), book, book], [book], [log[0], book]).copies == (1,)


def test_without_a_model_log_the_same_work_at_the_end_is_ambiguous() -> None:
    log: list[Call] = [("read", {}), ("respond", {"content": "a"}), ("book", {"id": 1})]
    found = attribute(log, [("book", {"id": 1})])
    assert (found.copies, found.confidence) == ((2,), Confidence.AMBIGUOUS)


def test_a_replay_in_pieces_is_ambiguous() -> None:
    log: list[Call] = [("respond", {"content": "a"}), ("book", {"id": 2}), ("read", {})]
    found = attribute(log, [("book", {"id": 1}), ("book", {"id": 2})], [log[0], log[2]])
    assert (found.grader, found.copies, found.confidence) == (frozenset({1}), (), Confidence.AMBIGUOUS)


def test_an_empty_reference_cannot_be_seen() -> None:
    found = attribute([("read", {})], [], [("read", {})])
    assert (found.graded, found.confidence) == (False, Confidence.AMBIGUOUS)


def test_calls_that_the_list_lost_and_actions_of_nobody_are_named() -> None:
    log: list[Call] = [("read", {"n": 1}), ("book", {"n": 9})]
    found = attribute(log, [("cancel", {})], [("read", {"n": 1}), ("read", {"n": 2})])
    assert (found.lost, found.strangers, found.grader) == ((1,), (1,), frozenset())


@pytest.mark.parametrize(("name", "added", "copies"), [("A_end", 0, 1), ("B_middle", 1, 1), ("C_twice", 2, 2)])
@pytest.mark.parametrize("with_log", [True, False])
def test_every_replay_in_the_hal_like_lists_is_found(
    airline: Path, name: str, added: int, copies: int, with_log: bool
) -> None:
    archive = json.loads(gzip.decompress((airline / "v1/gpt-4o-airline.json.gz").read_bytes()))
    truth = {f"{e['task_id']}/{e['trial']}": e for e in archive}
    tasks = {str(task["task_id"]): task for task in json.loads((airline / "v1/tasks.json").read_text())}
    lists: dict[str, Any] = json.loads(gzip.decompress((airline / "hal/hal_like_taken_actions.json.gz").read_bytes()))
    seen = 0
    for key, entry in lists[name].items():
        reference = [(a["name"], a["kwargs"]) for a in tasks[key.partition("/")[0]]["actions"]]
        replayed = [call for call in reference if call[0] != _TRANSFER[0]]
        log = [(action["name"], action["kwargs"]) for action in entry["taken_actions"]]
        done = executed(truth[key]["traj"]) + _ADDED[:added]
        found = attribute(log, reference, done if with_log else None)
        graded = truth[key]["info"]["reward_info"] is not None
        assert [log[i] for i in sorted(found.grader)] == (replayed * copies if graded else [])
        if with_log and replayed and graded:
            assert (len(found.copies), found.confidence) == (copies, Confidence.MATCHED)
        seen += bool(replayed) and graded
    assert seen == {"A_end": 40, "B_middle": 32, "C_twice": 32}[name]
