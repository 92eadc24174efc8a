"""assay cross and assay regrade: what a shell sees."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

from tests.cli.inside import assay
from tests.importers.reading import write_json
from tests.replay.shop_archives import SHOP, other_tasks, tau_bench_archive

OLD, NEW = "tau-bench@until-718ffa1", "tau-bench@718ffa1"


def test_cross_prints_cells_moves_and_effects(tmp_path: Path) -> None:
    archive, later = tau_bench_archive(tmp_path), other_tasks(tmp_path)
    given = ("cross", archive, "--environment", SHOP, "--graders", f"{OLD},{NEW}", "--data", f"recorded,later={later}")
    ended = assay(*given)
    assert ended.code == 0, ended.err
    for words in (
        "5 episodes of 2 tasks; 4 with a verdict in every cell",
        "3/4 of 5    75.0 %  60.0 to 80.0 %       75.0 %  1 verdict.missing",
        "the baseline reproduces all 4 recorded outcomes",
        f"{NEW} on recorded, normal: 1 pass to fail, 0 fail to pass, 2 pass, 1 fail; 1 without one of the two",
        "tasks that moved: 1 (−1 +0)",
        "grader first: grader -25.0 pp, then data +0.0 pp",
        "data first:   data -25.0 pp, then grader +0.0 pp",
        "interaction:  +25.0 pp",
    ):
        assert words in ended.out
    out = tmp_path / "cells.csv"
    found = assay(*given, "--out", out, "--json").json
    rows = list(csv.DictReader(out.open()))
    assert len(rows) == 20
    assert {row["reason"] for row in rows if row["outcome"] == "ungraded"} == {"verdict.missing"}
    assert Counter(row["outcome"] for row in rows if row["grader"] == OLD and row["data"] == "recorded")["passed"] == 3
    assert found["schema_name"] == "assay-cross/1"
    assert len(found["cells"]) == 4


def test_cross_exits_3_for_an_empty_cell_and_for_a_baseline_that_is_not_the_record_s(tmp_path: Path) -> None:
    archive = tau_bench_archive(tmp_path)
    solo = assay("cross", archive, "--environment", SHOP, "--graders", OLD, "--mode", "normal,solo")
    assert solo.code == 3
    assert "solo    none: no episode has a verdict: 5 mode" in solo.out
    wrong = assay("cross", archive, "--environment", SHOP, "--graders", NEW)
    assert wrong.code == 3
    assert "1 of 4 recorded outcomes moved before any rule or data did" in wrong.out


def test_cross_refuses_what_cannot_be_meant(tmp_path: Path) -> None:
    archive = tau_bench_archive(tmp_path)
    for given, words in (
        (("--graders", "tau-bench@1"), "did you mean"),
        (("--graders", OLD, "--mode", "group"), "its modes are: normal, solo"),
        (("--graders", OLD, "--data", "yesterday"), "data versions are early, late"),
        (("--graders", ","), "no grader is named"),
    ):
        ended = assay("cross", archive, "--environment", SHOP, *given)
        assert (ended.code, ended.out) == (2, "")
        assert words in ended.err
    nothing = assay("cross", write_json(tmp_path / "x.json", {"a": 1}), "--environment", SHOP, "--graders", OLD)
    assert nothing.code == 2
    assert "no known format" in nothing.err


def test_regrade_keeps_the_old_scores_and_export_brings_the_corrections(tmp_path: Path) -> None:
    archive, store = tau_bench_archive(tmp_path), tmp_path / "store"
    ended = assay("regrade", archive, "--grader", NEW, "--environment", SHOP, "--store", store)
    assert ended.code == 3, "one episode was never ended: it has no grade"
    assert "now 2 passed, 2 failed, 1 ungraded" in ended.out
    assert "passed → failed  tau-bench@718ffa1 on recorded: the end state is not the reference's" in ended.out
    assert "is run tau-bench-" in ended.err
    shown = assay("show", "latest", "--store", store)
    assert "3/4" in shown.out, shown.out
    again = assay("regrade", "latest", "--grader", OLD, "--environment", SHOP, "--store", store, "--json")
    assert (again.json["header"]["regrade"], again.json["moved"]) == ("regrade-2", 0)
    out = tmp_path / "runs.csv"
    assert assay("export", "latest", "--store", store, "--out", out).code == 0
    lines = out.with_name("runs.csv.corrections.jsonl").read_text().splitlines()
    assert [json.loads(line)["grader_to"] for line in lines] == [NEW]
    assert "later grading corrects 1 of these outcomes" in assay("export", "latest", "--store", store).err
    kept = assay("regrade", "latest", "--kept", "--store", store)
    assert ("regrade-1: tau-bench@718ffa1" in kept.out, "regrade-2" in kept.out, kept.code) == (True, True, 3)
    assert assay("verify", "latest", "--store", store).code == 0


def test_regrade_says_what_is_missing(tmp_path: Path) -> None:
    archive, store = tau_bench_archive(tmp_path), tmp_path / "store"
    ended = assay("regrade", archive, "--grader", NEW, "--store", store)
    assert ended.code == 2
    assert "--environment" in ended.err
    assert assay("regrade", "nothing-like-it", "--grader", NEW, "--store", store).code == 2


def test_conversations_of_our_own_are_graded_again_in_their_own_environments(tmp_path: Path) -> None:
    """To do nothing is right in one of them, but it also has to be said: the rules differ in that."""
    store = tmp_path / "store"
    tasks = ("--task", "refusals/01", "--task", "desk/01")
    ran = assay("run", "--suite", "airline", "--solver", "noop", *tasks, "--store", store)
    assert ran.code == 0, ran.err
    same = assay("regrade", "latest", "--grader", "conversation@1", "--store", store, "--json")
    assert same.code == 0, same.err
    assert (same.json["moved"], same.json["header"]["environment"]) == (0, "mock@tau2, airline@v1")
    other = assay("regrade", "latest", "--grader", "tau2@1.0", "--store", store, "--json").json
    moved = {grade["task"]: grade["grade"]["outcome"] for grade in other["grades"] if grade["old"] == "failed"}
    assert moved == {"desk/01": "failed", "refusals/01": "passed"}
    assert other["grades"][0]["old_grader"] == "conversation@1"
    suite = assay("regrade", "latest", "--grader", "tau2@1.0", "--suite", "airline", "--store", store)
    assert suite.code == 2
    assert "--data" in suite.err


def test_what_was_cut_off_is_planned_and_has_no_grade(tmp_path: Path) -> None:
    whole = tau_bench_archive(tmp_path)
    episodes = json.loads(whole.read_text(encoding="utf-8"))
    graded = [episode for episode in episodes if episode["info"]["reward_info"]]
    cut = tmp_path / "cut.json"
    cut.write_text(json.dumps(graded)[:-40], encoding="utf-8")
    crossed = assay("cross", cut, "--environment", SHOP, "--graders", OLD)
    assert crossed.code == 3
    assert f"of ≥{len(graded)} " in crossed.out
    assert "1 absent" in crossed.out
    assert "at least 1 planned episode not in the archive" in crossed.out
    (line,) = assay("cross", cut, "--environment", SHOP, "--graders", OLD, "--json").json["cells"]
    assert (line["planned"], line["valid"]) == (len(graded), len(graded) - 1)
    regraded = assay("regrade", cut, "--grader", OLD, "--environment", SHOP, "--store", tmp_path / "store")
    assert regraded.code == 3
    assert "1 part of the archive could not be read" in regraded.out
    assert "not read:" in regraded.err
