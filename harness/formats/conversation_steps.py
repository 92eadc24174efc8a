"""The reference solution of a conversation as a file of steps, one JSON object a line, and its mutants.

A step calls a tool, `{"call": NAME, "arguments": {…}, "namespace": SIDE}`, or says something, `{"say": TEXT}`. So
mutations are plain edits of lines: made here from what a task says must be done, must be said and must not be done.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from harness.formats.conversation_schema import StepTable, TaskTable
from harness.records.task import Mutation

STEPS = "steps.jsonl"
DONE = "That has been done."
UNSAID = "(left out)"

Step = dict[str, Any]


def last_words(table: TaskTable) -> str:
    """All that the reference says."""
    return "\n".join(str(step["say"]) for step in steps_of(table) if "say" in step)


def steps_of(table: TaskTable) -> tuple[Step, ...]:
    """The reference's steps: as the task writes them, else its agent's actions and then the answer."""
    if table.solution:
        return tuple(_step(step) for step in table.solution)
    calls = tuple(
        _call(action.name, action.arguments, action.namespace or "agent")
        for action in table.action
        if action.actor == "agent"
    )
    return calls if table.user is None else (*calls, {"say": table.answer or DONE})


def steps_text(steps: Iterable[Step]) -> bytes:
    """The file of steps."""
    return "".join(f"{_line(step)}\n" for step in steps).encode("utf-8", "surrogatepass")


def mutations_of(table: TaskTable, steps: Sequence[Step]) -> tuple[Mutation, ...]:
    """One wrong solution for everything that the task asks for or forbids, distinct by name."""
    needed = _needed(table, steps)
    found = [
        Mutation(name=f"leaves out {name}", file=STEPS, find=_line(step) + "\n", replace="") for name, step in needed
    ]
    for output in table.outputs:
        step = next((step for step in steps if output in str(step.get("say", ""))), None)
        if step is not None:
            silent = {"say": str(step["say"]).replace(output, UNSAID)}
            found.append(Mutation(name=f"does not say {output}", file=STEPS, find=_line(step), replace=_line(silent)))
    if table.forbidden and steps:
        last = _line(steps[-1]) + "\n"
        for action in table.forbidden:
            call = _line(_call(action.name, action.arguments, action.namespace or "agent")) + "\n"
            found.append(Mutation(name=f"does {action.name}", file=STEPS, find=last, replace=call + last))
    return _named_apart(found)


def _needed(table: TaskTable, steps: Sequence[Step]) -> list[tuple[str, Step]]:
    """Steps without which the task is not solved, with a name for each."""
    if table.solution:
        marked = [step for step, written in zip(steps, table.solution, strict=True) if written.needed]
    else:
        changing = [action for action in table.action if not action.read and action.actor == "agent"]
        marked = [_call(action.name, action.arguments, action.namespace or "agent") for action in changing]
    return [(str(step.get("call", "what the user must do")), step) for step in marked]


def _step(table: StepTable) -> Step:
    if table.call is not None:
        return _call(table.call, table.arguments, table.namespace)
    return {"say": table.say or ""}


def _call(name: str, arguments: dict[str, Any], namespace: str) -> Step:
    step: Step = {"call": name, "arguments": arguments}
    return step if namespace == "agent" else {**step, "namespace": namespace}


def _line(step: Step) -> str:
    return json.dumps(step, ensure_ascii=False, default=str)


def _named_apart(mutations: Iterable[Mutation]) -> tuple[Mutation, ...]:
    seen: dict[str, int] = {}
    named = []
    for mutation in mutations:
        seen[mutation.name] = seen.get(mutation.name, 0) + 1
        count = seen[mutation.name]
        named.append(mutation if count == 1 else mutation.model_copy(update={"name": f"{mutation.name} ({count})"}))
    return tuple(named)
