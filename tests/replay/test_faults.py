"""Fault injection: whatever is done to a record or its world is found, and at the step where it was done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.records.environment import Opening
from harness.records.replay import STATE, Invalid, RecordedEpisode, Replayed, States
from harness.replay.engine import replay_episode
from harness.replay.order import end_of
from tests.replay.world import Desk, alone, edited, index_of, usual, without

NORMAL = Opening("normal")


def replayed(episode: RecordedEpisode, desk: Desk | None = None, opening: Opening = NORMAL) -> Replayed:
    return replay_episode(episode, desk or Desk(), opening)


def found(episode: RecordedEpisode, desk: Desk | None = None) -> tuple[Invalid | None, int | None]:
    fidelity = replayed(episode, desk).fidelity
    return fidelity.invalid, fidelity.invalid_at


@pytest.mark.parametrize("at", range(1, end_of(usual().steps)))
def test_a_dropped_step_is_missed_where_it_stood_or_right_after(at: int) -> None:
    """Every step but the mark of a model's turn, which says nothing of its own, and the user's opening."""
    episode = usual()
    if episode.steps[at].kind == "model.call":
        pytest.skip("the turn that it begins is still there")
    for states in (episode.states, States()):
        dropped = replayed(replace(without(episode, at), states=states))
        assert dropped.fidelity.invalid is Invalid.TRUNCATED
        assert dropped.fidelity.invalid_at in (at - 1, at, at + 1)  # an unanswered call is where it was made


@pytest.mark.parametrize("drop", [1, 2, 5, 8, 11, 14])
def test_a_record_that_was_cut_off_is_not_whole(drop: int) -> None:
    episode = usual()
    steps = tuple(step for step in episode.steps if step.kind != "reference.action")
    invalid, at = found(replace(episode, steps=steps[:-drop]))
    assert invalid is Invalid.TRUNCATED
    kept = len(steps) - drop
    assert at in (kept, kept - 1)  # its end, or the call that has no answer now


@pytest.mark.parametrize(
    ("name", "nth", "arguments", "then"),
    [("book", 0, {"amount": 21}, "book"), ("book", 1, {"amount": 29}, "book"), ("book", 2, {}, "book")],
)
def test_an_edited_argument_is_found_at_that_call(name: str, nth: int, arguments: dict[str, int], then: str) -> None:
    episode = usual(states=False)
    at = index_of(episode, name, nth)
    fidelity = replayed(edited(episode, at, arguments=arguments)).fidelity
    assert (fidelity.invalid, fidelity.invalid_at, fidelity.d_first) == (Invalid.DIVERGED, at, at)
    assert fidelity.detail.startswith(then)


@pytest.mark.parametrize("nth", range(6))
def test_an_edited_observation_is_found_at_its_call(nth: int) -> None:
    episode = usual()
    calls = [index for index, step in enumerate(episode.steps) if step.kind == "tool.call"]
    content = str(episode.steps[calls[nth] + 1].payload["content"])
    other = content.replace("1", "7").replace("true", "false").replace("cannot", "can")
    assert other != content
    fidelity = replayed(edited(episode, calls[nth] + 1, content=other)).fidelity
    assert (fidelity.invalid, fidelity.invalid_at, fidelity.d_first) == (Invalid.DIVERGED, calls[nth], calls[nth])


@pytest.mark.parametrize("nth", range(6))
def test_an_edited_state_is_found_at_its_call(nth: int) -> None:
    episode = usual()
    calls = [index for index, step in enumerate(episode.steps) if step.kind == "tool.call"]
    fidelity = replayed(edited(episode, calls[nth] + 1, **{STATE: "sha256:edited"})).fidelity
    assert (fidelity.invalid, fidelity.invalid_at) == (Invalid.DIVERGED, calls[nth])
    assert "the state after" in fidelity.detail


def test_two_swapped_calls_are_found_at_the_first_of_them() -> None:
    episode = usual(states=False)
    first, second = index_of(episode, "book"), index_of(episode, "balance")
    steps = list(episode.steps)
    steps[first : first + 2], steps[second : second + 2] = steps[second : second + 2], steps[first : first + 2]
    fidelity = replayed(replace(episode, steps=tuple(steps))).fidelity
    assert (fidelity.invalid, fidelity.invalid_at) == (Invalid.DIVERGED, first)


def test_a_call_and_its_answer_swapped() -> None:
    episode = usual()
    at = index_of(episode, "balance")
    steps = list(episode.steps)
    steps[at], steps[at + 1] = steps[at + 1], steps[at]
    assert found(replace(episode, steps=tuple(steps))) == (Invalid.TRUNCATED, at)


def test_an_answer_of_another_call() -> None:
    episode = usual()
    at = index_of(episode, "balance")
    assert found(edited(episode, at + 1, **{"gen_ai.tool.call.id": "c9"})) == (Invalid.TRUNCATED, at + 1)


@pytest.mark.parametrize("name", ["book", "balance", "switch"])
def test_a_removed_tool_is_missed_at_its_first_call(name: str) -> None:
    episode = usual(states=False)
    steps = tuple(step for step in episode.steps if step.kind != "reference.action")
    bare = replace(episode, steps=steps)
    assert found(bare, Desk(without=name)) == (Invalid.TOOL, index_of(bare, name))


def test_a_user_side_tool_that_is_removed_from_a_dual_control_episode() -> None:
    """SOURCES S2: it is reported invalid; here before the first step, since the task itself needs the tool."""
    assert found(usual(), Desk(without="switch")) == (Invalid.TOOL, 0)


def test_a_changed_row_is_found_at_the_beginning_where_the_state_was_recorded() -> None:
    fidelity = replayed(usual(), Desk(start=101)).fidelity
    assert (fidelity.invalid, fidelity.invalid_at) == (Invalid.DIVERGED, 0)
    assert fidelity.detail == "the state at the beginning is not the recorded one"


def test_a_changed_row_is_found_at_the_first_call_that_shows_it_where_it_was_not() -> None:
    episode = usual(states=False)
    assert found(episode, Desk(start=101)) == (Invalid.DIVERGED, index_of(episode, "book"))


@pytest.mark.parametrize(
    "fault",
    [
        lambda episode: edited(episode, len(episode.steps) - 1, content="all right"),
        lambda episode: replace(episode, end="user_stop"),
    ],
)
def test_an_end_that_the_record_does_not_hold(fault: Callable[[RecordedEpisode], RecordedEpisode]) -> None:
    episode = fault(alone())
    fidelity = replayed(episode, opening=Opening("solo")).fidelity
    if episode.end == "user_stop":
        assert (fidelity.invalid, fidelity.invalid_at) == (Invalid.TRUNCATED, end_of(episode.steps))
    else:
        assert fidelity.invalid is None  # what was said last is the agent's own affair


def test_a_tool_that_is_missing_does_not_hide_that_the_environment_died() -> None:
    """The first problem in the record's order is told, and the death of the world with it."""
    episode = usual(states=False)
    fidelity = replayed(episode, Desk(without="switch", fails_at=2)).fidelity
    assert (fidelity.invalid, fidelity.invalid_at) == (Invalid.TOOL, 0)
    third = index_of(episode, "book", 1)
    assert f"; then the environment failed at step {third}: the desk is gone" in fidelity.detail
