"""Terminal-Bench 1 results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.records.vocabulary import Reason, StopReason
from tests.importers.reading import Read, write_json


@pytest.mark.parametrize(
    ("resolved", "tests", "mode", "outcome", "reason", "stop"),
    [
        (True, {"t": "passed"}, "agent_timeout", "passed", None, StopReason.TIME),
        (False, {"t": "failed"}, "none", "failed", None, StopReason.FINISHED),
        (False, None, "test_timeout", "ungraded", Reason.GRADER_TIMEOUT, StopReason.UNKNOWN),
        (None, None, "unknown_agent_error", "ungraded", Reason.SOLVER_ERROR, StopReason.SOLVER_ERROR),
        (False, None, "unset", "ungraded", Reason.VERDICT_MISSING, StopReason.UNKNOWN),
    ],
)
def test_terminal_bench_records(
    tmp_path: Path, resolved: Any, tests: Any, mode: str, outcome: str, reason: Reason | None, stop: StopReason
) -> None:
    trial: dict[str, Any] = {
        "task_id": "chess",
        "trial_name": "chess.1",
        "total_input_tokens": 0,
        "total_output_tokens": 0,
    }
    trial |= {"is_resolved": resolved, "parser_results": tests, "failure_mode": mode}
    write_json(tmp_path / "run/results.json", {"results": [trial], "accuracy": 0.0, "n_resolved": 0})
    metadata = {"agent_name": "terminus", "model_name": "m", "dataset_name": "core", "n_attempts": 1}
    write_json(tmp_path / "run/run_metadata.json", metadata)
    found = Read(tmp_path)
    (episode,) = found.episodes
    assert (episode.outcome.value, episode.reason, episode.stop) == (outcome, reason, stop)
    assert episode.usage is None  # zero on both sides is not counted
    assert (found.runs[0].scaffold, found.runs[0].suite) == ("terminus", "core")
