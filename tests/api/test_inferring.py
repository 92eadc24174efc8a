"""The evidence for an environment that nobody named says which ones were looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.api.inferring import Asked, shown_by


def test_environments_that_could_not_be_opened_are_not_counted_as_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASSAY_ENVIRONMENT_DATA", raising=False)
    users = {"user_1": {"user_id": "user_1", "name": "Mia", "tasks": []}}
    (tmp_path / "db.json").write_text(json.dumps({"tasks": {}, "users": users}))
    (tmp_path / "user_db.json").write_text(json.dumps({"notifications": {}}))
    asked = {"id": "c", "name": "get_users", "arguments": {}, "requestor": "assistant"}
    messages = [
        {"role": "user", "content": "Who is here?"},
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "id": "c", "content": json.dumps(list(users.values())), "error": False},
        {"role": "user", "content": "###STOP###"},
    ]
    one = {"id": "s", "task_id": "t", "trial": 0, "termination_reason": "user_stop", "messages": messages}
    path = tmp_path / "results.json"
    path.write_text(
        json.dumps({"info": {"environment_info": {"policy": "Be kind."}}, "tasks": [{"id": "t"}], "simulations": [one]})
    )  # no domain is stated
    shown = shown_by(Asked(str(path)))
    assert shown.environment == "mock@tau2"
    (note,) = [note for note in shown.notes if note.startswith("--environment mock")]
    assert "it has all that is called, 1 tool, and without data, so not looked at: airline@tau2, telecom@tau2" in note
