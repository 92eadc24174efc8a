"""Small archives of the shop, in tau-bench's and tau2's shape, for tests of the cross table and of regrading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.grading.episodes import shop
from tests.importers.reading import write_json

SHOP = f"{Path(shop.__file__)}:make_shop"
BOOK = {"name": "book", "kwargs": {"id": "A", "payments": [250]}}


def call(name: str, answer: str, **arguments: Any) -> list[dict[str, Any]]:
    """A call and its answer, as tau-bench writes them."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    asked = {"role": "assistant", "content": None, "tool_calls": [{"id": f"c-{name}", "function": function}]}
    return [asked, {"role": "tool", "tool_call_id": f"c-{name}", "name": name, "content": answer}]


def talk(*texts: str) -> list[dict[str, Any]]:
    """Messages, the agent's first, in turn."""
    return [{"role": ("assistant", "user")[n % 2], "content": text} for n, text in enumerate(texts)]


def recorded(
    task: int, trial: int, reward: float, *messages: dict[str, Any], outputs: tuple[str, ...] = (), graded: bool = True
) -> dict[str, Any]:
    """An episode in which booking A for 250 is right, and `outputs` must be said."""
    asked = {"user_id": "u", "instruction": "Book.", "actions": [BOOK], "outputs": list(outputs)}
    info = {"task": asked, "source": "user", "user_cost": None, "reward_info": {"reward": reward} if graded else None}
    traj = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}, *messages]
    return {"task_id": task, "trial": trial, "reward": reward, "info": info, "traj": traj}


def tau_bench_archive(folder: Path, name: str = "archive.json") -> Path:
    """Five episodes of two tasks, recorded under the older rule: task 1 lists an output, and one of its passes booked
    nothing. One was never graded, one looked at the shop's door."""
    right = call("book", "booked A", id="A", payments=[250])
    bye = talk("It is 77.", "Thanks. ###STOP###")
    return write_json(
        folder / name,
        [
            recorded(0, 0, 1.0, *right, *bye),
            recorded(0, 1, 0.0, *call("look", "open, 0 orders"), *bye),
            recorded(1, 0, 1.0, *bye, outputs=("77",)),
            recorded(1, 1, 1.0, *right, *bye, outputs=("77",)),
            recorded(0, 2, 0.0, *right, *talk("Anything else?", "Yes."), graded=False),
        ],
    )


def other_tasks(folder: Path) -> Path:
    """Later task data: nothing is to be booked in task 0, and task 1 lists nothing."""
    tasks = [{"id": "0", "actions": [], "outputs": []}, {"id": "1", "actions": [BOOK], "outputs": []}]
    return write_json(folder / "tasks_later.json", tasks)
