"""Span files: shapes, usage dialects inside them, prices and tiers, and files that cannot be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.billing.columns import columns_of, joined, usage_of
from harness.billing.fold import fold_columns
from harness.billing.prices import fixed_prices
from harness.billing.span_files import priced_rows, read_spans, span_files, together
from harness.billing.span_shapes import Reading, reading, readings
from harness.billing.usage import Dialect, normalise, recognise
from harness.records.errors import ConfigError
from harness.records.usage import Usage
from tests.billing.span_samples import MODEL, otlp, otlp_span, upload, weave

PRICES = fixed_prices(
    {
        "date": "2025-09-22",
        "models": {MODEL: {"input": 2.0, "output": 8.0, "tiers": {"batch": {"input": 1.0, "output": 4.0}}}},
    }
)


def test_the_worked_example_of_weave_calls_bills_each_response_once(tmp_path: Path) -> None:
    path = tmp_path / "run_UPLOAD.json"
    path.write_text(json.dumps(upload()))
    file = read_spans(path, PRICES)
    assert (file.scaffold, file.archived_tokens, file.archived_cost_usd) == ("tool calling", 6810, 0.015480)
    folded = fold_columns(file.columns)
    assert folded.usage == Usage(input=3500, output=160)
    assert folded.all_spans == Usage(input=6500, output=310)
    assert folded.cost_usd == pytest.approx(0.008280)
    assert folded.all_spans_cost_usd == pytest.approx(0.015480)
    assert folded.conflicts == ()


def test_a_weave_root_that_sums_several_models_is_priced_by_each() -> None:
    root = weave("root", None, "", 0, 0)
    root["output"] = None
    root["summary"]["usage"] = {
        MODEL: {"requests": 1, "prompt_tokens": 1_000_000, "completion_tokens": 0},
        "other": {"requests": 2, "prompt_tokens": 10, "completion_tokens": 5},
    }
    found = reading(root)
    assert found is not None
    assert found.usage == Usage(input=1_000_010, output=5)
    ((*_, cost, _),) = priced_rows([found], PRICES)
    assert cost is None  # no price for the other
    both = fixed_prices({"date": "d", "models": {MODEL: {"input": 2, "output": 8}, "other": {"input": 0, "output": 0}}})
    ((*_, cost, _),) = priced_rows([found], both)
    assert cost == 2.0


def test_calls_by_task_without_ids_are_told_apart_by_their_times() -> None:
    def entry(start: str, end: str, prompt: int) -> dict[str, Any]:
        usage = {"prompt_tokens": prompt, "completion_tokens": 1}
        return {"usage": usage, "started_at": f"2026-04-01T10:00:{start}", "ended_at": f"2026-04-01T10:00:{end}"}

    metadata = [
        entry("01", "09", 10),
        entry("02", "08", 10),
        entry("10", "19", 10),
        entry("11", "12", 7),
        {"usage": None},
    ]
    document = {"raw_logging_results": {"0": {"call_metadata": metadata, "model": MODEL, "messages": []}}}
    found = list(readings(document))
    folded = fold_columns(columns_of(priced_rows(found, PRICES)))
    assert len(found) == 5
    assert folded.usage == Usage(input=10 + 10 + 7, output=3)
    assert folded.all_spans == Usage(input=37, output=4)
    assert folded.missing.size == 1


GENAI: dict[str, Any] = {
    "gen_ai__provider__name": "openai",
    "gen_ai__response__model": MODEL,
    "gen_ai__response__id": "r1",
    "gen_ai__usage__input_tokens": 1000,
    "gen_ai__usage__output_tokens": 500,
}


def test_open_telemetry_in_both_forms() -> None:
    cached: dict[str, Any] = {
        "gen_ai__usage__cache_read__input_tokens": 600,
        "gen_ai__usage__reasoning__output_tokens": 100,
    }
    found = list(readings(otlp(otlp_span("agent"), otlp_span("call", "agent", **GENAI, **cached))))
    assert [(span.span, span.parent) for span in found] == [
        ("5b8aa5a2/agent", None),
        ("5b8aa5a2/call", "5b8aa5a2/agent"),
    ]
    expected = Usage(input=400, cache_read=600, output=400, reasoning=100)
    assert (found[1].usage, found[1].provider, found[1].response, found[1].model) == (expected, "openai", "r1", MODEL)
    printed = {
        "name": "chat",
        "context": {"trace_id": "0x1", "span_id": "0x2"},
        "parent_id": "0x0",
        "attributes": {key.replace("__", "."): value for key, value in {**GENAI, **cached}.items()},
    }
    (same,) = readings([printed])
    assert (same.usage, same.span, same.parent) == (expected, "0x1/0x2", "0x1/0x0")


def test_a_tier_has_its_own_price_or_none() -> None:
    batch = otlp_span("a", **GENAI, openai__response__service_tier="batch")
    flex = otlp_span("b", **{**GENAI, "gen_ai__response__id": "r2"}, openai__response__service_tier="flex")
    plain = otlp_span("c", **{**GENAI, "gen_ai__response__id": "r3"}, openai__response__service_tier="default")
    costs = [row[7] for row in priced_rows(readings(otlp(batch, flex, plain)), PRICES)]
    assert costs == [pytest.approx(0.003), None, pytest.approx(0.006)]


@pytest.mark.parametrize(
    "raw",
    [
        {"prompt_tokens": 100, "completion_tokens": 20,
         "prompt_tokens_details": {"cached_tokens": 30, "audio_tokens": 50},
         "completion_tokens_details": {"audio_tokens": 5, "reasoning_tokens": 5}, "total_tokens": 120},
        {"input_tokens": 100, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 30, "audio_tokens": 50},
         "output_tokens_details": {"audio_tokens": 5, "reasoning_tokens": 5}, "total_tokens": 120},
        {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20, "gen_ai.usage.cache_read.input_tokens": 30,
         "llm.token_count.prompt_details.audio": 50, "gen_ai.usage.reasoning.output_tokens": 5,
         "llm.token_count.completion_details.audio": 5},
        {"promptTokenCount": 100, "cachedContentTokenCount": 30, "candidatesTokenCount": 15, "thoughtsTokenCount": 5,
         "totalTokenCount": 120, "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 60}],
         "cacheTokensDetails": [{"modality": "AUDIO", "tokenCount": 10}],
         "candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 5}]},
    ],
)  # fmt: skip
def test_audio_is_a_bucket_of_its_own_in_every_dialect(raw: dict[str, Any]) -> None:
    expected = Usage(input=20, cache_read=30, output=10, reasoning=5, audio_input=50, audio_output=5)
    assert normalise(raw) == expected
    assert expected.total == 120
    dear = fixed_prices({"date": "d", "models": {"m": {"input": 1, "output": 1}}})
    assert dear.cost_usd("m", expected) is None  # no price for audio is not the price of text


def test_bedrock_keeps_caches_beside_its_input() -> None:
    raw = {"inputTokens": 5, "outputTokens": 7, "cacheReadInputTokens": 100, "cacheWriteInputTokens": 20}
    assert normalise({**raw, "totalTokens": 132}) == Usage(input=5, cache_read=100, cache_write=20, output=7)
    assert recognise(raw) is Dialect.BEDROCK


def test_lines_gzip_and_own_records(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl.gz"
    lines = [
        {"span": "a", "usage": {"input": 5, "output": 2}, "provider": "p", "response_id": "r"},
        {"span": "b", "parent": "a", "usage": {"prompt_tokens": 5, "completion_tokens": 2}, "model": "m"},
        {"span": "c", "usage": {"tokens": 3}, "attempt": 2, "charged": False, "cost_usd": float("inf")},
    ]
    data = "\n".join(json.dumps(line) for line in lines) + "\n\n{broken\n"
    path.write_bytes(gzip.compress(data.encode()))
    file = read_spans(path)
    columns = file.columns
    assert [usage_of(columns, np.array([n])) for n in range(2)] == [Usage(input=5, output=2)] * 2
    assert columns.has_usage.tolist() == [True, True, False]
    assert (columns.attempt[2], columns.charged[2], np.isnan(columns.cost_usd[2])) == (2, False, True)
    assert columns.models[columns.model[2]] == "unknown"  # a usage of unknown shape is a call without usage
    assert len(file.faults) == 1
    assert ":5:" in file.faults[0]


def test_a_usage_that_cannot_be_read_is_a_call_without_usage() -> None:
    strange = Reading("a", None, "t", failed_usage=True)
    folded = fold_columns(columns_of(priced_rows([strange, Reading("b", None, "t")], None)))
    assert folded.missing.tolist() == [0]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"resourceSpans": [{"scop', "not valid JSON"),
        (b"", "not valid JSON"),
        (b"\xff\xfe\x00", "not valid JSON"),
        (b"[" * 1_000_000, "nested too deep"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=words) as refused:
        read_spans(path)
    assert str(path) in str(refused.value)


def test_a_cut_gzip_and_a_folder_without_spans_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(json.dumps(upload()).encode())[:-20])
    with pytest.raises(ConfigError, match="cannot be read"):
        read_spans(path)
    path.unlink()
    with pytest.raises(ConfigError, match="no span file"):
        span_files(tmp_path)
    with pytest.raises(ConfigError, match="no such file"):
        span_files(tmp_path / "x")


def test_files_that_share_a_trace_are_one_run(tmp_path: Path) -> None:
    traces = {"a": ["1"], "b": ["2"], "c": ["1", "3"], "d": ["3", "2"], "e": ["4"]}
    files = []
    for name, own in traces.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps([weave(f"{name}{n}", None, f"{name}{n}", 1, 1, trace=n) for n in own]))
        files.append(read_spans(path))
    assert [[file.path.stem for file in group] for group in together(files)] == [["a", "c", "b", "d"], ["e"]]


def test_a_tree_split_into_files_is_joined_again() -> None:
    rows = list(priced_rows(readings(upload()), PRICES))
    whole = fold_columns(columns_of(rows))
    for cut in range(len(rows) + 1):
        parts = joined([columns_of(rows[:cut]), columns_of(rows[cut:])])
        again = fold_columns(parts)
        assert (again.usage, again.cost_usd, again.conflicts) == (whole.usage, whole.cost_usd, whole.conflicts)
        assert again.billed.tolist() == whole.billed.tolist()
