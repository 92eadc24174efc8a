"""assay estimate and assay gate: what a shell sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.adaptive import save_bank
from harness.api.request import read_points
from harness.records.vocabulary import Outcome
from tests.adaptive.banks import random_bank
from tests.api.stored_runs import adaptive_run, fixed_run
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


def test_a_gate_says_its_verdict_and_exits_by_it(store: Path, tmp_path: Path) -> None:
    items = BANK.item_ids
    fixed_run(tmp_path, items, {item: [Outcome.PASSED] for item in items}, run="good")
    fixed_run(tmp_path, items, {item: [Outcome.FAILED] for item in items}, run="bad")
    expected = [("good", "bad", 0, "BETTER"), ("bad", "good", 4, "WORSE"), ("good", "100%", 0, "NO WORSE")]
    for run, baseline, code, verdict in expected:
        ended = assay("gate", run, "--baseline", baseline, "--store", tmp_path)
        assert ended.code == code, ended.err
        assert ended.out.split()[:2] == ["verdict", verdict.split()[0]]
        assert "missed regressions at most 5 %" in ended.out
    asked = ("run-a", "--baseline", "good", "--store", store, "--baseline-store", tmp_path, "--margin", "1pp", "--json")
    ended = assay("gate", *asked)
    assert (ended.code, ended.json["verdict"], ended.json["margin"]) == (3, "undecided", 0.01)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--margin", "much"), "--margin: 'much'"),
        (("--margin", "-2pp"), "--margin: '-2pp'"),
        (("--truth", "both"), "--truth 'both'"),
        (("--alpha", "5"), "alpha 5"),
        (("--baseline", "run-x"), "run-x"),
        (("--baseline", "120%"), "--baseline: '120%' is no pass rate"),
        (("--baseline", "0.55"), "write 55%"),
    ],
)
def test_a_gate_that_cannot_be_meant_is_exit_2(store: Path, arguments: tuple[str, str], words: str) -> None:
    ended = assay("gate", "run-a", "--baseline", "run-a", "--store", store, *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err


@pytest.mark.parametrize(("text", "share"), [("2pp", 0.02), ("0.5", 0.005), ("10 pp", 0.1)])
def test_percentage_points(text: str, share: float) -> None:
    assert read_points(text) == share
