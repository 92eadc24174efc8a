"""A benchmark's own code behind the carrier of the guide: tau2's, or a stand-in with tau2's interface.

The stand-in runs here and, marked docker, in a container of the base image. With ASSAY_TAU2 set to a carrier of the
real telecom domain (`command:PYTHON docs/carriers/carry_tau2.py telecom`, or `container:…`), both published telecom
archives are replayed in it.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harness.api.carriers import environment
from harness.api.replays import ReplayRequest, replay_archive
from harness.protocols import Environment
from harness.records.environment import Call, Opening
from harness.records.task import ImagePin
from harness.records.vocabulary import Actor
from harness.runner.conversing import close_with
from tests.replay.archives import AIRLINE, needs_airline
from tests.sandbox.conftest import base_pin

__all__ = ["base_pin"]

CARRIER = Path(__file__).resolve().parents[2] / "docs" / "carriers" / "carry_tau2.py"
STAND_IN = Path(__file__).parent / "stand_in"
UNPACK = """
import os, sys
for name, text in {files}.items():
    os.makedirs(os.path.dirname("/tmp/" + name), exist_ok=True)
    open("/tmp/" + name, "w").write(text)
os.environ["PYTHONPATH"] = "/tmp"
os.execv(sys.executable, [sys.executable, "/tmp/carry_tau2.py", "lamp"])
"""


def here() -> str:
    """The stand-in as a command; it is found by the python that the command starts."""
    code = f"import sys, runpy; sys.path.insert(0, {str(STAND_IN)!r}); sys.argv = ['carry', 'lamp']; "
    code += f"runpy.run_path({str(CARRIER)!r}, run_name='__main__')"
    return f"command:{shlex.join([sys.executable, '-c', code])}"


def contained(pin: ImagePin) -> str:
    """The stand-in in a container: all files go along with the command."""
    files = {str(path.relative_to(STAND_IN)): path.read_text() for path in STAND_IN.rglob("*.py")}
    code = UNPACK.format(files=repr(files | {"carry_tau2.py": CARRIER.read_text()}))
    return f"container:{pin.digest} {shlex.join(['python3', '-c', code])}"


@pytest.fixture(params=["here", pytest.param("contained", marks=pytest.mark.docker)])
def name(request: pytest.FixtureRequest) -> str:
    if request.param == "here":
        return here()
    return contained(request.getfixturevalue("base_pin"))


@pytest.fixture
def lamp(name: str) -> Iterator[Environment]:
    with ExitStack() as stack:
        made = environment(name)
        close_with(stack, made)
        yield made


def call(actor: Actor, tool: str, space: str = "agent", **arguments: Any) -> Call:
    return Call(actor, tool, arguments, space)


def test_a_domain_says_who_has_which_tool(lamp: Environment) -> None:
    said = lamp.capabilities
    assert (said.environment, list(said.modes)) == ("lamp@tau2", ["normal", "solo"])
    assert said.modes["solo"]["agent"] == ("agent", "user")
    writes = {(tool.namespace, tool.name): tool.writes for tool in said.tools}
    assert writes == {
        ("agent", "count_bulbs"): False,
        ("agent", "send_bulb"): True,
        ("agent.function", "assert_bulbs"): True,
        ("user", "press_switch"): True,
        ("user.function", "break_lamp"): True,
    }


def test_its_tools_answer_in_its_own_words_and_sessions_share_nothing(lamp: Environment) -> None:
    with lamp.open(Opening("normal")) as one, lamp.open(Opening("normal")) as other:
        assert one.call(call(Actor.AGENT, "send_bulb", to="Ada")).content == "sent to Ada"
        assert one.call(call(Actor.AGENT, "count_bulbs")).content == "1"
        assert other.call(call(Actor.AGENT, "count_bulbs")).content == "2"
        assert one.digest() != other.digest()
        one.call(call(Actor.AGENT, "send_bulb", to="Ada"))
        refused = one.call(call(Actor.AGENT, "send_bulb", to="Ada"))
        assert (refused.content, refused.error, refused.missing) == ("Error: no bulb is left", True, False)
        assert one.call(call(Actor.REFERENCE, "assert_bulbs", "agent.function", expected=0)).content == "true"


def test_a_tool_of_the_other_side_is_missing_and_in_solo_mode_it_is_not(lamp: Environment) -> None:
    with lamp.open(Opening("normal")) as session:
        missing = session.call(call(Actor.AGENT, "press_switch"))
        assert (missing.content, missing.missing) == ("Error: Tool 'press_switch' not found.", True)
        assert session.call(call(Actor.AGENT, "press_switch", "user")) == missing  # nor where the record names the side
        assert session.call(call(Actor.USER, "break_lamp", "user.function")).missing  # a reference's alone
        assert session.call(call(Actor.USER, "press_switch", "user")).content == "on"
    with lamp.open(Opening("solo")) as session:
        assert session.call(call(Actor.AGENT, "press_switch", "user")).content == "on"
        assert session.call(call(Actor.USER, "press_switch", "user")).missing  # there is no user


def test_a_task_s_initial_state_is_set_up_by_the_benchmark_itself(lamp: Environment) -> None:
    initial = {
        "initialization_data": {"agent_data": {"bulbs": 9}, "user_data": {"on": True}},
        "initialization_actions": [{"env_type": "user", "func_name": "break_lamp", "arguments": {}}],
    }
    with lamp.open(Opening("normal", "", initial)) as session:
        assert session.call(call(Actor.AGENT, "count_bulbs")).content == "9"
        assert session.call(call(Actor.USER, "press_switch", "user")).content == "on"


def test_an_archive_of_it_replays_to_the_same(name: str, tmp_path: Path) -> None:
    asked = {"id": "c0", "name": "send_bulb", "arguments": {"to": "Ada"}, "requestor": "assistant"}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "A bulb, please"},
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "id": "c0", "content": "sent to Ada", "error": False},
        {"role": "assistant", "content": "Sent."},
        {"role": "user", "content": "###STOP###"},
    ]
    numbered = [message | {"turn_idx": turn} for turn, message in enumerate(messages)]
    one = {"id": "s", "task_id": "t", "trial": 0, "termination_reason": "user_stop", "messages": numbered}
    info = {"num_trials": 1, "environment_info": {"domain_name": "lamp"}, "user_info": {"implementation": "x"}}
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"info": info, "tasks": [{"id": "t"}], "simulations": [one]}))
    report = replay_archive(ReplayRequest(str(path), name))
    assert (report.replayed, report.counts["same"]) == (1, 1), report.episodes[0].fidelity.detail
    assert report.taken[0].startswith("--mode normal")


@needs_airline
@pytest.mark.skipif("ASSAY_TAU2" not in os.environ, reason="no carrier of the real telecom domain: set ASSAY_TAU2")
@pytest.mark.parametrize(("kind", "mode", "calls", "passed"), [("dual", "normal", 689, 18), ("solo", "solo", 626, 20)])
def test_published_telecom_archives_replay_in_tau2_s_own_code(kind: str, mode: str, calls: int, passed: int) -> None:
    path = AIRLINE / "tau2" / "results" / f"telecom_gpt-4.1_{kind}_40x1.json.gz"
    report = replay_archive(ReplayRequest(str(path), os.environ["ASSAY_TAU2"], mode, grader="tau2@0.1"))
    assert (report.replayed, report.counts["same"], report.counts["required"]) == (
        40,
        calls,
        report.counts["required_done"],
    )
    assert (report.passed, report.reproduced and report.reproduced.same) == (passed, 40)
