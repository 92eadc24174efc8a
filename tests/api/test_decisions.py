"""Gates between stored runs: full runs give their own difference, and what cannot be compared is left out and said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.adaptive import AdaptiveError, save_bank
from harness.api.decisions import GateRequest, gate
from harness.records.errors import ConfigError
from harness.records.vocabulary import Outcome, Reason
from tests.adaptive.banks import random_bank
from tests.api.stored_runs import adaptive_run, fixed_run

MADE = random_bank(4, n=60, d=1)
BANK = replace(MADE, provenance=replace(MADE.provenance, method="2pl"))
PASSED, FAILED = Outcome.PASSED, Outcome.FAILED


def first(passes: int) -> dict[str, Sequence[Outcome]]:
    """The first `passes` tasks pass, the others fail."""
    return {item: [PASSED if number < passes else FAILED] for number, item in enumerate(BANK.item_ids)}


def outcomes(passes: int) -> Mapping[str, Outcome]:
    return {item: ended[0] for item, ended in first(passes).items()}


@pytest.mark.parametrize(
    ("candidate", "baseline", "verdict"),
    [(40, 30, "better"), (30, 40, "worse"), (30, 30, "no worse"), (29, 30, "no worse")],
)
def test_full_runs_decide_by_their_difference(tmp_path: Path, candidate: int, baseline: int, verdict: str) -> None:
    fixed_run(tmp_path, BANK.item_ids, first(candidate), run="new")
    fixed_run(tmp_path, BANK.item_ids, first(baseline), run="old")
    found = gate(GateRequest(run="new", baseline="old", margin=0.02, store=str(tmp_path)))
    assert found.difference == pytest.approx((candidate - baseline) / 60)
    assert (found.verdict, found.executed, found.remaining, found.paired) == (verdict, 60, 0, 60)
    assert "no bank" in found.notes[0]


def test_a_partial_run_far_better_than_its_baseline_is_better(tmp_path: Path) -> None:
    adaptive_run(tmp_path, BANK, outcomes(58), run="new", stop=40)
    fixed_run(tmp_path, BANK.item_ids, first(10), run="old")
    found = gate(GateRequest(run="new", baseline="old", store=str(tmp_path)))
    assert (found.verdict, found.executed, found.remaining) == ("better", 40, 20)
    assert 0 < found.lower < found.difference < found.upper
    assert found.notes == ()


def test_a_short_run_against_its_like_is_undecided(tmp_path: Path) -> None:
    adaptive_run(tmp_path, BANK, outcomes(30), run="new", stop=5)
    adaptive_run(tmp_path, BANK, outcomes(30), run="old", stop=40)
    found = gate(GateRequest(run="new", baseline="old", store=str(tmp_path)))
    assert found.verdict == "undecided"
    assert found.lower < 0 < found.upper


def test_a_rate_is_a_baseline_too(tmp_path: Path) -> None:
    fixed_run(tmp_path, BANK.item_ids, first(30), run="new")
    for rate, verdict in ((0.4, "better"), (0.6, "worse")):
        found = gate(GateRequest(run="new", baseline=rate, store=str(tmp_path)))
        assert (found.verdict, found.baseline_agent) == (verdict, None)
        assert found.difference == pytest.approx(0.5 - rate)


def test_tasks_of_one_run_only_and_unavailable_ones_are_left_out(tmp_path: Path) -> None:
    broken: dict[str, Outcome | Reason] = {**outcomes(30), BANK.item_ids[0]: Reason.IMAGE_MISSING}
    adaptive_run(tmp_path, BANK, broken, run="new", stop=60)
    fixed_run(tmp_path, BANK.item_ids[:50], {item: first(25)[item] for item in BANK.item_ids[:50]}, run="old")
    found = gate(GateRequest(run="new", baseline="old", store=str(tmp_path)))
    assert found.tasks == 49
    assert found.difference == pytest.approx(5 / 49)
    assert found.notes == ("10 tasks of one run only are left out", "1 unavailable tasks are left out")


def test_an_ungraded_task_widens_the_bounds(tmp_path: Path) -> None:
    lost = {**first(30), BANK.item_ids[3]: [Outcome.UNGRADED]}
    fixed_run(tmp_path, BANK.item_ids, lost, run="new")
    fixed_run(tmp_path, BANK.item_ids, lost, run="same")
    fixed_run(tmp_path, BANK.item_ids, first(30), run="old")
    found = gate(GateRequest(run="new", baseline="old", store=str(tmp_path)))
    assert found.executed == 59
    assert (found.lower, found.upper) == pytest.approx((-1 / 60, 0))
    turned = gate(GateRequest(run="old", baseline="same", store=str(tmp_path)))
    assert "1 tasks of the baseline ran without a grade: they are predicted" in turned.notes


def test_after_a_change_of_the_suite_only_tasks_that_both_ran_unchanged_count(tmp_path: Path) -> None:
    fixed_run(tmp_path, BANK.item_ids, {item: first(30)[item] for item in BANK.item_ids[:40]}, run="new", version="v2")
    fixed_run(tmp_path, BANK.item_ids, {item: first(20)[item] for item in BANK.item_ids[10:]}, run="old")
    found = gate(GateRequest(run="new", baseline="old", store=str(tmp_path)))
    assert (found.tasks, found.paired) == (30, 30)
    assert found.difference == pytest.approx(10 / 30)
    assert "only the 30 tasks that both ran unchanged count" in found.notes[0]


def test_the_baseline_may_stand_in_another_store_and_the_bank_be_named(tmp_path: Path) -> None:
    fixed_run(tmp_path / "a", BANK.item_ids, first(40), run="new")
    fixed_run(tmp_path / "b", BANK.item_ids, first(30), run="old")
    save_bank(BANK, tmp_path / "bank.npz")
    found = gate(
        GateRequest(
            run="new",
            baseline="old",
            bank=str(tmp_path / "bank.npz"),
            store=str(tmp_path / "a"),
            baseline_store=str(tmp_path / "b"),
        )
    )
    assert (found.verdict, found.notes) == ("better", ())


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    fixed_run(tmp_path, BANK.item_ids[:30], {BANK.item_ids[0]: [PASSED]}, run="new")
    fixed_run(tmp_path, BANK.item_ids[30:], {BANK.item_ids[40]: [PASSED]}, run="old")
    with pytest.raises(ConfigError, match="no task in common"):
        gate(GateRequest(run="new", baseline="old", store=str(tmp_path)))
    for wrong in ({"margin": 1.5}, {"alpha": 0.0}, {"beta": 2.0}, {"baseline": 1.5}):
        asked = GateRequest.model_validate({"run": "new", "baseline": 0.5, "store": str(tmp_path), **wrong})
        with pytest.raises(AdaptiveError):
            gate(asked)
