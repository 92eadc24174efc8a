"""From a history to what calibration reads."""

from __future__ import annotations

import numpy as np
import pytest

from harness.api.banks import responses_of, within
from harness.records.errors import ConfigError
from harness.store.history import History


def history(*runs: tuple[str, str]) -> History:
    """Runs of (agent, date) on two tasks, the first of which every run passes."""
    return History(
        run_ids=tuple(f"run-{number}" for number in range(len(runs))),
        agents=tuple(agent for agent, _ in runs),
        dates=tuple(day for _, day in runs),
        tasks=("t1", "t2"),
        passes=np.array([[1, 0]] * len(runs)),
        trials=np.array([[1, 1]] * len(runs)),
        cost_usd=np.arange(2.0 * len(runs)).reshape(-1, 2),
    )


def test_repeats_of_an_agent_on_a_day_are_one_row_of_counts() -> None:
    counts = responses_of(history(("a", "2025-01-01"), ("a", "2025-01-01"), ("a", "2025-02-01"), ("b", "")))
    assert counts.run_ids == ("a 2025-01-01", "a 2025-02-01", "b")
    assert counts.trials.tolist() == [[2, 2], [1, 1], [1, 1]]
    assert counts.passes.tolist() == [[2, 0], [1, 0], [1, 0]]
    assert counts.dates == ("2025-01-01", "2025-02-01", "")


def test_runs_without_repeats_keep_their_names() -> None:
    assert responses_of(history(("a", "2025-01-01"), ("b", "2025-01-01"))).run_ids == ("run-0", "run-1")


def test_a_window_counts_back_from_the_last_run_and_drops_the_undated() -> None:
    told, note = within(history(("a", "2025-01-03"), ("b", "2025-01-04"), ("c", ""), ("d", "2025-01-31")), 28)
    assert told.run_ids == ("run-1", "run-3")
    assert told.cost_usd is not None
    assert told.cost_usd.tolist() == [[2, 3], [6, 7]]
    assert note == "window of 28 days to 2025-01-31: 2 of 4 runs left out, 1 without a date"


@pytest.mark.parametrize(("day", "words"), [("", "no run of the history has a date"), ("yesterday", "'yesterday'")])
def test_a_window_needs_dates(day: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        within(history(("a", day)), 28)
