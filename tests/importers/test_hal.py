"""HAL uploads: both shapes of the log, injected reference actions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.records.archive import ArchiveError, ImportOptions
from harness.records.vocabulary import Actor, Outcome, Phase
from tests.importers.reading import Read, write_json


def _call(id_: str, parent: str | None, response: str, at: int, message: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": id_,
        "op_name": "weave:///x/op/litellm.completion:v1",
        "parent_id": parent,
        "started_at": f"2026-01-01T00:00:{at:02}",
        "ended_at": f"2026-01-01T00:00:{at + 1:02}",
        "attributes": {"weave_task_id": "3"},
        "inputs": {"messages": [{"role": "system", "content": "policy"}]},
        "output": {
            "id": response,
            "model": "m-1",
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
            "choices": [{"message": message}],
        },
    }


def _hal(logging: Any) -> dict[str, Any]:
    book = {"name": "book", "kwargs": {"id": 1}}
    taken = [
        {"name": "transfer_to_human_agents", "kwargs": {}},
        book,
        {"name": "respond", "kwargs": {"content": "bye"}},
    ]
    entry = {"reward": 0.0, "taken_actions": taken, "task": {"actions": [book], "instruction": "Book."}}
    results = {"accuracy": 0.0, "total_cost": 1.0}
    config = {"agent_name": "tool agent", "benchmark_name": "taubench_airline", "date": "2026-01-01"}
    return {
        "config": config,
        "results": results,
        "raw_eval_results": {"3": entry, "4": "ERROR: boom"},
        "raw_logging_results": logging,
    }


def _tool(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": [{"function": {"name": name, "arguments": json.dumps(arguments)}}]}


def test_hal_old_log_gives_spans_and_the_calls_that_attribution_needs(tmp_path: Path) -> None:
    first = _call("a", None, "r1", 1, _tool("transfer_to_human_agents", {}))
    log = [
        _call("c", None, "r2", 5, {"content": "bye"}),
        _call("b", "a", "r1", 1, first["output"]["choices"][0]["message"]),
        first,
    ]
    found = Read(write_json(tmp_path / "x_UPLOAD.json", _hal(log)))
    episode, crashed = found.episode("3"), found.episode("4")
    steps = list(episode.steps())
    assert [(s.span, s.parent) for s in steps if s.kind == "span"] == [("a", None), ("b", "a"), ("c", None)]
    assert [s.payload["gen_ai.tool.name"] for s in steps if s.actor is Actor.GRADER] == ["book"]
    assert [s.phase for s in steps if s.actor is Actor.GRADER] == [Phase.GRADING]
    assert (episode.outcome, episode.attribution.value, episode.grading.value) == (Outcome.FAILED, "matched", "yes")
    assert (crashed.outcome, crashed.detail) == (Outcome.UNGRADED, "the result is a text, not a verdict")
    assert found.runs[0].stated["total_cost"] == 1.0


def test_hal_new_log_says_that_nested_entries_may_be_one_response(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 1}
    times = [("2026-01-01T00:00:00", "2026-01-01T00:00:09"), ("2026-01-01T00:00:01", "2026-01-01T00:00:08")]
    metadata = [{"usage": usage, "started_at": start, "ended_at": end} for start, end in times]
    said = {"role": "assistant", **_tool("transfer_to_human_agents", {})}
    log = {"3": {"messages": [said, {"role": "assistant", "content": "bye"}], "call_metadata": metadata, "model": "m"}}
    found = Read(write_json(tmp_path / "u.json", _hal(log)))
    assert [finding.rule for finding in found.findings] == ["usage.nested"]
    assert found.episode("3").attribution.value == "matched"


def test_hal_doubled_injection_supports_no_verdict(airline: Path) -> None:
    options = ImportOptions(
        reference=str(airline / "v1/tasks.json"), executed=str(airline / "v1/gpt-4o-airline.json.gz")
    )
    found = Read(airline / "hal/hal_like_taken_actions.json.gz", options)
    by_set = {name: [e for e in found.episodes if e.run == name] for name in ("A_end", "B_middle", "C_twice")}
    assert [len(episodes) for episodes in by_set.values()] == [50, 48, 48]
    assert [e.outcome for e in by_set["C_twice"]].count(Outcome.INVALID) == 32
    assert all("injected 2 times" in e.flags[0] for e in by_set["C_twice"] if e.outcome is Outcome.INVALID)
    assert {e.attribution.value for e in by_set["B_middle"]} == {"matched", "ambiguous"}
    assert found.recognition.missing[-2:] == ("tasks: give --reference", "model log: give --executed")


def test_an_encrypted_upload_says_what_to_do(tmp_path: Path) -> None:
    write_json(tmp_path / "run_UPLOAD.json.encrypted", {"encrypted_data": "", "salt": ""})
    with pytest.raises(ArchiveError, match="decrypt it"):
        Read(tmp_path)
