"""Flat tables."""

from __future__ import annotations

from pathlib import Path

from tests.importers.reading import Read


def test_flat_matrix_is_a_run_per_agent_date_and_trial(tmp_path: Path) -> None:
    rows = [
        "agent,date,task,trial,outcome,cost_usd,steps",
        "a,2026-01-01,x,1,1,,5",
        "a,2026-01-01,x,2,0,0.5,",
        "b,,x,1,,,",
    ]
    (tmp_path / "m.csv").write_text("\n".join([*rows, "a,2026-01-01,y,1,maybe,,", "too,few"]) + "\n")
    found = Read(tmp_path / "m.csv")
    assert [run.key for run in found.runs] == ["a 2026-01-01 #1", "a 2026-01-01 #2", "b #1"]
    assert [(e.outcome.value, e.cost_usd, e.step_count) for e in found.episodes] == [
        ("passed", None, 5),
        ("failed", 0.5, None),
        ("ungraded", None, None),
    ]
    assert [finding.what for finding in found.findings] == [
        "outcome 'maybe' is neither passed, failed, ungraded, invalid, 0 nor 1",
        "2 fields where the header has 7",
    ]
    assert found.episodes[0].source.offset == len(rows[0]) + 1


def test_flat_rows_that_a_note_calls_ungraded_are_not_failed(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("agent,task,outcome,note\na,x,0,ungraded\na,y,0,\n")
    found = Read(tmp_path / "m.csv")
    assert [episode.outcome.value for episode in found.episodes] == ["ungraded", "failed"]
    assert found.episodes[0].grading.evidence == "note is 'ungraded'"
