"""Banks as text and as plain values: where they come from, how well they fit, what their items are worth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.bank import Bank
from harness.adaptive.drift import BankComparison
from harness.adaptive.plan import Backtest
from harness.adaptive.provenance import Provenance
from harness.adaptive.worth import dead_weight, expected_information, items_holding
from harness.report.fits import fit_rows
from harness.report.words import one_line

MOST_NAMED = 8
_MOST_INFORMATION = 0.9


def bank_text(bank: Bank, place: str) -> str:
    """What a reader must know before trusting the bank."""
    found = bank.provenance
    fit = found.convergence
    dates = f", {found.first_date} to {found.last_date}" if found.first_date else ", without dates"
    reached = "converged" if fit.converged else "DID NOT CONVERGE"
    rows = [
        ("bank", f"{place}  {bank.digest[:12]}"),
        ("items", f"{len(bank)}, {int(bank.calibrated.sum())} of them calibrated"),
        ("model", f"{_model(bank)}{_averaged(bank)}; {found.inference}"),
        ("history", "none" if not found.n_runs else f"{found.n_runs} runs{_weighing(found)}{dates}"),
        ("fit", f"{reached} in {fit.iterations} iterations"),
    ]
    if found.dimension_scores:
        order = sorted(found.dimension_scores.items(), key=lambda pair: (pair[0] != "rasch", pair[0].zfill(3)))
        scores = ", ".join(f"{dims} {score:.4f}" for dims, score in order)
        rows.append(("models", f"mean held-out log-likelihood per trial by d: {scores}"))
    rows += [] if bank.report is None else fit_rows(bank.report)
    rows += [("costs", text) for text in _costs(bank)]
    dead = dead_weight(bank)
    needed = items_holding(bank, _MOST_INFORMATION)
    rows.append(("worth", f"{100 * _MOST_INFORMATION:.0f} % of the information is in {needed} items"))
    rows.append(("dead", f"{len(dead)} items tell next to nothing{_named(dead)}"))
    rows += [("prior only", text) for text in _reasons(found.held_out)]
    rows += [("flagged", text) for text in _reasons(found.flagged)]
    rows += [("note", one_line(note)) for note in found.notes]
    rows.append(("auto", _auto(bank.backtest)))
    return "\n".join(f"{name:11} {text}" for name, text in rows)


def _auto(table: Backtest | None) -> str:
    if table is None:
        return "no back-test: --policy auto is d_optimal"
    by_policy: dict[str, list[int]] = {}
    for row in table.chosen:
        by_policy.setdefault(row.plan.policy, []).append(row.tasks)
    return "--policy auto is " + "; ".join(
        f"{name} at {', '.join(map(str, at))} tasks" for name, at in by_policy.items()
    )


def comparison_text(found: BankComparison, *, everything: bool = False) -> str:
    """What moved between two banks; the items that did, or with `everything` all common ones, the surest first."""
    correlate = "" if math.isnan(found.correlation) else f", they correlate at {found.correlation:.3f}"
    rows = [
        f"{found.common} items are calibrated in both, put on the first bank's scale{correlate};"
        f" they moved by {found.rms_shift:.2f} logits (root mean square)",
        f"{len(found.drifted)} have drifted beyond chance",
    ]
    for items, which in ((found.only_a, "first"), (found.only_b, "second")):
        if items:
            rows.append(f"{len(items)} are in the {which} bank only{_named(items)}")
    shown = found.items if everything else tuple(item for item in found.items if item.item in set(found.drifted))
    if shown:
        rows.append(f"\n{'z':>6} {'logits':>7} {'P(pass) of an average agent':>28}  item")
    for item in shown:
        passes = f"{100 * item.before:.0f} % to {100 * item.after:.0f} %"
        rows.append(f"{item.z:+6.1f} {item.shift:+7.2f} {passes:>28}  {one_line(item.item)}")
    return "\n".join(rows)


def _model(bank: Bank) -> str:
    return "rasch" if bank.provenance.method == "rasch" else f"{bank.provenance.method} d = {bank.d}"


def _averaged(bank: Bank) -> str:
    if not bank.alternatives:
        return ""
    others = ", ".join(f"{_model(other.bank)} {100 * other.weight:.0f} %" for other in bank.alternatives)
    return f" {100 * bank.weight:.0f} %, kept beside it {others}"


def _costs(bank: Bank) -> list[str]:
    told = []
    for amounts, shown in ((bank.cost_usd, "${:.2f}"), (bank.duration_s, "{:.0f} s")):
        if amounts is not None and (known := amounts[np.isfinite(amounts)]).size:
            told.append(f"{shown.format(known.mean())} a task, known of {known.size}")
    return told


def _weighing(found: Provenance) -> str:
    weighs = found.effective_runs
    return "" if not weighs or weighs > found.n_runs - 0.5 else f" that weigh {weighs:.1f}"


def items_text(bank: Bank) -> str:
    """One line per item, the most informative first: information, loadings, difficulty with its standard deviation."""
    lines = [f"{'information':>11} {'difficulty':>11} {'± sd':>6}  loadings, item"]
    for item in item_rows(bank):
        spread = "" if item["difficulty_sd"] is None else f"{item['difficulty_sd']:6.2f}"
        loadings = " ".join(f"{value:5.2f}" for value in item["loadings"])
        prior = "" if item["calibrated"] else "  (prior only)"
        told = f"{item['information']:11.4f} {item['difficulty']:11.2f} {spread:>6}"
        lines.append(f"{told}  {loadings}  {one_line(item['item'])}{prior}")
    return "\n".join(lines)


def bank_plain(bank: Bank) -> dict[str, Any]:
    """Everything that `bank_text` and `items_text` tell, JSON-able."""
    return {
        "digest": bank.digest,
        "items": len(bank),
        "calibrated": int(bank.calibrated.sum()),
        "provenance": bank.provenance.as_dict(),
        "dead_weight": list(dead_weight(bank)),
        "items_holding_90_percent": items_holding(bank, _MOST_INFORMATION),
        "alternatives": [
            {"weight": other.weight, "provenance": other.bank.provenance.as_dict()} for other in bank.alternatives
        ],
        "report": None if bank.report is None else bank.report.as_dict(),
        "backtest": None if bank.backtest is None else bank.backtest.as_dict(),
        "parameters": item_rows(bank),
    }


def item_rows(bank: Bank) -> list[dict[str, Any]]:
    """The items as plain values, the most informative first."""
    information = expected_information(bank)
    covariance = bank.item_covariance
    return [
        {
            "item": bank.item_ids[at],
            "information": float(information[at]),
            "loadings": bank.alpha[at].tolist(),
            "difficulty": float(bank.beta[at]),
            "difficulty_sd": None if covariance is None else float(np.sqrt(covariance[at, -1, -1])),
            "calibrated": bool(bank.calibrated[at]),
            "cost_usd": _known(bank.cost_usd, at),
            "duration_s": _known(bank.duration_s, at),
        }
        for at in np.argsort(-information, kind="stable").tolist()
    ]


def _known(amounts: FloatArray | None, at: int) -> float | None:
    return None if amounts is None or np.isnan(amounts[at]) else float(amounts[at])


def _reasons(items: Mapping[str, str]) -> list[str]:
    counts = Counter(items.values())
    return [
        f"{count} items, {one_line(why)}{_named([item for item, told in items.items() if told == why])}"
        for why, count in counts.most_common()
    ]


def _named(items: list[str] | tuple[str, ...]) -> str:
    if not items:
        return ""
    shown = ", ".join(one_line(item) for item in items[:MOST_NAMED])
    return f": {shown}" + (f" and {len(items) - MOST_NAMED} more" if len(items) > MOST_NAMED else "")
