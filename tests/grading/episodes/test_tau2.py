"""tau2-bench's rule versions: what counts, what ends are a 0, and what has no verdict without a judge."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from harness.grading.episodes.criteria import ReferenceAction
from harness.grading.episodes.registry import episode_grader
from harness.grading.episodes.tau2 import matches
from harness.protocols import EpisodeCase
from harness.records.calls import history_of
from harness.records.environment import Call, Opening
from harness.records.grade import Grade
from harness.records.replay import RecordedEpisode
from harness.records.vocabulary import Actor, Outcome, Reason
from tests.grading.episodes.shop import Shop, case_of, do, episode, hear, replay, say, stop

V0, V1 = "tau2@0.1", "tau2@1.0"
BOOK = {"name": "book", "arguments": {"id": "A", "payments": [250]}, "requestor": "assistant"}
ON = {"env_type": "user", "func_name": "is_on", "arguments": {"name": "data"}, "assert_value": True}


def task(**criteria: Any) -> dict[str, Any]:
    return {"id": "1", "evaluation_criteria": {"actions": [], "communicate_info": [], **criteria}}


def grade(name: str, recorded: RecordedEpisode, definition: Any, opening: Opening | None = None) -> Grade:
    return episode_grader(name).grade(case_of(recorded, definition, Shop(), opening))


def booked(end: str = "user_stop") -> RecordedEpisode:
    return episode(do("book", id="A", payments=[250]), say("It is 1,286 dollars."), stop(), end=end)


def test_the_reward_is_the_product_of_the_basis() -> None:
    definition = task(actions=[BOOK], communicate_info=["1286"])
    full = grade(V1, booked(), definition)
    assert (full.outcome, full.reward) == (Outcome.PASSED, 1.0)
    assert full.criteria == {"DB": 1.0, "COMMUNICATE": 1.0, "ACTION": 1.0}
    unsaid = grade(V1, booked(), task(actions=[BOOK], communicate_info=["77"]))
    assert (unsaid.outcome, unsaid.criteria["DB"], unsaid.criteria["COMMUNICATE"]) == (Outcome.FAILED, 1.0, 0.0)
    assert "77" in unsaid.detail
    uncounted = grade(V1, booked(), task(actions=[BOOK], communicate_info=["77"], reward_basis=["DB"]))
    assert (uncounted.outcome, uncounted.criteria["COMMUNICATE"]) == (Outcome.PASSED, 0.0), "recorded, not counted"


def test_an_unstated_basis_is_the_default() -> None:
    unstated, written = task(actions=[BOOK]), task(actions=[BOOK], reward_basis=["DB", "COMMUNICATE"])
    for name in (V0, V1):
        assert grade(name, booked(), unstated) == grade(name, booked(), written)


def test_the_state_counts_as_soon_as_the_task_has_actions_or_checks() -> None:
    nothing = task(actions=None, communicate_info=None)
    assert grade(V1, booked(), nothing).criteria["DB"] == 1.0
    assert grade(V1, booked(), task(actions=[])).criteria["DB"] == 0.0, "an empty list expects that nothing changes"


@pytest.mark.parametrize(
    ("end", "old", "new"),
    [
        ("user_stop", Outcome.PASSED, Outcome.PASSED),
        ("agent_stop", Outcome.PASSED, Outcome.PASSED),
        ("max_steps", Outcome.FAILED, Outcome.FAILED),
        ("too_many_errors", Outcome.FAILED, Outcome.FAILED),
        ("timeout", Outcome.PASSED, Outcome.FAILED),  # the versions differ here
        ("infrastructure_error", Outcome.UNGRADED, Outcome.UNGRADED),
        ("user_ended", Outcome.PASSED, Outcome.PASSED),  # our own words
        ("budget.steps", Outcome.FAILED, Outcome.FAILED),
    ],
)
def test_ends_that_are_a_zero_by_rule(end: str, old: Outcome, new: Outcome) -> None:
    assert grade(V0, booked(end), task(actions=[BOOK])).outcome is old
    assert grade(V1, booked(end), task(actions=[BOOK])).outcome is new


def test_an_end_that_nobody_stated_is_read_from_the_messages_or_unknown() -> None:
    read = grade(V1, booked(""), task(actions=[BOOK]))
    assert (read.outcome, read.flags) == (Outcome.PASSED, ("the end is not stated; read from the messages: user_stop",))
    solo = episode(do("book", id="A", payments=[250]), say("###STOP###"))
    assert grade(V1, solo, task(actions=[BOOK])).flags[0].endswith("agent_stop")
    cut = episode(do("book", id="A", payments=[250]), say("Anything else?"), hear("yes"))
    unknown = grade(V1, cut, task(actions=[BOOK]))
    assert (unknown.outcome, unknown.reason) == (Outcome.UNGRADED, Reason.VERDICT_MISSING)


def test_only_what_the_agent_said_counts_as_communicated() -> None:
    heard = episode(say("Hello"), hear("it is 1286, I think ###STOP###"), end="user_stop")
    assert grade(V1, heard, task(communicate_info=["1286"])).outcome is Outcome.FAILED
    substring = episode(say("You get $1,100."), stop(), end="user_stop")
    assert grade(V1, substring, task(communicate_info=["10"])).outcome is Outcome.PASSED
    assert grade(f"{V1}+whole-words", substring, task(communicate_info=["10"])).outcome is Outcome.FAILED


def test_a_statement_for_a_judge_is_never_silently_a_one() -> None:
    definition = task(actions=[BOOK], nl_assertions=["The agent was kind."], reward_basis=["DB", "NL_ASSERTION"])
    judged = grade(V1, booked(), definition)
    assert (judged.outcome, judged.reason, judged.reward) == (Outcome.UNGRADED, Reason.UNSUPPORTED, None)
    assert "NL_ASSERTION: 1 statement(s) need a model as judge" in judged.detail
    assert judged.criteria == {"DB": 1.0, "COMMUNICATE": 1.0, "ACTION": 1.0}
    beside = task(actions=[BOOK], nl_assertions=["The agent was kind."])
    assert grade(V1, booked(), beside).outcome is Outcome.PASSED, "not in the basis"
    other = grade(V1, booked(), task(actions=[BOOK], reward_basis=["DB", "STYLE"]))
    assert (other.outcome, other.reason) == (Outcome.UNGRADED, Reason.UNSUPPORTED)


def test_checks_on_the_end_state_read_both_sides() -> None:
    definition = task(actions=None, env_assertions=[ON], reward_basis=["ENV_ASSERTION"])
    on = episode(do("toggle", actor=Actor.USER, name="data"), say("Good."), stop(), end="user_stop")
    assert grade(V1, on, definition).outcome is Outcome.PASSED
    twice = episode(*[do("toggle", actor=Actor.USER, name="data")] * 2, say("Good."), stop(), end="user_stop")
    assert grade(V1, twice, definition).outcome is Outcome.FAILED
    off = task(actions=None, env_assertions=[{**ON, "assert_value": False}], reward_basis=["ENV_ASSERTION"])
    assert grade(V1, twice, off).outcome is Outcome.PASSED
    unknown = task(env_assertions=[{**ON, "func_name": "is_red"}], reward_basis=["ENV_ASSERTION"])
    lacking = grade(V1, on, unknown)
    assert (lacking.outcome, lacking.reason) == (Outcome.UNGRADED, Reason.UNSUPPORTED)


def test_a_user_s_action_of_the_reference_is_carried_out_on_the_user_s_side_also_for_a_solo_episode() -> None:
    toggle = {"name": "toggle", "arguments": {"name": "data"}, "requestor": "user"}
    definition = task(actions=[toggle], reward_basis=["DB", "ACTION"])
    dual = episode(do("toggle", actor=Actor.USER, name="data"), say("Good."), stop(), end="user_stop")
    assert grade(V1, dual, definition).outcome is Outcome.PASSED
    solo = episode(do("toggle", name="data"), say("###STOP###"), end="agent_stop")
    assert grade(V1, solo, definition, Opening("solo")).outcome is Outcome.PASSED


def test_the_task_s_own_initial_state_is_the_reference_s_too() -> None:
    definition = {**task(actions=[BOOK]), "initial_state": {"data": True}}
    recorded = episode(do("book", id="A", payments=[250]), say("x"), stop(), end="user_stop", definition=definition)
    assert grade(V1, recorded, definition, Opening("normal", initial={"data": True})).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("compare", "given", "matched"),
    [
        (None, {"id": "A", "payments": [250]}, True),
        (None, {"id": "A"}, True),  # fewer arguments than the reference still match
        (None, {"id": "A", "more": 1}, False),
        (None, {"id": "B"}, False),
        (("id",), {"id": "A", "payments": []}, True),
        (("id",), {"payments": [250]}, False),
        ((), {"id": "B"}, True),  # the name alone
    ],
)
def test_which_call_is_a_reference_action(compare: tuple[str, ...] | None, given: Any, matched: bool) -> None:
    action = ReferenceAction("book", {"id": "A", "payments": [250]}, compare=compare)
    assert matches(action, Call(Actor.AGENT, "book", given)) is matched
    assert not matches(action, Call(Actor.AGENT, "cancel", given))


def test_actions_count_only_where_the_basis_says_so() -> None:
    same_state = episode(do("book", id="A", payments=[250]), say("x"), stop(), end="user_stop")
    look = {"name": "look", "arguments": {}}
    assert grade(V1, same_state, task(actions=[BOOK, look])).outcome is Outcome.PASSED
    counted = grade(V1, same_state, task(actions=[BOOK, look], reward_basis=["DB", "ACTION"]))
    assert (counted.outcome, counted.detail) == (Outcome.FAILED, "ACTION: not called: look")


def test_the_numeric_form() -> None:
    paid = episode(do("book", id="A", payments=[250.0]), say("x"), stop(), end="user_stop")
    assert grade(V1, paid, task(actions=[BOOK])).outcome is Outcome.FAILED
    assert grade(f"{V1}+numbers-by-value", paid, task(actions=[BOOK])).outcome is Outcome.PASSED


def test_a_message_history_belongs_to_the_initial_state_of_both_sides() -> None:
    call = {"id": "c", "name": "book", "arguments": {"id": "H", "payments": [1]}}
    initial = {"message_history": [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [call]}]}
    assert [made.name for made in history_of(initial)] == ["book"]
    definition = {**task(actions=[BOOK], env_assertions=[ON]), "initial_state": initial}
    recorded = episode(do("book", id="A", payments=[250]), say("x"), stop(), end="user_stop", definition=definition)
    shop, opening = Shop(), Opening("normal", initial=initial)
    with shop.open(opening) as session:
        for made in (*history_of(initial), Call(Actor.AGENT, "book", {"id": "A", "payments": [250]})):
            session.call(made)
        end = session.digest()
    replayed = dataclasses.replace(replay(recorded, shop, opening), end_state=end)
    graded = episode_grader(V1).grade(EpisodeCase(replayed, definition, shop, opening))
    assert graded.outcome is Outcome.PASSED
