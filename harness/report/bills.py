"""Bills: what each run amounts to, and the diagnosis over many: the records, and the records as text."""

from __future__ import annotations

from collections.abc import Sequence

from harness.records.base import Record
from harness.records.usage import Usage
from harness.report.words import one_line

MOST_LINES = 12


class RunBill(Record):
    """One run. `tokens` and `cost_usd` are billed once per response; `all_spans…` is what a flat sum gives.

    `calls` were charged or may have been, `calls_without_usage` of them tell no usage: then the cost is null and
    `cost_at_least_usd` a lower bound. `ratio` is that of tokens, `cost_ratio` that of costs, null where one of the two
    is unknown. `archived_tokens` and `archived_cost_usd` are the source's own totals; `agrees_with` says which sum its
    tokens (or, where it has none, its cost) are: billed, all spans, both, neither; null without a total.
    """

    name: str
    scaffold: str | None = None
    providers: tuple[str, ...] = ()
    spans: int
    calls: int
    calls_without_usage: int
    uncharged: int
    usage: Usage | None
    tokens: int | None
    all_spans_tokens: int | None
    ratio: float | None
    cost_usd: float | None
    cost_at_least_usd: float
    all_spans_cost_usd: float | None
    cost_ratio: float | None
    archived_tokens: int | None = None
    archived_cost_usd: float | None = None
    agrees_with: str | None = None
    prices: str | None = None  # the table by which it was priced now; null: as the source recorded
    conflicts: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


class RatioLine(Record):
    """Ratios of one group of runs: how many have one, how many are exactly one and exactly two, and their range."""

    scaffold: str
    provider: str
    runs: int
    with_usage: int
    exactly_one: int
    exactly_doubled: int
    least: float | None
    median: float | None
    greatest: float | None


class BillsReport(Record):
    """Bills of one or more runs with the distribution of their ratios. `agreement` counts what archived totals are.

    `overall_cost_ratio` is over runs of which both costs are known, `overall_token_ratio` over those with usage.
    """

    bills: tuple[RunBill, ...]
    ratios: tuple[RatioLine, ...]
    agreement: dict[str, int]
    overall_token_ratio: float | None
    overall_cost_ratio: float | None

    @property
    def faults(self) -> int:
        return sum(len(bill.faults) for bill in self.bills)


def bills_text(report: BillsReport) -> str:
    """One run in full; several as a table, then the diagnosis."""
    if len(report.bills) == 1:
        return bill_text(report.bills[0])
    lines = [_line(bill) for bill in report.bills]
    header = f"{'tokens':>14} {'all spans':>14} {'ratio':>7} {'cost':>12} {'unknown':>8}  archived is  run"
    return "\n".join([header, *lines, "", *_diagnosis(report), *_faults(report.bills)])


def bill_text(bill: RunBill) -> str:
    """All of one bill, a fact a line."""
    rows = [
        ("run", one_line(bill.name) + (f"  (scaffold {one_line(bill.scaffold)})" if bill.scaffold else "")),
        ("billed", f"{_tokens(bill.tokens)} tokens, {cost_text(bill.cost_usd, bill.cost_at_least_usd)}"),
        ("all spans", f"{_tokens(bill.all_spans_tokens)} tokens, {_usd(bill.all_spans_cost_usd)}"),
        ("ratio", _ratio(bill.ratio) + " of tokens, " + _ratio(bill.cost_ratio) + " of cost"),
        ("coverage", f"{bill.calls - bill.calls_without_usage} of {bill.calls} calls have usage; {bill.spans} spans"),
    ]
    if bill.usage is not None:
        parts = [f"{name} {count:,}" for name, count in bill.usage if count is not None]
        rows.append(("of which", ", ".join(parts)))
    if bill.uncharged:
        rows.append(("not billed", f"{bill.uncharged} calls that were known not to be charged"))
    if bill.agrees_with is not None:
        total = _tokens(bill.archived_tokens) + " tokens" if bill.archived_tokens is not None else ""
        money = _usd(bill.archived_cost_usd) if bill.archived_cost_usd is not None else ""
        rows.append(("archived", f"{', '.join(part for part in (total, money) if part)}: {_agreement(bill)}"))
    rows.append(("prices", bill.prices or "as recorded by the source"))
    rows += [("conflict", one_line(line)) for line in bill.conflicts]
    rows += [("unread", one_line(line)) for line in bill.faults]
    return "\n".join(f"{name:10} {text}" for name, text in rows)


def cost_text(cost: float | None, at_least: float) -> str:
    """A cost, or what is known of it."""
    return _usd(cost) if cost is not None else f"unknown, at least ${at_least:,.6f}".rstrip("0").rstrip(".")


def _agreement(bill: RunBill) -> str:
    return {
        "billed": "agrees with the bill",
        "all spans": "agrees with the flat sum of all spans, not with the bill",
        "both": "agrees with both sums",
        "neither": "agrees with neither sum",
    }[bill.agrees_with or "neither"]


def _line(bill: RunBill) -> str:
    cost = _usd(bill.cost_usd) if bill.cost_usd is not None else f"≥{_usd(bill.cost_at_least_usd)}"
    return (
        f"{_tokens(bill.tokens):>14} {_tokens(bill.all_spans_tokens):>14} {_ratio(bill.ratio):>7} {cost:>12}"
        f" {bill.calls_without_usage:>8}  {bill.agrees_with or '-':11}  {one_line(bill.name)}"
    )


def _diagnosis(report: BillsReport) -> list[str]:
    lines = [f"{len(report.bills)} runs; all spans over billed: {_ratio(report.overall_token_ratio)} of tokens"]
    lines[0] += f", {_ratio(report.overall_cost_ratio)} of cost"
    if report.agreement:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(report.agreement.items()))
        lines.append(f"archived totals agree with: {counts}")
    for line in report.ratios:
        spread = f"{_ratio(line.least)} / {_ratio(line.median)} / {_ratio(line.greatest)}"
        lines.append(
            f"{one_line(line.scaffold)}, {one_line(line.provider)}: {line.exactly_doubled} exactly doubled,"
            f" {line.exactly_one} exactly one, of {line.with_usage} with usage ({line.runs} runs);"
            f" least / median / greatest {spread}"
        )
    return lines


def _faults(bills: Sequence[RunBill]) -> list[str]:
    lines = [f"unread: {one_line(fault)}" for bill in bills for fault in bill.faults]
    more = [f"… and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
    conflicts = sum(len(bill.conflicts) for bill in bills)
    named = [f"{conflicts} conflicts; bill one run alone to read them"] if conflicts else []
    return named + lines[:MOST_LINES] + more


def _tokens(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def _usd(cost: float | None) -> str:
    if cost is None:
        return "unknown cost"
    return f"${cost:,.2f}" if cost >= 1 or cost == 0 else f"${cost:.6f}"


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}"
