"""The engine on a small world: what is compared, what makes a replay invalid, and from which step on."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import pytest

from harness.records.archive import DOUBT, Step
from harness.records.environment import EnvironmentFault, Opening
from harness.records.replay import Invalid, Match, Replayed, States
from harness.records.vocabulary import Actor, Phase
from harness.replay.determinism import unsteady_steps
from harness.replay.engine import Comparison, replay_episode
from harness.replay.normalise import normalisations
from harness.replay.order import end_of
from tests.replay.world import RULE, Desk, Recorder, alone, edited, index_of, usual, without

NORMAL = Opening("normal")


def replayed(episode: object, desk: Desk | None = None, opening: Opening = NORMAL, **how: object) -> Replayed:
    return replay_episode(episode, desk or Desk(), opening, Comparison(**how))  # type: ignore[arg-type]


def test_a_true_record_is_the_same_at_every_step() -> None:
    found = replayed(usual())
    fidelity = found.fidelity
    assert found.valid
    assert [step.match for step in found.steps] == [Match.SAME] * 6
    assert (fidelity.steps, fidelity.compared, fidelity.same) == (6, 6, 6)
    assert (fidelity.d_first, fidelity.d_share) == (None, 0.0)
    assert (fidelity.required, fidelity.required_done) == (3, 3)  # two bookings and the lamp; the refused one is none
    assert fidelity.checkpoints == fidelity.checkpoints_same == 8  # six steps, the beginning and the end
    assert found.end_state == usual().states.end


def test_solo_the_agent_calls_the_users_tools() -> None:
    found = replayed(alone(), opening=Opening("solo"))
    assert found.valid
    assert found.fidelity.same == 3


def test_number_form_is_cosmetic_and_says_so() -> None:
    found = replayed(usual(states=False), Desk(number=float))
    assert found.valid
    assert found.fidelity.cosmetic == 4
    assert found.fidelity.key == 0
    assert {step.rule for step in found.steps if step.match is Match.COSMETIC} == {"number-form"}


def test_number_form_counts_when_it_is_not_declared() -> None:
    found = replayed(usual(states=False), Desk(number=float), rules=normalisations(["key-order"]))
    assert found.fidelity.invalid is Invalid.DIVERGED
    assert found.fidelity.key == 4


def test_only_calls_of_the_interaction_are_carried_out() -> None:
    """Reference actions, and what a grader did in the agent's log, are not the agent's."""
    episode = usual()
    injected = Step("tool.call", Actor.GRADER, {"gen_ai.tool.name": "book", "arguments": {"amount": 1}}, Phase.GRADING)
    found = replayed(replace(episode, steps=(injected, *episode.steps)))
    assert found.valid
    assert found.end_state == episode.states.end


def test_a_mode_that_is_not_offered_is_an_error_before_the_first_step() -> None:
    desk = Desk()
    with pytest.raises(EnvironmentFault, match="its modes are: normal, solo, deaf"):
        replay_episode(usual(), desk, Opening("voice"))
    with pytest.raises(EnvironmentFault, match="data version"):
        replay_episode(usual(), desk, Opening("normal", "poor"))
    assert desk.opened == 0


@pytest.mark.parametrize(
    ("recorded", "mode", "says"),
    [
        ("solo", "normal", "recorded in solo mode"),
        ("normal", "solo", "there is none"),
        ("dual_control", "solo", "there is none"),
        ("dual_control", "deaf", "the user has none"),
        ("full_duplex", "normal", "recorded in mode full_duplex"),
        (None, "solo", "is a user's"),
        (None, "deaf", "the user has no tools"),
    ],
)
def test_another_mode_than_the_recorded_one_is_invalid(recorded: str | None, mode: str, says: str) -> None:
    found = replayed(replace(usual(), mode=recorded), opening=Opening(mode))
    assert found.fidelity.invalid is Invalid.MODE
    assert found.fidelity.invalid_at == 0
    assert says in found.fidelity.detail
    assert found.end_state is None


@pytest.mark.parametrize("recorded", ["normal", "dual_control", None])
def test_what_does_not_contradict_the_mode_is_replayed(recorded: str | None) -> None:
    assert replayed(replace(usual(), mode=recorded)).valid


def test_a_task_whose_tool_nobody_has_in_the_mode_is_invalid() -> None:
    episode = Recorder(mode="deaf").says(Actor.USER, "hello").says(Actor.AGENT, "hello").says(Actor.USER, "bye")
    found = replayed(episode.expects("switch").episode(), opening=Opening("deaf"))
    assert found.fidelity.invalid is Invalid.TOOL
    assert found.fidelity.detail == "the task needs the tool switch: it is on the user's side, out of reach in deaf"


def test_a_missing_required_tool_is_invalid_whatever_the_share() -> None:
    """SOURCES S2: one missing user tool among thirty calls; a share of 1/30 would have passed."""
    made = Recorder(states=False).says(Actor.USER, "go").calls("book", amount=1).says(Actor.AGENT, "the lamp?")
    made.calls("switch", Actor.USER).says(Actor.USER, "done")
    for _ in range(28):
        made.calls("balance")
    episode = made.says(Actor.AGENT, "ok").says(Actor.USER, "###STOP###").episode()
    found = replayed(episode, Desk(without="switch"))
    assert found.fidelity.invalid is Invalid.TOOL
    assert found.fidelity.missing == 1
    assert found.fidelity.d_share == pytest.approx(1 / 30)
    assert found.fidelity.d_first == found.fidelity.invalid_at == index_of(episode, "switch")
    assert (found.fidelity.required, found.fidelity.required_done) == (2, 1)


def test_a_call_that_was_refused_as_unknown_is_the_same_when_it_is_refused_again() -> None:
    made = Recorder().says(Actor.USER, "go").calls("fly").says(Actor.AGENT, "no").says(Actor.USER, "###STOP###")
    found = replayed(made.episode())
    assert found.valid
    assert not found.steps[0].missing


def test_a_tool_that_is_there_now_and_was_not_then_is_a_difference() -> None:
    made = Recorder(desk=Desk(without="balance"))
    episode = made.says(Actor.USER, "go").calls("balance").says(Actor.AGENT, "?").says(Actor.USER, "bye").episode()
    assert replayed(episode).fidelity.invalid is Invalid.DIVERGED


def test_an_answer_that_failed_and_now_does_not_is_a_difference_whatever_it_says() -> None:
    episode = usual()
    at = index_of(episode, "balance") + 1
    found = replayed(edited(episode, at, error=True))
    assert found.fidelity.detail == "balance: it failed, and now it does not"


def test_an_initial_state_that_is_not_reached() -> None:
    found = replayed(usual(), opening=Opening("normal", initial={"broken": True}))
    assert (found.fidelity.invalid, found.fidelity.invalid_at) == (Invalid.UNREACHABLE, 0)


def test_an_environment_that_fails_ends_the_replay_there() -> None:
    found = replayed(usual(), Desk(fails_at=2))
    assert found.fidelity.invalid is Invalid.UNREACHABLE
    assert found.fidelity.invalid_at == index_of(usual(), "book", 1)
    assert len(found.steps) == 2
    assert found.fidelity.steps == 6


def test_an_environment_that_breaks_is_its_own_fault_and_no_verdict() -> None:
    class Broken(Desk):
        def open(self, opening: Opening) -> NoReturn:
            raise ZeroDivisionError("by the lamp")

    found = replayed(usual(), Broken())
    assert found.fidelity.invalid is Invalid.UNREACHABLE
    assert found.fidelity.detail == "the environment raised ZeroDivisionError: by the lamp"


def test_an_answer_that_was_recorded_as_a_value_is_compared_as_its_json() -> None:
    at = index_of(usual(), "balance") + 1
    found = replayed(edited(usual(), at, content={"cash": 120}))
    assert found.valid
    assert found.steps[1].match is Match.SAME


def test_a_message_history_belongs_to_the_initial_state() -> None:
    history = [{"role": "assistant", "tool_calls": [{"name": "book", "arguments": {"amount": 7}}]}]
    episode = usual(states=False)
    found = replayed(episode, Desk(start=93), Opening("normal", initial={"message_history": history}))
    assert found.valid


def test_calls_without_answers_and_ids_are_carried_out_and_counted_as_unchecked() -> None:
    """Action lists (HAL) have no answers: nothing is broken off, and nothing was compared."""
    calls = [{"gen_ai.tool.name": "book", "arguments": {"amount": 5}}, {"gen_ai.tool.name": "balance", "arguments": {}}]
    steps = tuple(Step("tool.call", Actor.AGENT, payload) for payload in calls)
    found = replayed(replace(usual(), steps=steps, mode=None, end="", format="hal", states=States()))
    assert found.valid
    assert (found.fidelity.steps, found.fidelity.compared) == (2, 0)
    assert {step.match for step in found.steps} == {Match.UNCHECKED}


def test_a_record_that_may_hold_calls_of_others_is_invalid() -> None:
    found = replayed(replace(usual(), stated={DOUBT: "more than one reading"}))
    assert (found.fidelity.invalid, found.fidelity.detail) == (Invalid.ACTORS, "more than one reading")


def test_calls_in_prose_are_no_record_of_calls() -> None:
    """tau-bench's ReAct agents: the calls stand in what the agent said, the answers in what the user did."""
    made = Recorder(states=False).says(Actor.USER, "hi").says(Actor.AGENT, "Action: balance")
    made.says(Actor.USER, 'API output: {"cash": 100}').says(Actor.AGENT, "100").says(Actor.USER, "###STOP###")
    found = replayed(made.episode(format="tau-bench", end="user_ended"))
    assert (found.fidelity.invalid, found.fidelity.invalid_at) == (Invalid.TRUNCATED, 3)


def test_states_of_another_rule_are_not_compared() -> None:
    episode = usual()
    other = replace(episode, states=replace(episode.states, rule="of something else"))
    assert replayed(other).fidelity.checkpoints == 0
    assert replayed(episode, states=False).fidelity.checkpoints == 0


def test_the_recorded_state_of_the_reference_is_held_against_a_run_of_our_own() -> None:
    right = Recorder().calls("book", amount=50).calls("switch", Actor.USER).episode().states.end
    episode = usual(states=False)
    states = States(rule=RULE, reference=right, end_is_reference=True)
    found = replayed(replace(episode, states=states), Desk())
    assert found.valid, found.fidelity.detail
    assert found.fidelity.checkpoints_same == 2
    wrong = replayed(replace(episode, states=replace(states, end_is_reference=False)))
    assert (wrong.fidelity.invalid, wrong.fidelity.invalid_at) == (Invalid.DIVERGED, end_of(episode.steps))
    other = replayed(replace(episode, states=replace(states, reference="x")))
    assert "after the reference actions" in other.fidelity.detail


def test_a_reading_tool_that_is_not_deterministic_cannot_be_compared() -> None:
    made = Recorder().says(Actor.USER, "roll").calls("dice").calls("book", amount=1)
    found = replayed(made.says(Actor.AGENT, "so").says(Actor.USER, "###STOP###").episode())
    assert found.valid
    assert found.steps[0].match is Match.UNCHECKED
    assert "declared not to be deterministic" in found.steps[0].rule


def test_a_writing_tool_that_is_not_deterministic_needs_a_recorded_state() -> None:
    made = Recorder(states=False).says(Actor.USER, "mix").calls("shuffle")
    found = replayed(made.says(Actor.AGENT, "so").says(Actor.USER, "###STOP###").episode())
    assert found.fidelity.invalid is Invalid.DIVERGED
    assert "no state was recorded after it" in found.fidelity.detail


def test_two_replays_show_what_is_not_deterministic() -> None:
    made = Recorder().says(Actor.USER, "roll").calls("dice").calls("balance")
    episode, desk = made.says(Actor.AGENT, "so").says(Actor.USER, "###STOP###").episode(), Desk()
    first, second = replayed(episode, desk), replayed(episode, desk)
    (found,) = unsteady_steps(first, second, desk.capabilities)
    assert (found.at, found.name, found.declared) == (index_of(episode, "dice"), "dice", True)
    assert unsteady_steps(first, first, desk.capabilities) == ()


def test_an_undeclared_difference_between_two_replays_is_told_apart() -> None:
    episode = usual(states=False)
    first, second = replayed(episode), replayed(episode, opening=Opening("normal", "rich"))
    found = unsteady_steps(first, second, Desk().capabilities)
    assert [one.declared for one in found] == [False] * len(found)
    assert found[0].at == index_of(episode, "book")


def test_each_replay_has_an_instance_of_its_own_so_that_their_order_does_not_matter() -> None:
    desk, episodes = Desk(), [usual(), without(usual(), *range(3, 6)), usual(states=False)]
    forwards = [replayed(episode, desk) for episode in episodes]
    backwards = [replayed(episode, desk) for episode in reversed(episodes)]
    assert forwards == backwards[::-1]
    assert desk.opened == 6


def test_digests_are_shown_when_they_are_asked_for() -> None:
    shown = replayed(usual(), digests=True)
    assert [bool(step.state) for step in shown.steps] == [True, False, True, True, True, False]
    assert not any(step.state for step in replayed(usual()).steps)
