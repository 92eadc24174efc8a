"""A run as JSON lines, whole: what `assay import` brings back to the last hash.

First line: schema and run. Then, each before what needs it: tasks, plans, bodies in base64, events, results; after a
trial's result what graders wrote beside it. A line is
canonical JSON, so that exporting what was imported gives the same bytes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from harness.importers.container import Archive
from harness.importers.shape import only_file, shape
from harness.records.archive import ArchiveError
from harness.records.base import canonical_json, sha256_of
from harness.records.event import EventDraft
from harness.records.grade import TrialResult
from harness.records.run import RunRow
from harness.records.trial import TrialPlan
from harness.store.chain import event_of
from harness.store.rows import describe, pack_plans, parse, unpack_plan
from harness.store.sqlite import SqliteStore

SCHEMA = "assay-run/1"


def export_lines(store: SqliteStore, run: str) -> Iterator[bytes]:
    """The lines of a run, each with its line feed. Raises StoreError."""
    row = store.run(run)
    yield _line({"schema": SCHEMA, "run": json.loads(store.stored_run(row.run))})
    tasks: set[str] = set()
    blobs: set[str] = set()
    beside: dict[str, list[str]] = {}  # what graders wrote beside a trial: streams `<trial>.<what>`
    for stream in store.streams(row.run):
        beside.setdefault(stream.rpartition(".")[0], []).append(stream)
    for plan in store.stored_plans(row.run):
        if plan.task_digest not in tasks:
            tasks.add(plan.task_digest)
            yield _line({"task": plan.task_digest, "body": plan.task_body})
        yield _line({"plan": plan.body})
        yield from _stream(store, plan.trial, blobs)
        result = store.stored_result(plan.trial)
        if result is not None:
            yield _line({"result": result})
        for stream in beside.get(plan.trial, ()):
            yield from _stream(store, stream, blobs)
    yield from _stream(store, row.run, blobs)


def _stream(store: SqliteStore, stream: str, blobs: set[str]) -> Iterator[bytes]:
    for row in store.stored_events(stream):
        for digest in event_of(row).blobs.values():
            if digest not in blobs:
                blobs.add(digest)
                yield _line({"blob": digest, "base64": base64.b64encode(store.blob(digest)).decode()})
        yield _line({"event": row.body, "hash": row.hash})


def _line(value: dict[str, Any]) -> bytes:
    return canonical_json(value) + b"\n"


def is_export(archive: Archive) -> bool:
    """Whether an archive is a run that was exported whole."""
    name = only_file(archive)
    return name is not None and str(shape(archive, name).fields.get("schema", "")).startswith("assay-run/")


class Restoring:
    """Brings a run back from its lines. What is there already is compared, what is missing is added.

    Raises ArchiveError, with the line, for anything that is not what was exported.
    """

    def __init__(self, archive: Archive, store: SqliteStore) -> None:
        self.archive, self.store = archive, store
        self.name = archive.names[0]
        self.run = ""
        self.trials = self.already = 0
        self._tasks: dict[str, str] = {}
        self._number = 0
        self._trial: TrialPlan | None = None
        self._drafts: list[EventDraft] = []
        self._hashes: list[str] = []

    def restore(self) -> None:
        """Read the file and write the run."""
        lines = self.archive.lines(self.name)
        first = next(lines, None)
        header = first.value if first is not None and isinstance(first.value, dict) else {}
        if header.get("schema") != SCHEMA:
            what = f"schema {header.get('schema')!r} is not known; this version reads {SCHEMA!r}"
            raise ArchiveError(what, place=self._place(), remedy="use the Assay that wrote it, or a newer one")
        row = parse(RunRow, json.dumps(header["run"]))
        self.run = row.run
        with self.store.own(row.run):
            self._create(row)
            for member in lines:
                self._number = int(member.path[0])
                if member.problem or not isinstance(member.value, dict):
                    raise ArchiveError(
                        f"not a line of an export: {member.problem or 'no object'}",
                        place=self._place(),
                        remedy="export the run again; what stands before this line was restored",
                    )
                self._take(member.value)
            self._flush(None)

    def _place(self) -> str:
        return f"{self.archive.place(self.name)}:{self._number + 1}"

    def _create(self, row: RunRow) -> None:
        known = {found.run: found for found in self.store.runs()}
        if row.run not in known:
            self.store.create_run(row)
        elif known[row.run] != row:
            raise ArchiveError(
                f"run {row.run!r} is in the store already, and differs", place=self._place(), remedy="use another store"
            )

    def _take(self, line: dict[str, Any]) -> None:
        if "task" in line:
            if sha256_of(str(line["body"]).encode()) != line["task"]:
                raise ArchiveError("the task does not have its digest", place=self._place())
            self._tasks[line["task"]] = line["body"]
        elif "plan" in line:
            self._flush(None)
            self._plan(str(line["plan"]))
        elif "blob" in line:
            if self.store.put_blob(base64.b64decode(line["base64"])) != line["blob"]:
                raise ArchiveError("a body does not have its digest", place=self._place())
        elif "event" in line:
            self._event(line)
        elif "result" in line:
            self._flush(parse(TrialResult, line["result"]))
        else:
            raise ArchiveError(f"a line with {', '.join(line)}", place=self._place(), remedy="use a newer Assay")

    def _plan(self, body: str) -> None:
        digest = json.loads(body).get("task")
        if digest not in self._tasks:
            raise ArchiveError("its task does not stand before it", place=self._place())
        plan = unpack_plan(body, self._tasks[digest])
        if pack_plans([plan])[0].task_digest != digest:
            raise ArchiveError("the task is of another version of Assay", place=self._place())
        self._trial = plan
        self.trials += 1
        if plan.trial not in {row.trial for row in self.store.trials(self.run)}:
            self.store.plan([plan])

    def _event(self, line: dict[str, Any]) -> None:
        try:
            fields = json.loads(line["event"])
            draft = EventDraft.model_validate({key: value for key, value in fields.items() if key != "seq"})
        except (ValueError, TypeError) as error:
            raise ArchiveError(f"no event: {describe(error)}", place=self._place()) from error
        if self._drafts and self._drafts[0].stream != draft.stream:
            self._flush(None)
        self._drafts.append(draft)
        self._hashes.append(str(line["hash"]))

    def _flush(self, result: TrialResult | None) -> None:
        """Write the events of one stream, and the result that ends it."""
        drafts, hashes, self._drafts, self._hashes = self._drafts, self._hashes, [], []
        if not drafts:
            return
        stored = [row.hash for row in self.store.stored_events(drafts[0].stream)]
        if stored != hashes[: len(stored)]:
            raise ArchiveError(f"stream {drafts[0].stream!r} is in the store already, and differs", place=self._place())
        rest, expected = drafts[len(stored) :], hashes[len(stored) :]
        if result is not None and self.store.stored_result(result.trial) is None:
            written = self.store.finish(result, rest)
        elif rest:
            written = self.store.append(rest)
        else:
            written = ()
            self.already += result is not None
        if [event.hash for event in written] != expected:
            raise ArchiveError(
                f"events of {drafts[0].stream!r} do not have their hashes: the file was changed",
                place=self._place(),
                remedy="do not trust this run: `assay verify` names the place",
            )
