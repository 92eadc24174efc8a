"""The bundled conversations by command: no engine, every hash kept through an export, graded again the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
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


def test_the_environment_may_be_a_program_of_ones_own(tmp_path: Path) -> None:
    """The counter of the guide to environments, behind its shim, as the world of a conversation."""
    guide = (Path(__file__).parents[2] / "docs" / "environments.md").read_text()
    program = next(code for code in re.findall(r"```python\n(.*?)```", guide, re.DOTALL) if "def serve(" in code)
    (tmp_path / "counter.py").write_text(program)
    suite = tmp_path / "suite"
    (suite / "tasks").mkdir(parents=True)
    command = f"command:{sys.executable} {tmp_path}/counter.py"
    common = f'environment = {json.dumps(command)}\nmode = "normal"\npolicy = "policy.md"\n'
    (suite / "conversation.toml").write_text(common + "[budget]\ntimeout_sec = 60.0\n")
    (suite / "policy.md").write_text("Count.\n")
    (suite / "tasks" / "sums.toml").write_text(
        '[[task]]\nid = "01"\nanswer = "It is 5 now."\noutputs = ["5"]\n[task.user]\nopening = "Add five."\n'
        '[[task.user.rule]]\nwhen = "it is"\nsay = "Bye."\nends = true\n'
        '[[task.action]]\nname = "add"\narguments = { amount = 5 }\n'
    )
    store = str(tmp_path / "store")
    done = assay("run", "--suite", str(suite), "--solver", "reference", "--repeats", "2", "--store", store, "--json")
    assert done.json["outcomes"]["passed"] == 2, (done.json, done.err)
    wrong = assay("run", "--suite", str(suite), "--solver", "mutated", "--store", store, "--json")
    assert wrong.json["outcomes"]["failed"] == 1, wrong.err
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path / "counter.py") not in listed
