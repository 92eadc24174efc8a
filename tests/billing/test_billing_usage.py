"""Every dialect, brought to the same disjoint buckets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.billing.usage import Dialect, merge_stream, normalise, normalise_openai_chat, recognise
from harness.records.usage import Usage

SAME_CALL = Usage(input=5, cache_read=128_955, cache_write=1_253, output=100)


@pytest.mark.parametrize(
    "raw",
    [
        # CASES K02: input without and with the cached part, as three services write it.
        {
            "input_tokens": 5,
            "cache_read_input_tokens": 128_955,
            "cache_creation_input_tokens": 1_253,
            "output_tokens": 100,
        },
        {
            "prompt_tokens": 130_213,
            "completion_tokens": 100,
            "total_tokens": 130_313,
            "prompt_tokens_details": {"cached_tokens": 128_955, "cache_write_tokens": 1_253},
        },
        {
            "prompt_tokens": 130_213,
            "completion_tokens": 100,
            "cache_read_input_tokens": 128_955,
            "cache_creation_input_tokens": 1_253,
        },
        {
            "input_tokens": 130_213,
            "output_tokens": 100,
            "total_tokens": 130_313,
            "input_tokens_details": {"cached_tokens": 128_955, "cache_write_tokens": 1_253},
        },
    ],
)
def test_one_call_in_several_dialects_is_one_usage(raw: dict[str, Any]) -> None:
    assert normalise(raw) == SAME_CALL


@pytest.mark.parametrize(
    "raw",
    [
        # CASES K03: reasoning inside output, inside it with no total, beside it as the total tells, and Gemini's way.
        {"prompt_tokens": 17, "completion_tokens": 482, "total_tokens": 499}
        | {"completion_tokens_details": {"reasoning_tokens": 448}},
        {"prompt_tokens": 17, "completion_tokens": 482, "completion_tokens_details": {"reasoning_tokens": 448}},
        {"prompt_tokens": 17, "completion_tokens": 34, "total_tokens": 499}
        | {"completion_tokens_details": {"reasoning_tokens": 448}},
        {"input_tokens": 17, "output_tokens": 482, "total_tokens": 499}
        | {"output_tokens_details": {"reasoning_tokens": 448}},
        {"promptTokenCount": 17, "candidatesTokenCount": 34, "thoughtsTokenCount": 448, "totalTokenCount": 499},
        {"prompt_token_count": 17, "candidates_token_count": 34, "thoughts_token_count": 448},
    ],
)
def test_reasoning_is_counted_once(raw: dict[str, Any]) -> None:
    usage = normalise(raw)
    assert usage == Usage(input=17, output=34, reasoning=448)
    assert usage.total == 499


def test_gemini_counts_cached_in_the_prompt_and_tools_beside_it() -> None:
    raw = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "toolUsePromptTokenCount": 7,
        "thoughtsTokenCount": 3,
        "totalTokenCount": 110,
    }
    assert normalise(raw) == Usage(input=47, cache_read=60, output=0, reasoning=3)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        {},
        [],
        "12 tokens",
        {"tokens": 12},
        {"prompt_tokens": 12},  # no output: half a usage bills nothing
        {"prompt_tokens": None, "completion_tokens": 4},
        {"prompt_tokens": -1, "completion_tokens": 4},
        {"prompt_tokens": True, "completion_tokens": 4},
        {"prompt_tokens": "12", "completion_tokens": 4},
        {"prompt_tokens": 1.5, "completion_tokens": 4},
        {"prompt_tokens": 10, "completion_tokens": 1e300},
        {"prompt_tokens": 10**30, "completion_tokens": 1},
        {"prompt_tokens": float("nan"), "completion_tokens": 4},
        {"prompt_tokens": float("inf"), "completion_tokens": 4},
        {"prompt_tokens": 5, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 6}},
        {"prompt_tokens": 5, "completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 6}},
        {"prompt_tokens": 5, "completion_tokens": 4, "prompt_tokens_details": 6},
        {"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 10},
        {"promptTokenCount": 5, "totalTokenCount": 4},
        {"promptTokenCount": 5},
        {"input_tokens": 5},
    ],
)
def test_what_is_unknown_or_contradicts_itself_is_none_never_zero(raw: Any) -> None:
    """CASES K05."""
    assert normalise(raw) is None
    assert normalise_openai_chat(raw) is None


def test_a_wrong_dialect_reads_nothing() -> None:
    raw = {"input_tokens": 5, "output_tokens": 4}
    assert normalise(raw) == Usage(input=5, output=4)
    assert normalise(raw, Dialect.OPENAI_CHAT) is None
    assert normalise(raw, Dialect.GEMINI) is None
    assert recognise({"usage": 1}) is None


def test_details_that_are_null_are_unknown() -> None:
    raw = {"prompt_tokens": 5, "completion_tokens": 4, "prompt_tokens_details": None, "completion_tokens_details": None}
    assert normalise(raw) == Usage(input=5, output=4)


def test_a_stream_counts_its_last_word() -> None:
    openai = [None, None, {"prompt_tokens": 5, "completion_tokens": 4}]
    assert normalise(merge_stream(openai)) == Usage(input=5, output=4)
    anthropic = [
        {"input_tokens": 5, "cache_read_input_tokens": 9, "cache_creation_input_tokens": 0, "output_tokens": 1},
        {"output_tokens": 40},
        {"output_tokens": 80, "input_tokens": None},
    ]
    assert normalise(merge_stream(anthropic)) == Usage(input=5, cache_read=9, cache_write=0, output=80)
    assert merge_stream([None, "x"]) is None
    assert normalise(merge_stream([])) is None


count = st.integers(0, 10**7)


@given(fresh=count, read=count, write=count, output=count, reasoning=count)
def test_buckets_add_up_to_what_each_provider_calls_the_total(
    fresh: int, read: int, write: int, output: int, reasoning: int
) -> None:
    prompt, completion = fresh + read + write, output + reasoning
    expected = Usage(input=fresh, cache_read=read, cache_write=write, output=output, reasoning=reasoning)
    chat = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": write},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }
    responses = {
        "input_tokens": prompt,
        "output_tokens": completion,
        "total_tokens": prompt + completion,
        "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": write},
        "output_tokens_details": {"reasoning_tokens": reasoning},
    }
    gemini = {
        "promptTokenCount": prompt,
        "cachedContentTokenCount": read,
        "candidatesTokenCount": output,
        "thoughtsTokenCount": reasoning,
        "totalTokenCount": prompt + completion,
    }
    assert normalise(chat) == normalise(responses) == expected
    seen = normalise(gemini)
    assert seen == Usage(input=fresh + write, cache_read=read, output=output, reasoning=reasoning)
    assert expected.total == seen.total == prompt + completion


@given(
    st.dictionaries(
        st.sampled_from(["prompt_tokens", "completion_tokens", "total_tokens", "input_tokens"]),
        st.integers() | st.floats() | st.text() | st.none() | st.booleans(),
    )
)
def test_no_shape_makes_it_raise(raw: dict[str, Any]) -> None:
    usage = normalise(raw)
    assert usage is None or usage.known
