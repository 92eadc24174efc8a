"""The guide to conversation tasks: its example is a suite that loads, lints clean, and whose reference passes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness.formats.conversation_schema import ConversationToml, RuleTable, TasksToml, TaskTable, UserTable
from harness.formats.findings import Level
from harness.formats.lint import lint
from tests.integration.world import assay

TEXT = (Path(__file__).parents[2] / "docs" / "conversations.md").read_text()
DATA = {
    "db.json": {
        "tasks": {"task_1": {"task_id": "task_1", "title": "x", "description": None, "status": "pending"}},
        "users": {"user_1": {"user_id": "user_1", "name": "Ada", "tasks": ["task_1"]}},
    },
    "user_db.json": {
        "notifications": {"note_1": {"notification_id": "note_1", "message": "Call back", "status": "unread"}}
    },
}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    for path, text in re.findall(r"```toml\n# (\S+)\n(.*?)```", TEXT, re.DOTALL):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "policy.md").write_text("See to it.\n")
    (folder / "data").mkdir()
    for name, content in DATA.items():
        (folder / "data" / name).write_text(json.dumps(content))
    return folder


def test_the_example_is_a_suite(suite: Path, tmp_path: Path) -> None:
    assert [str(found) for found in lint(suite) if found.level is not Level.NOTE] == []
    store = str(tmp_path / "store")
    gold = assay("run", "--suite", str(suite), "--solver", "reference", "--store", store, "--json")
    assert gold.json["outcomes"]["passed"] == 1, gold.err
    for number in range(4):
        options = ("--solver", "mutated", "--solver-option", f"mutant={number}", "--store", store, "--json")
        wrong = assay("run", "--suite", str(suite), *options)
        assert wrong.json["outcomes"]["failed"] == 1, (number, wrong.json, wrong.err)


def test_every_key_is_in_the_guide() -> None:
    tables = (ConversationToml, TasksToml, TaskTable, UserTable, RuleTable)
    keys = {name for table in tables for name in table.model_fields}
    assert sorted(key for key in keys if not re.search(rf"\b{key}\b", TEXT)) == []
