"""Real outcome matrices, nested: everything a method learns, its back-test included, is learnt inside the fold."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from typing import Any

from benchmarks.adaptive import results
from benchmarks.adaptive.auto import auto
from benchmarks.adaptive.folds import Fold
from benchmarks.adaptive.matrix_data import DATA, PROTOCOLS, Protocol
from benchmarks.adaptive.methods import (
    Method,
    arm,
    evaluate,
    paper,
    random_items,
    random_sampling,
    rasch,
    strata,
)
from benchmarks.adaptive.scores import Scores, summary
from harness.adaptive.estimators import PIrt, PosteriorPredictive
from harness.adaptive.estimators.hybrid import Hybrid
from harness.adaptive.policies import DOptimal, Hedged, PassRate

WORKERS = 2
REPEATS = 5  # seeds of every test run: what a policy draws is averaged over


def methods() -> tuple[Method, ...]:
    """What is compared on the matrices."""
    return (
        random_sampling,
        strata,
        rasch,
        paper,
        arm("vb", DOptimal(), PosteriorPredictive()),
        arm("vb", PassRate(), PIrt(), PosteriorPredictive(), Hybrid()),
        arm("vb", Hedged(PassRate(), 0.1), PosteriorPredictive(), Hybrid()),
        arm("vb", Hedged(PassRate(), 0.25), PosteriorPredictive(), Hybrid()),
        random_items("vb", PosteriorPredictive(), Hybrid()),
        auto,
    )


def fold_part(name: str, number: int) -> tuple[str, int, Fold, dict[str, Scores]]:
    """Every method on one fold, all test runs `REPEATS` times with other seeds."""
    protocol = next(one for one in PROTOCOLS if one.name == name)
    fold = list(protocol.folds(protocol.matrix(DATA / protocol.file)))[number]
    return protocol.name, number, fold, evaluate(repeated(fold), methods(), protocol.checkpoints)


def repeated(fold: Fold) -> Fold:
    """The fold with every test run `REPEATS` times, each with a seed of its own."""
    tested = fold.tested
    rows = [row for row in range(len(tested.run_ids)) for _ in range(REPEATS)]
    names = tuple(f"{tested.run_ids[row]}#{at % REPEATS}" for at, row in enumerate(rows))
    dates = tuple(tested.dates[row] for row in rows) if tested.dates else ()
    copies = replace(tested, run_ids=names, passes=tested.passes[rows], trials=tested.trials[rows], dates=dates)
    units = tuple(fold.units[row] for row in rows)
    seeds = tuple(fold.seeds[row] + at % REPEATS for at, row in enumerate(rows))
    return replace(fold, tested=copies, units=units, run_seeds=seeds)


def main(arguments: Sequence[str]) -> int:
    """Run the protocols and write their JSON; prints the tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.adaptive matrices", description=__doc__)
    parser.add_argument("--protocol", action="append", choices=[protocol.name for protocol in PROTOCOLS])
    chosen = parser.parse_args(arguments)
    started = time.perf_counter()
    with ProcessPoolExecutor(WORKERS) as pool:
        for protocol in PROTOCOLS:
            if chosen.protocol and protocol.name not in chosen.protocol:
                continue
            if not (DATA / protocol.file).exists():
                print(f"{protocol.name}: skipped, {DATA / protocol.file} is not there (set ASSAY_DATA)")
                continue
            n_folds = len(list(protocol.folds(protocol.matrix(DATA / protocol.file))))
            parts = []
            for done in as_completed([pool.submit(fold_part, protocol.name, number) for number in range(n_folds)]):
                parts.append(done.result())
                said = f"{time.perf_counter() - started:6.0f} s  {protocol.name}: {parts[-1][2].name}"
                print(said, file=sys.stderr, flush=True)
            content = content_of(protocol, sorted(parts, key=lambda part: part[1]))
            print(results.report(protocol.about, content, ("random", "paper", "rasch")), flush=True)
            results.save(f"matrix_{protocol.name}", content)
    return 0


def content_of(protocol: Protocol, parts: Sequence[tuple[str, int, Fold, dict[str, Scores]]]) -> dict[str, Any]:
    """The JSON of one protocol; the bootstrap draws held-out units."""
    labels = list(parts[0][3])
    scores = {label: Scores.joined([found[label] for _, _, _, found in parts]) for label in labels}
    units = [unit for _, _, fold, _ in parts for unit in repeated(fold).units]
    return {
        "about": f"{protocol.about}; {len(set(units))} held-out units, each test run with {REPEATS} seeds",
        "checkpoints": list(protocol.checkpoints),
        "rows": summary(scores, protocol.checkpoints, units, ("random", "paper", "rasch")),
    }
