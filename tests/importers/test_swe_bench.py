"""SWE-bench predictions and reports."""

from __future__ import annotations

import json
from pathlib import Path

from harness.records.archive import Basis
from harness.records.vocabulary import Outcome
from tests.importers.reading import Read, write_json


def test_swe_bench_report_grades_only_what_is_listed_as_graded(tmp_path: Path) -> None:
    report = {
        "submitted_ids": ["a", "b", "c", "d"],
        "resolved_ids": ["a"],
        "unresolved_ids": ["b"],
        "error_ids": ["c"],
        "empty_patch_ids": ["d"],
        "incomplete_ids": ["e"],
        "schema_version": 2,
        "total_instances": 5,
        "resolved_instances": 1,
    }
    write_json(tmp_path / "m.run.json", report)
    lines = [{"instance_id": i, "model_name_or_path": "m-1", "model_patch": f"diff {i}"} for i in "abc"]
    (tmp_path / "preds.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    found = Read(tmp_path)
    assert {e.task.id: e.outcome.value for e in found.episodes} == {
        "a": "passed", "b": "failed", "c": "ungraded", "d": "ungraded",
    }  # fmt: skip
    assert found.runs[0].tasks == ("a", "b", "c", "d", "e")
    assert found.runs[0].model == "m-1"
    assert [step.payload["content"] for step in found.episode("a").steps()] == ["diff a"]


def test_swe_bench_patch_not_applied_means_two_things(tmp_path: Path) -> None:
    flags = {"patch_is_None": False, "patch_exists": True, "patch_successfully_applied": False, "resolved": False}
    for instance, log in (("timeout", ">>>>> Tests Timed Out"), ("apply", ">>>>> Patch Apply Failed")):
        folder = tmp_path / "run/model" / instance
        write_json(folder / "report.json", {instance: flags})
        (folder / "test_output.txt").write_text(log)
    found = Read(tmp_path)
    assert found.episode("timeout").outcome is Outcome.UNGRADED
    assert found.episode("timeout").grading.basis is Basis.AMBIGUOUS
    assert found.episode("apply").outcome is Outcome.FAILED


def test_swe_bench_predictions_alone_are_ungraded(tmp_path: Path) -> None:
    value = [{"instance_id": "a", "model_name_or_path": "m", "model_patch": "diff"}]
    assert Read(write_json(tmp_path / "p.json", value)).outcomes() == ["ungraded"]
