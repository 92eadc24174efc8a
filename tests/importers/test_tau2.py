"""tau2-bench results, as a file and as a folder: ends, modes, labels that contradict the content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.records.archive import TRACE, ArchiveError, Basis
from harness.records.vocabulary import Actor, StopReason
from tests.importers.reading import Read, write_json


def _tau2(**changes: Any) -> dict[str, Any]:
    task = {"id": "7", "user_scenario": {"instructions": "Ask."}, "evaluation_criteria": {"actions": []}}
    simulation = {"id": "s", "task_id": "7", "trial": 0, "messages": [], "reward_info": {"reward": 1.0}}
    info = {"agent_info": {"implementation": "llm_agent"}, "environment_info": {"domain_name": "mock"}}
    return {"timestamp": "2026-01-01T00:00:00", "info": info, "tasks": [task], "simulations": [simulation | changes]}


@pytest.mark.parametrize(
    ("changes", "outcome", "stop"),
    [
        ({"termination_reason": "user_stop"}, "passed", StopReason.USER_ENDED),
        ({"termination_reason": "max_steps", "reward_info": {"reward": 0.0}}, "failed", StopReason.STEPS),
        ({"termination_reason": "max_steps", "reward_info": None}, "ungraded", StopReason.STEPS),
        ({"termination_reason": "infrastructure_error"}, "ungraded", StopReason.INFRASTRUCTURE),
        ({}, "passed", StopReason.UNKNOWN),
        ({"reward_info": {"reward": float("nan")}}, "ungraded", StopReason.UNKNOWN),
    ],
)  # fmt: skip
def test_tau2_ends_and_verdicts_are_two_things(
    tmp_path: Path, changes: dict[str, Any], outcome: str, stop: StopReason
) -> None:
    (episode,) = Read(write_json(tmp_path / "r.json", _tau2(**changes))).episodes
    assert (episode.outcome.value, episode.stop) == (outcome, stop)


def test_tau2_of_a_later_format_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="format_version 999 is not known"):
        Read(write_json(tmp_path / "r.json", _tau2() | {"format_version": 999}))


def test_tau2_header_that_contradicts_its_messages_is_told(tmp_path: Path) -> None:
    value = _tau2(messages=[{"role": "user", "content": "Hi", "turn_idx": 0}])
    value["info"]["user_info"] = {"implementation": "dummy_user"}
    (episode,) = Read(write_json(tmp_path / "r.json", value)).episodes
    assert (episode.mode.value, episode.mode.basis) == ("solo", Basis.AMBIGUOUS)
    assert [finding.rule for finding in episode.findings] == ["header.mode"]


def test_tau2_ticks_of_a_voice_episode_are_numbered_and_a_gap_is_told_at_its_step(tmp_path: Path) -> None:
    ticks = [
        {"tick_id": tick, "user_chunk": {"content": f"Word {tick}."}, "agent_chunk": {"content": "Yes."}}
        for tick in range(4)
    ]
    value = _tau2(ticks=ticks, mode="full_duplex")
    (episode,) = Read(write_json(tmp_path / "whole.json", value)).episodes
    trace = episode.stated[TRACE]
    assert (trace["by"], trace["broken"], len(episode.steps())) == (["tick_id"], None, 8)
    del ticks[2]
    (episode,) = Read(write_json(tmp_path / "less.json", value)).episodes
    assert episode.stated[TRACE]["broken"] == [4, "tick_id 3 stands where 2 belongs"]


def test_tau2_folder_with_an_index_names_what_is_missing_and_what_is_too_much(tmp_path: Path) -> None:
    value = _tau2()
    (simulation,) = value.pop("simulations")
    write_json(tmp_path / "results.json", value | {"simulation_index": ["s", "gone", "../../etc/passwd"]})
    write_json(tmp_path / "simulations/s.json", simulation)
    write_json(tmp_path / "simulations/extra.json", simulation | {"id": "extra", "trial": 1})
    found = Read(tmp_path)
    assert len(found.episodes) == 2
    assert [f.what for f in found.findings] == [
        "simulation '../../etc/passwd' has no file",
        "simulation 'extra' is not in simulation_index",
        "simulation 'gone' has no file",
    ]


@pytest.mark.parametrize(
    ("name", "episodes", "passed", "mode"),
    [
        ("airline_gpt-4.1_20x1.json.gz", 20, 10, "normal"),
        ("airline_toolorchestra_50x1.json.gz", 50, 28, "normal"),
        ("telecom_gpt-4.1_dual_40x1.json.gz", 40, 18, "dual_control"),
        ("telecom_gpt-4.1_solo_40x1.json.gz", 40, 20, "solo"),
        ("voice_dir", 3, 0, "full_duplex"),
    ],
)
def test_tau2_files_are_read_in_their_true_mode(
    airline: Path, name: str, episodes: int, passed: int, mode: str
) -> None:
    found = Read(airline / "tau2/results" / name)
    assert (len(found.episodes), found.outcomes().count("passed")) == (episodes, passed)
    assert {e.mode.value for e in found.episodes} == {mode}
    assert not found.findings
    users = {step.kind for e in found.episodes for step in e.steps() if step.actor is Actor.USER}
    assert ("tool.call" in users) == (mode == "dual_control")


def test_the_leaderboard_submission_contradicts_itself_record_by_record(airline: Path) -> None:
    found = Read(airline / "tau2/results/airline_toolorchestra_50x1.json.gz")
    wrong = {e.task.id: e.findings[0] for e in found.episodes if e.findings}
    # 49 labels are wrong and 10 is right: what is proposed is a permutation of the tasks.
    assert len(wrong) == 49
    assert {finding.rule for finding in wrong.values()} == {"label.task"}
    assert {f.proposal["task_id"] for f in wrong.values()} | {"10"} == {str(n) for n in range(50)}
    assert wrong["0"].proposal == {"task_id": "27"}
    assert "4 of 4 signs agree" in wrong["0"].evidence
    assert {e.task.id for e in found.episodes} == {str(n) for n in range(50)}  # nothing was applied


def test_a_sound_submission_has_no_wrong_label(airline: Path) -> None:
    found = Read(airline / "tau2/results/airline_gpt-4.1_20x1.json.gz")
    assert not [e for e in found.episodes if e.findings]
