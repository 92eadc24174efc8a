"""Harbor jobs and ATIF trajectories."""

from __future__ import annotations

import json
from pathlib import Path

from harness.records.vocabulary import Reason, StopReason
from tests.importers.reading import DATA, Read, write_json


def test_harbor_job_with_trajectories() -> None:
    found = Read(DATA / "harbor_job")
    assert found.recognition.format == "harbor"
    ends = {(e.task.id, e.repeat): (e.outcome.value, e.stop, e.reason) for e in found.episodes}
    assert ends == {
        ("hello", 0): ("passed", StopReason.FINISHED, None),
        ("hello", 1): ("failed", StopReason.FINISHED, None),
        ("slow", 0): ("passed", StopReason.TIME, None),  # a time-out of the agent is a stop, not a verdict
        ("broken", 0): ("ungraded", StopReason.FINISHED, Reason.GRADER_TIMEOUT),
        ("crash", 0): ("ungraded", StopReason.INFRASTRUCTURE, Reason.VERDICT_MISSING),
    }
    hello = found.episode("hello")
    assert (hello.seconds, hello.cost_usd, hello.task.instruction) == (30.0, 0.003, "Write hello to /app/hello.txt")
    assert [s.kind for s in hello.steps()] == [
        "message", "message", "model.call", "tool.call", "tool.result", "message", "model.call",
    ]  # fmt: skip
    assert (found.runs[0].scaffold, found.runs[0].model, found.runs[0].suite) == ("toy-agent", "toy/model-1", "toys")


def test_harbor_result_that_contradicts_the_verifier_and_a_foreign_version(tmp_path: Path) -> None:
    trial = json.loads((DATA / "harbor_job/hello__aaa/result.json").read_text())
    write_json(tmp_path / "a/result.json", trial)
    (tmp_path / "a/verifier").mkdir()
    (tmp_path / "a/verifier/reward.txt").write_text("0\n")
    write_json(tmp_path / "b/result.json", trial | {"schema_version": 9})
    found = Read(tmp_path)
    assert [finding.rule for e in found.episodes for finding in e.findings] == ["reward.file"]
    assert [(finding.rule, finding.unread) for finding in found.findings] == [("archive.version", True)]


def test_atif_of_a_later_version_is_listed(tmp_path: Path) -> None:
    value = json.loads((DATA / "harbor_job/hello__aaa/agent/trajectory.json").read_text())
    write_json(tmp_path / "old.json", value)
    write_json(tmp_path / "new.json", value | {"schema_version": "ATIF-v9.0"})
    found = Read(tmp_path)
    assert found.outcomes() == ["ungraded"]
    assert [finding.what for finding in found.findings] == [
        "schema_version ATIF-v9.0 is not known; this version reads up to ATIF-v1.8"
    ]


def test_atif_totals_that_do_not_add_up(tmp_path: Path) -> None:
    value = json.loads((DATA / "harbor_job/hello__aaa/agent/trajectory.json").read_text())
    value["final_metrics"]["total_prompt_tokens"] = 500
    (episode,) = Read(write_json(tmp_path / "t.json", value)).episodes
    assert [(f.rule, f.what) for f in episode.findings] == [("totals.usage", "500, its steps give 250")]
