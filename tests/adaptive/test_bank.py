"""The bank: its file, its digest, fitting it to a suite."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.adaptive import Bank, CalibrationSettings, calibrate, load_bank, prior_bank, save_bank, simulate_population
from harness.adaptive.errors import BankError, BankFileError
from harness.adaptive.provenance import Provenance

from .banks import random_bank


@pytest.fixture(scope="module")
def bank() -> Bank:
    names = ["plain", "näher/δ", "tab\there", *(f"item-{i}" for i in range(20))]
    return calibrate(simulate_population(1, 40, names, 2).responses(), CalibrationSettings(dims=2)).bank


def same(one: Bank, other: Bank) -> bool:
    return one.digest == other.digest and one.item_ids == other.item_ids and one.provenance == other.provenance


def test_a_file_gives_back_the_same_bits(bank: Bank, tmp_path: Path) -> None:
    path = tmp_path / "bank without suffix"
    for written in (bank, prior_bank(["a", "b\x00", "\ud800"])):
        save_bank(written, path)
        read = load_bank(path)
        assert same(read, written)
        assert np.array_equal(read.alpha, written.alpha)
        assert (read.item_covariance is None) == (written.item_covariance is None)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_the_same_bank_writes_the_same_bytes(bank: Bank, tmp_path: Path) -> None:
    save_bank(bank, tmp_path / "one")
    save_bank(bank, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_what_is_no_bank_is_refused_with_its_name(bank: Bank, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    for content in (b"", b"text", b"PK\x03\x04 broken"):
        path.write_bytes(content)
        with pytest.raises(BankFileError, match=r"x\.npz"):
            load_bank(path)
    np.savez(path, alpha=np.zeros(3))
    with pytest.raises(BankFileError, match="not a bank file"):
        load_bank(path)
    np.savez(path, alpha=np.array([{}], dtype=object), document=np.zeros(1, dtype=np.uint8))
    with pytest.raises(BankFileError, match="not a bank file"):
        load_bank(path)
    with pytest.raises(BankFileError, match="absent: cannot be read"):
        load_bank(tmp_path / "absent")


def test_the_digest_of_banks_written_long_ago_stays() -> None:
    bank = Bank(
        item_ids=("a", "b"),
        alpha=np.array([[1.0], [0.5]]),
        beta=np.array([0.0, -1.25]),
        prior_mean=np.zeros(1),
        prior_covariance=np.eye(1),
        calibrated=np.array([True, False]),
        provenance=Provenance("2pl", 1, 7, 12, held_out={"b": "no outcome"}),
    )
    assert bank.digest == "30b4449720ae5884ba5fca1ae46a2575ede5723dff446a23809a4f0ad0c1501c"
    moving = replace(bank, provenance=replace(bank.provenance, drift_sd=0.5))
    assert Provenance.from_dict(moving.provenance.as_dict()) == moving.provenance
    assert moving.digest != bank.digest


@pytest.mark.parametrize("at", [6, 8, 10])  # of a central directory entry: version needed, flags, method
def test_any_damaged_bit_of_the_container_is_refused(bank: Bank, tmp_path: Path, at: int) -> None:
    path = tmp_path / "x.npz"
    save_bank(bank, path)
    whole = path.read_bytes()
    entry = whole.index(b"PK\x01\x02")
    for bit in range(16):
        damaged = bytearray(whole)
        damaged[entry + at + bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            read = load_bank(path)
        except BankFileError:
            continue
        assert same(read, bank)


def test_a_damaged_array_header_is_refused(bank: Bank, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    save_bank(bank, path)
    with zipfile.ZipFile(path) as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    members["beta.npy"] = members["beta.npy"].replace(b"}", b" ", 1)
    with zipfile.ZipFile(path, "w") as damaged:
        for name, content in members.items():
            damaged.writestr(name, content)
    with pytest.raises(BankFileError, match="not a bank file"):
        load_bank(path)


def test_an_altered_file_is_refused(bank: Bank, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    save_bank(bank, path)
    with np.load(path) as members:
        content = {name: members[name] for name in members.files}
    content["beta"] = content["beta"] + 1e-9
    np.savez(path, **content)
    with pytest.raises(BankFileError, match="altered"):
        load_bank(path)


def test_every_part_is_in_the_digest(bank: Bank) -> None:
    assert bank.item_covariance is not None
    changed = [
        replace(bank, beta=bank.beta + 1e-12),
        replace(bank, alpha=bank.alpha + 1e-12),
        replace(bank, prior_mean=bank.prior_mean + 1e-12),
        replace(bank, prior_covariance=bank.prior_covariance * 1.5),
        replace(bank, calibrated=~bank.calibrated),
        replace(bank, item_covariance=None),
        replace(bank, item_covariance=bank.item_covariance * 2),
        replace(bank, provenance=replace(bank.provenance, seed=99)),
        bank.restrict(bank.item_ids[::-1]),
    ]
    assert len({bank.digest, *(other.digest for other in changed)}) == len(changed) + 1
    assert replace(bank).digest == bank.digest


def test_arrays_are_private_and_read_only() -> None:
    beta = np.zeros(2)
    bank = replace(prior_bank(["a", "b"]), beta=beta)
    beta[0] = 5
    assert bank.beta[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        bank.beta[0] = 1


def test_align_takes_the_suite_order_and_flags_the_unknown(bank: Bank) -> None:
    suite = ["new-1", "item-3", "new-2", "plain"]
    aligned = bank.align(suite)
    assert aligned.item_ids == tuple(suite)
    assert aligned.calibrated.tolist() == [False, True, False, True]
    assert aligned.provenance.held_out == {"new-1": "unknown to the bank", "new-2": "unknown to the bank"}
    assert np.array_equal(aligned.alpha[1], bank.alpha[bank.index["item-3"]])
    assert aligned.beta[0] == pytest.approx(bank.beta.mean())
    assert aligned.item_covariance is not None
    known, unknown = aligned.item_covariance[1], aligned.item_covariance[0]
    assert unknown[-1, -1] > known[-1, -1]
    assert same(bank.align(bank.item_ids), bank)
    assert bank.align(["new"]).item_ids == ("new",)


def test_impossible_banks_and_items_are_refused(bank: Bank) -> None:
    with pytest.raises(BankError, match="'nowhere'"):
        bank.restrict(["nowhere"])
    with pytest.raises(BankError, match="already in the bank"):
        bank.extend(["plain"])
    with pytest.raises(BankError, match="distinct"):
        bank.restrict(["plain", "plain"])
    with pytest.raises(BankError, match="beta"):
        replace(bank, beta=bank.beta[1:])
    with pytest.raises(BankError, match="not finite"):
        replace(bank, beta=bank.beta * np.inf)
    with pytest.raises(BankError, match="positive definite"):
        replace(bank, prior_covariance=np.zeros((2, 2)))
    with pytest.raises(BankError, match="at least one item"):
        prior_bank([])


def test_what_items_cost_stays_with_them(bank: Bank, tmp_path: Path) -> None:
    cost = np.arange(float(len(bank)))
    cost[1] = np.nan
    priced = replace(bank, cost_usd=cost)
    assert priced.digest != bank.digest
    save_bank(priced, tmp_path / "bank.npz")
    loaded = load_bank(tmp_path / "bank.npz")
    assert loaded.digest == priced.digest
    assert loaded.cost_usd is not None
    np.testing.assert_array_equal(loaded.cost_usd, cost)
    assert loaded.duration_s is None
    aligned = loaded.align([bank.item_ids[3], "new", bank.item_ids[1]])
    assert aligned.cost_usd is not None
    np.testing.assert_array_equal(aligned.cost_usd, [3.0, np.nan, np.nan])
    for wrong in (cost[1:], -cost, cost + np.inf):
        with pytest.raises(BankError, match="cost_usd"):
            replace(bank, cost_usd=wrong)


def test_logit_variance_is_the_quadratic_form_of_every_item_for_one_agent_and_for_many() -> None:
    items = random_bank(1, n=12, d=4)
    root = np.random.default_rng(2).normal(size=(5, 4, 4))
    covariances = root @ np.swapaxes(root, 1, 2)
    expected = np.einsum("nd,ade,ne->an", items.alpha, covariances, items.alpha)
    np.testing.assert_allclose(items.logit_variance(covariances), expected, rtol=1e-12)
    np.testing.assert_allclose(items.logit_variance(covariances[3]), expected[3], rtol=1e-12)
