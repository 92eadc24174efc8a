"""Bills of stored runs: spans of imported trees, service tiers, and what the stored totals agree with."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.api.archives import import_archive
from harness.api.bills import BillRequest, bill_path, bill_run
from harness.records.errors import ConfigError
from harness.store.sqlite import SqliteStore
from tests.billing.span_samples import MODEL, otlp, otlp_span
from tests.importers.reading import tau_episode, write_json

TABLE = """
date = "2026-01-01"
[models."{model}"]
input = 2.0
output = 8.0
[models."{model}".tiers.batch]
input = 1.0
output = 4.0
"""
SAID = {"gen_ai__provider__name": "openai", "gen_ai__response__model": MODEL, "gen_ai__response__id": "r1"}
USED = {"gen_ai__usage__input_tokens": 1000, "gen_ai__usage__output_tokens": 500}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "store") as opened:
        yield opened


def _archive(folder: Path, tier: str) -> Path:
    root = otlp_span("root")
    call = otlp_span("call", "root", **SAID, **USED, openai__response__service_tier=tier)
    path = folder / "spans.json"
    path.write_text(json.dumps(otlp(root, call)))
    return path


@pytest.mark.parametrize(("tier", "share"), [("default", 1.0), ("batch", 0.5), ("flex", None)])
def test_a_stored_run_is_priced_by_the_tier_that_its_records_name(
    tmp_path: Path, store: SqliteStore, tier: str, share: float | None
) -> None:
    table = tmp_path / "prices.toml"
    table.write_text(TABLE.format(model=MODEL))
    path = _archive(tmp_path, tier)
    (run,) = import_archive(path, store).runs
    request = BillRequest(prices=str(table))
    (stored,) = bill_run(run.run, store.folder, request).bills
    (read,) = bill_path(path, request).bills
    assert (stored.calls, stored.tokens, stored.cost_usd) == (1, read.tokens, read.cost_usd)
    assert stored.cost_usd == (None if share is None else pytest.approx(0.006 * share))
    assert stored.agrees_with == "both"


def test_without_a_table_a_stored_run_costs_what_was_recorded(tmp_path: Path, store: SqliteStore) -> None:
    (run,) = import_archive(_archive(tmp_path, "batch"), store).runs
    (bill,) = bill_run(run.run, store.folder).bills
    assert (bill.cost_usd, bill.cost_at_least_usd, bill.prices) == (None, 0.0, None)


@pytest.mark.parametrize("copies", [1, 2])
def test_an_archive_of_results_without_spans_is_to_be_imported_first(
    tmp_path: Path, store: SqliteStore, copies: int
) -> None:
    folder = tmp_path / "my results"
    files = [write_json(folder / f"{n}.json", [tau_episode(), tau_episode(trial=1)]) for n in range(copies)]
    with pytest.raises(ConfigError, match="no span in") as caught:
        bill_path(folder)
    assert caught.value.remedy.startswith("this is an archive (tau-bench): `assay import '")
    named = shlex.split(caught.value.remedy.split("`")[1])[-1]
    (run,) = import_archive(named, store).runs
    assert bill_run(run.run, store.folder).bills
    with pytest.raises(ConfigError, match="then `assay bill RUN`"):
        bill_path(files[0])


def test_what_is_neither_spans_nor_an_archive_is_told_what_spans_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give OpenTelemetry JSON"):
        bill_path(write_json(tmp_path / "other.json", {"a": 1}))
