"""A plain LLM agent: a model, a `bash` tool, and a loop until the model replies without calling it."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from harness.protocols import Episode, Remaining
from harness.records.chat import ToolCall
from harness.records.errors import ConfigError
from harness.records.execution import ExecResult
from solvers.converse import converse, spoken

SYSTEM_PROMPT = """\
You work in a Linux sandbox, through the tool `bash`, on the task that the user gives you.

- Every call runs in a new shell that starts in {workdir}. Its directory, variables and functions are gone with \
the next call; only files stay.
- A command may take {command_timeout_s} s, or what you ask for with `timeout_s`; then it is ended with everything \
it started. Standard input is empty: nobody answers a prompt. To leave something running, detach it and redirect \
its output.
- Of long output you see the beginning and the end.
- After every step you are told what is left of your budget. When it is used up, what you have done until then is \
judged.
- When the task is done, reply without calling the tool. That ends your work; nobody reads the reply.
"""
BASH: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command line with bash; returns its output and exit code.",
        "parameters": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line, or a whole script."},
                "timeout_s": {"type": "number", "description": "Seconds that it may take."},
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    },
}
LEAST_OUTPUT_CHARS = 200


class BadCall(Exception):
    """A tool call that cannot be carried out; the model is told why."""


@dataclass(frozen=True)
class Settings:
    """The agent's options. `{workdir}` and `{command_timeout_s}` are filled into the system prompt."""

    system_prompt: str = SYSTEM_PROMPT
    max_output_chars: int = 10_000
    temperature: float | None = None
    command_timeout_s: float = 60.0

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Settings:
        """Settings from options; numbers may arrive as text from the command line. Raises ConfigError."""
        known = [field.name for field in fields(cls)]
        for key in options:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                remedy = f"did you mean {near[0]!r}?" if near else f"its options are {', '.join(known)}"
                raise ConfigError(f"the agent has no option {key!r}", remedy=remedy)
        prompt = options.get("system_prompt", SYSTEM_PROMPT)
        if not isinstance(prompt, str) or not prompt.strip():
            raise ConfigError("it must be text", place="solver_options.system_prompt")
        chars = _number(options, "max_output_chars", cls.max_output_chars, least=LEAST_OUTPUT_CHARS)
        if chars != int(chars):
            raise ConfigError(f"{chars} is not a whole number", place="solver_options.max_output_chars")
        temperature = None
        if options.get("temperature") is not None:
            temperature = _number(options, "temperature", 0.0, least=0.0)
        timeout_s = _number(options, "command_timeout_s", cls.command_timeout_s, least=0.05)
        return cls(prompt, int(chars), temperature, timeout_s)


def _number(options: Mapping[str, Any], key: str, default: float, *, least: float) -> float:
    value = options.get(key, default)
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or number < least:
        raise ConfigError(f"{value!r} is not a number of at least {least:g}", place=f"solver_options.{key}")
    return number


class Agent:
    """Asks the model, runs the commands it calls for, shows it their output; a reply without a call ends it. In a
    conversation the tools are the environment's, and the reply goes to the user (:mod:`solvers.converse`).

    What a model gets wrong in a call is told to it, and the loop goes on. Budgets are the harness's to keep: a
    handle that refuses ends the loop by its exception.
    """

    name = "agent"
    version = "1"
    needs_model = True
    converses = True
    isolation = "inline"

    @staticmethod
    def check_options(options: Mapping[str, Any]) -> None:
        """Raises ConfigError for options that cannot be used."""
        Settings.read(options)

    async def run(self, episode: Episode) -> None:
        settings = Settings.read(episode.options)
        if episode.model is None:
            raise ConfigError("the agent has no model", remedy="give --model (and --base-url)")
        if episode.conversation is not None:
            await converse(episode, episode.conversation, settings.temperature)
            return
        messages = opening(episode, settings)
        while True:
            reply = await episode.model.chat(messages, tools=(BASH,), temperature=settings.temperature)
            messages.append(spoken(reply))
            if not reply.tool_calls:
                if reply.finish_reason == "length":
                    episode.note("reply.cut", {"detail": "the reply that ended the episode was cut at its token limit"})
                return
            answers = [await answer(call, episode, settings) for call in reply.tool_calls]
            answers[-1] += remaining_line(episode.remaining())
            for call, content in zip(reply.tool_calls, answers, strict=True):
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


def opening(episode: Episode, settings: Settings) -> list[dict[str, Any]]:
    """The first messages: how things work here, and the instruction, word for word."""
    prompt = settings.system_prompt.replace("{workdir}", episode.workdir)
    prompt = prompt.replace("{command_timeout_s}", f"{settings.command_timeout_s:g}")
    return [
        {"role": "system", "content": prompt + remaining_line(episode.remaining())},
        {"role": "user", "content": episode.instruction},
    ]


async def answer(call: ToolCall, episode: Episode, settings: Settings) -> str:
    """Carry out one tool call, or say what is wrong with it."""
    try:
        command, timeout_s = read_call(call)
    except BadCall as wrong:
        return f"[nothing was done: {wrong}]\n"
    result = await episode.sandbox.exec(command, timeout_s=timeout_s or settings.command_timeout_s)
    return shown(result, settings.max_output_chars)


def read_call(call: ToolCall) -> tuple[str, float | None]:
    """Command and time limit of a call. Raises BadCall: the arguments are a model's own text (CASES T06)."""
    if call.name != "bash":
        raise BadCall(f"there is no tool {call.name!r}; the only one is bash")
    try:
        arguments = json.loads(call.arguments, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadCall(f"the arguments are not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise BadCall('the arguments are no JSON object; give {"command": "…"}')
    if unknown := sorted(set(arguments) - {"command", "timeout_s"}):
        raise BadCall(f"bash has no argument {unknown[0]!r}; it takes command and timeout_s")
    command, timeout_s = arguments.get("command"), arguments.get("timeout_s")
    if not isinstance(command, str) or not command.strip():
        raise BadCall("command must be text, and not empty")
    if "\0" in command:
        raise BadCall("command holds a NUL character, which no command line can")
    if timeout_s is None:
        return command, None
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float):
        raise BadCall("timeout_s must be a number of seconds")
    seconds = min(timeout_s, 1e9)  # a whole number may be too large for a float
    if not seconds > 0:
        raise BadCall("timeout_s must be more than 0")
    return command, float(seconds)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def shown(result: ExecResult, max_chars: int) -> str:
    """A command's output as the model sees it: standard output, standard error, and how it ended."""
    out, err = result.stdout.text, result.stderr.text
    out = clipped(out, max_chars - min(len(err), max_chars // 2))
    err = clipped(err, max(max_chars - len(out), max_chars // 2))
    parts = [_whole_lines(out), f"[standard error]\n{_whole_lines(err)}" if err else ""]
    return "".join(parts) + "".join(f"[{line}]\n" for line in _ending(result))


def _ending(result: ExecResult) -> Sequence[str]:
    lines = []
    if result.timed_out:
        lines.append(f"timed out after {result.duration_s:.1f} s; it was ended with everything it started")
    elif result.exit_code is None:
        lines.append("ended from outside; there is no exit code")
    else:
        lines.append(f"exit code {result.exit_code}")
    if result.memory_killed:
        lines.append("something was killed because the sandbox's memory was used up")
    if result.stdio_held_open:
        lines.append("it left something running that still holds its output open")
    if result.output_ended_early:
        lines.append("it ran on after its output ended: there may be more than is shown")
    return lines


def clipped(text: str, limit: int) -> str:
    """The text, or its beginning and end with a line between them that says how much was dropped."""
    if len(text) <= limit:
        return text
    head, tail = text[: (limit + 1) // 2], text[len(text) - limit // 2 :]
    return f"{_whole_lines(head)}[… {len(text) - limit} of {len(text)} characters dropped …]\n{tail}"


def _whole_lines(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def remaining_line(left: Remaining) -> str:
    """What is left of the budget, as a line; empty where nothing is limited."""
    parts = [
        f"{left.wall_s:.0f} s" if left.wall_s is not None else "",
        f"{left.tokens} tokens" if left.tokens is not None else "",
        f"{left.steps} steps" if left.steps is not None else "",
        f"${left.cost_usd:.4f}" if left.cost_usd is not None else "",
    ]
    told = ", ".join(part for part in parts if part)
    return f"[left: {told}]\n" if told else ""
