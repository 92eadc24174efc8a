"""The simulated population: spread, independence of order, stability across processes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import kstest

from harness.adaptive import AdaptiveError, simulate_population
from harness.adaptive.keys import seeded_keys, uniforms

ITEMS = [f"item-{i}" for i in range(519)]


def test_pass_rates_spread_from_low_to_high() -> None:
    for n_agents in (8, 100):
        rates = simulate_population(1, n_agents, ITEMS).responses().pass_rates
        assert rates.min() < 0.25
        assert rates.max() > 0.80
        assert 0.4 < np.median(rates) < 0.6


def test_an_outcome_depends_on_seed_agent_item_and_attempt_alone() -> None:
    whole = simulate_population(4, 10, ITEMS)
    part = simulate_population(4, 10, ITEMS[::-7])
    at = [whole.item_ids.index(item) for item in part.item_ids]
    assert np.array_equal(whole.draw(3)[at], part.draw(3))
    assert np.array_equal(whole.alpha[at], part.alpha)
    assert [int(whole.draw_one(3, item)) for item in range(50)] == whole.draw(3)[:50].tolist()
    assert not np.array_equal(whole.draw(3), whole.draw(3, attempt=1))
    more = simulate_population(4, 3, ITEMS, prefix="new")
    assert np.array_equal(more.beta, whole.beta)
    assert not np.array_equal(more.draw(0), whole.draw(0))


def test_outcomes_are_the_same_in_another_process() -> None:
    program = (
        "from harness.adaptive import simulate_population as s;"
        "print(''.join(map(str, s(9, 3, [f'item-{i}' for i in range(40)]).draw(2))))"
    )
    there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    assert there == "".join(map(str, simulate_population(9, 3, ITEMS[:40]).draw(2)))


def test_draws_follow_the_stated_probability() -> None:
    population = simulate_population(2, 5, ITEMS)
    for agent in range(5):
        p = population.probability(agent)
        mean = np.mean([population.draw(agent, attempt) for attempt in range(40)], axis=0)
        z = (mean - p).sum() / np.sqrt((p * (1 - p)).sum() / 40)
        assert abs(z) < 4
    assert kstest(uniforms(seeded_keys(1, "test", ITEMS)), "uniform").pvalue > 1e-3
    assert kstest(population.beta / population.beta.std(), "norm").pvalue > 1e-3


def test_missing_cells_are_missing() -> None:
    holed = simulate_population(2, 20, ITEMS).responses(missing=0.3)
    assert 0.67 < holed.trials.mean() < 0.73
    assert (holed.passes <= holed.trials).all()


@pytest.mark.parametrize(("agents", "items", "d"), [(0, ["a"], 1), (1, [], 1), (1, ["a"], 0)])
def test_nobody_or_nothing_cannot_be_simulated(agents: int, items: list[str], d: int) -> None:
    with pytest.raises(AdaptiveError, match="at least 1"):
        simulate_population(1, agents, items, d)
