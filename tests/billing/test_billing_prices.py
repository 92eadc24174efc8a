"""Prices by exact id, and what a call costs."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.billing.price import Price, Rate, Step, cost_usd
from harness.billing.prices import GenaiPrices, fixed_prices, load_prices
from harness.records.errors import ConfigError
from harness.records.usage import Usage

TABLE = {
    "date": "2026-01-01",
    "models": {
        "opus-4": {"input": 15.0, "output": 75.0},
        "opus-4-6": {"input": 5.0, "output": 25.0, "cache_read": 0.5},
    },
    "aliases": {"opus-4-6-20260101": "opus-4-6"},
}
MILLION = Usage(input=1_000_000, output=0)


def test_an_id_is_found_exactly_or_by_a_declared_alias_and_never_by_resemblance() -> None:
    """CASES K11."""
    table = fixed_prices(TABLE)
    assert table.cost_usd("opus-4", MILLION) == 15.0
    assert table.cost_usd("opus-4-6", MILLION) == 5.0
    assert table.cost_usd("opus-4-6-20260101", MILLION) == 5.0
    for unknown in ("opus-4-7", "opus-4-6-20260202", "opus", "OPUS-4", "acme/unknown-1", ""):
        assert table.price(unknown) is None
        assert table.cost_usd(unknown, MILLION) is None
    assert table.label == "fixed 2026-01-01"


def test_the_public_tables_are_asked_as_strictly() -> None:
    prices = GenaiPrices("openai", date(2026, 1, 1))
    assert prices.cost_usd("gpt-4o", Usage(input=1_000_000, output=100_000)) == pytest.approx(2.5 + 1.0)
    assert prices.price("gpt-4o-2024-08-06") == prices.price("gpt-4o")  # named in full by the table's own rule
    for unknown in ("gpt-4o-2099-01-01", "acme/unknown-1", "my-gpt-4o", "GPT-4o", ""):
        assert prices.price(unknown) is None
    anthropic = GenaiPrices("anthropic", date(2026, 1, 1))
    assert anthropic.price("claude-3-5-sonnet") is not None
    assert anthropic.price("claude-3-5-sonnet-20241022") is None  # the package would match it by its beginning
    dated = GenaiPrices("anthropic", date(2026, 1, 1), {"claude-3-5-sonnet-20241022": "claude-3-5-sonnet"})
    assert dated.price("claude-3-5-sonnet-20241022") == anthropic.price("claude-3-5-sonnet")


def test_public_prices_need_to_know_who_bills() -> None:
    day = date(2026, 1, 1)
    by_url = GenaiPrices("https://api.openai.com/v1", day)
    assert by_url.price("gpt-4o") == GenaiPrices("openai", day).price("gpt-4o")
    assert GenaiPrices("http://127.0.0.1:8000/v1", day).price("gpt-4o") is None
    assert GenaiPrices("no-such-provider", day).price("gpt-4o") is None
    assert GenaiPrices(None, day).price("acme/unknown-1") is None


def test_public_prices_hold_steps_dates_and_a_label() -> None:
    google = GenaiPrices("google", date(2026, 1, 1))
    price = google.price("gemini-2.5-pro")
    assert price is not None
    below, above = Usage(input=200_000, output=0), Usage(input=200_001, output=0)
    assert cost_usd(below, price) == pytest.approx(0.25)
    assert cost_usd(above, price) == pytest.approx(0.5000025)
    assert google.label.endswith("as of 2026-01-01")
    assert google.label.startswith("genai-prices ")
    assert price.source == google.label
    # Prices that depend on the hour of the day are no price per token.
    assert GenaiPrices("deepseek", date(2025, 6, 1)).price("deepseek-chat") is None


def test_public_prices_change_with_the_day_asked_for() -> None:
    """Every price that has a start date is another one before it; found in the table, not written down here."""
    from genai_prices import types
    from genai_prices.data_snapshot import get_snapshot

    for provider in get_snapshot().providers:
        for model in provider.models:
            if isinstance(model.prices, list) and len(model.prices) == 2:
                start = model.prices[1].constraint
                old, new = model.prices[0].prices.input_mtok, model.prices[1].prices.input_mtok
                if isinstance(start, types.StartDateConstraint) and None not in (old, new) and old != new:
                    day = start.start_date
                    before = GenaiPrices(provider.id, date.fromordinal(day.toordinal() - 1)).price(model.id)
                    after = GenaiPrices(provider.id, day).price(model.id)
                    assert before is not None
                    assert after is not None
                    assert before.input != after.input
                    return
    pytest.fail("the table holds no dated price any more")


def test_a_table_is_read_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text('name = "lab"\ndate = 2026-02-01\n[models."sim/α 1"]\ninput = 1\noutput = 0.0\n', encoding="utf-8")
    table = load_prices(path)
    assert table.label == "lab 2026-02-01"
    price = table.price("sim/α 1")
    assert price is not None
    assert (price.input, price.output, price.source) == (Rate(usd=1), Rate(usd=0), "lab 2026-02-01")
    with pytest.raises(ConfigError, match=r"nowhere\.toml"):
        load_prices(tmp_path / "nowhere.toml")
    path.write_text("date = ", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"prices\.toml: cannot be read"):
        load_prices(path)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"models": {}}, "needs `date`"),
        ({"date": "d", "models": {}, "model": {}}, "unknown key 'model'"),
        ({"date": "d", "models": {"m": {"input": 1}}}, r"models\.m: output is missing"),
        ({"date": "d", "models": {"m": {"input": 1, "output": 1, "cached": 1}}}, r"models\.m: unknown key 'cached'"),
        ({"date": "d", "models": {"m": {"input": -1, "output": 1}}}, r"models\.m"),
        ({"date": "d", "models": {"m": {"input": float("nan"), "output": 1}}}, r"models\.m"),
        ({"date": "d", "models": {"m": {"input": "free", "output": 1}}}, r"models\.m"),
        ({"date": "d", "models": {"m": 3}}, r"models\.m: a model's prices are a table"),
        ({"date": "d", "models": {}, "aliases": {"a": "b"}}, "alias 'a' is for 'b'"),
    ],
)
def test_a_table_with_a_mistake_is_refused_with_its_key(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fixed_prices(table)


@given(st.floats(0, 1000), st.integers(0, 10**7), st.integers(0, 10**7))
def test_a_cache_price_that_is_left_out_is_an_upper_bound_and_says_so(usd: float, read: int, written: int) -> None:
    """A service that reports cached tokens is not of unknown cost because a table forgot them."""
    table = fixed_prices({"date": "d", "models": {"m": {"input": usd, "output": 1.0}}})
    price = table.price("m")
    assert price is not None
    assert [said.split()[0] for said in price.assumed] == (["cache_read", "cache_write"] if usd else [])
    used = Usage(input=0, cache_read=read, cache_write=written, output=0)
    assert table.cost_usd("m", used) == pytest.approx((read + 2 * written) * usd / 1e6)


def test_what_a_table_says_is_never_assumed() -> None:
    whole = {"input": 2.0, "output": 1.0, "cache_read": 0.0, "cache_write": 0.5}
    price = fixed_prices({"date": "d", "models": {"m": whole}}).price("m")
    assert price is not None
    assert (price.cache_read, price.cache_write, price.assumed) == (Rate(usd=0.0), Rate(usd=0.5), ())
    del whole["cache_read"]
    partly = fixed_prices({"date": "d", "patterns": {"m*": whole}}).price("m")
    assert partly is not None
    assert (partly.cache_read, partly.cache_write) == (Rate(usd=2.0), Rate(usd=0.5))
    assert partly.assumed == ("cache_read counts 1 × the price of input",)


def test_the_documented_table_is_one() -> None:
    text = (Path(__file__).parents[2] / "docs" / "prices.md").read_text("utf-8")
    (block,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    table = fixed_prices(tomllib.loads(block))
    assert table.label == "our-contract 2026-01-01"
    assert table.cost_usd("my-model", Usage(input=1_000_000, cache_read=0, output=100_000)) == pytest.approx(0.75)
    assert table.price("my-model-2026-01-01") == table.price("my-model")
    assert table.price("local-7b") is not None
    assert table.cost_usd("local-7b", Usage(input=10, cache_read=5, output=10)) == 0.0
    assert table.price("my-model-mini") is None


PRICE = Price.flat(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)


def test_the_same_call_in_two_dialects_costs_the_same() -> None:
    """CASES K02."""
    usage = Usage(input=5, cache_read=128_955, cache_write=1_253, output=0)
    assert cost_usd(usage, PRICE) == pytest.approx((5 * 3 + 128_955 * 0.3 + 1_253 * 3.75) / 1e6)


def test_unknown_is_none_and_free_is_zero() -> None:
    free = Price.flat(input=0.0, output=0.0)
    assert cost_usd(MILLION, free) == 0.0
    assert cost_usd(None, PRICE) is None
    assert cost_usd(MILLION, None) is None
    assert cost_usd(Usage(input=1), PRICE) is None
    assert cost_usd(Usage(output=1), PRICE) is None
    assert cost_usd(Usage(input=1, output=1, cache_read=1), free) is None  # no price for what was read from a cache
    assert cost_usd(Usage(input=1, output=1, cache_read=0), free) == 0.0


counts = st.integers(0, 10**7)
whole = st.builds(Usage, input=counts, cache_read=counts, cache_write=counts, output=counts, reasoning=counts)


@given(whole, whole)
def test_without_steps_costs_add_up(a: Usage, b: Usage) -> None:
    both, one, other = cost_usd(a + b, PRICE), cost_usd(a, PRICE), cost_usd(b, PRICE)
    assert both is not None
    assert one is not None
    assert other is not None
    assert both == pytest.approx(one + other)
    assert both >= max(one, other) >= 0


@given(whole)
def test_reasoning_costs_what_output_costs(usage: Usage) -> None:
    moved = usage.model_copy(update={"output": (usage.output or 0) + (usage.reasoning or 0), "reasoning": 0})
    assert cost_usd(usage, PRICE) == cost_usd(moved, PRICE)


@given(st.lists(st.integers(0, 1000), max_size=4, unique=True), st.integers(0, 1200))
def test_the_highest_step_that_is_exceeded_holds_for_the_whole_call(starts: list[int], tokens: int) -> None:
    rate = Rate(usd=1.0, steps=tuple(Step(above_tokens=start, usd=2.0 + start) for start in starts))
    exceeded = [start for start in starts if tokens > start]
    assert rate.at(tokens) == (2.0 + max(exceeded) if exceeded else 1.0)


PATTERNS = {"date": "2026-01-01", "patterns": {"sim-*": {"input": 1.0, "output": 2.0}}}


def test_a_declared_pattern_prices_what_it_fits_and_nothing_else() -> None:
    table = fixed_prices(PATTERNS)
    price = table.price("sim-042")
    assert price is not None
    assert price.input.at(1) == 1.0
    assert price.source == table.label
    for other in ("xsim-042", "Sim-042", "sim", "sim_042", ""):
        assert table.price(other) is None
    # Nothing but the star is special.
    dotted = fixed_prices({"date": "1", "patterns": {"a.b[c]*": {"input": 1, "output": 1}}})
    assert dotted.price("a.b[c]") is not None
    assert dotted.price("axbc1") is None


def test_an_exact_price_or_alias_comes_before_a_pattern_and_two_patterns_are_none() -> None:
    flat = {"input": 9.0, "output": 9.0}
    table = fixed_prices({**PATTERNS, "models": {"sim-1": flat}, "aliases": {"sim-one": "sim-1"}})
    for model, usd in (("sim-1", 9.0), ("sim-one", 9.0), ("sim-2", 1.0)):
        price = table.price(model)
        assert price is not None
        assert price.input.at(1) == usd
    both = {"sim-*": flat, "*-x": flat}
    ambiguous = fixed_prices({"date": "1", "patterns": both})
    assert ambiguous.price("sim-x") is None
    assert ambiguous.price("sim-y") is not None


@pytest.mark.parametrize(
    "patterns", [["sim-*"], {"sim-*": 3}, {"sim-*": {"input": 1}}, {"sim-*": {"input": -1, "output": 1}}]
)
def test_a_pattern_with_a_mistake_is_refused(patterns: Any) -> None:
    with pytest.raises(ConfigError):
        fixed_prices({"date": "1", "models": {}, "patterns": patterns})
