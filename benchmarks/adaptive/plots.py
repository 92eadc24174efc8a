"""Figures as PNG from the stored results: error, ratio to random, coverage, caching, history, drift."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.adaptive import results
from harness.adaptive.populations.regimes import REGIMES

SHOWN = ("random", "strata gp-IRT", "rasch", "paper", "auto", "oracle", "floor")
PANELS = (*(f"study_{regime}" for regime in REGIMES), "matrix_swe", "matrix_swe_time", "matrix_tb", "matrix_bfcl")


def main(arguments: Sequence[str]) -> int:
    """Write the figures there are results for."""
    parser = argparse.ArgumentParser(prog="benchmarks.adaptive plots", description=__doc__)
    parser.add_argument("--out", type=Path, default=results.FOLDER)
    folder: Path = parser.parse_args(arguments).out
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    contents = {name: content for name in PANELS if (content := results.load(name)) is not None}
    if contents:
        _grid(contents, "mae_pp", "MAE, percentage points", folder / "error.png", log=True)
        _grid(contents, "ratio", "MAE over that of random sampling", folder / "ratio.png")
        _grid(contents, "coverage", "coverage of the 90 % interval", folder / "coverage.png")
    _caching(folder / "caching.png")
    _history(folder / "history.png")
    return 0


def _grid(contents: dict[str, dict[str, Any]], what: str, label: str, path: Path, log: bool = False) -> None:
    import matplotlib.pyplot as plt

    columns = min(3, len(contents))
    rows = -(-len(contents) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.2 * columns, 3.2 * rows), squeeze=False)
    for panel in axes.flat[len(contents) :]:
        panel.set_visible(False)
    for panel, (name, content) in zip(axes.flat, contents.items(), strict=False):
        for method in SHOWN:
            found = [row for row in content["rows"] if row["method"] == method]
            triples = [(row["k"], _figure(row, what)) for row in found]
            points = [(k, triple) for k, triple in triples if triple is not None]
            if points:
                tasks, values = [k for k, _ in points], [triple[0] for _, triple in points]
                line = panel.plot(tasks, values, marker=".", label=method)[0]
                low, high = [triple[1] for _, triple in points], [triple[2] for _, triple in points]
                panel.fill_between(tasks, low, high, color=line.get_color(), alpha=0.15)
        if what == "coverage":
            panel.axhspan(0.86, 0.94, color="grey", alpha=0.2)
        if log:
            panel.set_yscale("log")
        panel.set_title(name.replace("study_", "regime ").replace("matrix_", ""), fontsize=9)
        panel.set_xlabel("tasks executed", fontsize=8)
    axes.flat[0].set_ylabel(label)
    axes.flat[0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _figure(row: dict[str, Any], what: str) -> Sequence[float] | None:
    found: Sequence[float] | None = row["ratio"].get("random") if what == "ratio" else row[what]
    return found


def _caching(path: Path) -> None:
    import matplotlib.pyplot as plt

    cache, plain = results.load("study_caching"), results.load("study_plain")
    if cache is None or plain is None:
        return
    figure, panel = plt.subplots(figsize=(5, 3.6))
    panel.plot([row["executed"] for row in cache["rows"]], [row["mae_pp"][0] for row in cache["rows"]], label="cache")
    for method in ("random", "strata gp-IRT", "paper", "auto"):
        rows = [row for row in plain["rows"] if row["method"] == method]
        panel.plot([row["k"] / 519 for row in rows], [row["mae_pp"][0] for row in rows], marker=".", label=method)
    panel.set_xlabel("executed fraction")
    panel.set_ylabel("MAE, percentage points")
    panel.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _history(path: Path) -> None:
    import matplotlib.pyplot as plt

    content = results.load("study_history_sizes")
    if content is None:
        return
    figure, axes = plt.subplots(1, len(content["checkpoints"]), figsize=(4 * len(content["checkpoints"]), 3.4))
    for panel, k in zip(axes if len(content["checkpoints"]) > 1 else [axes], content["checkpoints"], strict=True):
        for method in dict.fromkeys(row["method"] for row in content["rows"]):
            rows = [row for row in content["rows"] if row["method"] == method and row["k"] == k]
            panel.plot(
                [int(row["setting"]) for row in rows], [row["mae_pp"][0] for row in rows], marker=".", label=method
            )
        panel.set_xscale("log")
        panel.set_title(f"k = {k}", fontsize=9)
        panel.set_xlabel("runs of history")
    figure.axes[0].set_ylabel("MAE, percentage points")
    figure.axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
