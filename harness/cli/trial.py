"""assay trial."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from harness.api.stores import open_store
from harness.cli.options import DEFAULT_STORE, AsJson, Store, print_json, say
from harness.protocols import EvidenceStore
from harness.records.errors import ConfigError
from harness.records.event import Event
from harness.records.run import TrialRow
from harness.report.bodies import Body, digest_named, named, readable
from harness.report.trial_page import all_bodies, event_text, full_text, plain_bodies, result_text

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  assay trial 20261130-101500-a1b2c3.0003.1 --full
  assay trial 20261130-101500-a1b2c3.0003.1 --log grade.stdout
  assay trial 20261130-101500-a1b2c3.0003.1 --blob 9f86d081 > artifact.tar
"""


@app.command(epilog=EXAMPLES)
def trial(
    trial: Annotated[str, typer.Argument(help="A trial's id, or a unique prefix.")],
    kind: Annotated[list[str] | None, typer.Option(help="Only events of this kind; repeatable.")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Print what was said and printed too: commands, output, messages, grader.")
    ] = False,
    log: Annotated[
        str | None,
        typer.Option(help="Print only this, whole: 12.stdout, exec.stdout, grade.stdout, model.call, error, …"),
    ] = None,
    blob: Annotated[
        str | None, typer.Option(help="Write one blob's bytes to stdout: its sha256, or the beginning of it.")
    ] = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show a trial: its result and its events.

    What an event says at length has a name, EVENT.PART: --full shows them all, cut to 8,000 characters each, and --log
    prints one (or all of a kind) whole.
    """
    _check(full, log, blob, as_json)
    with open_store(store) as opened:
        row = opened.trial(trial)
        events = list(opened.events(row.trial, kind))
        if blob is not None:
            sys.stdout.buffer.write(opened.blob(digest_named(all_bodies(events), blob)))
        elif log is not None:
            _print_log(row, named(all_bodies(events), log), opened, as_json)
        elif as_json:
            _print_json(row, events, opened, full)
        else:
            _print_page(row, events, opened, full)


def _check(full: bool, log: str | None, blob: str | None, as_json: bool) -> None:
    asked = [name for name, value in (("--full", full), ("--log", log), ("--blob", blob)) if value not in (None, False)]
    if len(asked) > 1:
        raise ConfigError(f"{' and '.join(asked)} exclude each other", remedy="give one of them")
    if blob is not None and as_json:
        raise ConfigError("--blob writes bytes, which JSON cannot hold", remedy="use --log NAME --json, or no --json")


def _print_page(row: TrialRow, events: list[Event], store: EvidenceStore, full: bool) -> None:
    print(result_text(row))
    for event in events:
        print(full_text(event, store) if full else event_text(event))
    if not full:
        count = len(all_bodies(events))
        say(f"{count} bodies (commands, output, messages): --full shows them, --log NAME one of them")


def _print_json(row: TrialRow, events: list[Event], store: EvidenceStore, full: bool) -> None:
    found = {"trial": row.plain(), "events": [event.plain() for event in events]}
    if full:
        found["bodies"] = plain_bodies(all_bodies(events), store, whole=False)
    print_json(found)


def _print_log(row: TrialRow, bodies: tuple[Body, ...], store: EvidenceStore, as_json: bool) -> None:
    """Byte for byte into a file or a pipe; made printable on a terminal, which the bytes could steer."""
    if as_json:
        print_json({"trial": row.trial, "bodies": plain_bodies(bodies, store, whole=True)})
        return
    for body in bodies:
        data = body.read(store)
        if len(bodies) > 1:
            sys.stdout.flush()
            say(f"── {body.name}  {body.kind}  {len(data):,} bytes")
        if sys.stdout.isatty():
            print(readable(body, data), end="" if data.endswith(b"\n") else "\n")
        else:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
