"""assay trial and assay runs on a store that is there: pages, logs, blobs, JSON."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.api import open_store
from harness.cli.shell import run_command_line
from tests.cli.test_shell import ASSAY
from tests.store.samples import draft, result_of, run_row, trial_plan

BYTES = bytes(range(256)) * 40
TRIAL = "run-a.0000.1"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """One trial whose command printed bytes, and whose grader printed a line."""
    with open_store(tmp_path / "store", create=True) as opened:
        opened.create_run(run_row())
        opened.plan([trial_plan()])
        kept, graded = opened.put_blob(BYTES), opened.put_blob(b"1 of 2 checks\x1b[2J\n")
        opened.append(
            [
                draft(TRIAL, "exec.started", {"argv": ["bash", "-c", "make all"]}),
                draft(TRIAL, "exec", {"exit_code": 0, "stdout": {"text": None}}, blobs={"stdout": kept}),
                draft(TRIAL, "grade", {"outcome": "passed"}, blobs={"stdout": graded}),
            ]
        )
        opened.finish(result_of(TRIAL), [])
    return tmp_path / "store"


@dataclass
class Command:
    """`assay` on a store, in this process, its output byte for byte."""

    store: Path
    monkeypatch: pytest.MonkeyPatch
    output: pytest.CaptureFixture[bytes]

    def ended(self, *arguments: str) -> tuple[int, bytes, str]:
        """Exit code, stdout, stderr."""
        self.monkeypatch.setattr(sys, "argv", ["assay", *arguments, "--store", str(self.store)])
        with pytest.raises(SystemExit) as ended:
            run_command_line()
        out, err = self.output.readouterr()
        return int(ended.value.code or 0), out, err.decode()

    def told(self, *arguments: str) -> bytes:
        """What `assay trial` writes to stdout."""
        code, out, err = self.ended("trial", TRIAL, *arguments)
        assert code == 0, err
        return out

    def asked(self, *arguments: str) -> Any:
        return json.loads(self.told(*arguments, "--json"))


@pytest.fixture
def command(store: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(store, monkeypatch, capsysbinary)


def test_a_log_or_a_blob_in_a_file_is_what_was_kept(command: Command) -> None:
    assert command.told("--log", "exec.stdout") == BYTES
    assert command.told("--log", "command") == b"make all"
    (body,) = command.asked("--log", "exec.stdout")["bodies"]
    digest = body["sha256"]
    assert command.told("--blob", digest) == command.told("--blob", digest[7:20]) == BYTES


def test_a_page_and_its_json_show_what_was_printed(command: Command) -> None:
    plain, full = command.told().decode(), command.told("--full").decode()
    assert plain.splitlines()[1] == "passed, stop finished"
    assert "│" not in plain
    assert "│ make all" in full
    assert "│ 1 of 2 checks\\x1b[2J" in full
    assert "binary" in full
    shown = command.asked("--full")
    assert shown["trial"]["result"]["stop_detail"] == ""
    assert {body["name"] for body in shown["bodies"]} == {"0.command", "1.stdout", "2.stdout"}
    assert shown["bodies"][2]["text"] == "1 of 2 checks\x1b[2J\n"
    assert "bodies" not in command.asked()


def test_on_a_terminal_a_log_cannot_steer_it(store: Path) -> None:
    ours, theirs = pty.openpty()
    command = [*ASSAY, "trial", TRIAL, "--store", str(store), "--log", "grade.stdout"]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    assert os.read(ours, 4096).split() == rb"1 of 2 checks\x1b[2J".split()
    os.close(ours)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--log", "exec.stdot"], "exec.stdout"),
        (["--blob", "0000"], "no blob of this trial"),
        (["--full", "--log", "command"], "exclude each other"),
        (["--blob", "00", "--json"], "--log NAME --json"),
    ],
)
def test_what_cannot_be_shown_says_what_can(command: Command, arguments: list[str], words: str) -> None:
    code, out, err = command.ended("trial", TRIAL, *arguments)
    assert (code, out) == (2, b"")
    assert words in err


def test_runs_are_listed_with_state_and_score(command: Command) -> None:
    _, out, _ = command.ended("runs")
    heading, row = out.decode().splitlines()
    assert heading.split()[0] == "run"
    assert row.split()[3:7] == ["complete", "1/1", "100.0", "%"]
    (line,) = json.loads(command.ended("runs", "--json")[1])["runs"]
    assert {"run", "created", "state", "planned", "done", "graded", "score", "interval"} <= set(line)
    assert (line["state"], line["score"], line["running"], line["survivors"]) == ("complete", 1.0, False, None)
