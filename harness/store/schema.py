"""The schema of `evidence.db`, as numbered migrations, and how a database is brought to the newest.

A migration never changes evidence: it may add tables, columns and indices. The version is in the database's
`user_version`; the table `schema_history` says when each migration was made here. A database from a later
Assay is refused, because what this version would write might break promises it does not know.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime

from harness.records.errors import StoreError

SCHEMA_NAME = "assay-evidence"
APPLICATION_ID = 0x41535359  # "ASSY" in the file header, for `file` and for us

# 1 (first release): the tables of evidence, and triggers that refuse to change it.
_TABLES = """
CREATE TABLE schema_history (
    version INTEGER PRIMARY KEY,
    name    TEXT NOT NULL,
    applied TEXT NOT NULL               -- UTC, ISO 8601
);

CREATE TABLE runs (
    number        INTEGER PRIMARY KEY,  -- order of creation: `latest` is the highest
    run           TEXT NOT NULL UNIQUE,
    config_digest TEXT NOT NULL,
    body          TEXT NOT NULL         -- canonical JSON of RunRow
);

-- A task with all its files, once, however many trials of it are planned. Equal task versions may differ in
-- what is for people only (source, metadata), so the key is the digest of the whole body.
CREATE TABLE tasks (
    digest  TEXT PRIMARY KEY,
    version TEXT NOT NULL,
    body    TEXT NOT NULL               -- canonical JSON of Task
);

-- The planned identity of a trial: written before it starts, never changed. State is folded from events.
CREATE TABLE trials (
    number       INTEGER PRIMARY KEY,
    trial        TEXT NOT NULL UNIQUE,
    run          TEXT NOT NULL REFERENCES runs (run),
    slot         INTEGER NOT NULL,
    repeat       INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    task         TEXT NOT NULL,
    task_version TEXT NOT NULL,
    task_digest  TEXT NOT NULL REFERENCES tasks (digest),
    body         TEXT NOT NULL,         -- canonical JSON of TrialPlan, with the task by its digest
    UNIQUE (run, slot, attempt)
);

-- What happened. `hash` is sha256 over `previous`, a line feed and `body`; `seq` counts from 0 per stream.
-- A stream is a trial's id, or a run's id. There is no foreign key: a stream may begin before its plan.
CREATE TABLE events (
    number   INTEGER PRIMARY KEY,
    stream   TEXT NOT NULL,
    seq      INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash     TEXT NOT NULL,
    body     TEXT NOT NULL,             -- canonical JSON of the event without its chain
    UNIQUE (stream, seq)
);

CREATE TABLE results (
    trial TEXT PRIMARY KEY REFERENCES trials (trial),
    body  TEXT NOT NULL                 -- canonical JSON of TrialResult
);
"""

INDEXED_KINDS = ("trial.state", "trial.closed")

# 2 (first release): the state of a trial and the end of its stream are found without reading its whole chain.
_STATE_INDICES = """
CREATE INDEX events_state ON events (stream, seq) WHERE kind = 'trial.state';
CREATE INDEX events_closed ON events (stream, seq) WHERE kind = 'trial.closed';
"""


# 3: the schedule. No evidence: a firing changes until it is over. Times are UTC, ISO 8601 with microseconds.
_SCHEDULE = """
CREATE TABLE firings (
    number   INTEGER PRIMARY KEY,
    job      TEXT NOT NULL,
    due      TEXT NOT NULL,
    finished TEXT,                      -- NULL: not over
    result   TEXT,
    body     TEXT NOT NULL,             -- canonical JSON of Firing
    UNIQUE (job, due)
);
CREATE UNIQUE INDEX firings_open ON firings (job) WHERE finished IS NULL;

CREATE TABLE schedule_jobs (
    job     TEXT PRIMARY KEY,
    line    TEXT NOT NULL,              -- cron line and time zone
    decided TEXT NOT NULL               -- up to when its times are decided
);

CREATE TABLE schedule_settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
"""


# What makes a row of a table the same row. INSERT OR REPLACE deletes without telling the delete triggers, so an
# insert over an existing key has to be refused by name.
_KEYS = {
    "runs": "number = NEW.number OR run = NEW.run",
    "tasks": "digest = NEW.digest",
    "trials": "number = NEW.number OR trial = NEW.trial"
    " OR (run = NEW.run AND slot = NEW.slot AND attempt = NEW.attempt)",
    "events": "number = NEW.number OR (stream = NEW.stream AND seq = NEW.seq)",
    "results": "trial = NEW.trial",
}


def _refusals() -> str:
    """One trigger per table of evidence and per way to change it."""
    triggers = []
    for table, same in _KEYS.items():
        taken = f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {same})"
        for verb, event, when in (("UPDATE", "UPDATE", ""), ("DELETE", "DELETE", ""), ("REPLACE", "INSERT", taken)):
            triggers.append(
                f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {event} ON {table} {when} "
                f"BEGIN SELECT RAISE(ABORT, 'evidence is append-only: {verb} on {table} refused'); END;"
            )
    return "\n".join(triggers)


MIGRATIONS: tuple[tuple[str, str], ...] = (
    ("tables of evidence, append-only", _TABLES + _refusals()),
    ("indices for state and close", _STATE_INDICES),
    ("the schedule's firings", _SCHEDULE),
)
SCHEMA_VERSION = len(MIGRATIONS)
EVIDENCE_VERSION = 2  # from here on all evidence can be read: later migrations add what is none


def version_of(connection: sqlite3.Connection) -> int:
    """The schema version of a database; 0 for an empty file. Raises StoreError for what is not ours or too new."""
    # In this order another process may create the store between any two of them: what it sets, it sets at once.
    is_empty = connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is None
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    identity = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if is_empty and version == 0 and identity == 0:
        return 0
    if identity != APPLICATION_ID:
        raise StoreError("this SQLite file is not an Assay evidence store", remedy="name another folder")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"this store has schema {SCHEMA_NAME} version {version}; this Assay reads up to {SCHEMA_VERSION}",
            remedy="use the Assay that wrote it, or a newer one",
        )
    return version


def migrate(connection: sqlite3.Connection, *, target: int = SCHEMA_VERSION) -> None:
    """Bring a database from whatever version it has to `target`, one transaction per migration."""
    for version in range(version_of(connection) + 1, target + 1):
        name, script = MIGRATIONS[version - 1]
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements(script):
                connection.execute(statement)
            connection.execute(
                "INSERT INTO schema_history VALUES (?, ?, ?)", (version, name, datetime.now(UTC).isoformat())
            )
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {version}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def statements(script: str) -> list[str]:
    """The single statements of an SQL text, triggers whole."""
    found: list[str] = []
    pending = ""
    for piece in script.split(";")[:-1]:
        pending += piece + ";"
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    pending += script.rpartition(";")[2]
    if pending.strip():
        raise ValueError(f"the SQL text ends inside a statement: {pending.strip()[:60]!r}")
    return found
