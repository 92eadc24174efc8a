"""What is read off the machine: processes, stale pid files, the distribution."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.bootstrap.commands import Command, run_command
from harness.bootstrap.machine import (
    PROCESSES,
    PidFile,
    debian_architecture,
    is_debian,
    read_os_release,
    running_processes,
    stale_pid_files,
    survey_machine,
)
from harness.records.errors import AssayError


def test_a_pid_file_is_stale_only_when_no_such_daemon_lives(tmp_path: Path) -> None:
    file = PidFile(tmp_path / "docker.pid", "dockerd")
    assert stale_pid_files([file], {}) == ()
    file.path.write_text("7")
    assert stale_pid_files([file], {}) == (file.path,)
    # The number was given to somebody else after a crash: still stale.
    assert stale_pid_files([file], {7: "bash"}) == (file.path,)
    # Any daemon of that name is somebody's, whatever number the file holds.
    assert stale_pid_files([file], {8: "dockerd"}) == ()


def test_this_process_runs_and_a_zombie_does_not() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    try:
        deadline_s = time.monotonic() + 10
        while child.pid in running_processes(PROCESSES) and time.monotonic() < deadline_s:
            time.sleep(0.01)
        running = running_processes(PROCESSES)
        assert (PROCESSES / str(child.pid)).exists(), "the zombie was reaped too early to test anything"
    finally:
        child.wait()
    assert child.pid not in running
    assert os.getpid() in running


def test_a_name_with_parentheses_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "12").mkdir()
    (tmp_path / "12" / "stat").write_text("12 (a) Z (b) S 1 12")
    (tmp_path / "13").mkdir()
    (tmp_path / "self").mkdir()
    assert running_processes(tmp_path) == {12: "a) Z (b"}


@pytest.mark.parametrize(
    ("text", "debian"),
    [
        ('ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n', True),
        ("# comment\nID=linuxmint\nID_LIKE='ubuntu debian'\n", True),
        ("ID=fedora\n", False),
        ("ID=notdebian\nnonsense\n", False),
    ],
)
def test_the_distribution(tmp_path: Path, text: str, debian: bool) -> None:
    path = tmp_path / "os-release"
    path.write_text(text)
    assert is_debian(read_os_release(path)) is debian


def test_no_os_release_is_no_debian(tmp_path: Path) -> None:
    assert read_os_release(tmp_path / "none") == {}
    assert not is_debian({})


def test_the_survey_of_this_machine_is_consistent() -> None:
    machine = survey_machine()
    assert machine.root is (os.geteuid() == 0)
    assert machine.distribution
    assert machine.architecture == debian_architecture(machine.architecture)
    assert machine.dockerd_pid is None or (PROCESSES / str(machine.dockerd_pid)).exists()


def test_a_command_tells_its_progress_and_keeps_its_last_words() -> None:
    lines: list[str] = []
    script = "import sys; print('I: one'); print('quiet'); print(repr(sys.stdin.read()), file=sys.stderr); sys.exit(3)"
    command = Command([sys.executable, "-c", script], {}, lambda line: line.startswith("I: "), "do better")
    with pytest.raises(AssayError, match=r"status 3: .*quiet") as caught:
        run_command(command, lines.append)
    assert lines == ["I: one"]
    assert "''" in caught.value.message, "stdin must be empty, not the terminal"
    assert caught.value.remedy == "do better"


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(AssayError, match="no-such-program cannot be run"):
        run_command(Command(["no-such-program"], {}), lambda line: None)
