"""How fast events become durable, and how fast one trial of a large store is opened, shown and verified.

    python -m benchmarks.store_events [--events 1000000] [--batch 1000] [--folder DIR]

Prints events per second for the store, and as ratios for the two simplest ways to keep the same canonical
JSON: a plain INSERT of the text into an unindexed table (same journal mode and synchronisation), and lines
appended to a file with one fsync per batch. Neither of those hashes, chains, indexes or refuses changes.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.records.base import digest_of
from harness.records.event import EventDraft, event_body
from harness.records.grade import TrialResult
from harness.records.run import RunConfig, RunRow
from harness.records.task import Budget, ImagePin, Task
from harness.records.trial import SolverSpec, TrialPlan, trial_id
from harness.records.vocabulary import Actor, Outcome, Phase, StopReason
from harness.store.sqlite import SqliteStore

EVENTS_PER_TRIAL = 250
RUN = "bench"


def drafts(trial: str, count: int) -> list[EventDraft]:
    """Events like those of a shell agent: commands with a little output, about 500 bytes of JSON each."""
    return [
        EventDraft(
            stream=trial,
            kind="exec",
            actor=Actor.AGENT,
            phase=Phase.INTERACTION,
            wall="2025-03-01T12:00:00.000000+00:00",
            monotonic_s=1000.0 + n / 8,
            span=f"s{n}",
            payload={
                "argv": ["bash", "-c", f"grep -n 'pattern {n}' data.csv | sort | uniq -c"],
                "exit_code": n % 3,
                "duration_s": 0.125,
                "timed_out": False,
                "stdout": {"seen_bytes": 96, "kept_bytes": 96, "text": "  12 a line of output\n" * 6},
                "stderr": {"seen_bytes": 0, "kept_bytes": 0, "text": ""},
            },
        )
        for n in range(count)
    ]


def batches(events: int, size: int) -> Iterator[list[EventDraft]]:
    """Batches that mix trials as a run with eight in flight does."""
    trials = max(1, events // EVENTS_PER_TRIAL)
    pending: list[EventDraft] = []
    for first in range(0, trials, 8):
        streams = [drafts(trial_id(RUN, slot, 1), EVENTS_PER_TRIAL) for slot in range(first, min(first + 8, trials))]
        pending += [draft for together in zip(*streams, strict=True) for draft in together]
        while len(pending) >= size:
            yield pending[:size]
            pending = pending[size:]
    if pending:
        yield pending


def prepare(store: SqliteStore, events: int) -> int:
    """A run with its planned trials; returns how many."""
    task = Task(id="bench/0", family="bench", instruction="x", image=ImagePin(reference="none"))
    config = RunConfig(suite="bench", suite_version="1", tasks=(task.id,), solver=SolverSpec(name="noop"))
    store.create_run(RunRow(run=RUN, created="2025-03-01", config=config, config_digest=digest_of(config)))
    trials = max(1, events // EVENTS_PER_TRIAL)
    plans = [
        TrialPlan(run=RUN, trial=trial_id(RUN, slot, 1), slot=slot, task=task, solver=config.solver, budget=Budget())
        for slot in range(trials)
    ]
    store.plan(plans)
    return trials


@dataclass
class Clock:
    """Adds up wall and processor seconds of the blocks it is put around."""

    wall_s: float = 0.0
    cpu_s: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall_s += time.perf_counter() - wall
        self.cpu_s += time.process_time() - cpu


def time_store(folder: Path, events: int, size: int) -> Clock:
    """Time inside `append`; making the drafts is the caller's work and not counted."""
    clock = Clock()
    with SqliteStore(folder) as store:
        trials = prepare(store, events)
        for batch in batches(events, size):
            with clock.running():
                store.append(batch)
        for slot in range(trials):
            end_trial(store, trial_id(RUN, slot, 1))
    return clock


def end_trial(store: SqliteStore, trial: str) -> None:
    result = TrialResult(trial=trial, outcome=Outcome.PASSED, stop=StopReason.FINISHED)
    last = drafts(trial, 1)[0]

    def event(stream: str, kind: str, payload: dict[str, object]) -> EventDraft:
        return last.model_copy(update={"stream": stream, "kind": kind, "payload": payload, "actor": Actor.HARNESS})

    moves = [
        event(trial, "trial.state", {"to": to}) for to in ("preparing", "interacting", "sealed", "grading", "done")
    ]
    head = store.finish(result, [*moves, event(trial, "trial.result", result.plain())])[-1]
    store.append([event(RUN, "trial.closed", {"trial": trial, "head": head.hash, "events": head.seq + 1})])


def time_plain_insert(folder: Path, events: int, size: int) -> Clock:
    clock = Clock()
    connection = sqlite3.connect(folder / "plain.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE events (number INTEGER PRIMARY KEY, body TEXT NOT NULL)")
    for batch in batches(events, size):
        texts = [(event_body(draft, 0).decode(),) for draft in batch]
        with clock.running():
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO events (body) VALUES (?)", texts)
            connection.execute("COMMIT")
    connection.close()
    return clock


def time_lines(folder: Path, events: int, size: int) -> Clock:
    clock = Clock()
    with (folder / "events.jsonl").open("wb") as file:
        for batch in batches(events, size):
            texts = [event_body(draft, 0) for draft in batch]
            with clock.running():
                file.write(b"\n".join(texts) + b"\n")
                file.flush()
                os.fsync(file.fileno())
    return clock


READER = """
import sys, time
begun = time.perf_counter()
from harness.store.sqlite import SqliteStore
from harness.store.verify import verify_trial
imported = time.perf_counter()
store = SqliteStore(sys.argv[1])
opened = time.perf_counter()
events = list(store.events(store.trial(sys.argv[2]).trial))
shown = time.perf_counter()
report = verify_trial(store, sys.argv[2])
verified = time.perf_counter()
assert report.ok and report.chain.events == len(events), report
rows = store.trials(store.run("latest").run)
listed = time.perf_counter()
print(len(events), imported - begun, opened - imported, shown - opened, verified - shown, len(rows), listed - verified)
"""


def read_cold(folder: Path, trial: str) -> list[float]:
    """In a fresh process: events of the trial; seconds to import, open, show, verify; trials, seconds to list them."""
    told = subprocess.run(
        [sys.executable, "-c", READER, str(folder), trial],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    return [float(part) for part in told.stdout.split()]


def report(folder: Path, events: int, batch: int) -> None:
    count = max(1, events // EVENTS_PER_TRIAL) * EVENTS_PER_TRIAL
    store = time_store(folder / "store", events, batch)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size_mb = sum(path.stat().st_size for path in (folder / "store").glob("evidence.db*")) / 1e6
    plain, lines = time_plain_insert(folder, events, batch), time_lines(folder, events, batch)
    print(f"{count:,} events in batches of {batch}: {size_mb:,.0f} MB; peak memory of the writer {peak_mb:.0f} MB")
    for name, clock in (("store", store), ("plain INSERT", plain), ("lines + fsync", lines)):
        rate, cpu_us, ratio = count / clock.wall_s, clock.cpu_s / count * 1e6, store.wall_s / clock.wall_s
        print(f"  {name:<14}{rate:>9,.0f} events/s {cpu_us:6.1f} µs CPU each; the store takes {ratio:.1f}x")
    middle = trial_id(RUN, count // EVENTS_PER_TRIAL // 2, 1)
    found, imported_s, opened_s, shown_s, verified_s, trials, listed_s = read_cold(folder / "store", middle)
    print(f"one trial of {found:.0f} events, in a fresh process (imports {imported_s:.2f} s):")
    print(f"  open {opened_s:.3f} s, show {shown_s:.3f} s, verify {verified_s:.3f} s")
    print(f"  list the {trials:.0f} trials of the run with state and result: {listed_s:.3f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="assay-store-", dir=arguments.folder))
    try:
        report(folder, arguments.events, arguments.batch)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
