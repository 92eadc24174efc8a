"""Databases to open: the bundled small airline, a small dual-control domain, and the real data where it is kept."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

_CHECKOUT = Path(__file__).resolve().parents[2]
BUNDLED = _CHECKOUT / "tasks" / "airline" / "data"
GUIDE = _CHECKOUT / "docs" / "environments.md"


@pytest.fixture(scope="session")
def real() -> Path:
    """The folder of real airline data; skips where it is not there."""
    folder = Path(os.environ.get("ASSAY_DATA", _CHECKOUT.parent / "shared" / "data")) / "tau_airline"
    if not folder.is_dir():
        pytest.skip(f"no data in {folder}: set ASSAY_DATA to the folder that holds tau_airline")
    return folder


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database for the agent and one for the user."""
    folder = tmp_path_factory.mktemp("desk")
    tasks = {"task_1": {"task_id": "task_1", "title": "Water the plants", "status": "pending"}}
    users = {"ada": {"user_id": "ada", "name": "Ada", "tasks": ["task_1"]}}
    note = {"notification_id": "n1", "message": "Task task_1 is yours.", "task_id": "task_1"}
    (folder / "db.json").write_text(json.dumps({"tasks": tasks, "users": users}))
    (folder / "user_db.json").write_text(json.dumps({"notifications": {"n1": note}}))
    return folder


@pytest.fixture(scope="session")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program in the guide, as a file."""
    found = re.search(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert found, "the guide has no program"
    path = tmp_path_factory.mktemp("counter") / "counter.py"
    path.write_text(found[1])
    return path
