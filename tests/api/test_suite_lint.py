"""Lint tries the reference actions of conversations, and says what comes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.api.suite_lint import lint_suite
from harness.formats.findings import Finding, Level
from tests.cli.inside import assay

COMMON = """
schema_version = "1"
environment = "mock@tau2"
mode = "normal"
data_folder = "data"
policy = "policy.md"
[budget]
timeout_sec = 60.0
[user]
[[user.rule]]
when = ["done"]
say = ["Thanks."]
ends = true
"""
TASK = """
[[task]]
id = "01"
requires_write = {writes}
outputs = ["done"]
answer = "It is done."
[task.user]
opening = "Please note a call."
"""


def suite(folder: Path, *actions: str, writes: bool = True, data: bool = True) -> Path:
    (folder / "tasks").mkdir(parents=True)
    (folder / "conversation.toml").write_text(COMMON)
    (folder / "policy.md").write_text("Be kind.")
    (folder / "tasks" / "notes.toml").write_text(TASK.format(writes=str(writes).lower()) + "".join(actions))
    (folder / "data").mkdir()
    if data:
        users = {"user_1": {"user_id": "user_1", "name": "Mia", "tasks": []}}
        (folder / "data" / "db.json").write_text(json.dumps({"tasks": {}, "users": users}))
        (folder / "data" / "user_db.json").write_text(json.dumps({"notifications": {}}))
    return folder


def action(name: str, **arguments: str) -> str:
    given = ", ".join(f'{key} = "{value}"' for key, value in arguments.items())
    return f'[[task.action]]\nname = "{name}"\narguments = {{ {given} }}\n'


def told(folder: Path, code: str) -> Finding:
    (found,) = [finding for finding in lint_suite(folder) if finding.code == code]
    return found


GOOD = action("create_task", user_id="user_1", title="Call")


def test_a_reference_that_goes_through_is_not_mentioned(tmp_path: Path) -> None:
    assert not [finding for finding in lint_suite(suite(tmp_path / "s", GOOD)) if "reference" in finding.code]


def test_a_tool_that_there_is_not_is_an_error(tmp_path: Path) -> None:
    folder = suite(tmp_path / "s", GOOD, action("create_tsak", user_id="user_1"))
    found = told(folder, "reference-tool")
    assert (found.level, found.message) == (
        Level.ERROR,
        "the environment has no tool for reference action 1 (create_tsak)",
    )
    ended = assay("suite", "lint", folder)
    assert (ended.code, "create_tsak" in ended.out) == (2, True)


def test_an_action_that_is_refused_is_a_warning_with_the_answer(tmp_path: Path) -> None:
    found = told(suite(tmp_path / "s", GOOD, action("create_task", user_id="user_9", title="x")), "reference-refused")
    assert found.level is Level.WARNING
    assert "User user_9 not found" in found.message


@pytest.mark.parametrize(
    ("actions", "writes", "code"),
    [((action("get_users"),), True, "reference-idle"), ((GOOD,), False, "reference-writes")],
)
def test_requires_write_is_held_against_what_the_reference_does(
    actions: tuple[str, ...], writes: bool, code: str, tmp_path: Path
) -> None:
    assert told(suite(tmp_path / "s", *actions, writes=writes), code).level is Level.WARNING


def test_an_environment_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    found = told(suite(tmp_path / "s", GOOD, data=False), "reference-untried")
    assert "no reference action was tried" in found.message
    assert found.remedy


def test_the_references_of_the_bundled_conversations_go_through() -> None:
    assert not [finding for finding in lint_suite("airline") if finding.code.startswith("reference")]
