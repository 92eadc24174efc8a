"""Reading evidence from Python: a store is where it was said to be, and is never made by looking."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.api import list_runs, open_store, outcomes, summary
from harness.records.errors import StoreError
from harness.report.summary import RunState
from tests.store.samples import carry_out, run_row, trial_plan

READERS: list[Callable[[Path], object]] = [
    open_store,
    list_runs,
    lambda folder: summary("latest", folder),
    lambda folder: outcomes("latest", folder),
]


@pytest.mark.parametrize("read", READERS)
def test_a_store_that_is_not_there_is_refused_and_not_made(read: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no evidence store here") as caught:
        read(tmp_path / "mistyped")
    assert "from Python, the argument" in caught.value.remedy
    assert not (tmp_path / "mistyped").exists()


def test_the_environment_does_not_choose_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(tmp_path / "elsewhere", create=True).close()
    monkeypatch.setenv("ASSAY_STORE", str(tmp_path / "elsewhere"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=r"\.assay"):
        list_runs()


def test_a_store_is_made_on_demand_and_then_read(tmp_path: Path) -> None:
    with open_store(tmp_path / "store", create=True) as store:
        store.create_run(run_row())
        store.plan([trial_plan()])
        carry_out(store, "run-a.0000.1")
    (line,) = list_runs(tmp_path / "store")
    assert (line.run, line.state, line.score, line.done) == ("run-a", RunState.COMPLETE, 1.0, 1)
    assert summary("latest", tmp_path / "store").score == 1.0
    assert list(outcomes("latest", tmp_path / "store")["outcome"]) == ["passed"]
