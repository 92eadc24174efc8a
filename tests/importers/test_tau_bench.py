"""tau-bench v1: recognised by content, mapped without inventing."""

from __future__ import annotations

from pathlib import Path

from harness.records.archive import Basis
from harness.records.vocabulary import Actor, Outcome, Reason, StopReason
from tests.importers.reading import Read, tau_episode, write_json


def test_tau_bench_zero_without_reward_info_is_no_verdict(tmp_path: Path) -> None:
    episodes = [
        tau_episode(0, reward=0.0),
        tau_episode(1, reward=0.0, reward_info=None),
        tau_episode(2, reward=1.0, reward_info=None),
        tau_episode(3, reward=0.0, reward_info=None, error="boom", traceback="…"),
    ]
    found = Read(write_json(tmp_path / "whatever.txt", episodes))
    assert found.recognition.format == "tau-bench"
    assert [e.outcome.value for e in found.episodes] == ["failed", "ungraded", "passed", "ungraded"]
    assert [e.grading.basis for e in found.episodes] == [Basis.STATED, Basis.INFERRED, Basis.INFERRED, Basis.STATED]
    assert found.episodes[1].reason is Reason.VERDICT_MISSING
    assert found.episodes[1].reward is None
    assert (found.runs[0].agent, found.runs[0].model, found.runs[0].created) == (None, None, "")


def test_tau_bench_airline_is_200_episodes_of_which_5_have_no_verdict(airline: Path) -> None:
    found = Read(airline / "v1/gpt-4o-airline.json.gz")
    ungraded = [e for e in found.episodes if e.outcome is Outcome.UNGRADED]
    assert len(found.episodes) == 200
    assert {(e.task.id, e.repeat) for e in ungraded} == {("33", 0), ("2", 1), ("9", 2), ("9", 3), ("46", 3)}
    assert {e.stop for e in ungraded} == {StopReason.STEPS}  # a turn limit, no failure
    assert found.outcomes().count("passed") == 84
    assert not found.findings
    actors = {(step.kind, step.actor) for e in found.episodes for step in e.steps()}
    assert ("reference.action", Actor.REFERENCE) in actors
    assert ("tool.call", Actor.USER) not in actors
