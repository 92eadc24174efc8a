"""One episode of the small world, written down in every shape that archives have, and faults done to the files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.records.archive import ImportOptions
from harness.records.vocabulary import Actor
from tests.replay.archives import simulation, write_results
from tests.replay.world import Recorder

Messages = list[dict[str, Any]]
BOOKED: dict[str, Any] = {"name": "book", "kwargs": {"amount": 20}}
REFERENCE = {"task_id": 0, "user_id": "u", "instruction": "Book.", "actions": [BOOKED], "outputs": []}


def recorder() -> Recorder:
    """Two reads next to each other, one of which answers the same whatever it is asked; a booking; a last look."""
    made = Recorder(states=False).says(Actor.USER, "book 20").calls("balance").calls("note", text="20 to book")
    return made.calls("book", amount=20).calls("balance").says(Actor.AGENT, "120").says(Actor.USER, "###STOP###")


CALLS = ("balance", "note", "book", "balance")
DROPPED, SWAPPED, EDITED, ARGUMENT = 1, 0, 2, 1  # which call each fault is done to


@dataclass(frozen=True)
class Shape:
    """How to write an episode down. `write` is given the folder and what is to be done to its messages or actions."""

    name: str
    write: Callable[[Path, Callable[[Messages], Messages]], Path]
    drop: Callable[[Messages, int], Messages]
    swap: Callable[[Messages, int], Messages]
    argue: Callable[[Messages, int], Messages]
    observe: Callable[[Messages, int], Messages] | None
    cut: Callable[[Messages], Messages]
    options: Callable[[Path], ImportOptions] = lambda folder: ImportOptions()


# --- messages, as tau2 and tau-bench have them ------------------------------------------------------------


def calling(messages: Sequence[Mapping[str, Any]], nth: int) -> int:
    """The index of the message with the nth call."""
    return [at for at, message in enumerate(messages) if message.get("tool_calls")][nth]


def drop(messages: Messages, nth: int) -> Messages:
    at = calling(messages, nth)
    return messages[:at] + messages[at + 2 :]


def swap(messages: Messages, nth: int) -> Messages:
    at = calling(messages, nth)
    return messages[:at] + messages[at + 2 : at + 4] + messages[at : at + 2] + messages[at + 4 :]


def observe(messages: Messages, nth: int) -> Messages:
    answer = messages[calling(messages, nth) + 1]
    answer["content"] = answer["content"].replace("0", "1")
    return messages


def argue(messages: Messages, nth: int) -> Messages:
    call = messages[calling(messages, nth)]["tool_calls"][0]
    if "function" in call:
        call["function"]["arguments"] = json.dumps({"text": "30 to book"})
    else:
        call["arguments"] = {"text": "30 to book"}
    return messages


def cut(messages: Messages) -> Messages:
    return messages[:-1]


# --- tau2 -------------------------------------------------------------------------------------------------


def tau2_simulation(done: Callable[[Messages], Messages], *, evidence: bool, numbered: bool = True) -> dict[str, Any]:
    """`evidence`: with times, costs and the provider's own answers, as the project writes; else turn numbers alone."""
    made = simulation(recorder().episode())
    for turn, message in enumerate(made["messages"]):
        if not numbered:
            del message["turn_idx"]
        if not evidence:
            continue
        message["timestamp"] = f"2026-01-01T00:00:{turn:02}.5"
        if message["role"] != "tool":
            message |= {"cost": 0.25, "usage": {"prompt_tokens": 10, "completion_tokens": 1}}
            functions = [
                {"id": call["id"], "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])}}
                for call in message.get("tool_calls") or ()
            ]
            message["raw_data"] = {"message": {"content": message["content"], "tool_calls": functions or None}}
    if evidence:
        costs = {role: 0.25 * sum(one["role"] == role for one in made["messages"]) for role in ("assistant", "user")}
        made |= {"agent_cost": costs["assistant"], "user_cost": costs["user"]}
    return made | {"messages": done(made["messages"])}


def tau2_file(folder: Path, done: Callable[[Messages], Messages], **how: bool) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return write_results(folder / "results.json", [tau2_simulation(done, **how)])


def tau2_folder(folder: Path, done: Callable[[Messages], Messages]) -> Path:
    path = tau2_file(folder, done, evidence=True)
    stated = json.loads(path.read_text())
    (one,) = stated.pop("simulations")
    path.write_text(json.dumps(stated))
    (folder / "simulations").mkdir(exist_ok=True)
    (folder / "simulations" / f"{one['id']}.json").write_text(json.dumps(one))
    return folder


# --- tau-bench --------------------------------------------------------------------------------------------


def tau_bench(folder: Path, done: Callable[[Messages], Messages]) -> Path:
    traj: Messages = [{"role": "system", "content": "Be kind."}]
    for message in simulation(recorder().episode())["messages"]:
        calls = message.get("tool_calls")
        if message["role"] == "tool":
            name = traj[-1]["tool_calls"][0]["function"]["name"]
            content = {"content": message["content"], "tool_call_id": message["id"], "name": name}
            traj.append({"role": "tool", **content})
        elif calls:
            function = {"name": calls[0]["name"], "arguments": json.dumps(calls[0]["arguments"])}
            traj.append(
                {"role": "assistant", "content": None, "tool_calls": [{"id": calls[0]["id"], "function": function}]}
            )
        else:
            traj.append({"role": message["role"], "content": message["content"]})
    info = {"task": REFERENCE, "source": "user", "user_cost": None, "reward_info": {"reward": 1.0}}
    episode = {"task_id": 0, "trial": 0, "reward": 1.0, "info": info, "traj": done(traj)}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "archive.json"
    path.write_text(json.dumps([episode]))
    return path


# --- HAL: action lists, with the reference's replay in them, and with or without a model log --------------------


def actions(*, grader: bool = True) -> Messages:
    done = []
    for step in recorder().episode().steps:
        if step.kind == "tool.call":
            done.append({"name": step.payload["gen_ai.tool.name"], "kwargs": dict(step.payload["arguments"])})
        elif step.kind == "message" and step.actor is Actor.AGENT:
            done.append({"name": "respond", "kwargs": {"content": step.payload["content"]}})
    return [*done, dict(BOOKED)] if grader else done


def hal_upload(folder: Path, done: Callable[[Messages], Messages]) -> Path:
    said = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "book 20"}]
    for action in actions(grader=False):
        if action["name"] == "respond":
            said.append({"role": "assistant", "content": action["kwargs"]["content"]})
        else:
            function = {"name": action["name"], "arguments": json.dumps(action["kwargs"])}
            said.append({"role": "assistant", "tool_calls": [{"function": function}]})  # type: ignore[dict-item]
    upload = {
        "config": {"benchmark_name": "taubench_airline", "agent_name": "a"},
        "raw_eval_results": {"0": {"reward": 1.0, "taken_actions": done(actions()), "task": REFERENCE}},
        "raw_logging_results": {
            "0": {"messages": said, "call_metadata": [{"usage": {"prompt_tokens": 1}}], "model": "m"}
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "x_UPLOAD.json"
    path.write_text(json.dumps(upload))
    return path


def hal_lists(folder: Path, done: Callable[[Messages], Messages]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tasks.json").write_text(json.dumps([REFERENCE]))
    path = folder / "lists.json"
    path.write_text(json.dumps({"set": {"0/0": {"reward": 1.0, "taken_actions": done(actions())}}}))
    return path


def tasks_beside(folder: Path) -> ImportOptions:
    return ImportOptions(reference=str(folder / "tasks.json"))


def drop_action(done: Messages, nth: int) -> Messages:
    return done[:nth] + done[nth + 1 :]


def swap_actions(done: Messages, nth: int) -> Messages:
    return [*done[:nth], done[nth + 1], done[nth], *done[nth + 2 :]]


def argue_action(done: Messages, nth: int) -> Messages:
    done[nth]["kwargs"] = {"text": "30 to book"}
    return done


def cut_actions(done: Messages) -> Messages:
    """Without the last message and what the grader left after it."""
    return done[: len(actions(grader=False)) - 2]


def _messages(name: str, write: Callable[[Path, Callable[[Messages], Messages]], Path]) -> Shape:
    return Shape(name, write, drop, swap, argue, observe, cut)


def _lists(name: str, write: Callable[[Path, Callable[[Messages], Messages]], Path], **more: Any) -> Shape:
    return Shape(name, write, drop_action, swap_actions, argue_action, None, cut_actions, **more)


SHAPES = (
    _messages("tau2 file", lambda folder, done: tau2_file(folder, done, evidence=True)),
    _messages("tau2 file, turn numbers alone", lambda folder, done: tau2_file(folder, done, evidence=False)),
    _messages("tau2 file, nothing", lambda folder, done: tau2_file(folder, done, evidence=False, numbered=False)),
    _messages("tau2 folder", tau2_folder),
    _messages("tau-bench", tau_bench),
    _lists("HAL upload", hal_upload),
    _lists("HAL lists", hal_lists, options=tasks_beside),
)
