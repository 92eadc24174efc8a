"""Each bar of the adaptive engine, the measured value with its 95 % bootstrap interval, met or missed.

From the JSON that the other commands left in `results`; a bar without its results says which command makes them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.adaptive import results
from harness.adaptive.populations.regimes import REGIMES

METHOD = "auto"
MATRICES = ("swe", "swe_time", "tb", "bfcl")
COVERED, COVERED_MOST, COVERED_LEAST = 0.86, 0.94, 0.80
PEER_RATIO = 50.0


@dataclass(frozen=True)
class Bar:
    """One line: `value` must be at most `limit` (at least, if `least`); None if it was not measured."""

    where: str
    what: str
    value: Sequence[float] | float | None
    limit: float
    least: bool = False
    missing: str = ""

    @property
    def number(self) -> float | None:
        """The value without its interval."""
        return self.value[0] if isinstance(self.value, Sequence) else self.value

    @property
    def verdict(self) -> str:
        """ "met", "MISSED", or how to measure it."""
        if self.number is None:
            return f"not measured: {self.missing}"
        return "met" if (self.number >= self.limit if self.least else self.number <= self.limit) else "MISSED"

    def cells(self) -> list[str]:
        """The line of the table."""
        shown = "–"
        if isinstance(self.value, Sequence):
            shown = results.interval(self.value, 3)
        elif self.value is not None:
            shown = f"{self.value:.3f}"
        return [self.where, self.what, shown, f"{'≥' if self.least else '≤'} {self.limit:g}", self.verdict]


class Table:
    """The rows of one result by method and k."""

    def __init__(self, name: str) -> None:
        self.content = results.load(name)
        rows = self.content["rows"] if self.content else []
        self.rows = {(row["method"], row["k"]): row for row in rows if "method" in row and "k" in row}

    def ratio(self, k: int, other: str, method: str = METHOD) -> Sequence[float] | None:
        """MAE of `method` over that of `other`, with its interval."""
        row = self.rows.get((method, k))
        found: Sequence[float] | None = row["ratio"].get(other) if row else None
        return found

    def worst(self, other: str) -> tuple[int, Sequence[float]] | None:
        """The k at which `METHOD` does worst against `other`, and the ratio there."""
        found = [(row["k"], row["ratio"][other]) for (method, _), row in self.rows.items() if method == METHOD]
        return max(found, key=lambda pair: pair[1][0]) if found else None

    def coverage(self) -> list[float]:
        """Of `METHOD`'s interval at every k."""
        return [row["coverage"][0] for (method, _), row in self.rows.items() if method == METHOD]


def simulated() -> Iterator[Bar]:
    """The paper's shape."""
    table, how = Table("study_plain"), "study --regime plain"
    for k in (100, 200, 300):
        yield Bar("simulated, paper's shape", f"auto / random, k = {k}", table.ratio(k, "random"), 0.58, missing=how)
    for k in (200, 300):
        yield Bar("simulated, paper's shape", f"auto / paper, k = {k}", table.ratio(k, "paper"), 0.85, missing=how)
    for k in (100, 200, 300):
        yield Bar("simulated, paper's shape", f"auto / oracle, k = {k}", table.ratio(k, "oracle"), 1.15, missing=how)


def real() -> Iterator[Bar]:
    """The outcome matrices."""
    for name, where in (("swe", "SWE-bench, leave one out"), ("swe_time", "SWE-bench, expanding window")):
        table = Table(f"matrix_{name}")
        for k in (100, 200):
            ratio = table.ratio(k, "random")
            yield Bar(where, f"auto / random, k = {k}", ratio, 0.60, missing=f"matrices --protocol {name}")
    table = Table("matrix_tb")
    for k, limit in ((15, 0.60), (31, 0.58), (46, 0.45)):
        ratio = table.ratio(k, "random")
        yield Bar("Terminal-Bench", f"auto / random, k = {k} of 80", ratio, limit, missing="matrices --protocol tb")


def never_worse() -> Iterator[Bar]:
    """BFCL and every misspecified regime, at every k."""
    names = [("matrix_bfcl", "BFCL", "matrices --protocol bfcl")]
    names += [(f"study_{regime}", f"regime {regime}", f"study --regime {regime}") for regime in REGIMES]
    for name, where, how in names:
        if name == "study_plain":
            continue
        found = Table(name).worst("random")
        what = f"auto / random, worst k = {found[0]}" if found else "auto / random, every k"
        yield Bar(where, what, found[1] if found else None, 0.85, missing=how)


def intervals() -> Iterator[Bar]:
    """Coverage of the nominal 90 % interval."""
    everywhere: list[float] = []
    by_part: list[Bar] = []
    how = "study and matrices"
    for name in [*(f"study_{regime}" for regime in REGIMES), *(f"matrix_{matrix}" for matrix in MATRICES)]:
        found = Table(name).coverage()
        everywhere += found
        what = f"coverage, worst k (all together {sum(found) / len(found):.2f})" if found else "coverage, worst k"
        by_part.append(Bar(name, what, min(found, default=None), COVERED_LEAST, True, how))
    mean = sum(everywhere) / len(everywhere) if everywhere else None
    yield Bar("pooled study", "coverage of the 90 % interval", mean, COVERED, True, how)
    yield Bar("pooled study", "coverage of the 90 % interval", mean, COVERED_MOST, missing=how)
    yield from by_part


def running() -> Iterator[Bar]:
    """In flight, rolling, decisions."""
    table = Table("study_in_flight")
    for k in (50, 100, 200, 300):
        ratio = table.ratio(k, "1 in flight", "8 in flight")
        yield Bar("8 in flight", f"over sequential, k = {k}", ratio, 1.02, missing="study --experiment 'in flight'")
    rolling = results.load("study_rolling") or {"rows": []}
    kept = [row for row in rolling["rows"] if row["method"] == "rolling, drift"]  # the others stand beside it
    for row in kept:
        what = f"{row['method']} / frozen bank, {row['setting']}"
        yield Bar("drift", what, row["ratio"]["frozen"], 0.90)
    if not kept:
        yield Bar("drift", "rolling, drift / frozen bank", None, 0.90, missing="study --experiment rolling")
    yield from decisions()


def decisions() -> Iterator[Bar]:
    """Release decisions at a margin of 2 points, by the full run's truth; sequential rules against a fixed 200."""
    found = results.load("decisions")
    how = "decisions --json benchmarks/adaptive/results/decisions.json"
    if found is None:
        yield Bar("decision at 2 pp", "false alarms; tasks at the power of a fixed 200", None, 0.05, missing=how)
        return
    for regime in dict.fromkeys(row["regime"] for row in found["rows"]):
        rows = [row for row in found["rows"] if row["regime"] == regime and row["truth"] == "suite"]
        rules = [row for row in rows if row["rule"].startswith("sequential")]
        fixed = next(row for row in rows if row["rule"] == "fixed 200")
        highest = max(row["false_alarms"] for row in rules)
        yield Bar("decision at 2 pp", f"{regime}: false alarms, worst rule", highest, 0.05)
        equal = [row["mean_tasks"] for row in rules if row["power"] >= fixed["power"]]
        what = f"{regime}: mean tasks at the power of a fixed 200"
        yield Bar("decision at 2 pp", what, min(equal, default=float("inf")), 200)


def cost() -> Iterator[Bar]:
    """Time and memory, and the time against mirt."""
    speed = results.load("speed")
    for row in (speed or {"rows": []})["rows"]:
        yield Bar("speed and memory", f"{row['about']}, {row['unit']}", row["value"], row["limit"])
    if not speed:
        yield Bar("speed and memory", "all", None, 0.0, missing="speed")
    yield from _against_mirt()


def _against_mirt() -> Iterator[Bar]:
    found = results.load("peers")
    rows = found["rows"] if found else []
    fits = {
        row["package"]: row.get("cpu_s") or row.get("cpu_s_at_least")
        for row in rows
        if row.get("shape") == "287×519 d=3"
    }
    ours, theirs = fits.get("Assay, variational"), fits.get("mirt")
    ratio = theirs / ours if ours and theirs else None
    yield Bar("against mirt, d = 3", "calibration, times as fast (at least)", ratio, PEER_RATIO, True, "peers")
    for n_items in (519, 10_000):
        steps = {row["package"]: row.get("ms") for row in rows if row.get("items") == n_items}
        ours, theirs = steps.get("Assay, d_optimal, d=3"), steps.get("mirt, d=3")
        ratio = theirs / ours if ours and theirs else None
        yield Bar("against mirt, d = 3", f"one step of {n_items:,}, times as fast", ratio, PEER_RATIO, True, "peers")


PARTS: tuple[Callable[[], Iterator[Bar]], ...] = (simulated, real, never_worse, intervals, running, cost)


def all_bars() -> list[Bar]:
    """Every bar there is."""
    return [bar for part in PARTS for bar in part()]


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 if a bar is missed or not measured."""
    argparse.ArgumentParser(prog="benchmarks.adaptive bars", description=__doc__).parse_args(arguments)
    bars = all_bars()
    print(results.markdown(["where", "what", "measured [95 %]", "bar", "verdict"], [bar.cells() for bar in bars]))
    met = sum(bar.verdict == "met" for bar in bars)
    print(f"\n{met} of {len(bars)} met, {sum(bar.verdict == 'MISSED' for bar in bars)} missed")
    return int(met < len(bars))
