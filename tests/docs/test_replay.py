"""The guide to replays: its options, normalisations and reasons are those there are."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import typer

from harness.cli import migrate, replay
from harness.records.replay import Invalid, Match
from harness.replay.normalise import STANDARD

TEXT = (Path(__file__).parents[2] / "docs" / "replay.md").read_text()


def test_every_option_in_the_guide_is_one_of_a_command() -> None:
    commands = [typer.main.get_command(module.app) for module in (replay, migrate)]
    leaves = [leaf for one in commands for leaf in getattr(one, "commands", {"": one}).values()]
    known = {option for leaf in leaves for parameter in leaf.params for option in parameter.opts}
    known |= {option for leaf in leaves for parameter in leaf.params for option in parameter.secondary_opts}
    asked = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", TEXT))
    assert asked <= known | {"--data"}
    assert len(asked) >= 12


def test_every_normalisation_match_and_reason_has_its_row() -> None:
    for name in (*(rule.name for rule in STANDARD), *Match, *Invalid):
        assert f"| `{name}` |" in TEXT, name


def test_every_function_in_the_guide_is_there() -> None:
    named = re.findall(r"`(harness(?:\.\w+)+)\.(\w+)`", TEXT)
    assert len(named) == 3
    for module, function in named:
        assert callable(getattr(importlib.import_module(module), function))
