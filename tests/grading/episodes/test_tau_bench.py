"""tau-bench's rule versions, and every trap of theirs: graders that differ in one choice give different verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from harness.grading.episodes.registry import episode_grader, named, names
from harness.protocols import EpisodeCase, EpisodeGrader
from harness.records.environment import Opening
from harness.records.errors import ConfigError
from harness.records.replay import Invalid, RecordedEpisode
from harness.records.vocabulary import Outcome, Reason
from tests.grading.episodes.shop import Shop, case_of, do, episode, hear, replay, say, stop

BOTH, OUTPUTS = "tau-bench@718ffa1", "tau-bench@until-718ffa1"
HAL = "tau-bench@hal-cb7cf03"
BOOK = {"name": "book", "kwargs": {"id": "A", "payments": [250]}}


def task(*actions: dict[str, Any], outputs: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"actions": list(actions), "outputs": list(outputs)}


def outcome(grader: str, recorded: RecordedEpisode, definition: Any, shop: Shop | None = None) -> Outcome:
    return episode_grader(grader).grade(case_of(recorded, definition, shop)).outcome


def test_versions_run_side_by_side_and_say_what_they_are() -> None:
    graders = [episode_grader(name) for name in (BOTH, OUTPUTS, HAL)]
    assert {BOTH, OUTPUTS, HAL} <= set(names())
    assert [named(grader) for grader in graders] == [BOTH, OUTPUTS, HAL]
    assert len({grader.rule for grader in graders}) == 3
    assert all(grader.code.startswith("sha256:") and len(grader.code) == 71 for grader in graders)


def test_a_task_with_outputs_was_graded_by_these_alone() -> None:
    """The one difference of the two versions: a wrong state, with the right words."""
    wrong = episode(hear("hi"), do("book", id="B", payments=[1]), say("It is 23,553 dollars."), stop())
    definition = task(BOOK, outputs=("23553",))
    assert outcome(OUTPUTS, wrong, definition) is Outcome.PASSED
    assert outcome(BOTH, wrong, definition) is Outcome.FAILED
    grade = episode_grader(BOTH).grade(case_of(wrong, definition))
    assert grade.criteria == {"DB": 0.0, "OUTPUTS": 1.0}
    right_state = episode(do("book", id="A", payments=[250]), say("Done."), stop())
    assert outcome(OUTPUTS, right_state, definition) is outcome(BOTH, right_state, definition) is Outcome.FAILED
    no_outputs = task(BOOK)
    assert outcome(OUTPUTS, wrong, no_outputs) is outcome(BOTH, wrong, no_outputs) is Outcome.FAILED


def test_handoff_and_normal_ending_with_the_same_end_state_get_the_same_grade() -> None:
    done = do("book", id="A", payments=[250])
    handed_off = episode(done, do("transfer_to_human_agents", summary="x"))
    ended = episode(done, say("Booked."), stop())
    for name in (BOTH, OUTPUTS, HAL, "tau2@0.1", "tau2@1.0"):
        assert outcome(name, handed_off, task(BOOK)) is outcome(name, ended, task(BOOK)) is Outcome.PASSED
        other = task({"name": "book", "kwargs": {"id": "B", "payments": [250]}})
        assert outcome(name, handed_off, other) is outcome(name, ended, other) is Outcome.FAILED


@pytest.mark.parametrize(
    ("said", "required", "plain", "choice", "otherwise"),
    [
        ("You get $1,100 back.", "10", Outcome.PASSED, "whole-words", Outcome.FAILED),  # 1100 holds 10
        ("You get 10 back.", "10", Outcome.PASSED, "whole-words", Outcome.PASSED),
        ("You get 4.5 back.", "4", Outcome.PASSED, "whole-words", Outcome.FAILED),
        ("In all 1,286 dollars.", "1,286", Outcome.FAILED, "commas-removed", Outcome.PASSED),
        ("In all 1,286 dollars.", "1286", Outcome.PASSED, "commas-removed", Outcome.PASSED),
        ("Your seat: WINDOW.", "window", Outcome.PASSED, "whole-words", Outcome.PASSED),
    ],
)
def test_the_substring_trap(said: str, required: str, plain: Outcome, choice: str, otherwise: Outcome) -> None:
    recorded = episode(say(said), stop())
    definition = task(outputs=(required,))
    assert outcome(BOTH, recorded, definition) is plain
    assert outcome(f"{BOTH}+{choice}", recorded, definition) is otherwise


def test_the_numeric_form_trap() -> None:
    """250.0 was paid where the reference pays 250: other states, by the hash of the text."""
    recorded = episode(do("book", id="A", payments=[250.0]), say("Booked."), stop())
    assert outcome(BOTH, recorded, task(BOOK)) is Outcome.FAILED
    assert outcome(f"{BOTH}+numbers-by-value", recorded, task(BOOK)) is Outcome.PASSED
    other = episode(do("book", id="A", payments=[250.5]), say("Booked."), stop())
    assert outcome(f"{BOTH}+numbers-by-value", other, task(BOOK)) is Outcome.FAILED


def test_the_aliasing_trap() -> None:
    """A reference that books and cancels: its logged booking grows, and carried out a second time it fails."""
    cancel = {"name": "cancel", "kwargs": {"id": "A"}}
    acted = [do("book", id="A", payments=[250]), do("cancel", id="A")]
    once = episode(*acted, say("Done."), stop())
    twice = episode(*acted, say("Done."), stop(), say("Goodbye."), stop())
    definition = task(BOOK, cancel)
    copying = f"{BOTH}+copied-arguments"
    assert outcome(BOTH, once, definition) is outcome(copying, once, definition) is Outcome.PASSED
    assert outcome(BOTH, twice, definition) is Outcome.FAILED
    assert outcome(copying, twice, definition) is Outcome.PASSED
    assert definition == task({"name": "book", "kwargs": {"id": "A", "payments": [250]}}, cancel), "it was changed"


def test_a_second_ending_grades_the_reference_state() -> None:
    """After grading the environment holds the reference's state: what failed passes when the user stops once more."""
    recorded = episode(say("No."), stop(), say("Goodbye."), stop())
    assert outcome(BOTH, recorded, task(BOOK)) is Outcome.PASSED
    assert outcome(f"{BOTH}+own-state", recorded, task(BOOK)) is Outcome.FAILED
    grade = episode_grader(BOTH).grade(case_of(recorded, task(BOOK)))
    assert grade.flags == ("2 events end the episode: the last one's grade counts",)
    more = episode(
        do("book", id="A", payments=[250]), say("x"), stop(), do("book", id="C", payments=[]), say("y"), stop()
    )
    assert outcome(BOTH, more, task(BOOK)) is Outcome.FAILED, "what was done since is on top of the reference's state"


def test_what_is_done_after_the_last_ending_counts_for_nothing() -> None:
    recorded = episode(do("book", id="A", payments=[250]), say("x"), stop(), do("book", id="C", payments=[]))
    assert outcome(BOTH, recorded, task(BOOK)) is Outcome.PASSED


def test_the_log_holds_what_the_reference_said() -> None:
    respond = {"name": "respond", "kwargs": {"content": "That makes 77."}}
    recorded = episode(say("I do not know."), stop())
    definition = task(respond, outputs=("77",))
    assert outcome(BOTH, recorded, definition) is Outcome.PASSED
    assert outcome(f"{BOTH}+own-log", recorded, definition) is Outcome.FAILED
    twice = episode(say("I do not know."), stop(), say("Bye."), stop())
    assert outcome(BOTH, twice, definition) is Outcome.PASSED
    assert outcome(f"{BOTH}+own-log", twice, definition) is Outcome.FAILED


def test_the_fork_cuts_the_log_by_the_whole_reference() -> None:
    """With an empty reference the whole log is emptied, and what was said before the first ending is lost."""
    recorded = episode(say("It is 77."), stop(), say("Bye."), stop())
    definition = task(outputs=("77",))
    assert outcome(BOTH, recorded, definition) is Outcome.PASSED
    assert outcome(HAL, recorded, definition) is Outcome.FAILED
    transfer = {"name": "transfer_to_human_agents", "kwargs": {}}
    assert outcome(HAL, recorded, task(BOOK, outputs=("77",))) is Outcome.PASSED, "one action, one entry"
    assert outcome(HAL, recorded, task(BOOK, transfer, outputs=("77",))) is Outcome.FAILED, "one entry too many is cut"


def test_terminating_reference_actions_are_left_out() -> None:
    close = {"name": "close", "kwargs": {}}
    recorded = episode(do("book", id="A", payments=[250]), say("x"), stop())
    assert outcome(BOTH, recorded, task(BOOK, close)) is Outcome.PASSED
    assert outcome(f"{BOTH}+with-terminating", recorded, task(BOOK, close)) is Outcome.FAILED


def test_the_stop_may_stand_anywhere_in_an_answer_to_the_agent() -> None:
    recorded = episode(say("Bye."), hear("Thank you ###STOP### indeed"))
    assert outcome(BOTH, recorded, task()) is Outcome.PASSED
    assert outcome(f"{BOTH}+stop-alone", recorded, task()) is Outcome.UNGRADED
    assert outcome(f"{BOTH}+stop-alone", episode(say("Bye."), hear("###STOP###")), task()) is Outcome.PASSED
    assert outcome(BOTH, episode(hear("###STOP###")), task()) is Outcome.UNGRADED, "it answers nobody"
    quoted = episode(hear("hi"), say("Say ###STOP### to end."), hear("no"))
    assert outcome(BOTH, quoted, task()) is Outcome.UNGRADED, "the agent's own words end nothing"


def test_words_beside_a_call_are_no_answer() -> None:
    call = do("book", id="A", payments=[250])
    beside = [call[0], *say("It is 77.")[1:], *call[1:]]
    recorded = episode(beside, say("Done."), stop())
    assert outcome(BOTH, recorded, task(BOOK, outputs=("77",))) is Outcome.FAILED
    told = episode(do("book", id="A", payments=[250]), say("It is 77."), stop())
    assert outcome(BOTH, told, task(BOOK, outputs=("77",))) is Outcome.PASSED


def test_an_episode_that_nothing_ended_has_no_grade() -> None:
    """Its stored 0 is of a step that does not grade."""
    recorded = episode(do("book", id="A", payments=[250]), say("Anything else?"), hear("yes"))
    grade = episode_grader(BOTH).grade(case_of(recorded, task(BOOK)))
    assert (grade.outcome, grade.reason, grade.reward) == (Outcome.UNGRADED, Reason.VERDICT_MISSING, None)
    assert outcome(f"{BOTH}+without-end", recorded, task(BOOK)) is Outcome.PASSED


def test_an_invalid_replay_is_invalid_never_a_fail() -> None:
    shop, recorded = Shop(), episode(say("x"), stop())
    replayed = replay(recorded, shop, invalid=Invalid.TOOL)
    for name in (BOTH, "tau2@1.0"):
        grade = episode_grader(name).grade(EpisodeCase(replayed, task(), shop, Opening("normal")))
        assert (grade.outcome, grade.reward, grade.detail) == (Outcome.INVALID, None, "tool")


def test_the_reference_has_an_instance_of_its_own_and_runs_once_for_all_episodes() -> None:
    shop = Shop()
    grader = episode_grader(f"{BOTH}+own-log")
    cases = [case_of(episode(do("book", id="A", payments=[n]), say("x"), stop()), task(BOOK), shop) for n in (250, 9)]
    before = shop.opened
    assert [grader.grade(case).outcome for case in cases] == [Outcome.PASSED, Outcome.FAILED]
    assert shop.opened == before + 1


def test_what_the_reference_could_not_do_is_said() -> None:
    fails = {"name": "cancel", "kwargs": {"id": "none"}}
    grade = episode_grader(BOTH).grade(case_of(episode(say("x"), stop()), task(fails)))
    assert (grade.outcome, grade.flags) == (
        Outcome.PASSED,
        ("reference action 0 (cancel) failed: Error: no such order",),
    )
    lacking = episode_grader(BOTH).grade(case_of(episode(say("x"), stop()), task(BOOK), Shop(without="book")))
    assert (lacking.outcome, lacking.reason) == (Outcome.UNGRADED, Reason.UNSUPPORTED)
    blind = episode_grader(BOTH).grade(case_of(episode(say("x"), stop()), task(BOOK), Shop(digest="")))
    assert (blind.outcome, blind.reason) == (Outcome.UNGRADED, Reason.UNSUPPORTED)


@pytest.mark.parametrize("definition", [None, {}, {"actions": [{}]}, {"actions": 3}, {"evaluation_criteria": 1}])
def test_a_task_without_criteria_gives_no_grade(definition: Any) -> None:
    for name in (BOTH, "tau2@1.0"):
        grade = episode_grader(name).grade(case_of(episode(say("x"), stop()), definition))
        assert (grade.outcome, grade.reason) == (Outcome.UNGRADED, Reason.VERDICT_MISSING)


def test_unknown_graders_and_choices_are_refused_with_what_there_is() -> None:
    with pytest.raises(ConfigError, match="did you mean 'tau-bench@718ffa1'"):
        episode_grader("tau-bench@718ffa2")
    with pytest.raises(ConfigError, match="numbers-by-value"):
        episode_grader(f"{BOTH}+numbers")


def test_a_grader_may_stand_in_a_file(tmp_path: Any) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from harness.records.grade import Grade\nfrom harness.records.vocabulary import Outcome\n"
        "class Mine:\n    id, version, rule, code = 'mine', '1', 'all pass', ''\n"
        "    def grade(self, case):\n        return Grade(grader='mine@1', outcome=Outcome.PASSED)\n"
    )
    grader: EpisodeGrader = episode_grader(f"{file}:Mine")
    assert named(grader) == "mine@1"
    with pytest.raises(ConfigError, match="file"):
        episode_grader(f"{file}:Other")
