"""`assay verify` on a database that SQLite itself finds broken: what can be read, exit 3."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli.exits import Exit
from harness.cli.verify import app
from harness.store.sqlite import SqliteStore
from tests.store.samples import draft, run_row


@pytest.mark.parametrize("as_json", [False, True])
def test_verify_says_what_can_still_be_read(tmp_path: Path, as_json: bool) -> None:
    store = tmp_path / "store"
    with SqliteStore(store):
        pass
    (store / "evidence.db").write_bytes(b"\x7fELF" + bytes(20_000))
    for beside in store.glob("evidence.db-*"):
        beside.unlink()
    options = ["latest", "--store", str(store), *(["--json"] if as_json else [])]
    found = CliRunner().invoke(app, options)
    assert found.exit_code == Exit.ALERT, found.output
    if as_json:
        told = json.loads(found.stdout)
        assert told["ok"] is False
        assert "damaged" in told["damage"]
    else:
        assert "damaged" in found.stdout
        assert "nothing can be read of it" in found.stdout
        assert "keep a copy" in found.stdout


def test_damage_found_while_reading_is_a_broken_event(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        store.create_run(run_row())
        store.append([draft("run-a", payload={"number": number, "filling": "x" * 200}) for number in range(2000)])
    path = tmp_path / "evidence.db"
    data = bytearray(path.read_bytes())
    page = int.from_bytes(data[16:18])  # bytes, as the header of the file has it
    middle = len(data) // page // 2 * page
    data[middle : middle + 4 * page] = os.urandom(4 * page)
    path.write_bytes(bytes(data))
    found = CliRunner().invoke(app, ["latest", "--store", str(tmp_path)])
    assert found.exit_code == Exit.ALERT, found.output
    assert "the database is damaged" in found.stdout
    assert "BROKEN" in found.stdout
