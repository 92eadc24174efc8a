"""Run a program without a terminal, watch its lines, and say what went wrong when it fails."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.records.errors import AssayError, EngineUnavailable

Report = Callable[[str], None]
_LAST_LINES = 8


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run. `progress` picks the output lines worth showing while it runs."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    progress: Callable[[str], bool] = lambda line: False
    remedy: str = ""


def run_command(command: Command, report: Report) -> None:
    """Run to the end with stdin closed to it and stdout and stderr read as one stream.

    Raises:
        AssayError: the program is missing or ended with a status other than 0; with its last lines.
    """
    last: deque[str] = deque(maxlen=_LAST_LINES)
    name = command.argv[0]
    try:
        process = subprocess.Popen(
            list(command.argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **command.environment},
        )
    except OSError as error:
        raise AssayError(f"{name} cannot be run: {error.strerror}", remedy=command.remedy) from error
    with process:
        assert process.stdout is not None  # asked for above
        for raw in process.stdout:
            line = raw.decode(errors="replace").rstrip()
            last.append(line)
            if command.progress(line):
                report(line)
    if process.returncode != 0:
        raise AssayError(
            f"{name} ended with status {process.returncode}: {' | '.join(last) or 'no output'}",
            place=" ".join(command.argv[:2]),
            remedy=command.remedy,
        )


def install_packages(names: Sequence[str], report: Report) -> None:
    """Install Debian packages without their recommendations; waits for another apt up to two minutes.

    Raises:
        AssayError: apt-get failed; with its last lines.
    """
    report(f"installing {' '.join(names)} with apt-get")
    quiet = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    wait = ["-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=3"]
    remedy = f"see whether `apt-get install {' '.join(names)}` works by hand"
    run_command(Command(["apt-get", "update", "-q", *wait], quiet, remedy=remedy), report)
    run_command(
        Command(["apt-get", "install", "-y", "-q", "--no-install-recommends", *wait, *names], quiet, remedy=remedy),
        report,
    )


def as_unavailable(error: AssayError | OSError) -> EngineUnavailable:
    """Whatever broke on the way (apt, systemctl, a full disk), to the caller it is one thing: no engine or image."""
    if isinstance(error, EngineUnavailable):
        return error
    if isinstance(error, AssayError):
        return EngineUnavailable(error.message, place=error.place, remedy=error.remedy)
    return EngineUnavailable(error.strerror or str(error), place=error.filename or "")
