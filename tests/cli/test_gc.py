"""`assay gc` where there is no engine; on the real one see `tests/integration/test_gc.py`."""

from __future__ import annotations

import os
from pathlib import Path

from .test_shell import assay


def test_without_an_engine_it_is_exit_5_and_nothing_is_made(tmp_path: Path) -> None:
    env = {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    done = assay("gc", "--json", cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (5, "")
    assert f"{tmp_path}/none.sock" in done.stderr or "assay doctor" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
