"""A world of its own for one end-to-end test: a suite on disk, locked with the base image, a store, and the command."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker

from harness.api.suites import load_suite
from harness.cli.shell import run_command_line
from harness.formats.lock import LOCK_FILE, make_lock, write_lock
from harness.formats.suite import load_suite as load_from_disk
from harness.records.run import TrialRow
from harness.records.suite import ImageLock, Suite
from harness.records.task import ImagePin
from harness.store.sqlite import SqliteStore

ACTORS = Path(__file__).with_name("actors.py")
OBEDIENT, TALKATIVE, CRASHING = (f"{ACTORS}:{name}" for name in ("Obedient", "Talkative", "Crashing"))
ASSAY = (sys.executable, "-c", "from harness.cli import main; main()")
PATIENCE_S = 90.0  # of a busy machine

CHECK = """\
if grep -qx 42 /app/answer; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
"""
RIGHT, WRONG = "echo 42 > /app/answer\n", "echo 41 > /app/answer\n"

TASK_TOML = """\
{artifacts}
[agent]
timeout_sec = 60.0

[environment]
docker_image = "{image}"
network_mode = "no-network"
{environment}

[environment.env]
{env}

[verifier]
{verifier}

[assay]
capabilities = []
{assay}
"""


@dataclass(frozen=True)
class TaskFiles:
    """What one task is made of; the text fields beside `check` and `setup` are lines of `task.toml`."""

    do: str | bytes = RIGHT  # the instruction, which tests' solvers take word for word
    check: str = CHECK
    setup: str | None = None
    image: str = "assay-base:1"
    environment: str = "memory_mb = 256"
    env: Mapping[str, str] = field(default_factory=dict)
    verifier: str = "timeout_sec = 60.0"
    assay: str = ""
    artifacts: str = ""

    def write(self, folder: Path) -> None:
        (folder / "tests").mkdir(parents=True)
        env = "\n".join(f"{key} = {json.dumps(value)}" for key, value in self.env.items())
        values = {name: getattr(self, name) for name in ("image", "environment", "verifier", "assay", "artifacts")}
        (folder / "task.toml").write_text(TASK_TOML.format(env=env, **values))
        (folder / "instruction.md").write_bytes(self.do if isinstance(self.do, bytes) else self.do.encode())
        (folder / "tests" / "test.sh").write_text(self.check)
        (folder / "solution").mkdir()
        (folder / "solution" / "solve.sh").write_text(RIGHT)
        if self.setup is not None:
            (folder / "environment").mkdir()
            (folder / "environment" / "setup.sh").write_text(self.setup)


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class World:
    """Folders below `root`: `suite`, `store`."""

    root: Path
    pin: ImagePin

    @property
    def suite(self) -> Path:
        return self.root / "suite"

    @property
    def store(self) -> Path:
        return self.root / "store"

    def tasks(self, images: Mapping[str, str] | None = None, /, **tasks: TaskFiles) -> Suite:
        """Write tasks (an underscore in a name becomes a dash) and lock them; `images` pins further references."""
        for name, files in tasks.items():
            files.write(self.suite / name.replace("_", "-"))
        return self.lock(images)

    def lock(self, images: Mapping[str, str] | None = None) -> Suite:
        pins = {self.pin.reference: self.pin.digest, **(images or {})}
        locks = {
            name: ImageLock(digest=digest, platform="linux/amd64")
            for name, digest in pins.items()
            if digest is not None
        }
        write_lock(self.suite / LOCK_FILE, make_lock(load_from_disk(self.suite, ignore_lock=True), locks))
        return load_suite(self.suite)

    def run_options(self, solver: str = OBEDIENT, *more: str) -> tuple[str, ...]:
        return ("run", "--suite", str(self.suite), "--solver", solver, "--store", str(self.store), *more)

    def run(self, solver: str = OBEDIENT, *more: str) -> Done:
        """`assay run … --json` on this world's suite and store."""
        return assay(*self.run_options(solver, "--json", *more))

    def on_store(self, command: str, *arguments: str) -> Done:
        """Any other command on this world's store."""
        return assay(command, *arguments, "--store", str(self.store))

    def trials(self, run: str = "latest") -> tuple[TrialRow, ...]:
        with SqliteStore(self.store) as store:
            return store.trials(run)

    def verified(self, run: str = "latest") -> bool:
        """Whether `assay verify` finds everything intact."""
        done = self.on_store("verify", run, "--json")
        report = done.json
        assert (done.code == 0) == report["ok"]
        assert report["ok"] == (not report["problems"])
        return bool(report["ok"])

    def events(self, trial: str, kind: str) -> list[Any]:
        """Payloads of a trial's events of one kind."""
        done = self.on_store("trial", trial, "--kind", kind, "--json")
        assert done.code == 0, done.err
        return [event["payload"] for event in done.json["events"]]


def assay(*arguments: str) -> Done:
    """The command, in this process: what it printed and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    argv, sys.argv = sys.argv, ["assay", *arguments]
    code: Any = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            run_command_line()
    except SystemExit as exit_:
        code = exit_.code
    finally:
        sys.argv = argv
    return Done(int(code or 0), out.getvalue(), err.getvalue())


class Started:
    """The command in a process of its own, its output in files, its run found in the store."""

    def __init__(self, world: World, *arguments: str, env: Mapping[str, str] | None = None, program: Any = ASSAY):
        self.world = world
        self._out, self._err = (world.root / f"{time.monotonic_ns()}.{name}" for name in ("out", "err"))
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [*program, *arguments],
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(env or {})},
            )

    @property
    def said(self) -> str:
        return self._err.read_text()

    def states(self) -> dict[str, str]:
        """Where the last attempt at each task of the newest run stands."""
        if not (self.world.store / "evidence.db").exists():
            return {}
        with SqliteStore(self.world.store) as store:
            runs = store.runs()
            return {row.task: row.state.value for row in store.trials(runs[-1].run)} if runs else {}

    def wait_until(self, holds: Callable[[dict[str, str]], bool], every_s: float = 0.05) -> None:
        """Wait until the store shows what is wanted. Fails when the process ends before."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds(self.states()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"exit {self.process.returncode}, states {self.states()}, said {self.said}")
            time.sleep(every_s)

    def wait_for_states(self, **wanted: str) -> None:
        self.wait_until(lambda states: all(states.get(task.replace("_", "-")) == at for task, at in wanted.items()))

    def end(self, signal_number: int | None = None) -> Done:
        """Signal it if asked, and wait until it has ended."""
        if signal_number is not None:
            self.process.send_signal(signal_number)
        code = self.process.wait(PATIENCE_S)
        return Done(code, self._out.read_text(), self.said)

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def held_for(run: str) -> list[str]:
    """Names of the containers and networks that carry this run's label."""
    filters = {"label": f"assay.run={run}"}
    with docker.APIClient(version="auto", timeout=60) as client:
        containers = [item["Names"][0].lstrip("/") for item in client.containers(all=True, filters=filters)]
        return [*containers, *(item["Name"] for item in client.networks(filters=filters))]
