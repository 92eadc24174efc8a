"""assay estimate: what a shell sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.adaptive import save_bank
from harness.records.vocabulary import Outcome
from tests.adaptive.banks import random_bank
from tests.api.stored_runs import adaptive_run
from tests.cli.inside import assay

BANK = random_bank(4, n=20, d=1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    outcomes = {item: Outcome.PASSED if number % 3 else Outcome.FAILED for number, item in enumerate(BANK.item_ids)}
    adaptive_run(folder, BANK, outcomes, stop=8)
    save_bank(BANK, folder / "bank.npz")
    return folder


def test_an_estimate_says_what_it_rests_on(store: Path) -> None:
    ended = assay("estimate", "latest", "--store", store)
    assert ended.code == 0, ended.err
    for words in ("95 % interval", "from 8 tasks executed", "predicted for 12", "l_z", "expected (-", "8 tasks"):
        assert words in ended.out
    told = assay("estimate", "run-a", "--store", store, "--bank", store / "bank.npz", "--json").json
    assert told == {**assay("estimate", "run-a", "--store", store, "--json").json}
    assert (told["executed"], told["predicted"]) == (8, 12)


def test_what_is_not_there_is_exit_2(store: Path, tmp_path: Path) -> None:
    for arguments in (("run-x", "--store", store), ("latest", "--store", tmp_path)):
        ended = assay("estimate", *arguments)
        assert (ended.code, ended.out) == (2, "")
        assert str(tmp_path) in ended.err or "run-x" in ended.err
