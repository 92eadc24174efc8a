"""What an audit (gold and null) costs beyond the raw container operations it consists of, both in one run.

    python -m benchmarks.audit_overhead [--tasks 48] [--rounds 2] [--concurrency 4]

Of an even sample of the bundled suite, in turn: the audit, whole (loading, cycle, receipt, alerts), and the same trials
by docker-py alone in as many threads: create and start with the same limits, setup script, for gold the solution and
its script, tests, test script, verdict, remove. Both must find the same number of tasks achievable. Needs the engine.
"""

from __future__ import annotations

import argparse
import io
import statistics
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import docker

from harness.api.audit_request import AuditRequest
from harness.api.audits import audit
from harness.api.suites import load_suite
from harness.records.audit import Sentinel
from harness.records.task import FileTree, Task
from harness.records.vocabulary import GradingEnvironment

SUITE, TARGET = "terminal", 1.5
LOADS = 3  # an audit loads the suite for its fingerprints, and each of its two runs for itself
MIB = 1024 * 1024


@dataclass(frozen=True)
class Raw:
    """Trials by docker-py: as few calls as a careful script would make."""

    client: Any

    def trial(self, task: Task, *, gold: bool) -> bool:
        """Whether the tests passed."""
        container = self._started(task)
        others: list[str] = []
        try:
            self._prepare(container, task)
            if gold:
                self._put(container, "/solution", task.solution.files)
                script = f"/solution/{task.solution.script}"
                self._exec(container, ["bash", script], task, task.solution.env)
            judged = container
            if task.grading.environment is GradingEnvironment.FRESH:
                judged = self._started(task)
                others.append(judged)
                for path in task.grading.artifacts:
                    self._carry(container, judged, PurePosixPath(path))
            self._put(judged, "/tests", task.grading.tests)
            tests = f"mkdir -p /logs/verifier && bash /tests/{task.grading.script}"
            self._exec(judged, ["sh", "-c", tests], task, task.grading.env)
            return self._reward(judged) >= task.grading.pass_at
        finally:
            for one in (container, *others):
                self.client.remove_container(one, force=True, v=True)

    def _started(self, task: Task) -> str:
        container: str = self.client.create_container_from_config(self._config(task))["Id"]
        self.client.start(container)
        return container

    def _prepare(self, container: str, task: Task) -> None:
        self._put(container, task.environment.workdir, task.environment.files)
        if task.environment.setup is not None:
            self._put(container, "/.assay/setup", task.environment.setup_files)
            self._exec(container, ["sh", f"/.assay/setup/{task.environment.setup}"], task, {})

    def _carry(self, container: str, judged: str, path: PurePosixPath) -> None:
        try:
            data = b"".join(self.client.get_archive(container, str(path))[0])
        except docker.errors.NotFound:
            return
        self.client.put_archive(judged, str(path.parent), data)

    def _config(self, task: Task) -> dict[str, Any]:
        limits = task.limits
        host = {
            "NanoCpus": int(limits.cpus * 1e9),
            "Memory": limits.memory_mb * MIB,
            "MemorySwap": limits.memory_mb * MIB,
            "PidsLimit": limits.pids,
            "CapDrop": ["ALL"],
            "CapAdd": list(task.environment.capabilities or ()),
            "NetworkMode": "none",
            "Init": True,
        }
        work, image = task.environment.workdir, task.image.digest
        return {"Image": image, "Cmd": ["sleep", "600"], "WorkingDir": work, "HostConfig": host}

    def _put(self, container: str, folder: str, tree: FileTree) -> None:
        if not tree.files:
            return
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for file in tree.files:
                header = tarfile.TarInfo(f"{folder.lstrip('/')}/{file.path}")
                header.size, header.mode = len(file.content), file.mode
                archive.addfile(header, io.BytesIO(file.content))
        self.client.put_archive(container, "/", buffer.getvalue())

    def _exec(self, container: str, argv: list[str], task: Task, env: Mapping[str, str]) -> None:
        everything = {**task.environment.env, **env}
        run = self.client.exec_create(container, argv, workdir=task.environment.workdir, environment=everything)["Id"]
        self.client.exec_start(run)
        self.client.exec_inspect(run)

    def _reward(self, container: str) -> float:
        try:
            data = b"".join(self.client.get_archive(container, "/logs/verifier/reward.txt")[0])
        except docker.errors.NotFound:
            return 0.0
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            file = archive.extractfile(next(iter(archive)))
            return float(file.read()) if file is not None else 0.0


def raw_audit(raw: Raw, tasks: Sequence[Task], concurrency: int) -> int:
    """Gold on every task, then null on every task; how many are achievable."""
    with ThreadPoolExecutor(concurrency) as pool:
        gold = list(pool.map(lambda task: raw.trial(task, gold=True), tasks))
        null = list(pool.map(lambda task: raw.trial(task, gold=False), tasks))
    return sum(solved and not empty for solved, empty in zip(gold, null, strict=True))


def assay_audit(tasks: Sequence[Task], concurrency: int) -> int:
    """The same as one cycle in a new store."""
    with tempfile.TemporaryDirectory() as store:
        report = audit(
            AuditRequest(
                suite=SUITE,
                sentinels=(Sentinel.GOLD, Sentinel.NULL),
                tasks=tuple(task.id for task in tasks),
                concurrency=concurrency,
                store=store,
            )
        )
        return report.achievable


def main() -> int:
    """Alternate the two, print walls and their ratio. Exits 1 over the target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--concurrency", type=int, default=4)
    asked = parser.parse_args()
    suite = load_suite(SUITE).tasks
    tasks = [suite[len(suite) * number // asked.tasks] for number in range(min(asked.tasks, len(suite)))]
    raw = Raw(docker.APIClient(version="auto", timeout=120, max_pool_size=asked.concurrency + 2))
    raw_audit(raw, tasks[:2], 2)  # connections and caches
    walls: dict[str, list[float]] = {"raw": [], "assay": []}
    loading_s = 0.0
    work = {
        "raw": lambda: raw_audit(raw, tasks, asked.concurrency),
        "assay": lambda: assay_audit(tasks, asked.concurrency),
    }
    for number in range(asked.rounds):
        found = {}
        for name in sorted(work, reverse=number % 2 == 0):
            began = time.monotonic()
            found[name] = work[name]()
            walls[name].append(time.monotonic() - began)
        began = time.monotonic()
        load_suite(SUITE)
        loading_s += LOADS * (time.monotonic() - began)
        if len(set(found.values())) != 1:
            raise SystemExit(f"they disagree on what is achievable: {found}")
        print(", ".join(f"{name} {walls[name][-1]:.1f} s" for name in walls), f"achievable {found['raw']}", flush=True)
    ours, theirs, part = sum(walls["assay"]), sum(walls["raw"]), len(tasks) / len(suite)
    ratio = (ours - loading_s * (1 - part)) / theirs
    trials = 2 * len(tasks)
    per_trial = {name: statistics.mean(taken) / trials for name, taken in walls.items()}
    print(
        f"gold and null of {len(tasks)} tasks, {asked.concurrency} at once: assay {per_trial['assay']:.2f} s a trial,"
        f" raw {per_trial['raw']:.2f} s, ratio {ours / theirs:.2f};\nwith the loading of all {len(suite)} tasks"
        f" ({loading_s / asked.rounds:.1f} s an audit) spread over all of them {ratio:.2f} (target {TARGET})"
    )
    return int(ratio > TARGET)


if __name__ == "__main__":
    sys.exit(main())
