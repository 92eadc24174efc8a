"""What the commands say about a run that is over, and what verification finds when somebody changed it."""

from __future__ import annotations

import csv
import io
import shutil
import sqlite3
from pathlib import Path

import pytest

from harness.records.task import ImagePin
from harness.store.flat import COLUMNS

from .world import CRASHING, OBEDIENT, RIGHT, WRONG, Done, TaskFiles, World

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, base_pin: ImagePin) -> tuple[World, Done]:
    """A run of three tasks: passed, failed, and without a verdict."""
    world = World(tmp_path_factory.mktemp("finished"), base_pin)
    world.tasks(
        passed=TaskFiles("echo said\n" + RIGHT),
        failed=TaskFiles(WRONG),
        unclear=TaskFiles(check="echo cannot tell >&2\nexit 9\n"),
    )
    return world, world.run(OBEDIENT, "--agent", "obedient")


def test_show_says_what_the_run_said(finished: tuple[World, Done]) -> None:
    world, done = finished
    assert done.code == 3
    shown = world.on_store("show", "latest", "--json")
    assert (shown.code, shown.json) == (0, done.json)
    text = world.on_store("show", done.json["run"][:15], "--trials").out
    assert "50.0 % = 1/2 graded; all planned: [33.3, 66.7] %" in text
    assert "ungraded (grader.crashed)" in text
    assert f"assay resume {done.json['run']} --store {world.store}" in text
    assert (done.json["state"], done.json["selected"], done.json["suite_tasks"]) == ("incomplete", 3, 3)


def test_a_trial_shows_its_result_and_its_events(finished: tuple[World, Done]) -> None:
    world, done = finished
    passed = next(trial for trial in done.json["trials"] if trial["task"] == "passed")["trial"]
    shown = world.on_store("trial", passed, "--json").json
    moves = [event["payload"]["to"] for event in shown["events"] if event["kind"] == "trial.state"]
    assert moves == ["planned", "preparing", "interacting", "sealed", "grading", "done"]
    assert [event["seq"] for event in shown["events"]] == list(range(len(shown["events"])))
    assert shown["trial"]["result"]["outcome"] == "passed"
    said = [event["payload"]["stdout"].get("text") for event in shown["events"] if event["kind"] == "exec"]
    assert said[0] == "said\n"
    facts = next(event["payload"] for event in shown["events"] if event["kind"] == "sandbox.opened")
    assert facts["image_digest"] == world.pin.digest
    assert "passed, stop finished" in world.on_store("trial", passed).out
    page = world.on_store("trial", passed, "--full").out
    assert "│ said" in page
    assert "│ echo 42 > /app/answer" in page


def test_what_the_grader_said_is_to_be_had(finished: tuple[World, Done]) -> None:
    world, done = finished
    unclear = next(trial for trial in done.json["trials"] if trial["task"] == "unclear")["trial"]
    (said,) = world.on_store("trial", unclear, "--log", "grade.stderr", "--json").json["bodies"]
    assert said["text"] == "cannot tell\n"
    assert "│ cannot tell" in world.on_store("trial", unclear, "--full").out


def test_a_part_of_a_suite_is_called_that(finished: tuple[World, Done], tmp_path: Path) -> None:
    world, _ = finished
    part = World(tmp_path, world.pin)
    shutil.copytree(world.suite, part.suite)
    done = part.run(OBEDIENT, "--task", "passed")
    assert (done.json["selected"], done.json["suite_tasks"]) == (1, 3)
    assert "on 1 selected task of suite suite (3), version" in part.on_store("show").out


def test_a_solver_that_crashed_after_acting_is_told_at_once_and_later(world: World) -> None:
    world.tasks(one=TaskFiles(WRONG))
    done = world.run(CRASHING)
    assert (done.code, done.json["outcomes"]["failed"]) == (0, 1)
    told = "solver_error: RuntimeError: out of ideas"
    assert f"one: failed, stop {told}" in done.err
    (trial,) = done.json["trials"]
    note = f"1 trial(s) ended in {told}; assay trial {trial['trial']} --log error"
    assert note in done.json["warnings"]
    assert note in world.on_store("show").out
    assert f"failed, stop {told}" in world.on_store("trial", trial["trial"]).out
    (error,) = world.on_store("trial", trial["trial"], "--log", "error", "--json").json["bodies"]
    assert error["text"].splitlines()[-1] == "RuntimeError: out of ideas"


def test_the_export_has_one_row_per_attempt(finished: tuple[World, Done], tmp_path: Path) -> None:
    world, _ = finished
    text = world.on_store("export", "latest").out
    rows = list(csv.DictReader(io.StringIO(text)))
    assert tuple(rows[0]) == COLUMNS
    assert {"agent", "scaffold", "model", "task", "suite_version", "trial", "outcome", "reason", "stop"} <= set(COLUMNS)
    assert {"date", "cost_usd", "tokens", "steps", "seconds"} <= set(COLUMNS)
    assert [(row["task"], row["outcome"], row["reason"]) for row in rows] == [
        ("failed", "failed", ""),
        ("passed", "passed", ""),
        ("unclear", "ungraded", "grader.crashed"),
    ]
    assert {(row["agent"], row["stop"], row["model"]) for row in rows} == {("obedient", "finished", "")}
    assert world.on_store("export", "latest", "--out", str(tmp_path / "runs.csv")).code == 0
    assert (tmp_path / "runs.csv").read_text() == text


def test_runs_are_listed(finished: tuple[World, Done]) -> None:
    world, done = finished
    (row,) = world.on_store("runs", "--json").json["runs"]
    assert (row["run"], row["agent"], row["running"], row["adaptive"]) == (done.json["run"], "obedient", False, False)
    assert (row["state"], row["done"], row["graded"], row["planned"]) == ("incomplete", 3, 2, 3)
    assert (row["score"], row["interval"]) == (done.json["score"], done.json["interval"])
    assert done.json["run"] in world.on_store("runs").out


def test_a_gate_that_is_not_met_is_exit_4(world: World) -> None:
    world.tasks(failed=TaskFiles(WRONG))
    assert world.run(OBEDIENT, "--fail-under", "0.5").code == 4


@pytest.mark.parametrize("table", ["events", "results"])
def test_an_event_that_somebody_changed_is_named(finished: tuple[World, Done], tmp_path: Path, table: str) -> None:
    world, done = finished
    copied = World(tmp_path, world.pin)
    shutil.copytree(world.store, copied.store)
    trial = next(trial for trial in done.json["trials"] if trial["task"] == "failed")["trial"]
    connection = sqlite3.connect(copied.store / "evidence.db")
    for (trigger,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    where = "stream = ? AND kind = 'grade'" if table == "events" else "trial = ?"
    changed = connection.execute(
        f"UPDATE {table} SET body = replace(body, '\"failed\"', '\"passed\"') WHERE {where}", (trial,)
    ).rowcount
    connection.commit()
    connection.close()
    assert changed == 1
    assert not copied.verified()
    broken = copied.on_store("verify", "latest")
    assert broken.code == 3
    first = broken.out.splitlines()[0]
    assert trial in first
    if table == "events":
        seq = next(
            event["seq"]
            for event in world.on_store("trial", trial, "--json").json["events"]
            if event["kind"] == "grade"
        )
        assert f"{trial}, event {seq}:" in first
    assert world.verified()
