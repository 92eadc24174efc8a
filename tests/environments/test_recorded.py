"""Every recorded call of the real archives, carried out again: each answer, each verdict of the state."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

from harness.environments.airline.tau2 import AirlineTau2
from harness.environments.airline.v1 import AirlineV1
from harness.protocols import Environment
from harness.records.environment import Call, Opening
from harness.records.vocabulary import Actor

ENDS = ("transfer_to_human_agents",)


def read(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def reference_state(environment: Environment, opening: Opening, actions: list[tuple[str, Any]]) -> str:
    with environment.open(opening) as session:
        for name, arguments in actions:
            session.call(Call(Actor.REFERENCE, name, arguments))
        return session.digest()


def test_the_states_of_the_published_database_have_the_published_hashes(real: Path) -> None:
    states = json.loads((real / "v1" / "db_variants.json").read_text())
    published = {
        name[0]: about["initial_state_hash_v1_rule"] for name, about in states.items() if name[:2] in ("A_", "B_")
    }
    assert len(published) == 2
    environment = AirlineV1(real)
    assert environment.capabilities.data == ("A", "B", "C")
    for data, state in published.items():
        with environment.open(Opening("normal", data)) as session:
            assert session.digest() == state


def test_all_200_episodes_of_tau_bench(real: Path) -> None:
    environment, opening = AirlineV1(real), Opening("normal", "A")
    episodes = read(real / "v1" / "gpt-4o-airline.json.gz")
    calls = hashes = 0
    started = time.process_time()
    for episode in episodes:
        with environment.open(opening) as session:
            call = None
            for message in episode["traj"]:
                if message.get("tool_calls"):
                    function = message["tool_calls"][0]["function"]
                    call = Call(Actor.AGENT, function["name"], json.loads(function["arguments"]))
                elif message["role"] == "tool":
                    assert call is not None
                    answer = session.call(call)
                    assert answer.content == message["content"], (episode["task_id"], episode["trial"], call)
                    assert answer.error is message["content"].startswith(("Error: ", "Unknown action "))
                    calls += 1
            end = session.digest()
        graded = (episode["info"]["reward_info"] or {}).get("info", {})
        if "gt_data_hash" in graded:
            wanted = [(a["name"], a["kwargs"]) for a in episode["info"]["task"]["actions"] if a["name"] not in ENDS]
            state = reference_state(environment, opening, wanted)
            assert state == graded["gt_data_hash"]
            assert (end == state) is bool(graded["r_actions"])
            hashes += 1
    assert (len(episodes), calls, hashes) == (200, 1164, 182)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("file", "simulations", "calls"),
    [("airline_gpt-4.1_20x1.json.gz", 20, 148), ("airline_toolorchestra_50x1.json.gz", 50, 581)],
)
def test_the_airline_files_of_tau2(real: Path, file: str, simulations: int, calls: int) -> None:
    """The reference actions are those that the verdicts echo: in one file the labels of the tasks are mixed up."""
    environment, opening = AirlineTau2(real), Opening("normal", "C")
    found = read(real / "tau2" / "results" / file)["simulations"]
    made = 0
    for simulation in found:
        with environment.open(opening) as session:
            asked: dict[str, Any] = {}
            for message in simulation["messages"]:
                asked |= {call["id"]: call for call in message.get("tool_calls") or ()}
                if message["role"] == "tool":
                    call = asked[message["id"]]
                    answer = session.call(Call(Actor.AGENT, call["name"], call["arguments"]))
                    assert answer.content == message["content"], (simulation["task_id"], call)
                    made += 1
            end = session.digest()
        checks = [check["action"] for check in simulation["reward_info"]["action_checks"] or ()]
        state = reference_state(environment, opening, [(action["name"], action["arguments"]) for action in checks])
        assert (end == state) is simulation["reward_info"]["db_check"]["db_match"]
    assert (len(found), made) == (simulations, calls)
