"""What JSON cannot hold is tagged or refused, never changed in silence."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.base import canonical_json
from harness.records.errors import StoreError
from harness.records.usage import Usage
from harness.records.vocabulary import Outcome
from harness.store.encoding import storable


class Colour(Enum):
    RED = 3


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (float("nan"), {"$float": "nan"}),
        (float("inf"), {"$float": "inf"}),
        (float("-inf"), {"$float": "-inf"}),
        (np.float64("nan"), {"$float": "nan"}),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (b"\xff\x00", {"$base64": "/wA="}),
        (bytearray(b"a"), {"$base64": "YQ=="}),
        ((1, (2,)), [1, [2]]),
        ({3, 1, 2}, [1, 2, 3]),
        ({1: "a", Colour.RED: "b", Outcome.PASSED: "c"}, {"1": "a", "3": "b", "passed": "c"}),
        (Outcome.FAILED, "failed"),
        (Colour.RED, 3),
        (True, True),
        (PurePosixPath("/a/b"), "/a/b"),
        (
            Usage(input=1, output=2),
            {
                "input": 1,
                "cache_read": None,
                "cache_write": None,
                "output": 2,
                "reasoning": None,
                "audio_input": None,
                "audio_output": None,
            },
        ),
    ],
)
def test_each_kind_of_value_has_one_form(value: Any, stored: Any) -> None:
    assert storable({"v": value}) == {"v": stored}
    assert type(storable(value)) is type(stored)


def test_an_integer_that_python_will_not_print_is_kept_in_hexadecimal() -> None:
    assert storable(-(10**4400)) == {"$int": hex(-(10**4400))}
    assert storable(10**3800) == 10**3800
    assert canonical_json(storable([10**3800, 10**4400]))


def test_what_has_no_form_is_refused_with_its_place() -> None:
    with pytest.raises(StoreError, match=r"payload\.a\.b: a object"):
        storable({"a": {"b": [1, object()]}})
    with pytest.raises(StoreError, match="two keys become '1'"):
        storable({1: "a", "1": "b"})
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(StoreError, match="nested too deeply"):
        storable(nested)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=9) | st.just("\udc80"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(anything)
def test_the_form_reads_back_as_itself(value: Any) -> None:
    form = storable(value)
    text = canonical_json(form)
    assert text.isascii()
    assert json.loads(text) == form
    assert storable(form) == form
    assert canonical_json(json.loads(text)) == text
