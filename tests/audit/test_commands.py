"""`assay audit` and `assay score` as commands: what they print, and their exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.api.audit_views import status
from harness.report.trend import plot_trend, segments, trend_text

from ..integration.world import Done, assay
from .worlds import ACTORS, CHECK, PASS, Files, Laboratory


@pytest.fixture
def suite(laboratory: Laboratory) -> Laboratory:
    laboratory.write({f"t{n}": Files(do=f"Task {n}") for n in range(4)})
    return laboratory


def on(laboratory: Laboratory, *words: str) -> Done:
    """An audit command on the laboratory's suite; its store stands in for whatever folder is named."""
    laboratory.pass_time(minutes=1)
    return assay("audit", *words, "--suite", str(laboratory.suite), "--store", "memory")


def run(laboratory: Laboratory, below: int) -> str:
    laboratory.pass_time(minutes=1)
    options = ("--solver", f"{ACTORS}:Counting", "--solver-option", f"below={below}", "--agent", "counting")
    done = assay("run", "--suite", str(laboratory.suite), *options, "--store", "memory", "--json")
    assert done.code == 0, done.err
    return str(done.json["run"])


def test_a_sound_suite_exits_0_and_its_run_is_scored(suite: Laboratory) -> None:
    done = on(suite, "all", "--mutants", "0")
    assert done.code == 0, done.err
    assert "achievable  4 of 4" in done.out
    assert "receipt     sha256:" in done.out
    first = run(suite, 3)
    told = assay("score", first, "--store", "memory")
    assert told.code == 0, told.err
    assert "score       75.0 % = 3/4 of the achievable" in told.out
    assert "4 of 4 achievable, 0 unavailable (0.0 %), by cycle" in told.out
    both = assay("score", run(suite, 2), "--baseline", first, "--store", "memory")
    assert "0 gained and 1 lost on the 4 tasks available in both" in both.out
    shown = assay("show", first, "--store", "memory")
    assert "ceiling   75.0 % of what was achievable; 4 of 4 achievable" in shown.out


def test_without_an_audit_there_is_no_score_and_exit_3(suite: Laboratory) -> None:
    name = run(suite, 3)
    done = assay("score", name, "--store", "memory")
    assert done.code == 3
    assert "none: ceiling not measured; between [75.0, 75.0] % of all 4 tasks passed" in done.out
    allowed = assay("score", name, "--allow-unaudited", "--store", "memory", "--json")
    assert (allowed.code, allowed.json["score"]["score"]) == (0, None)
    assert "ceiling   not measured" in assay("show", name, "--store", "memory").out


def test_an_alert_exits_3_and_json_is_one_document(suite: Laboratory) -> None:
    Files(check=f"{PASS}\n").write(suite.suite / "t0")
    suite.lock()
    done = on(suite, "all", "--mutants", "0", "--json")
    assert done.code == 3
    report: dict[str, Any] = json.loads(done.out)
    assert report["cycle"]["causes"] == {"null.passed": 1}
    assert on(suite, "all", "--mutants", "0", "--changed").code == 3  # it still stands
    told = on(suite, "status")
    assert told.code == 3
    assert "unavailable 1 passes with nothing done" in told.out
    assert "t0 since 2026-03-01: passed 1 of 1 with nothing done" in told.out


def test_sentinels_one_by_one_make_a_whole(suite: Laboratory) -> None:
    assert on(suite, "gold").code == 3  # null is absent
    assert "0 of 4" in on(suite, "gold").out
    done = on(suite, "null")
    assert (done.code, "achievable  4 of 4" in done.out) == (0, True)
    assert on(suite, "mutant", "--mutants", "1").code == 0


def test_people_decide_with_reasons(suite: Laboratory) -> None:
    on(suite, "all", "--mutants", "0")
    assert on(suite, "retire", "t0", "--reason", "the service was shut down").code == 0
    told = on(suite, "status")
    assert "retired     t0" in told.out
    assert "break       2026-03-01 retire of t0: the service was shut down" in told.out
    again = on(suite, "retire", "t0", "--reason", "again")
    assert (again.code, "retired already" in again.err) == (2, True)
    assert on(suite, "repair", "t0", "--reason", "").code == 2
    assert on(suite, "repair", "t0", "--reason", "it is back").code == 0
    assert "achievable  4 of 4" in on(suite, "status").out
    refused = on(suite, "accept", "t0", "--reason", "equivalent")
    assert (refused.code, "no mutant of t0 survives" in refused.err) == (2, True)
    shown = on(suite, "explain", "t0")
    assert "repair      2026-03-01: it is back" in shown.out
    assert re.search(r"wall: \d+\.\d s of 600\.0 s", shown.out)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("status", "--suite", "nowhere"), "no suite at 'nowhere'"),
        (("explain", "t9"), "no task 't9' in the last audit of demo"),
        (("repair", "t00", "--reason", "x"), "near: t0"),
        (("retire", "zzz", "--reason", "x"), "`assay suite list` names them"),
        (("all", "--count-mutants", "some"), "--count-mutants: 'some': input should be 'all', 'declared' or 'none'"),
        (("status", "--stale-days", "-1"), "--stale-days: -1.0: input should be greater than 0"),
        (("gold", "--stale-days", "nan"), "--stale-days: nan: input should be greater than 0"),
        (("mutant", "--mutants", "0"), "no mutant is to be tried: ask for one or more"),
        (("accept", "t0", "--reason", "x"), "no mutant of t0 survives"),
        (("all", "--task", "nothing*"), "no task of demo matches 'nothing*'"),
        (("gold", "--repeat", "0"), "repeat"),
        (("all", "--webhook", "https://hooks.example.org"), "a webhook needs a secret to sign with"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line_with_exit_2(
    suite: Laboratory, words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASSAY_WEBHOOK_SECRET", raising=False)
    if "nowhere" in words:
        done = assay("audit", *words, "--store", "memory")
    else:
        on(suite, "all", "--mutants", "0")
        done = on(suite, *words)
    assert done.code == 2, done.out
    assert said in done.err
    assert "Traceback" not in done.err


def test_the_trend_breaks_where_the_series_does(suite: Laboratory, tmp_path: Path) -> None:
    run(suite, 3)
    on(suite, "all", "--mutants", "0")
    suite.pass_time(days=7)
    suite.gone.add("base:1")
    on(suite, "all", "--mutants", "0")
    suite.gone.clear()
    suite.pass_time(days=7)
    Files(do="Task 0", check=f"echo new\n{CHECK}").write(suite.suite / "t0")
    suite.lock()
    on(suite, "all", "--mutants", "0")
    run(suite, 2)
    found = status(suite.request())
    assert [[point.achievable for point in points] for points in segments(found.trend)] == [[4, 0], [4]]
    assert [point.achievable for point in found.scores] == [0.75, 0.5]
    text = trend_text(found)
    assert text.count("the series broke: do not compare across") == 2  # among cycles, and among runs
    assert "0/4  ░░░░" in text
    pytest.importorskip("matplotlib")
    for kind in ("png", "svg"):
        plot_trend(found, tmp_path / f"trend.{kind}")
        assert (tmp_path / f"trend.{kind}").stat().st_size > 10_000
