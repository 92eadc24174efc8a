"""Stored runs and archives graded again: old scores kept, new ones linked, corrections that travel with exports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.api.archives import import_archive
from harness.api.export_lines import export_lines
from harness.api.exports import ExportFormat, export_run
from harness.api.regrades import RegradeReport, RegradeRequest, regrade
from harness.api.regrades_writing import corrections, regrades
from harness.grading.episodes.registry import episode_grader
from harness.records.environment import EnvironmentFault
from harness.records.errors import ConfigError, StoreError
from harness.records.vocabulary import Outcome
from harness.store.sqlite import SqliteStore
from harness.store.verify import verify_run
from tests.replay.shop_archives import SHOP, other_tasks, tau_bench_archive
from tests.replay.test_crosses import _tau2_archive

NEW = "tau-bench@718ffa1"


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "store")


def graded(store: SqliteStore, target: object, **fields: object) -> RegradeReport:
    asked = {"grader": NEW, "environment": SHOP} | fields
    (report,) = regrade(RegradeRequest(str(target), **asked), store)  # type: ignore[arg-type]
    return report


def test_an_archive_is_imported_and_graded_again_and_the_old_scores_stay(tmp_path: Path, store: SqliteStore) -> None:
    path = tau_bench_archive(tmp_path)
    report = graded(store, path)
    assert (report.moved, report.whole) == (1, False)
    assert report.outcomes[Outcome.PASSED] == 2
    assert (report.transition.n10, report.transition.n01, report.transition.missing) == (1, 0, 1)
    kept = [trial.result.outcome.value for trial in store.trials(report.run) if trial.result is not None]
    assert kept == ["passed", "failed", "passed", "passed", "ungraded"], "the record"
    assert verify_run(store, report.run).problems == ()


def test_a_new_grade_links_to_the_old_one_and_to_all_it_rests_on(tmp_path: Path, store: SqliteStore) -> None:
    report = graded(store, tau_bench_archive(tmp_path), data="late")
    header = report.header
    source = store.run(report.run).config.extra["import"]
    assert (header.regrade, header.grader, header.archive) == ("regrade-1", NEW, source["digest"])
    assert (header.code, header.rule) == (episode_grader(NEW).code, episode_grader(NEW).rule)
    assert (header.environment, header.mode, header.data) == ("shop@1", "normal", "late")
    assert header.data_digest.startswith("sha256:")
    ((stored, grades),) = regrades(store, report.run)
    assert (stored, grades) == (header, report.grades)
    lost = next(grade for grade in grades if grade.grade.outcome is Outcome.INVALID)
    assert (lost.old, lost.moved, lost.grade.reward) == (Outcome.FAILED, True, None)
    assert len({grade.evidence for grade in grades}) == len(grades)


def test_regrades_are_numbered_and_the_same_one_says_the_same(tmp_path: Path, store: SqliteStore) -> None:
    path = tau_bench_archive(tmp_path)
    first, second = graded(store, path), graded(store, path)
    assert (first.header.regrade, second.header.regrade) == ("regrade-1", "regrade-2")
    assert [grade.evidence for grade in first.grades] == [grade.evidence for grade in second.grades]
    by_run = graded(store, first.run[:14])
    assert (by_run.run, by_run.header.regrade) == (first.run, "regrade-3")
    assert len(corrections(store, first.run)) == 3


def test_corrections_travel_with_every_export(tmp_path: Path, store: SqliteStore) -> None:
    report = graded(store, tau_bench_archive(tmp_path))
    csv, lines, atif = tmp_path / "runs.csv", tmp_path / "run.jsonl", tmp_path / "atif"
    export_run(store, report.run, ExportFormat.FLAT, csv)
    export_run(store, report.run, ExportFormat.JSONL, lines)
    export_run(store, report.run, ExportFormat.ATIF, atif)
    files = [csv.with_name("runs.csv.corrections.jsonl"), lines.with_name("run.jsonl.corrections.jsonl")]
    files.append(atif / "corrections.jsonl")
    assert len({file.read_bytes() for file in files}) == 1
    (line,) = [json.loads(text) for text in files[0].read_text().splitlines()]
    assert (line["schema_name"], line["run"], line["task"]) == ("assay-correction/1", report.run, "1")
    assert (line["old"], line["new"]) == ("passed", "failed")
    assert (line["grader_from"], line["grader_to"]) == ("as recorded", NEW)
    assert "the end state is not the reference's" in line["reason"]
    assert line["evidence"].startswith("sha256:")
    assert line["archive"] == report.header.archive
    other = SqliteStore(tmp_path / "other")
    import_archive(lines, other)
    assert corrections(other, report.run) == corrections(store, report.run)
    assert list(export_lines(other, report.run)) == list(export_lines(store, report.run))


def test_a_run_without_corrections_is_exported_without_a_file_of_them(tmp_path: Path, store: SqliteStore) -> None:
    (run,) = import_archive(tau_bench_archive(tmp_path), store).runs
    export_run(store, run.run, ExportFormat.FLAT, tmp_path / "runs.csv")
    assert [file.name for file in tmp_path.glob("*.jsonl")] == []
    stale = tmp_path / "runs.csv.corrections.jsonl"
    stale.write_text("of an earlier run\n")
    export_run(store, run.run, ExportFormat.FLAT, tmp_path / "runs.csv")
    assert not stale.exists(), "it would be taken for this run's"


def test_other_task_data(tmp_path: Path, store: SqliteStore) -> None:
    report = graded(store, tau_bench_archive(tmp_path), data=str(other_tasks(tmp_path)))
    moved = {(grade.task, grade.repeat): (grade.old.value, grade.grade.outcome.value) for grade in report.grades}
    assert moved[("0", 0)] == ("passed", "failed")
    assert moved[("0", 1)] == ("failed", "passed")


def test_labels_are_put_right_on_demand_only(tmp_path: Path, store: SqliteStore) -> None:
    path = _tau2_archive(tmp_path)
    stated = graded(store, path, grader="tau2@0.1")
    assert stated.outcomes[Outcome.INVALID] == 2
    assert "label:" in stated.grades[0].grade.detail
    right = graded(store, path, grader="tau2@0.1", relabel=True)
    assert (right.outcomes[Outcome.PASSED], right.moved) == (2, 0)


def test_in_a_mode_that_the_run_was_not_recorded_in_nothing_has_a_grade(tmp_path: Path, store: SqliteStore) -> None:
    report = graded(store, tau_bench_archive(tmp_path), mode="solo")
    assert report.outcomes[Outcome.INVALID] == 5
    assert "not recorded in solo" in report.grades[0].grade.detail


def test_what_cannot_be_meant_is_refused_before_anything_is_kept(tmp_path: Path, store: SqliteStore) -> None:
    path = tau_bench_archive(tmp_path)
    (run,) = import_archive(path, store).runs
    for fields, fault, words in (
        ({"grader": None}, ConfigError, "no grader"),
        ({"grader": "tau-bench@9"}, ConfigError, "did you mean"),
        ({"environment": None}, ConfigError, "it does not lie beside the archive, and no folder is named"),
        ({"mode": "group"}, EnvironmentFault, "no mode 'group'"),
        ({"data": "nowhere"}, ConfigError, "no file"),
        ({"suite": "tasks"}, ConfigError, "--data"),
    ):
        with pytest.raises(fault, match=words):
            graded(store, run.run, **fields)
    with pytest.raises(StoreError):
        graded(store, "no-such-run")
    assert list(regrades(store, run.run)) == []
