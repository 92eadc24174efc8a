"""`assay verify` on a database that SQLite itself finds broken: what can be read, exit 3."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli.exits import Exit
from harness.cli.verify import app
from harness.store.sqlite import SqliteStore


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
