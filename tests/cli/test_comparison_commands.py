"""assay bounds, compare and bill: what a shell sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.records.vocabulary import Outcome
from tests.api.stored_runs import fixed_run
from tests.billing.span_samples import MODEL, upload, weave
from tests.cli.inside import assay

PASS, FAIL, NONE = Outcome.PASSED, Outcome.FAILED, Outcome.UNGRADED
TASKS = [f"family-{n % 4}/{n:03}" for n in range(100)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs `a` and `b` are the paper's A and B; `c` and `d` are graded in full and far apart; `r` has repeats."""
    folder = tmp_path_factory.mktemp("store")
    runs = {
        "a": [PASS] * 30 + [FAIL] * 20 + [NONE] * 50,
        "b": [PASS] * 43 + [FAIL] * 55 + [NONE] * 2,
        "c": [PASS] * 90 + [FAIL] * 10,
        "d": [PASS] * 50 + [FAIL] * 50,
    }
    for run, outcomes in runs.items():
        fixed_run(folder, TASKS, {task: [one] for task, one in zip(TASKS, outcomes, strict=True)}, run=f"run-{run}")
    fixed_run(folder, TASKS[:3], {TASKS[0]: [PASS, PASS], TASKS[1]: [PASS, FAIL], TASKS[2]: [PASS, NONE]}, run="run-r")
    return folder


def test_bounds_of_the_paper_s_two_runs(store: Path) -> None:
    ended = assay("bounds", "run-a", "run-b", "--store", store)
    assert ended.code == 0, ended.err
    for words in ("30.0 to 80.0 %", "43.0 to 45.0 %", "-15.0 to +37.0 pp, crosses zero", "tie at 14 of A's 50"):
        assert words in ended.out
    found = assay("bounds", "run-a", "run-b", "--store", store, "--json").json
    assert (found["a"]["bounds"], found["b"]["bounds"]) == ([0.30, 0.80], [0.43, 0.45])
    tipping = {line["b_rate"]: line for line in found["tipping"]}
    assert tipping[0.5]["rate"] == pytest.approx(0.28)
    assert (tipping[0.5]["feasible"], tipping[0.5]["passes_to_lead"]) == (True, 15)
    assert found["a"]["without"] == {"verdict.missing": 50}
    assert len(found["strata"]) == 4


def test_bounds_of_one_run_with_repeats(store: Path) -> None:
    found = assay("bounds", "run-r", "--store", store, "--json").json
    assert (found["a"]["planned"], found["a"]["graded"], found["difference"]) == (6, 5, None)
    first, second = found["repeats"]
    assert (first["any_of"], first["tasks"]) == (pytest.approx((1 + 0.5 + 1) / 3), 3)
    assert (second["any_of"], second["all_of"], second["tasks"], second["all_tasks"]) == (1.0, 0.5, 2, 3)
    assert "over 2 of 3 tasks" in assay("bounds", "run-r", "--store", store).out


def test_bounds_say_when_the_tasks_are_not_the_same_and_nothing_is_open(store: Path) -> None:
    found = assay("bounds", "run-c", "run-d", "--store", store, "--json").json
    assert (found["difference"], found["tipping"], found["notes"]) == ([0.4, 0.4], [], [])
    other = assay("bounds", "run-c", "run-r", "--store", store)
    assert "97 A alone and 0 B alone" in other.out
    assert other.out.count("tipping") == 3


def test_a_comparison_says_its_verdict_or_what_would_decide(store: Path) -> None:
    clear = assay("compare", "run-c", "run-d", "--store", store)
    assert clear.code == 0, clear.err
    for words in ("+40.0 pp, weights task, 100 tasks", "40 only A, 0 only B", "A IS BETTER"):
        assert words in clear.out
    open_ = assay("compare", "run-a", "run-b", "--store", store, "--json").json
    assert open_["paired"]["verdict"] == "undecided"
    assert open_["ungraded"] == 50
    assert any("missing grades alone" in note for note in open_["notes"])
    turned = assay("compare", "run-d", "run-c", "--store", store, "--json").json
    assert (turned["paired"]["verdict"], turned["difference"]) == ("worse", pytest.approx(-0.4))


def test_own_weights_by_family_and_several_runs_a_side(store: Path, tmp_path: Path) -> None:
    weights = tmp_path / "weights.toml"
    weights.write_text('"family-0" = 1.0\n')
    found = assay("compare", "run-c", "run-d", "--store", store, "--weights", weights, "--json").json
    chosen = [n for n in range(100) if n % 4 == 0]
    assert found["difference"] == pytest.approx(sum(50 <= n < 90 for n in chosen) / len(chosen))
    sides = assay("compare", "run-c,run-d", "run-d,run-c", "--store", store, "--json").json
    assert (sides["difference"], sides["paired"]) == (0, None)


def test_every_pair_of_a_store(store: Path) -> None:
    found = assay("compare", "run-a", "run-b", "run-c", "run-d", "--store", store, "--json").json
    assert [line["run"] for line in found["runs"]] == ["run-c", "run-a", "run-d", "run-b"]
    assert (found["pairs"], found["tested"]) == (6, 6)
    best = found["apart"][0]
    assert (best["better"], best["holm"] <= 0.05) == ("run-c", True)
    assert found["reversed"] == 2  # a is over b and d on what was graded, under both with its missing grades as fails
    text = assay("compare", "--all", "--store", store)
    assert "of 10 pairs are apart (Holm" in text.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare",),
        ("compare", "run-a"),
        ("compare", "run-a", "run-b", "--all"),
        ("compare", "run-a", "run-b", "--weights", "evenly"),
        ("compare", "run-a", "run-b", "--alpha", "2"),
        ("compare", "run-a", "run-x"),
        ("bounds", "run-a", "run-b", "--b-rate", "2"),
        ("bounds", "run-x"),
        ("bill", "run-x"),
    ],
)
def test_what_cannot_be_meant_is_exit_2(store: Path, arguments: tuple[str, ...]) -> None:
    ended = assay(*arguments, "--store", store)
    assert (ended.code, ended.out) == (2, "")
    assert "error: " in ended.err


PRICES = f'date = "2025-09-22"\n[models."{MODEL}"]\ninput = 2.0\noutput = 8.0\n'


def test_the_bill_of_an_upload(tmp_path: Path) -> None:
    (tmp_path / "upload.json").write_text(json.dumps(upload()))
    (tmp_path / "prices.toml").write_text(PRICES)
    arguments = ("bill", tmp_path / "upload.json", "--prices", tmp_path / "prices.toml")
    found = assay(*arguments, "--json").json["bills"][0]
    assert (found["tokens"], found["all_spans_tokens"], found["agrees_with"]) == (3660, 6810, "all spans")
    assert (found["cost_usd"], found["all_spans_cost_usd"]) == (pytest.approx(0.00828), pytest.approx(0.01548))
    assert "agrees with the flat sum of all spans, not with the bill" in assay(*arguments).out
    recorded = assay("bill", tmp_path / "upload.json", "--json").json["bills"][0]
    assert (recorded["cost_usd"], recorded["cost_at_least_usd"]) == (None, 0.0)


def test_the_paper_s_run_was_half_its_archived_cost(tmp_path: Path) -> None:
    """SOURCES S2: $149.98 in the archive, $74.99 by root calls."""
    calls = [weave("outer", None, "r", 10, 1), weave("inner", "outer", "r", 10, 1)]
    spans = [
        {"span": call["id"], "parent": call["parent_id"], "response_id": "r", "model": MODEL, "cost_usd": 74.99}
        | {"usage": call["output"]["usage"]}
        for call in calls
    ]
    document = {"spans": spans, "results": {"total_cost": 149.98}}
    (tmp_path / "run.json").write_text(json.dumps(document))
    found = assay("bill", tmp_path / "run.json", "--json").json["bills"][0]
    assert (found["cost_usd"], found["all_spans_cost_usd"]) == (74.99, 149.98)
    assert (found["cost_ratio"], found["agrees_with"]) == (2.0, "all spans")


def test_the_diagnosis_over_a_folder_and_a_tree_in_two_files(tmp_path: Path) -> None:
    doubled = [weave("outer", None, "r1", 10, 1, "t1"), weave("inner", "outer", "r1", 10, 1, "t1")]
    (tmp_path / "1.json").write_text(json.dumps(doubled[:1]))
    (tmp_path / "2.json").write_text(json.dumps(doubled[1:]))
    (tmp_path / "3.json").write_text(json.dumps([weave("single", None, "r2", 10, 1, "t2")]))
    whole = assay("bill", tmp_path, "--json")
    assert whole.code == 0, whole.err
    assert [bill["ratio"] for bill in whole.json["bills"]] == [2.0, 1.0]
    (line,) = whole.json["ratios"]
    assert (line["exactly_doubled"], line["exactly_one"], line["with_usage"]) == (1, 1, 2)
    assert whole.json["overall_token_ratio"] == 1.5
    (tmp_path / "4.json").write_text('{"broken')
    ended = assay("bill", tmp_path)
    assert ended.code == 3
    assert "4.json" in ended.out
    assert "1 exactly doubled, 1 exactly one, of 2 with usage" in ended.out


def test_the_bill_of_a_stored_run(store: Path) -> None:
    found = assay("bill", "run-c", "--store", store, "--json").json["bills"][0]
    assert (found["spans"], found["tokens"], found["cost_usd"]) == (0, None, None)
