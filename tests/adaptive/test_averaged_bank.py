"""A bank with other models beside it and a report: its file, its digest, its items."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.adaptive import Bank, load_bank, save_bank
from harness.adaptive.bank import Alternative
from harness.adaptive.errors import BankError
from harness.adaptive.fit_report import FitReport
from tests.adaptive.banks import random_bank


def averaged() -> Bank:
    one, other, third = random_bank(1), random_bank(2, d=1), random_bank(3, d=2)
    other = replace(other, item_covariance=np.tile(np.eye(2), (30, 1, 1)))
    return replace(
        one,
        alternatives=(Alternative(0.3, other), Alternative(0.1, third)),
        report=FitReport(40, 30, 38.5, held_out_log_likelihood=-0.4, thin=("thin",)),
    )


def test_the_file_gives_all_of_it_back(tmp_path: Path) -> None:
    bank = averaged()
    save_bank(bank, tmp_path / "bank.npz")
    read = load_bank(tmp_path / "bank.npz")
    assert read.digest == bank.digest
    assert read.report == bank.report
    assert read.weight == pytest.approx(0.6)
    for found, expected in zip(read.alternatives, bank.alternatives, strict=True):
        assert found.weight == expected.weight
        assert found.bank.digest == expected.bank.digest
        assert np.array_equal(found.bank.alpha, expected.bank.alpha)


def test_weights_models_and_report_are_in_the_digest() -> None:
    bank = averaged()
    first, second = bank.alternatives
    changed = [
        replace(bank, report=None),
        replace(bank, report=FitReport(41, 30, 38.5)),
        replace(bank, alternatives=(first,)),
        replace(bank, alternatives=(Alternative(0.2, first.bank), second)),
        replace(bank, alternatives=(Alternative(0.3, replace(first.bank, beta=first.bank.beta + 1e-12)), second)),
    ]
    assert len({bank.digest, *(other.digest for other in changed)}) == len(changed) + 1


def test_a_suite_is_aligned_in_every_model() -> None:
    bank = averaged().align(["item-3", "new", "item-1"])
    assert bank.report is not None
    for other in bank.alternatives:
        assert other.bank.item_ids == ("item-3", "new", "item-1")
        assert other.bank.calibrated.tolist() == [True, False, True]


def test_weights_that_are_none_and_other_items_are_refused() -> None:
    one, other = random_bank(1), random_bank(2)
    for weights in ((0.0,), (-0.1,), (0.7, 0.7)):
        with pytest.raises(BankError, match="weights"):
            replace(one, alternatives=tuple(Alternative(weight, other) for weight in weights))
    with pytest.raises(BankError, match="other items"):
        replace(one, alternatives=(Alternative(0.5, random_bank(2, n=29)),))
    with pytest.raises(BankError, match="nested"):
        replace(one, alternatives=(Alternative(0.5, averaged()),))
