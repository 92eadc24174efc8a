"""What is recorded replays to the same; what is changed of an answer, a state or a row is found where it shows."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from harness.records.environment import Opening
from harness.records.replay import STATE, Invalid, RecordedEpisode, States
from harness.records.vocabulary import Actor
from harness.replay.engine import replay_episode
from tests.replay.world import Desk, Recorder, edited

ACTS = st.one_of(
    st.tuples(st.just("book"), st.integers(-300, 300)),
    st.tuples(st.sampled_from(["balance", "switch", "look", "fly", "hand_over"]), st.none()),
)


@st.composite
def recorded(draw: st.DrawFn) -> RecordedEpisode:
    """An episode of agent and user in turns, each calling what it likes, also what it has not got."""
    made = Recorder(states=draw(st.booleans()))
    made.says(Actor.USER, "hello")
    for turn in draw(st.lists(st.lists(ACTS, max_size=3), min_size=1, max_size=6)):
        speaker = draw(st.sampled_from([Actor.AGENT, Actor.USER]))
        if speaker is Actor.USER:
            made.says(Actor.AGENT, "you, please")
        for name, amount in turn:
            made.calls(name, speaker, **({} if amount is None else {"amount": amount}))
        if speaker is Actor.USER:
            made.says(Actor.USER, "done")
    return made.says(Actor.AGENT, "bye").says(Actor.USER, "###STOP###").episode()


@given(recorded())
def test_a_record_replays_to_the_same(episode: RecordedEpisode) -> None:
    found = replay_episode(episode, Desk(), Opening("normal"))
    fidelity = found.fidelity
    assert fidelity.invalid is None, fidelity.detail
    assert fidelity.same == fidelity.steps
    assert fidelity.required == fidelity.required_done
    assert fidelity.checkpoints == fidelity.checkpoints_same
    assert replay_episode(episode, Desk(), Opening("normal")) == found


@given(recorded(), st.data())
def test_a_changed_answer_or_state_is_found_at_its_call(episode: RecordedEpisode, data: st.DataObject) -> None:
    answers = [index for index, step in enumerate(episode.steps) if step.kind == "tool.result"]
    if not answers:
        return
    at = data.draw(st.sampled_from(answers))
    has_state = STATE in episode.steps[at].payload
    key = data.draw(st.sampled_from(["content", STATE] if has_state else ["content"]))
    fidelity = replay_episode(edited(episode, at, **{key: "something else"}), Desk(), Opening("normal")).fidelity
    # Of a tool that is not there, another answer than that means that it was there when it was recorded.
    assert fidelity.invalid in (Invalid.DIVERGED, Invalid.TOOL)
    assert (fidelity.invalid_at, fidelity.d_first) == (at - 1, at - 1)
    assert fidelity.d_share == (1 / fidelity.steps if key == "content" else 0.0)


@given(recorded(), st.integers(101, 500))
def test_a_changed_row_is_found_at_the_first_answer_that_shows_it(episode: RecordedEpisode, start: int) -> None:
    shown = ("book", "balance")
    bare = replace(episode, states=States())
    found = replay_episode(bare, Desk(start=start), Opening("normal"))
    differing = [step.index for step in found.steps if step.replayed != step.recorded]
    assert found.fidelity.d_first == (differing[0] if differing else None)
    assert all(step.name in shown for step in found.steps if step.index in differing)
    assert (found.fidelity.invalid is None) == (not differing)
