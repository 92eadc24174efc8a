"""Every fault in every shape of archive: found at its step, or said to be one that the record would not show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.api.replays_reading import ArchiveSource, ReadingOptions
from harness.records.archive import Fault, Step
from harness.records.environment import Opening
from harness.records.replay import Invalid, RecordedEpisode, Replayed
from harness.records.vocabulary import Actor
from harness.replay.engine import replay_episode
from harness.replay.witness import unexplained_identifier
from tests.replay.fault_shapes import ARGUMENT, CALLS, DROPPED, EDITED, SHAPES, SWAPPED, Messages, Shape
from tests.replay.world import Desk, Recorder

F = Fault
UNSHOWN: dict[str, set[Fault]] = {
    "tau2 file": {F.ROW},
    "tau2 file, turn numbers alone": {F.ARGUMENT, F.ROW},
    "tau2 file, nothing": {F.DROPPED, F.SWAPPED, F.ARGUMENT, F.ROW},
    "tau2 folder": {F.ROW},
    "tau-bench": {F.DROPPED, F.SWAPPED, F.ARGUMENT, F.ROW},
    "HAL upload": {F.OBSERVATION, F.ROW},
    "HAL lists": {F.DROPPED, F.SWAPPED, F.ARGUMENT, F.OBSERVATION, F.ROW, F.END},
}
each = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)


def read(shape: Shape, folder: Path, done: Callable[[Messages], Messages] = lambda same: same) -> RecordedEpisode:
    path = shape.write(folder, done)
    (found,) = ArchiveSource(str(path), ReadingOptions(options=shape.options(folder))).episodes()
    return found.episode


def replayed(episode: RecordedEpisode, desk: Desk | None = None) -> Replayed:
    return replay_episode(episode, desk or Desk(), Opening("normal"))


def places(episode: RecordedEpisode) -> list[int]:
    return [at for at, step in enumerate(episode.steps) if step.kind == "tool.call" and step.actor.value == "agent"]


def assert_found(shape: Shape, fault: Fault, found: Replayed, at: int) -> None:
    """Found at its step or beside it, or else among those that the record would not show."""
    fidelity = found.fidelity
    if fault in UNSHOWN[shape.name] and fidelity.invalid is None:
        return
    assert fidelity.invalid in (Invalid.TRUNCATED, Invalid.DIVERGED)
    assert fidelity.invalid_at is not None
    assert abs(fidelity.invalid_at - at) <= 1, (fidelity.invalid_at, at, fidelity.detail)


@each
def test_what_the_record_would_not_show_is_said(shape: Shape, tmp_path: Path) -> None:
    found = replayed(read(shape, tmp_path)).fidelity
    assert found.invalid is None, found.detail
    assert set(found.unshown) == UNSHOWN[shape.name]
    assert found.steps == len(CALLS)


@each
def test_a_read_that_is_left_out_with_its_answer(shape: Shape, tmp_path: Path) -> None:
    at = places(read(shape, tmp_path / "whole"))[DROPPED]
    found = replayed(read(shape, tmp_path / "less", lambda whole: shape.drop(whole, DROPPED)))
    assert_found(shape, Fault.DROPPED, found, at)


@each
def test_two_reads_that_are_swapped_with_their_answers(shape: Shape, tmp_path: Path) -> None:
    at = places(read(shape, tmp_path / "whole"))[SWAPPED]
    found = replayed(read(shape, tmp_path / "other", lambda whole: shape.swap(whole, SWAPPED)))
    assert_found(shape, Fault.SWAPPED, found, at)


@each
def test_an_argument_that_no_answer_depends_on(shape: Shape, tmp_path: Path) -> None:
    at = places(read(shape, tmp_path / "whole"))[ARGUMENT]
    found = replayed(read(shape, tmp_path / "other", lambda whole: shape.argue(whole, ARGUMENT)))
    assert_found(shape, Fault.ARGUMENT, found, at)


@each
def test_an_answer_that_is_edited(shape: Shape, tmp_path: Path) -> None:
    if shape.observe is None:
        assert Fault.OBSERVATION in UNSHOWN[shape.name]  # the format has none
        return
    observe = shape.observe
    at = places(read(shape, tmp_path / "whole"))[EDITED]
    found = replayed(read(shape, tmp_path / "other", lambda whole: observe(whole, EDITED)))
    assert (found.fidelity.invalid, found.fidelity.invalid_at) == (Invalid.DIVERGED, at)


@each
def test_last_steps_that_are_cut_off(shape: Shape, tmp_path: Path) -> None:
    found = replayed(read(shape, tmp_path / "less", shape.cut))
    if Fault.END in UNSHOWN[shape.name] and found.valid:
        return
    assert found.fidelity.invalid is Invalid.TRUNCATED
    episode = found.episode
    end = sum(step.kind != "reference.action" for step in episode.steps)
    assert found.fidelity.invalid_at in (end - 1, end)


@each
@pytest.mark.parametrize("name", ["note", "book"])
def test_a_tool_that_is_removed(shape: Shape, name: str, tmp_path: Path) -> None:
    episode = read(shape, tmp_path)
    bare = tuple(step for step in episode.steps if step.kind != "reference.action")
    found = replayed(replace(episode, steps=bare), Desk(without=name)).fidelity
    assert (found.invalid, found.invalid_at) == (Invalid.TOOL, places(episode)[CALLS.index(name)])


@each
def test_a_row_that_is_changed(shape: Shape, tmp_path: Path) -> None:
    """Seen in the first answer that shows it; where no answer is recorded, in none."""
    episode = read(shape, tmp_path)
    found = replayed(episode, Desk(start=101)).fidelity
    if shape.observe is None:
        assert (found.invalid, Fault.ROW in found.unshown) == (None, True)
    else:
        assert (found.invalid, found.invalid_at) == (Invalid.DIVERGED, places(episode)[0])


def test_an_identifier_that_nothing_said_was_in_something_that_is_gone() -> None:
    """Reads whose answers were used are missed without any number, time or sum."""
    made = Recorder(states=False).says(Actor.USER, "My name is Mia Li; hold A-B12-C9, please").calls("balance")
    episode = made.calls("note", user_id="mia_li_3668").says(Actor.USER, "###STOP###").episode()
    calls = [at for at, step in enumerate(episode.steps) if step.kind == "tool.call"]
    guessed = unexplained_identifier(episode)
    assert guessed is not None
    assert (guessed.at, guessed.what) == (calls[1], "note is called with 3668, which nothing before it says")
    steps = list(episode.steps)
    told = steps[calls[0] + 1]
    steps[calls[0] + 1] = Step(told.kind, told.actor, {**told.payload, "content": '{"user": "mia_li_3668"}'})
    assert unexplained_identifier(replace(episode, steps=tuple(steps))) is None  # an answer has it
    refused = list(episode.steps)
    answer = refused[calls[1] + 1]
    refused[calls[1] + 1] = Step(answer.kind, answer.actor, {**answer.payload, "content": "Error: no such user"})
    assert unexplained_identifier(replace(episode, steps=tuple(refused))) is None  # a guess
    spelt = Recorder(states=False).says(Actor.USER, "Hold A-B12-C9, please").calls("note", booking_id="AB12C9")
    assert unexplained_identifier(spelt.says(Actor.USER, "###STOP###").episode()) is None  # said with dashes
    named = Recorder(states=False).says(Actor.USER, "hi").calls("note", title="Report2024")
    assert unexplained_identifier(named.says(Actor.USER, "###STOP###").episode()) is None  # no identifier
