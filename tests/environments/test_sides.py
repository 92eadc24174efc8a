"""Two sides with tools and databases of their own: mock, and what is known of telecom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.environments.mock import MockTau2
from harness.environments.telecom import TelecomTau2
from harness.protocols import EnvironmentSession
from harness.records.environment import Answer, Call, EnvironmentFault, Opening
from harness.records.vocabulary import Actor


def ask(session: EnvironmentSession, actor: Actor, space: str, name: str, /, **arguments: Any) -> Answer:
    return session.call(Call(actor, name, arguments, space))


def test_in_normal_mode_each_side_has_its_own_tools(desk: Path) -> None:
    with MockTau2(desk).open(Opening("normal")) as session:
        assert not ask(session, Actor.USER, "user", "check_notifications").error
        assert not ask(session, Actor.AGENT, "agent", "get_users").error
        for actor, space, name in (
            (Actor.AGENT, "user", "check_notifications"),
            (Actor.AGENT, "agent", "check_notifications"),
            (Actor.USER, "agent", "get_users"),
        ):
            answer = ask(session, actor, space, name)
            assert answer == Answer(f"Error: Tool '{name}' not found.", error=True, missing=True)


def test_in_solo_mode_the_agent_has_both_and_the_user_none(desk: Path) -> None:
    with MockTau2(desk).open(Opening("solo")) as session:
        assert not ask(session, Actor.AGENT, "user", "check_notifications").error
        refused = ask(session, Actor.USER, "user", "check_notifications")
        assert refused == Answer("Error: User tool calls are not allowed in solo mode", error=True, missing=True)


def test_tools_of_the_agent(desk: Path) -> None:
    with MockTau2(desk).open(Opening("normal")) as session:
        made = ask(session, Actor.AGENT, "agent", "create_task", user_id="ada", title="Feed the cat")
        assert (
            made.content == '{"task_id": "task_2", "title": "Feed the cat", "description": null, "status": "pending"}'
        )
        users = json.loads(ask(session, Actor.AGENT, "agent", "get_users").content)
        assert users == [{"user_id": "ada", "name": "Ada", "tasks": ["task_1", "task_2"]}]
        done = ask(session, Actor.AGENT, "agent", "update_task_status", task_id="task_2", status="completed")
        assert json.loads(done.content)["status"] == "completed"
        for arguments in ({"task_id": "task_9", "status": "completed"},):
            answer = ask(session, Actor.AGENT, "agent", "update_task_status", **arguments)
            assert answer == Answer("Error: Task task_9 not found", error=True)
        assert (
            ask(session, Actor.AGENT, "agent", "transfer_to_human_agents", summary="").content == "Transfer successful"
        )


def test_the_digest_is_of_both_databases(desk: Path) -> None:
    with MockTau2(desk).open(Opening("normal")) as session:
        agent, user = session.digest().split()
        ask(session, Actor.USER, "user", "dismiss_notification", notification_id="n1")
        assert session.digest().split()[0] == agent
        changed = session.digest().split()[1]
        assert changed != user
        ask(session, Actor.AGENT, "agent", "create_task", user_id="ada", title="x")
        assert session.digest().split()[0] != agent
        assert session.digest().split()[1] == changed


def test_checks_are_for_a_reference_alone(desk: Path) -> None:
    asked = {"notification_id": "n1", "expected_status": "read"}
    with MockTau2(desk).open(Opening("normal")) as session:
        for actor in (Actor.AGENT, Actor.USER):
            assert ask(session, actor, "user.function", "assert_notification_status", **asked).missing
        name = "assert_notification_status"
        assert ask(session, Actor.REFERENCE, "user.function", name, **asked).content == "false"
        ask(session, Actor.USER, "user", "dismiss_notification", notification_id="n1")
        assert ask(session, Actor.REFERENCE, "user.function", name, **asked).content == "true"
        checks = {
            ("assert_number_of_tasks", "user_id", "ada", "expected_number", 1),
            ("assert_task_status", "task_id", "task_1", "expected_status", "pending"),
        }
        for check, key, value, wanted, as_wanted in checks:
            arguments = {key: value, wanted: as_wanted}
            assert ask(session, Actor.REFERENCE, "agent.function", check, **arguments).content == "true"


def test_an_initial_state_is_data_then_actions(desk: Path) -> None:
    initial = {
        "initialization_data": {
            "agent_data": {
                "tasks": {"task_2": {"task_id": "task_2", "title": "Review", "status": "pending"}},
                "users": {"ada": {"tasks": ["task_1", "task_2"]}},
            },
            "user_data": None,
        },
        "initialization_actions": [
            {"env_type": "assistant", "func_name": "create_task", "arguments": {"user_id": "ada", "title": "Third"}},
            {
                "env_type": "user",
                "func_name": "add_notification",
                "arguments": {"notification_id": "n2", "message": "m"},
            },
        ],
    }
    with MockTau2(desk).open(Opening("normal", initial=initial)) as session:
        users = json.loads(ask(session, Actor.AGENT, "agent", "get_users").content)
        assert users == [{"user_id": "ada", "name": "Ada", "tasks": ["task_1", "task_2", "task_3"]}]
        seen = json.loads(ask(session, Actor.USER, "user", "check_notifications").content)
        assert [note["notification_id"] for note in seen] == ["n1", "n2"]
        assert seen[1] == {"notification_id": "n2", "message": "m", "status": "unread", "task_id": None}


@pytest.mark.parametrize(
    ("initial", "place", "what"),
    [
        ({"weather": {}}, "mock@tau2", "weather"),
        ({"initialization_data": {"agent_data": {"cars": {}}}}, "agent_data", "cars is no table"),
        ({"initialization_data": {"driver_data": {"cars": {}}}}, "driver_data", "no such side"),
        ({"initialization_data": {"agent_data": {"tasks": {"t": {"title": 3}}}}}, "agent_data", "tasks/t"),
        ({"initialization_actions": [{"env_type": "user"}]}, "initialization_actions/0", "it is no action"),
        (
            {"initialization_actions": [{"env_type": "user", "func_name": "fly"}]},
            "initialization_actions/0",
            "Tool 'fly' not found",
        ),
        (
            {
                "initialization_actions": [
                    {"env_type": "agent", "func_name": "create_task", "arguments": {"user_id": "x"}}
                ]
            },
            "initialization_actions/0",
            "create_task",
        ),
    ],
)
def test_an_initial_state_that_is_not_reached_is_a_fault(
    desk: Path, initial: dict[str, Any], place: str, what: str
) -> None:
    with pytest.raises(EnvironmentFault, match=what) as caught, MockTau2(desk).open(Opening("normal", initial=initial)):
        pass
    assert place in caught.value.place
    assert caught.value.remedy


def test_a_record_that_does_not_fit_is_named(desk: Path, tmp_path: Path) -> None:
    for name in ("db.json", "user_db.json"):
        (tmp_path / name).write_text((desk / name).read_text().replace("n1", "n2").replace('"message"', '"massage"'))
    with pytest.raises(EnvironmentFault, match="massage") as caught:
        MockTau2(tmp_path)
    assert caught.value.place.endswith("user_db.json")


def test_every_task_of_the_mock_domain_can_be_set_up_and_referred_to(real: Path) -> None:
    environment = MockTau2(real)
    for task in json.loads((real / "mock" / "tasks.json").read_text()):
        initial = task.get("initial_state") or {}
        with environment.open(Opening("normal", initial=initial)) as session:
            for message in initial.get("message_history") or ():
                for call in message.get("tool_calls") or ():
                    assert not ask(session, Actor.AGENT, "agent", call["name"], **call["arguments"]).error
            criteria = task["evaluation_criteria"]
            for action in criteria.get("actions") or ():
                assert not ask(session, Actor.REFERENCE, "agent", action["name"], **action["arguments"]).error
            for check in criteria.get("env_assertions") or ():
                space = {"assistant": "agent.function", "user": "user.function"}[check["env_type"]]
                answer = ask(session, Actor.REFERENCE, space, check["func_name"], **check["arguments"])
                assert answer.content in ("true", "false")


def lists(folder: Path) -> Path:
    sides = {
        "assistant": {"get_line": {"type": "read", "mutates_state": False, "args": ["line_id"]}},
        "user": {"reboot": {"type": "write", "mutates_state": True, "args": []}},
    }
    (folder / "tools_by_side.json").write_text(json.dumps({"telecom": sides}))
    return folder


def test_telecom_tells_who_has_which_tool_and_guesses_nothing(tmp_path: Path) -> None:
    environment = TelecomTau2(lists(tmp_path))
    with environment.open(Opening("normal")) as session:
        assert ask(session, Actor.AGENT, "user", "reboot").missing
        assert ask(session, Actor.USER, "agent", "get_line").missing
        with pytest.raises(EnvironmentFault, match="names of 2 tools, not what get_line does"):
            ask(session, Actor.AGENT, "agent", "get_line", line_id="L1")
        for step in (session.digest, session.snapshot, lambda: session.restore(b"")):
            with pytest.raises(EnvironmentFault, match="unimplemented"):
                step()
    with environment.open(Opening("solo")) as session:
        assert ask(session, Actor.USER, "user", "reboot").missing
        with pytest.raises(EnvironmentFault, match="not what reboot does"):
            ask(session, Actor.AGENT, "user", "reboot")
    with pytest.raises(EnvironmentFault, match="no mode 'duo'"), environment.open(Opening("duo")):
        pass
    assert [tool.writes for tool in environment.capabilities.tools] == [False, True]
    assert environment.capabilities.digest == ""


@pytest.mark.parametrize("content", ["{}", "[]", '{"telecom": {"assistant": {"x": {}}, "user": {}}}'])
def test_a_list_of_another_shape_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "tools_by_side.json").write_text(content)
    with pytest.raises(EnvironmentFault, match="lists no tools of telecom"):
        TelecomTau2(tmp_path)


def test_the_real_list_has_thirteen_and_thirty(real: Path) -> None:
    tools = TelecomTau2(real).capabilities.tools
    assert [sum(tool.namespace == side for tool in tools) for side in ("agent", "user")] == [13, 30]
