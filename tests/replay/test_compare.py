"""Comparing answers: what each normalisation forgives, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.errors import ConfigError
from harness.records.replay import Match
from harness.replay.compare import compare
from harness.replay.normalise import STANDARD, normalisations

EXACT = 2**53  # up to which every whole number is a float of its own
NUMBERS = st.integers(-EXACT, EXACT) | st.floats(-EXACT, EXACT)
LEAVES = st.none() | st.booleans() | NUMBERS | st.text()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


@pytest.mark.parametrize(
    ("recorded", "replayed", "rule"),
    [
        ('{"a": 250}', '{"a": 250.0}', "number-form"),
        ('{"a": 250}', '{"a": 2.50e2}', "number-form"),
        ("250", "250.0", "number-form"),
        ("-0.0", "0", "number-form"),
        ("1" + "0" * 30, "1e30", "number-form"),
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', "key-order"),
        ('{"a":1}', '{"a": 1}', "layout"),
        ('"\\u00e9"', '"é"', "layout"),
        ('{"t": "2024-05-15T15:00:00"}', '{"t": "2024-05-15 15:00"}', "timestamp-format"),
        ("2024-05-15T15:00:00Z", "2024-05-15T17:00:00.000+02:00", "timestamp-format"),
        ('{"a": 1, "b": 2.0}', '{"b": 2, "a": 1}', "key-order + number-form"),
    ],
)
def test_what_is_cosmetic(recorded: str, replayed: str, rule: str) -> None:
    for one, other in ((recorded, replayed), (replayed, recorded)):
        assert compare(one, other, STANDARD) == (Match.COSMETIC, rule)
        assert compare(one, other, ()).match is Match.KEY


@pytest.mark.parametrize(
    ("recorded", "replayed", "where"),
    [
        ('{"a": 250}', '{"a": "250"}', 'a: 250 became "250"'),
        ('{"a": 250}', '{"a": 250.01}', "a: 250 became 250.01"),
        ('{"a": 1}', '{"a": true}', "a: 1 became true"),
        ('{"a": null}', "{}", "the object: without a"),
        ("{}", "[]", "an object of 0 became a list of 0"),
        ("[1, 2]", "[2, 1]", "[0]: 1 became 2"),
        ("[1]", "[1, 2]", "[1]: nothing became 2"),
        ('{"a": [{"b": 1}]}', '{"a": [{"b": 2}]}', "a[0].b: 1 became 2"),
        ('{"a": 1, "a": 2}', '{"a": 2, "a": 1}', "a: 1 became 2"),
        ('{"t": "2024-05-15"}', '{"t": "2024-05-16"}', 't: "2024-05-15" became "2024-05-16"'),
        ('{"t": "2024-05-15T15:00:00"}', '{"t": "2024-05-15T15:00:00Z"}', "t: "),
        ("Error: 250", "Error: 250.0", "character 10"),
        ("0.1", "0.10000000000000001", "0.1 became 0.10000000000000001"),
        ("1e400", "1e401", "1e400 became 1e401"),
        ("NaN", "null", "NaN became null"),
    ],
)
def test_what_is_another_answer(recorded: str, replayed: str, where: str) -> None:
    found = compare(recorded, replayed, STANDARD)
    assert found.match is Match.KEY
    assert found.rule.startswith(where)


def test_nested_too_deeply_to_look_at_is_text() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert compare(deep, deep, STANDARD).match is Match.SAME
    assert compare(deep, deep + " ", STANDARD).match is Match.KEY


@given(VALUES)
def test_how_a_value_is_laid_out_and_ordered_is_cosmetic(value: Any) -> None:
    plain = json.dumps(value)
    for other in (
        json.dumps(value, indent=1),
        json.dumps(value, sort_keys=True),
        json.dumps(value, ensure_ascii=False),
    ):
        assert compare(plain, other, STANDARD).match in (Match.SAME, Match.COSMETIC)


@given(VALUES, VALUES)
def test_values_that_differ_are_never_cosmetic(one: Any, other: Any) -> None:
    """Python's own equality, made strict about truth values, is the oracle; 1 and 1.0 are one for it, as for the rules.
    The rule for timestamps is left out: it forgives more."""
    if _strict(one) != _strict(other):
        rules = normalisations(["layout", "key-order", "number-form"])
        assert compare(json.dumps(one), json.dumps(other), rules).match is Match.KEY


def _strict(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return ("word", value)
    if isinstance(value, list):
        return ("list", [_strict(inner) for inner in value])
    if isinstance(value, dict):
        return ("object", {key: _strict(inner) for key, inner in value.items()})
    return value


def test_a_renamed_field_is_forgiven_only_when_it_is_named() -> None:
    recorded, replayed = '{"address": {"province": "CA"}}', '{"address": {"state": "CA"}}'
    assert compare(recorded, replayed, STANDARD).match is Match.KEY
    rules = normalisations(["rename:province=state"])
    assert compare(recorded, replayed, rules) == (Match.COSMETIC, "rename:province=state")
    assert compare('{"province": "CA"}', '{"state": "NY"}', rules).match is Match.KEY


def test_rules_by_name() -> None:
    assert normalisations([]) == STANDARD
    assert normalisations(["none"]) == ()
    assert [rule.name for rule in normalisations(["key-order"])] == ["layout", "key-order"]
    assert [rule.name for rule in normalisations(["standard", "rename:a=b"])][-1] == "rename:a=b"
    with pytest.raises(ConfigError, match="known: layout, key-order"):
        normalisations(["case"])
    with pytest.raises(ConfigError):
        normalisations(["rename:a"])
