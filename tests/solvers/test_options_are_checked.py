"""Options of the solvers that ship are refused when the solver is looked up: before a run exists."""

from __future__ import annotations

from typing import Any

import pytest

from harness.api.wiring import find_solver
from harness.records.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "options"),
    [("agent", {"temperatur": "0"}), ("agent", {"max_output_chars": "x"}), ("mutated", {"mutant": -1})],
)
def test_a_bad_option_is_refused_at_once(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        find_solver(name, options)


@pytest.mark.parametrize(
    ("name", "options", "actor", "needs_model", "uses_solution"),
    [
        ("agent", {"temperature": "0.2"}, "agent", True, False),
        ("mutated", {"mutant": "1"}, "reference", False, True),
        ("reference", {}, "reference", False, True),
        ("noop", {}, "agent", False, False),
        ("command", {"command": "true"}, "agent", False, False),
    ],
)
def test_what_a_solver_declares_is_written_down(
    name: str, options: dict[str, Any], actor: str, needs_model: bool, uses_solution: bool
) -> None:
    plugin = find_solver(name, options)
    assert (plugin.spec.actor, plugin.needs_model, plugin.spec.uses_solution) == (actor, needs_model, uses_solution)
    assert plugin.spec.options == options
    assert plugin.spec.code_digest is not None
