"""How long every pair of 100 runs × 1,000 tasks takes: budget 5 s, and one weighted comparison with its bootstrap.

    python -m benchmarks.compare_runs [--runs 100] [--tasks 1000]

A twentieth of all outcomes is missing. Seconds are of one core; the yardstick is a loop over all pairs that does no
more than count who passed what.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from harness.stats import Episodes, board, reversals, weighted_comparison

LIMIT_S = 5.0


def main() -> int:
    """Print the figures; 1 when the board takes longer than its budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--tasks", type=int, default=1000)
    options = parser.parse_args()
    random = np.random.default_rng(1)
    skill, hardness = random.normal(size=(options.runs, 1)), random.normal(size=(1, options.tasks))
    values = (random.random((options.runs, options.tasks)) < 1 / (1 + np.exp(hardness - skill))).astype(float)
    values[random.random(values.shape) < 0.05] = np.nan
    start = time.process_time()
    found = board(values)
    swapped = reversals(found.lower_rate, found.rate)
    took = time.process_time() - start
    apart = int((found.holm <= 0.05).sum())
    print(f"{found.first.size} pairs in {took:.3f} s: {apart} apart, {swapped.reversed} reversed by missing grades")
    start = time.process_time()
    for i, j in zip(found.first, found.second, strict=True):
        both = ~np.isnan(values[i]) & ~np.isnan(values[j])
        (values[i][both] > values[j][both]).sum(), (values[i][both] < values[j][both]).sum()
    print(f"yardstick, a loop that counts: {time.process_time() - start:.3f} s")
    names = [f"t{n}" for n in range(options.tasks)]
    start = time.process_time()
    weighted_comparison(Episodes.of(names, values[0]), Episodes.of(names, values[1]))
    print(f"one weighted comparison, 10,000 draws: {time.process_time() - start:.3f} s")
    return int(took > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
