"""From what a run is asked to what its engine does: policies with costs, every stop, baselines kept as evidence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.adaptive import AdaptiveError, Bank, EndReason, Stop
from harness.adaptive.estimators.hybrid import Hybrid
from harness.adaptive.plan import Backtest, Plan, Row
from harness.api.adaptive import SuiteNow, adaptive_config, check_names, engine_for, traits_of
from harness.api.preflight import adaptive_notes
from harness.api.request import AdaptiveRequest, RunRequest, read_decision
from harness.records.errors import ConfigError, StoreError
from harness.records.run import RunConfig
from harness.records.vocabulary import Outcome
from harness.report.summary import summarise
from harness.store.memory import MemoryStore
from harness.store.sqlite import SqliteStore
from tests.adaptive.banks import random_bank
from tests.api.stored_runs import adaptive_run, fixed_run
from tests.store.samples import TASK, run_row

PLAIN = random_bank(4, n=40, d=1)
BANK = replace(PLAIN, cost_usd=np.linspace(0, 2, 40))
OUTCOMES = {item: Outcome.PASSED if number % 4 else Outcome.FAILED for number, item in enumerate(BANK.item_ids)}
NOW = SuiteNow("v1", {item: TASK.model_copy(update={"id": item}).version for item in BANK.item_ids})


def configured(request: AdaptiveRequest, bank: Bank = BANK) -> tuple[RunConfig, MemoryStore]:
    store = MemoryStore()
    config = adaptive_config(request, bank, NOW, store)
    return run_row(tasks=bank.item_ids, adaptive=config).config, store


@pytest.mark.parametrize(
    "policy",
    [
        *("d_optimal", "pass_rate+0.1", "random", "rasch_fisher", "mid_range", "difficulty_strata", "cost_aware"),
        "cost_aware:d_optimal+0.2",
    ],
)
def test_every_policy_can_be_asked_for_by_name(policy: str) -> None:
    request = AdaptiveRequest(policy=policy, estimator="sample_mean")
    check_names((policy,), request.estimator)
    engine = engine_for(*configured(request))
    assert engine.settings.estimator.name == "sample_mean"
    assert not isinstance(engine.next(), Stop)


def test_a_policy_that_needs_costs_is_refused_where_the_bank_has_none() -> None:
    request = AdaptiveRequest(policy="cost_aware")
    check_names((request.policy,), request.estimator)
    with pytest.raises(AdaptiveError, match=r"cost_usd.*history"):
        configured(request, PLAIN)
    for policy, estimator in (("best", "p_irt"), ("random", "best")):
        with pytest.raises(AdaptiveError, match="'best'"):
            check_names(("random", policy), estimator)


def test_a_cost_of_nothing_is_not_known_and_folders_are_groups() -> None:
    traits = traits_of(BANK, 200)
    assert traits.cost_usd is not None
    assert np.isnan(traits.cost_usd[0])
    assert (traits.groups, traits.duration_s, traits.tasks) == (None, None, 40)
    assert traits_of(PLAIN.align(["a/1", "a/2", "b/1"]), 200).groups == ("a", "a", "b")


@pytest.fixture
def tested() -> Bank:
    """A bank whose back-test preferred a hedged policy for short runs and random sampling for longer ones."""
    rows = tuple(
        Row(Plan("1", name, 0.04), tasks, 0.02, 0.04, 0.5, 0.1, widening)
        for name, tasks, widening in (("pass_rate+0.25", 10, 2.0), ("random", 30, 1.5))
    )
    return replace(BANK, provenance=replace(BANK.provenance, method="2pl"), backtest=Backtest(rows, rows, 8, 8))


def test_auto_is_what_the_banks_back_test_found_for_runs_of_this_length(tested: Bank) -> None:
    config, store = configured(AdaptiveRequest(policy="auto", stop=12), tested)
    adaptive = config.adaptive
    assert adaptive is not None
    assert (adaptive.asked_policy, adaptive.policy, adaptive.estimator) == ("auto", "pass_rate+0.25", "hybrid")
    settings = engine_for(config, store).settings
    assert settings.estimator == Hybrid(0.04)
    assert settings.widening == ((10, 2.0), (30, 1.5))
    longer, _ = configured(AdaptiveRequest(policy="auto", stop=200), tested)
    assert longer.adaptive is not None
    assert longer.adaptive.policy == "random"


def test_a_named_estimator_goes_before_that_of_auto_and_has_no_widening(tested: Bank) -> None:
    config, _ = configured(AdaptiveRequest(policy="auto", stop=12, estimator="sample_mean"), tested)
    assert config.adaptive is not None
    assert (config.adaptive.policy, config.adaptive.estimator) == ("pass_rate+0.25", "sample_mean")
    assert (config.adaptive.model_error, config.adaptive.widening) == (None, ())


def test_auto_without_a_back_test_is_the_default_and_is_said(tested: Bank) -> None:
    config, _ = configured(AdaptiveRequest(policy="auto"))
    assert config.adaptive is not None
    assert config.adaptive.policy == "d_optimal"
    request = RunRequest(suite="s", adaptive=AdaptiveRequest(policy="auto", bank="bank.npz"))
    assert "bank bank.npz has no back-test" in " ".join(adaptive_notes(request, BANK))
    assert not any("back-test" in note for note in adaptive_notes(request, tested))


@pytest.mark.parametrize(
    ("stop", "reason", "executed"),
    [
        ({"stop_cost": 1.0}, EndReason.COST, 8),  # an eighth of a dollar each
        ({"stop_seconds": 45.0}, EndReason.TIME, 10),  # four and a half seconds each
        ({"stop_se": 9.0}, EndReason.STANDARD_ERROR, None),
        ({}, EndReason.TASKS, 30),
    ],
)
def test_a_run_stops_at_whatever_comes_first_and_is_complete(
    tmp_path: Path, stop: dict[str, Any], reason: EndReason, executed: int | None
) -> None:
    engine = adaptive_run(tmp_path, BANK, OUTCOMES, stop=30, **stop)
    last = engine.next()
    assert isinstance(last, Stop)
    assert last.reason is reason
    assert last.executed == executed or (executed is None and 20 <= last.executed < 30)
    with SqliteStore(tmp_path) as store:
        row = store.run("run-a")
        assert summarise(store, "run-a").complete
        again = engine_for(row.config, store)
        again.replay(engine.events)
        assert again.next() == last


def test_a_decision_needs_the_baselines_outcomes_only_once(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        rule = adaptive_config(AdaptiveRequest(stop_decision="62.5%:2pp"), BANK, NOW, store).stop_decision
        assert rule is not None
        assert (rule.baseline, rule.rate, rule.margin) == ("62.5%", 0.625, 0.02)
    fixed_run(tmp_path, BANK.item_ids, {item: [Outcome.FAILED] for item in BANK.item_ids}, run="old")
    with SqliteStore(tmp_path) as store:
        request = AdaptiveRequest(stop_decision="old:1pp", stop=40)
        rule = adaptive_config(request, BANK, NOW, store).stop_decision
        assert rule is not None
        assert (rule.baseline, rule.rate, rule.margin) == ("old", None, 0.01)
    engine = adaptive_run(tmp_path, BANK, dict.fromkeys(BANK.item_ids, Outcome.PASSED), stop=40, stop_decision=rule)
    last = engine.next()
    assert isinstance(last, Stop)
    assert (last.reason, last.executed) == (EndReason.DECISION, 20)
    assert "better than the baseline" in last.detail


def test_a_baseline_is_compared_on_tasks_that_are_still_the_same(tmp_path: Path) -> None:
    fixed_run(tmp_path, BANK.item_ids[:30], {item: [Outcome.PASSED] for item in BANK.item_ids[:20]}, run="old")
    first = BANK.item_ids[0]
    changed = replace(NOW, tasks={**NOW.tasks, first: "another"})
    request = AdaptiveRequest(stop_decision="old:2pp")
    # The baseline ran 20 of 30. A task that it ran is checked itself; the others are as they were if their suite is.
    for now, told in ((changed, "19 of 29"), (replace(changed, version="v2"), "19 of 19")):
        with SqliteStore(tmp_path) as store:
            row = run_row(tasks=BANK.item_ids, adaptive=adaptive_config(request, BANK, now, store))
            assert f"Baseline(outcomes={told}" in str(engine_for(row.config, store).describe()["stops"])
    with SqliteStore(tmp_path) as store:
        with pytest.raises(ConfigError, match=r"run old.*no grade for any task"):
            adaptive_config(request, BANK, replace(NOW, tasks=dict.fromkeys(NOW.tasks, "another")), store)
        with pytest.raises(StoreError, match="nowhere"):
            adaptive_config(AdaptiveRequest(stop_decision="nowhere:2pp"), BANK, NOW, store)


@pytest.mark.parametrize(
    ("text", "expected"), [("62.5%:2pp", (0.625, 0.02)), ("20251130-1-ab:0.5", ("20251130-1-ab", 0.005))]
)
def test_decisions_as_they_are_written(text: str, expected: tuple[str | float, float]) -> None:
    assert read_decision(text) == expected


@pytest.mark.parametrize(
    "text", ["", "latest", ":2pp", "latest:", "latest:lots", "latest:-1pp", "latest:100pp", "162.5%:2pp", "55:2pp"]
)
def test_what_is_no_decision_is_a_problem_of_its_key(text: str) -> None:
    with pytest.raises(ConfigError, match="stop_decision"):
        AdaptiveRequest(stop_decision=text)
