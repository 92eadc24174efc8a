"""Inspect logs: scores, versions, whose calls they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.records.archive import ArchiveError, ImportOptions
from harness.records.vocabulary import Actor, Reason, StopReason
from tests.importers.reading import DATA, Read, write_json


def test_inspect_eval_log_with_zstandard_entries() -> None:
    pytest.importorskip("zstandard")
    found = Read(DATA / "tiny.eval")
    assert found.recognition.format == "inspect"
    assert [(e.task.id, e.repeat, e.outcome.value) for e in found.episodes] == [
        ("sky/colour", 0, "failed"),
        ("sky/colour", 1, "failed"),
        ("sum", 0, "passed"),
        ("sum", 1, "passed"),
    ]
    steps = list(found.episode("sum").steps())
    usage = {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 10}
    assert [s.payload["usage_raw"] for s in steps if s.kind == "model.call"] == [usage, usage]
    assert [s.payload["arguments"] for s in steps if s.kind == "tool.call"] == [{"x": 1, "y": 1}]
    assert (found.runs[0].repeats, found.runs[0].tasks) == (2, ("sum", "sky/colour"))


def _inspect(*samples: dict[str, Any], version: int = 2) -> dict[str, Any]:
    spec = {"task": "t", "model": "m", "created": "2026-01-01T00:00:00+00:00", "config": {"epochs": 1}}
    return {"version": version, "status": "success", "eval": spec, "samples": list(samples)}


@pytest.mark.parametrize(
    ("sample", "outcome", "reason", "stop"),
    [
        ({"scores": {"s": {"value": "C"}}, "completed_at": "2026-01-01T00:00:01"}, "passed", None, StopReason.FINISHED),
        ({"scores": {"s": {"value": 0.5}}, "limit": {"type": "token", "limit": 9}}, "failed", None, StopReason.TOKENS),
        ({"scores": {}, "error": {"message": "E"}}, "ungraded", Reason.SOLVER_ERROR, StopReason.UNKNOWN),
        ({"scores": {"s": {"value": float("nan")}}}, "ungraded", Reason.VERDICT_NOT_FINITE, StopReason.UNKNOWN),
        ({"scores": {"s": {"value": "GRID: C"}}}, "ungraded", Reason.VERDICT_MALFORMED, StopReason.UNKNOWN),
        ({"scores": {"a": {"value": 1}, "b": {"value": 0}}}, "ungraded", Reason.VERDICT_CONFLICT, StopReason.UNKNOWN),
        ({"scores": {"a": {"value": "C"}, "b": {"value": 1}}}, "passed", None, StopReason.UNKNOWN),
    ],
)  # fmt: skip
def test_inspect_scores(
    tmp_path: Path, sample: dict[str, Any], outcome: str, reason: Reason | None, stop: StopReason
) -> None:
    (episode,) = Read(write_json(tmp_path / "log.json", _inspect({"id": 1, "epoch": 1} | sample))).episodes
    assert (episode.outcome.value, episode.reason, episode.stop) == (outcome, reason, stop)


def test_inspect_scorer_can_be_chosen(tmp_path: Path) -> None:
    scores = {"a": {"value": "C"}, "b": {"value": "I"}}
    path = write_json(tmp_path / "log.json", _inspect({"id": 1, "epoch": 1, "scores": scores}))
    assert Read(path, ImportOptions(scorer="b")).outcomes() == ["failed"]


def test_inspect_of_a_later_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="version 999 is not known"):
        Read(write_json(tmp_path / "log.json", _inspect({"id": 1, "epoch": 1}, version=999)))


def test_inspect_grader_calls_are_the_graders(tmp_path: Path) -> None:
    usage = {"input_tokens": 7, "output_tokens": 1}
    events = [
        {"event": "span_begin", "id": "g", "type": "scorers"},
        {"event": "span_begin", "id": "h", "type": "scorer", "parent_id": "g"},
        {"event": "model", "uuid": "1", "span_id": "h", "model": "judge", "output": {"usage": usage}},
        {"event": "model", "uuid": "2", "span_id": "s", "model": "m", "output": {"usage": usage}},
    ]
    (episode,) = Read(write_json(tmp_path / "l.json", _inspect({"id": 1, "epoch": 1, "events": events}))).episodes
    assert [(s.span, s.actor) for s in episode.steps()] == [("1", Actor.GRADER), ("2", Actor.AGENT)]
