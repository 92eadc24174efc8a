"""The guide to adaptive runs: its Python runs as it stands, and its commands and names are those there are."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import typer

from harness.adaptive import simulate_population
from harness.adaptive.estimators import ESTIMATORS
from harness.adaptive.policies import POLICIES, WITH_TRAITS
from harness.cli import bank, calibrate, estimate, gate, run, simulate

TEXT = (Path(__file__).parents[2] / "docs" / "adaptive.md").read_text()
ITEMS = tuple(f"item-{number}" for number in range(40))


def test_the_five_lines_run_as_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    population = simulate_population(3, 30, ITEMS, d=1)
    responses = population.responses(range(29))
    rows = [
        (run_id, item, bool(passed))
        for run_id, outcomes in zip(responses.run_ids, responses.passes, strict=True)
        for item, passed in zip(ITEMS, outcomes, strict=True)
    ]
    truth = dict(zip(ITEMS, population.draw(29).tolist(), strict=True))
    [code] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, Any] = {"rows": rows, "suite_item_ids": ITEMS, "run_it": lambda item: bool(truth[item])}
    exec(code, names)
    assert names["engine"].estimate().executed == 40
    assert f"value={sum(truth.values()) / 40}" in capsys.readouterr().out


def test_every_option_in_the_guide_is_one_of_a_command() -> None:
    commands = [typer.main.get_command(module.app) for module in (bank, calibrate, estimate, gate, run, simulate)]
    leaves = [leaf for one in commands for leaf in getattr(one, "commands", {"": one}).values()]
    known = {option for leaf in leaves for parameter in leaf.params for option in parameter.opts}
    known |= {option for leaf in leaves for parameter in leaf.params for option in parameter.secondary_opts}
    asked = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", TEXT))
    assert asked <= known
    assert len(asked) > 20


def test_every_policy_and_estimator_is_named() -> None:
    for name in (*(policy.name for policy in POLICIES), *WITH_TRAITS, *(estimator.name for estimator in ESTIMATORS)):
        if name != "history_cache":  # of studies: it needs to be told what is cached
            assert f"`{name}" in TEXT, name


def test_every_function_in_the_guide_is_there() -> None:
    named = re.findall(r"`(harness\.api\.\w+)\.(\w+)`", TEXT)
    assert len(named) == 5
    for module, function in named:
        assert callable(getattr(importlib.import_module(module), function))
