"""Bills a stored run, a file of spans, or a folder of them."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from harness.api.request import DEFAULT_STORE
from harness.api.stores import open_store
from harness.billing.account import spans_of
from harness.billing.columns import SpanColumns, columns_of, joined, row_of
from harness.billing.fold import FoldedColumns, agreement, fold_columns, ratio_of
from harness.billing.price import cost_usd
from harness.billing.prices import PriceTable, load_prices
from harness.billing.span_files import SpanFile, read_spans, span_files, together
from harness.importers.container import Archive
from harness.importers.recognition import choose
from harness.protocols import EvidenceStore
from harness.records.archive import ArchiveError
from harness.records.base import Record
from harness.records.errors import ConfigError
from harness.records.run import TrialRow
from harness.records.usage import Span
from harness.report.bills import BillsReport, RatioLine, RunBill
from harness.store.flat import agent_name

NO_NAME = "(unnamed)"
SAME_COST = 1e-6  # relative: costs are sums of rounded numbers


class BillRequest(Record):
    """`prices` is a table (TOML) to price by now; without it costs are those recorded. `own` declares that each
    span's usage is its own and never a total of what is below."""

    prices: str | None = None
    own: bool = False


def bill_run(run: str, store: str | Path = DEFAULT_STORE, request: BillRequest | None = None) -> BillsReport:
    """The bill of a stored run, folded anew from its events, all attempts included. Raises StoreError, ConfigError."""
    request = request or BillRequest()
    prices = None if request.prices is None else load_prices(request.prices)
    with open_store(store) as opened:
        row = opened.run(run)
        trials = opened.trials(row.run)
        spans = [span for trial in trials for span in _spans(opened, trial, prices)]
    columns = columns_of(map(row_of, spans))
    archived = _recorded(trials)
    bill = _bill(row.run, columns, fold_columns(columns, own=request.own), archived)
    label = None if prices is None else prices.label
    return report_of([bill.model_copy(update={"scaffold": agent_name(row.config), "prices": label})])


def bill_path(path: str | Path, request: BillRequest | None = None) -> BillsReport:
    """Bills of the spans in a file, or of every run in a folder. Files that share a trace are one run.

    Files that cannot be read are listed in the report, with what is wrong; a single one that cannot raises ConfigError.
    """
    request = request or BillRequest()
    prices = None if request.prices is None else load_prices(request.prices)
    paths = span_files(path)
    files, unread = _read(paths, prices)
    if not files:
        raise ConfigError(
            "no span in " + ("these files" if len(paths) > 1 else "this file"),
            place=str(path),
            remedy=_remedy(Path(path), paths),
        )
    label = None if prices is None else prices.label
    bills = [_bill_of(group, label, request.own) for group in together(files)]
    if unread:
        bills[0] = bills[0].model_copy(update={"faults": (*unread, *bills[0].faults)})
    return report_of(bills)


def _remedy(path: Path, files: Sequence[Path]) -> str:
    """What to give in place of what holds no span: of an archive of results, the run that it is imported as."""
    for place in (path, files[0]):  # a folder may be no archive, and hold some
        try:
            _, recognition = choose(Archive(place))
        except (ArchiveError, ConfigError):
            continue  # nothing is known of it but that it holds no span
        named = shlex.quote(str(place))
        return f"this is an archive ({recognition.format}): `assay import {named}`, then `assay bill RUN`"
    return "give OpenTelemetry JSON, Weave calls, or lines with `span`, `parent` and `usage`"


def report_of(bills: Sequence[RunBill]) -> BillsReport:
    """The bills with the distribution of their ratios by scaffold and provider."""
    groups: dict[tuple[str, str], list[RunBill]] = {}
    for bill in bills:
        groups.setdefault((bill.scaffold or NO_NAME, ", ".join(bill.providers) or NO_NAME), []).append(bill)
    with_usage = [bill for bill in bills if bill.ratio is not None]
    both = [bill for bill in bills if bill.cost_ratio is not None]
    return BillsReport(
        bills=tuple(bills),
        ratios=tuple(_ratios(*key, group) for key, group in sorted(groups.items())),
        agreement=dict(Counter(bill.agrees_with for bill in bills if bill.agrees_with is not None)),
        overall_token_ratio=_over([b.all_spans_tokens for b in with_usage], [b.tokens for b in with_usage]),
        overall_cost_ratio=_over([b.all_spans_cost_usd for b in both], [b.cost_usd for b in both]),
    )


def _read(paths: Sequence[Path], prices: PriceTable | None) -> tuple[list[SpanFile], list[str]]:
    files, unread = [], []
    for path in paths:
        try:
            file = read_spans(path, prices)
        except ConfigError as error:
            if len(paths) == 1:
                raise
            unread.append(str(error))
            continue
        if not len(file.columns):
            unread.append(f"{path}: no span in this file")
        else:
            files.append(file)
    return files, unread


def _spans(store: EvidenceStore, trial: TrialRow, prices: PriceTable | None) -> list[Span]:
    """A trial's spans under names of their own, repriced where a table is given."""
    found = []
    for span in spans_of(store.events(trial.trial)):
        parent = None if span.parent is None else f"{trial.trial}/{span.parent}"
        changes: dict[str, object] = {"span": f"{trial.trial}/{span.span}", "parent": parent}
        if prices is not None and span.usage is not None:
            price = prices.price(span.model) if span.model is not None else None
            changes["cost_usd"] = cost_usd(span.usage, None if price is None else price.of_tier(span.tier))
        found.append(span.model_copy(update=changes))
    return found


def _recorded(trials: Sequence[TrialRow]) -> tuple[int | None, float | None]:
    """Tokens and cost as the trials' results have them; None where any is unknown."""
    results = [trial.result for trial in trials if trial.result is not None]
    tokens = [result.usage.total for result in results if result.usage is not None]
    costs = [result.cost_usd for result in results]
    known = [cost for cost in costs if cost is not None]
    return (sum(tokens) if tokens else None), (math.fsum(known) if known and len(known) == len(costs) else None)


def _bill_of(group: Sequence[SpanFile], label: str | None, own: bool) -> RunBill:
    columns = joined([file.columns for file in group])
    tokens, costs = (
        [getattr(file, name) for file in group if getattr(file, name) is not None]
        for name in ("archived_tokens", "archived_cost_usd")
    )
    archived = (sum(tokens) if tokens else None, math.fsum(costs) if costs else None)
    bill = _bill(", ".join(str(file.path) for file in group), columns, fold_columns(columns, own=own), archived)
    scaffolds = {file.scaffold for file in group if file.scaffold is not None}
    return bill.model_copy(
        update={
            "scaffold": scaffolds.pop() if len(scaffolds) == 1 else None,
            "prices": label,
            "faults": tuple(fault for file in group for fault in file.faults),
        }
    )


def _bill(name: str, columns: SpanColumns, folded: FoldedColumns, archived: tuple[int | None, float | None]) -> RunBill:
    tokens, flat = (None if usage is None else usage.total for usage in (folded.usage, folded.all_spans))
    cost, flat_cost = folded.cost_usd, folded.all_spans_cost_usd
    return RunBill(
        name=name,
        providers=tuple(sorted(columns.providers)),
        spans=int(folded.distinct.size),
        calls=int(folded.billed.size + folded.missing.size),
        calls_without_usage=int(folded.missing.size),
        uncharged=int(folded.uncharged.size),
        usage=folded.usage,
        tokens=tokens,
        all_spans_tokens=flat,
        ratio=ratio_of(folded.all_spans, folded.usage),
        cost_usd=cost,
        cost_at_least_usd=folded.cost_at_least_usd,
        all_spans_cost_usd=flat_cost,
        cost_ratio=flat_cost / cost if cost and flat_cost is not None else None,
        archived_tokens=archived[0],
        archived_cost_usd=archived[1],
        agrees_with=_agrees(tokens, flat, cost, flat_cost, archived),
        conflicts=folded.conflicts,
    )


def _agrees(
    tokens: int | None,
    flat: int | None,
    cost: float | None,
    flat_cost: float | None,
    archived: tuple[int | None, float | None],
) -> str | None:
    """By tokens, which are exact; by cost where the archive has no tokens."""
    if archived[0] is not None:
        return agreement(tokens, flat, archived[0])
    if archived[1] is None or cost is None:
        return None
    near = [one is not None and math.isclose(one, archived[1], rel_tol=SAME_COST) for one in (cost, flat_cost)]
    return agreement(int(near[0]), int(near[1]), 1)


def _ratios(scaffold: str, provider: str, bills: Sequence[RunBill]) -> RatioLine:
    ratios = [bill.ratio for bill in bills if bill.ratio is not None]
    return RatioLine(
        scaffold=scaffold,
        provider=provider,
        runs=len(bills),
        with_usage=len(ratios),
        exactly_one=sum(bill.tokens == bill.all_spans_tokens for bill in bills if bill.ratio is not None),
        exactly_doubled=sum(
            bill.tokens is not None and 2 * bill.tokens == bill.all_spans_tokens
            for bill in bills
            if bill.ratio is not None
        ),
        least=min(ratios, default=None),
        median=median(ratios) if ratios else None,
        greatest=max(ratios, default=None),
    )


def _over(tops: Sequence[float | None], bottoms: Sequence[float | None]) -> float | None:
    top, bottom = (math.fsum(one for one in side if one is not None) for side in (tops, bottoms))
    return top / bottom if bottom else None
