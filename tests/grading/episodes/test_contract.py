"""What every grader of episodes keeps to, whatever its rule."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harness.grading.episodes.registry import episode_grader, named, names
from harness.protocols import EpisodeCase, EpisodeGrader
from harness.records.conversation import Action, Conversation, UserScript
from harness.records.environment import Opening
from harness.records.replay import Invalid
from harness.records.vocabulary import Outcome
from tests.grading.episodes.shop import Shop, case_of, do, episode, hear, replay, say, stop

BOOK: dict[str, Any] = {"id": "A", "payments": [250]}
TASKS: dict[str, Any] = {
    "tau-bench": {"actions": [{"name": "book", "kwargs": BOOK}], "outputs": ["77"]},
    "tau2": {"evaluation_criteria": {"actions": [{"name": "book", "arguments": BOOK}], "communicate_info": ["77"]}},
    "conversation": Conversation(
        environment="shop@1",
        mode="normal",
        actions=(Action(name="book", arguments=BOOK),),
        outputs=("77",),
        user=UserScript(opening="Book."),
    ),
}
RIGHT = episode(do("book", **BOOK), say("That is 77."), stop(), end="user_ended")
WRONG_STATE = episode(do("book", id="B", payments=[1]), say("That is 77."), stop(), end="user_ended")
WRONG_WORDS = episode(do("book", **BOOK), say("That is all."), stop(), end="user_ended")


@pytest.fixture(params=names())
def grader(request: pytest.FixtureRequest) -> EpisodeGrader:
    found = episode_grader(request.param)
    assert named(found) == request.param, "it is registered under its own name"
    return found


def test_it_says_what_it_is(grader: EpisodeGrader) -> None:
    assert grader.rule
    assert grader.code.startswith("sha256:")
    assert grader.code == episode_grader(named(grader)).code


def test_right_passes_and_wrong_words_fail_with_a_result_for_each_criterion(grader: EpisodeGrader) -> None:
    right, words = (grader.grade(case_of(one, TASKS[grader.id])) for one in (RIGHT, WRONG_WORDS))
    assert (right.outcome, right.reward, right.grader) == (Outcome.PASSED, 1.0, named(grader))
    assert (words.outcome, words.reward) == (Outcome.FAILED, 0.0)
    assert min(right.criteria.values()) == 1.0 or "ACTION" in right.criteria
    assert min(words.criteria.values()) == 0.0
    assert words.detail


def test_a_wrong_state_fails_where_the_rule_looks_at_it(grader: EpisodeGrader) -> None:
    wanted = Outcome.PASSED if named(grader) == "tau-bench@until-718ffa1" else Outcome.FAILED
    assert grader.grade(case_of(WRONG_STATE, TASKS[grader.id])).outcome is wanted


def test_the_same_case_gets_the_same_grade_and_is_left_as_it_was(grader: EpisodeGrader) -> None:
    task, shop = copy.deepcopy(TASKS[grader.id]), Shop()
    first = case_of(RIGHT, task, shop)
    assert grader.grade(first) == grader.grade(first) == grader.grade(case_of(RIGHT, task, Shop()))
    assert task == TASKS[grader.id]


def test_an_invalid_replay_is_invalid(grader: EpisodeGrader) -> None:
    shop = Shop()
    for reason in Invalid:
        replayed = replay(RIGHT, shop, invalid=reason)
        grade = grader.grade(EpisodeCase(replayed, TASKS[grader.id], shop, Opening("normal")))
        assert (grade.outcome, grade.reward) == (Outcome.INVALID, None)


def test_an_episode_without_an_end_is_no_pass(grader: EpisodeGrader) -> None:
    cut = episode(do("book", **BOOK), say("That is 77. More?"), hear("Yes."))
    assert grader.grade(case_of(cut, TASKS[grader.id])).outcome is not Outcome.PASSED
