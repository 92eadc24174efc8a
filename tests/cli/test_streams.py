"""Stdout holds results only, and a command that is done ends, whatever a solver left running. In own processes."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

NOISY = """
import os, sys
from harness.cli.streams import results_only
print("before")
with results_only():
    print("printed")
    os.write(1, b"written\\n")
    os.system("echo by a child")
print("result")
"""
LEFT = """
import asyncio, sys, threading, time
from harness.cli import shell
def work():
    {work}
def app():
    threading.Thread(target=work, daemon={daemon}).start()
    time.sleep(0.3)
    print("result")
    sys.exit(3)
shell.app = app
shell.run_process()
"""


def run(source: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False)


def test_what_is_printed_while_a_run_goes_is_no_result() -> None:
    done = run(NOISY)
    assert done.stdout == "before\nresult\n"
    assert sorted(done.stderr.splitlines()) == ["by a child", "printed", "written"]


@pytest.mark.parametrize(
    ("work", "daemon"),
    [("time.sleep(300)", False), ("asyncio.run(asyncio.to_thread(time.sleep, 300))", True)],
)
def test_threads_that_were_left_behind_do_not_hold_the_command(work: str, daemon: bool) -> None:
    began_s = time.monotonic()
    done = run(LEFT.format(work=work, daemon=daemon))
    assert (done.returncode, done.stdout) == (3, "result\n")
    assert time.monotonic() - began_s < 50
