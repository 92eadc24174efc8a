"""Choices of a rule that are made otherwise, by name: two graders that differ in one of them show what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from harness.records.errors import ConfigError

Rule = TypeVar("Rule")


def varied(rule: Rule, names: Iterable[str], changes: Mapping[str, Callable[[Rule], Rule]], grader: str) -> Rule:
    """`rule` with these changes made. Raises ConfigError, naming the `grader`, for a name that is none of them."""
    for name in names:
        if name not in changes:
            known = ", ".join(changes)
            raise ConfigError(f"{grader} has no variant {name!r}", place=grader, remedy=f"known: {known}")
        rule = changes[name](rule)
    return rule


def choices_made(rule: Rule, changes: Mapping[str, Callable[[Rule], Rule]]) -> str:
    """The changes that `rule` has, as the end of its description; empty where it has none."""
    made = [name for name, change in changes.items() if change(rule) == rule]
    return f"; choices: {', '.join(made)}" if made else ""
