"""Replays in an environment behind a carrier: the same answers, and no program that stays."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from harness.api.replays import ReplayRequest, replay_archive
from harness.environments.channel import ProcessChannel
from tests.cli.inside import assay
from tests.replay.archives import write_results

SHIM = Path(__file__).parents[2] / "docs" / "environments.md"


@pytest.fixture
def world(tmp_path: Path) -> str:
    """The counter of the guide to environments, as a command."""
    code = next(block for block in re.findall(r"```python\n(.*?)```", SHIM.read_text(), re.DOTALL) if "serve(" in block)
    (tmp_path / "counter.py").write_text(code)
    return f"command:{sys.executable} {tmp_path / 'counter.py'}"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    calls = [("add", {"amount": 2}, "2"), ("add", {"amount": 3}, "5"), ("show", {}, "5")]
    messages: list[dict[str, object]] = [{"role": "user", "content": "add 2, then 3"}]
    for number, (name, arguments, answer) in enumerate(calls):
        call = {"id": f"c{number}", "name": name, "arguments": arguments, "requestor": "assistant"}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "id": f"c{number}", "content": answer, "error": False})
    messages += [{"role": "assistant", "content": "5"}, {"role": "user", "content": "###STOP###"}]
    turns = [{**message, "turn_idx": turn} for turn, message in enumerate(messages)]
    ends = {"termination_reason": "user_stop", "reward_info": {"reward": 1.0}, "messages": turns}
    made = [{"id": f"s{trial}", "task_id": "t", "trial": trial, **ends} for trial in range(3)]
    path = write_results(tmp_path / "results.json", made, trials=3)
    task = re.sub(r'"evaluation_criteria": .*?\]\}', '"evaluation_criteria": {"actions": []}', path.read_text())
    path.write_text(task)
    return path


def test_a_program_replays_to_the_same_and_ends_with_the_replay(
    world: str, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ProcessChannel] = []
    begin = ProcessChannel.__init__

    def counted(self: ProcessChannel, *given: object, **named: object) -> None:
        begin(self, *given, **named)  # type: ignore[arg-type]
        made.append(self)

    closed: list[ProcessChannel] = []
    end = ProcessChannel.close

    def closing(self: ProcessChannel) -> None:
        end(self)
        closed.append(self)

    monkeypatch.setattr(ProcessChannel, "__init__", counted)
    monkeypatch.setattr(ProcessChannel, "close", closing)
    report = replay_archive(ReplayRequest(str(archive), world, "normal"))
    assert (report.replayed, report.counts["same"]) == (3, 9), report.invalid
    assert report.header.environment == "counter@1"
    assert made
    assert set(map(id, made)) == set(map(id, closed))


def test_a_mode_that_a_program_does_not_offer(world: str, archive: Path) -> None:
    ended = assay("replay", archive, "--environment", world, "--mode", "solo", "--store", archive.parent / "none")
    assert ended.code == 2
    assert "its modes are: normal" in ended.err
