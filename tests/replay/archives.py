"""Archives of the small world: episodes written down as tau2 would, and where the real archives lie."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.protocols import Environment
from harness.records.replay import RecordedEpisode
from harness.records.vocabulary import Actor
from tests.replay.world import Desk

SHARED = Path(os.environ.get("ASSAY_DATA", Path(__file__).resolve().parents[2] / ".." / "shared" / "data"))
AIRLINE = SHARED / "tau_airline"
DESK = f"{Path(__file__)}:desk"  # as --environment takes it
CRITERIA = {"actions": [{"name": "book", "arguments": {"amount": 50}}, {"name": "switch", "requestor": "user"}]}
_ROLES = {Actor.AGENT: "assistant", Actor.USER: "user"}

needs_airline = pytest.mark.skipif(not AIRLINE.is_dir(), reason="no tau_airline under the data folder: set ASSAY_DATA")


def desk(_folder: Path | None) -> Environment:
    """The small world as a plug-in."""
    return Desk()


def simulation(episode: RecordedEpisode, number: int = 0, reward: float | None = 1.0) -> dict[str, Any]:
    """An episode as tau2 keeps it; `reward` None: it was never graded."""
    made: dict[str, Any] = {
        "id": f"sim-{number}",
        "task_id": episode.task,
        "trial": episode.repeat,
        "termination_reason": episode.end,
        "messages": messages(episode),
    }
    return made if reward is None else made | {"reward_info": {"reward": reward}}


def messages(episode: RecordedEpisode) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for step in episode.steps:
        payload = step.payload
        if step.kind == "message":
            found.append({"role": _ROLES[step.actor], "content": payload["content"]})
        elif step.kind == "tool.call":
            call = {"id": payload["gen_ai.tool.call.id"], "name": payload["gen_ai.tool.name"]}
            call |= {"arguments": payload["arguments"], "requestor": _ROLES[step.actor]}
            found.append({"role": _ROLES[step.actor], "content": None, "tool_calls": [call]})
        elif step.kind == "tool.result":
            answer = {"content": payload["content"], "error": payload["error"]}
            found.append({"role": "tool", "id": payload["gen_ai.tool.call.id"], **answer})
    return [{**message, "turn_idx": turn} for turn, message in enumerate(found)]


def write_results(path: Path, simulations: Sequence[dict[str, Any]], *, solo: bool = False, trials: int = 1) -> Path:
    """A results file of tau2's with the small world's one task."""
    agent, user = ("llm_agent_solo", "dummy_user") if solo else ("llm_agent", "user_simulator")
    info = {
        "num_trials": trials,
        "agent_info": {"implementation": agent, "llm": "made-up-1"},
        "user_info": {"implementation": user, "llm": "made-up-1"},
        "environment_info": {"domain_name": "desk"},
    }
    tasks = [{"id": "t", "user_scenario": {"instructions": "Book 50."}, "evaluation_criteria": CRITERIA}]
    path.write_text(json.dumps({"info": info, "tasks": tasks, "simulations": list(simulations)}))
    return path
