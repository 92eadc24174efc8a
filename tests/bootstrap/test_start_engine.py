"""A daemon really started, on a machine of its own: fresh namespaces with nothing under /run and /var/lib/docker."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.bootstrap.machine import find_program

pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may start a daemon"),
    pytest.mark.skipif(find_program("dockerd") is None, reason="dockerd is not installed on this machine"),
    pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare (util-linux) is not installed"),
]

# Runs as process 1 of the new machine, so that its end is the end of every daemon it started.
SCRIPT = """\
import json, os, subprocess, sys
from pathlib import Path
scratch = Path(sys.argv[1])
for name in ("run", "var/lib/docker", "var/log"):
    (scratch / name).mkdir(parents=True)
    subprocess.run(["mount", "--bind", str(scratch / name), f"/{name}"], check=True)
from harness.bootstrap.engine import ensure_engine
from harness.bootstrap.machine import running_processes
from harness.records.errors import AssayError
if "stale" in sys.argv:
    Path("/run/docker.pid").write_text("1")
if "broken" in sys.argv:
    Path("/run/docker.sock").mkdir()
    (Path("/run/docker.sock") / "in the way").touch()
lines = []
try:
    first = ensure_engine({}, lines.append)
    second = ensure_engine({}, lines.append)
except AssayError as error:
    print(json.dumps({"error": str(error), "lines": lines}))
    sys.exit(error.exit_code)
sessions = {name: os.getsid(pid) for pid, name in running_processes(Path("/proc")).items()}
print(json.dumps({
    "how": [first.how, second.how],
    "lines": lines,
    "log_bytes": Path("/var/log/assay-dockerd.log").stat().st_size,
    "own_session": sessions["dockerd"] != os.getsid(0),
}))
"""


def run_on_a_new_machine(scratch: Path, *words: str) -> subprocess.CompletedProcess[str]:
    unshare = ["unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc", "--kill-child"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("new namespaces are not permitted here")
    return subprocess.run(
        [*unshare, sys.executable, "-c", SCRIPT, str(scratch), *words],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def test_a_daemon_is_started_although_its_pid_file_names_another_live_process(tmp_path: Path) -> None:
    done = run_on_a_new_machine(tmp_path, "stale")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["how"] == ["started", "found"]
    assert told["lines"][0] == "removing the pid file of a dead daemon: /var/run/docker.pid"
    assert len(told["lines"]) == 2, "the second call finds it and has nothing to say"
    assert told["log_bytes"] > 0
    assert told["own_session"], "it must outlive the terminal it was started from"


def test_a_daemon_that_cannot_start_is_told_with_its_own_words(tmp_path: Path) -> None:
    done = run_on_a_new_machine(tmp_path, "broken")
    assert done.returncode == 5, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert "the Docker daemon ended instead of starting" in told["error"]
    assert "docker.sock" in told["error"]
    assert "Traceback" not in done.stderr
