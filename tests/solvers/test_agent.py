"""The agent's loop against a scripted model: what it sends, what it makes of bad calls, when it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.protocols import Remaining
from harness.records.chat import ChatReply, ToolCall
from harness.records.errors import ConfigError, ProviderFault, Revoked, SandboxFault
from harness.records.execution import Captured, ExecResult
from harness.records.vocabulary import Reason
from harness.testing import ScriptedModel, calls, says
from solvers.agent import BASH, LEAST_OUTPUT_CHARS, Agent, BadCall, Settings, clipped, read_call, shown
from solvers.converse import spoken
from tests.solvers.scenes import StageSandbox, make_episode, output

pytestmark = pytest.mark.anyio


def bash(command: str, **more: Any) -> ChatReply:
    return calls(("bash", {"command": command, **more}))


async def act(*lines: ChatReply | Exception, sandbox: StageSandbox | None = None, **changes: Any) -> ScriptedModel:
    model = ScriptedModel(*lines)
    await Agent().run(make_episode(sandbox or StageSandbox(), model, **changes))
    return model


def last_tool_message(model: ScriptedModel) -> str:
    message = model.heard[-1][-1]
    assert message["role"] == "tool"
    return str(message["content"])


async def test_commands_are_run_and_shown_until_a_reply_without_a_call() -> None:
    sandbox = StageSandbox(lambda command: output(f"ran {command}\n"))
    model = await act(bash("ls"), bash("cat a"), says("done"), sandbox=sandbox)
    assert sandbox.commands == ["ls", "cat a"]
    roles = [message["role"] for message in model.heard[-1]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert model.heard[-1][1]["content"] == "Write 42 to /app/answer."
    assert last_tool_message(model).startswith("ran cat a\n[exit code 0]\n")
    assert model.asked[0]["tools"] == (BASH,)


async def test_conversations_only_grow_at_their_end() -> None:
    """What was sent stays as it was: caches and evidence rely on it."""
    model = await act(bash("a"), bash("b"), bash("c"), says("done"))
    for earlier, later in zip(model.heard, model.heard[1:], strict=False):
        assert later[: len(earlier)] == earlier


async def test_the_rules_and_what_is_left_are_told() -> None:
    model = await act(bash("ls"), says("done"))
    system = model.heard[0][0]["content"]
    assert "starts in /app." in system
    assert "may take 60 s" in system
    left = "[left: 100 s, 1234 tokens, 7 steps, $0.2500]\n"
    assert system.endswith(left)
    assert last_tool_message(model).endswith(left)
    unlimited = await act(bash("ls"), says("done"), remaining=lambda: Remaining(None, None, None, None))
    assert "[left" not in str(unlimited.heard)


async def test_every_call_of_a_reply_is_answered_by_its_id_in_order() -> None:
    sandbox = StageSandbox(lambda command: output(f"{command}!"))
    model = await act(
        calls(("bash", {"command": "a"}), ("bash", "{"), ("bash", {"command": "b"})), says("x"), sandbox=sandbox
    )
    answers = model.heard[-1][-3:]
    assert [message["tool_call_id"] for message in answers] == ["call-0", "call-1", "call-2"]
    assert [message["content"][:2] for message in answers] == ["a!", "[n", "b!"]
    assert ["[left" in message["content"] for message in answers] == [False, False, True]
    assert sandbox.commands == ["a", "b"]


async def test_a_wish_for_time_is_passed_on_and_the_default_holds_without_one() -> None:
    sandbox = StageSandbox()
    await act(bash("a"), bash("b", timeout_s=7), bash("c", timeout_s=10**400), says("x"), sandbox=sandbox)
    assert [asked["timeout_s"] for asked in sandbox.asked] == [60, 7, 1e9]


BAD_CALLS = [
    ("python", {"command": "ls"}, "no tool 'python'"),
    ("", {"command": "ls"}, "no tool ''"),
    ("bash", "", "not JSON"),
    ("bash", '{"command": "ls"', "not JSON"),
    ("bash", "[" * 100_000, "not JSON"),
    ("bash", "[]", "no JSON object"),
    ("bash", "null", "no JSON object"),
    ("bash", {}, "command must be text"),
    ("bash", {"command": 3}, "command must be text"),
    ("bash", {"command": ["ls"]}, "command must be text"),
    ("bash", {"command": " \n"}, "command must be text"),
    ("bash", {"command": "a\0b"}, "NUL"),
    ("bash", '{"command": "ls", "timeout_s": NaN}', "NaN"),
    ("bash", '{"command": "ls", "timeout_s": Infinity}', "Infinity"),
    ("bash", {"command": "ls", "timeout_s": "9"}, "number of seconds"),
    ("bash", {"command": "ls", "timeout_s": True}, "number of seconds"),
    ("bash", {"command": "ls", "timeout_s": 0}, "more than 0"),
    ("bash", {"command": "ls", "timeout_s": -1}, "more than 0"),
    ("bash", {"command": "ls", "cwd": "/"}, "no argument 'cwd'"),
]


@pytest.mark.parametrize(("name", "arguments", "told"), BAD_CALLS)
async def test_a_bad_call_is_told_to_the_model_and_nothing_is_run(name: str, arguments: Any, told: str) -> None:
    sandbox = StageSandbox()
    model = await act(calls((name, arguments)), says("sorry"), sandbox=sandbox)
    assert sandbox.commands == []
    assert last_tool_message(model).startswith("[nothing was done: ")
    assert told in last_tool_message(model)


@given(
    st.text(), st.one_of(st.text(), st.builds(json.dumps, st.recursive(st.none() | st.floats() | st.text(), st.lists)))
)
def test_whatever_the_arguments_are_they_are_read_or_refused(name: str, arguments: str) -> None:
    for tool in (name, "bash"):
        try:
            command, timeout_s = read_call(ToolCall(id="1", name=tool, arguments=arguments))
        except BadCall:
            continue
        assert command.strip()
        assert timeout_s is None or 0 < timeout_s <= 1e9


async def test_refusals_of_the_harness_end_the_loop() -> None:
    def revoked(command: object) -> ExecResult:
        raise Revoked("the budget is used up")

    with pytest.raises(Revoked):
        await act(bash("ls"), sandbox=StageSandbox(revoked))
    with pytest.raises(ProviderFault):
        await act(bash("ls"), ProviderFault("no answer"))

    def lost(command: object) -> ExecResult:
        raise SandboxFault("gone", reason=Reason.CONTAINER_LOST)

    with pytest.raises(SandboxFault):
        await act(bash("ls"), sandbox=StageSandbox(lost))


async def test_a_final_reply_that_was_cut_is_noted() -> None:
    notes: list[str] = []
    await act(says("I was about", finish_reason="length"), note=lambda kind, payload: notes.append(kind))
    assert notes == ["reply.cut"]


async def test_without_a_model_nothing_is_tried() -> None:
    with pytest.raises(ConfigError, match="no model"):
        await Agent().run(make_episode(StageSandbox(), None))


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (output("", exit_code=3), "[exit code 3]\n"),
        (output("a"), "a\n[exit code 0]\n"),
        (output("a\n", "b"), "a\n[standard error]\nb\n[exit code 0]\n"),
        (output("a", exit_code=None, timed_out=True, duration_s=2.0), "a\n[timed out after 2.0 s; it was ended"),
        (output("", exit_code=None), "[ended from outside; there is no exit code]\n"),
        (output("", exit_code=137, memory_killed=True), "[exit code 137]\n[something was killed because"),
        (output("a", output_ended_early=True), "a\n[exit code 0]\n[it ran on after its output ended"),
        (output("", stdio_held_open=True), "[exit code 0]\n[it left something running that still holds"),
        (output(b"\xff\x00\n"), "\ufffd\x00\n[exit code 0]\n"),
        (
            ExecResult(exit_code=0, stdout=Captured(head=b"ab", tail=b"yz", seen_bytes=9)),
            "ab\n[… 5 of 9 bytes dropped …]\nyz",
        ),
    ],
)
def test_how_a_command_ended_is_told(result: ExecResult, told: str) -> None:
    assert shown(result, 1000).startswith(told)


def test_long_output_keeps_both_ends_and_says_what_was_dropped() -> None:
    text = "".join(f"{number}\n" for number in range(10_000))
    told = shown(output(text, "e" * 300), 1000)
    assert told.startswith("0\n1\n")
    assert "9999\n[standard error]" in told
    assert f"[… {len(text) - 700} of {len(text)} characters dropped …]\n" in told
    assert "e" * 300 in told
    both = shown(output("o" * 9000, "e" * 9000), 1000)
    assert (both.count("o" * 250), both.count("e" * 250)) == (2, 2)


@given(st.text(), st.integers(2, 50))
def test_what_is_clipped_is_told_exactly(text: str, limit: int) -> None:
    told = clipped(text, limit)
    if len(text) <= limit:
        assert told == text
    else:
        assert told.startswith(text[: (limit + 1) // 2])
        assert told.endswith("\n" + text[len(text) - limit // 2 :])
        assert f"[… {len(text) - limit} of {len(text)} characters dropped …]" in told


def test_a_reply_without_the_services_own_message_is_made_again() -> None:
    reply = calls(("bash", {"command": "ls"}))
    assert spoken(reply) == spoken(reply.model_copy(update={"message": {}}))
    assert spoken(ChatReply(content="x")) == {"role": "assistant", "content": "x"}
    assert spoken(ChatReply(content="x", message={"content": "x"}))["role"] == "assistant"


async def test_options_may_be_text() -> None:
    sandbox = StageSandbox(lambda command: output("x" * 1000))
    options = {
        "system_prompt": "In {workdir}, {command_timeout_s} s, {not a field}.",
        "max_output_chars": str(LEAST_OUTPUT_CHARS),
        "temperature": "0.5",
        "command_timeout_s": "2.5",
    }
    model = await act(bash("ls"), says("x"), sandbox=sandbox, options=options)
    assert model.heard[0][0]["content"].startswith("In /app, 2.5 s, {not a field}.")
    assert model.asked[0]["temperature"] == 0.5
    assert sandbox.asked[0]["timeout_s"] == 2.5
    assert "[… 800 of 1000 characters dropped …]" in last_tool_message(model)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_output_char": 9}, "did you mean 'max_output_chars'?"),
        ({"nonsense": 1}, "its options are system_prompt"),
        ({"max_output_chars": "many"}, "solver_options.max_output_chars"),
        ({"max_output_chars": 200.5}, "not a whole number"),
        ({"max_output_chars": 10}, "at least 200"),
        ({"temperature": "nan"}, "solver_options.temperature"),
        ({"temperature": -1}, "at least 0"),
        ({"temperature": True}, "solver_options.temperature"),
        ({"command_timeout_s": 0}, "solver_options.command_timeout_s"),
        ({"command_timeout_s": 10**400}, "solver_options.command_timeout_s"),
        ({"command_timeout_s": None}, "solver_options.command_timeout_s"),
        ({"system_prompt": " "}, "solver_options.system_prompt"),
    ],
)
async def test_a_bad_option_is_refused_before_anything_is_spent(options: dict[str, Any], told: str) -> None:
    model = ScriptedModel()
    for check in (Agent.check_options, Settings.read):
        with pytest.raises(ConfigError) as raised:
            check(options)
        assert told in str(raised.value)
    with pytest.raises(ConfigError):
        await Agent().run(make_episode(StageSandbox(), model, options=options))
    assert model.heard == []
