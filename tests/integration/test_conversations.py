"""The bundled conversations by command: no engine, every hash kept through an export, graded again the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from .world import assay

ENDS = ("--suite", "airline", "--task", "desk/*", "--task", "transfers/*")


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No container engine."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nowhere.sock")


@pytest.mark.usefixtures("away")
def test_a_run_of_conversations_needs_no_engine_and_travels_whole(tmp_path: Path) -> None:
    store, copy, file = (str(tmp_path / name) for name in ("store", "copy", "run.jsonl"))
    done = assay("run", *ENDS, "--solver", "reference", "--store", store, "--json")
    assert (done.code, done.json["outcomes"]["passed"]) == (0, 10), done.err
    again = assay("regrade", "latest", "--grader", "conversation@1", "--store", store, "--json")
    assert (again.code, again.json["outcomes"]["passed"], again.json["moved"]) == (0, 10, 0), again.err
    assert assay("export", "latest", "--to", "jsonl", "--out", file, "--store", store).code == 0
    assert assay("import", file, "--store", copy).code == 0
    report = assay("verify", "latest", "--store", copy, "--json").json
    assert report["ok"], report
    assert not report["notices"]


@pytest.mark.usefixtures("away")
def test_nothing_done_is_a_fail_and_a_solver_that_cannot_converse_is_refused(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    done = assay("run", *ENDS, "--solver", "noop", "--store", store, "--json")
    assert (done.code, done.json["outcomes"]["failed"]) == (0, 10), done.err
    refused = assay("run", *ENDS, "--solver", "command", "--solver-option", "command=true", "--store", store)
    assert refused.code == 2
    assert "does not converse" in refused.err


@pytest.mark.usefixtures("away")
def test_an_interrupted_run_is_taken_up_without_an_engine(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    options = ("--solver-option", "mutant=1", "--solver", "mutated", "--store", store, "--retries", "0", "--json")
    done = assay("run", *ENDS, *options)
    assert done.json["outcomes"]["ungraded"], done.err  # tasks with one mutant only
    again = assay("resume", done.json["run"], "--store", store, "--json")
    assert again.json["outcomes"] == done.json["outcomes"], again.err
