"""How long the adaptive engine takes: one choice, one outcome, one calibration.

Run with `python -m benchmarks.choose_next`. Choices are timed after 100 outcomes with 8 items in flight
(median and 99th percentile of many), calibrations as the best of three. Set OPENBLAS_NUM_THREADS=1 to time one core.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

from harness.adaptive import (
    AdaptiveEngine,
    CalibrationSettings,
    Choice,
    EngineSettings,
    calibrate,
    policy_named,
    simulate_population,
)
from harness.adaptive.calibration.calibrate import Dims

LIMIT_MS = 1.0
OUTCOMES, IN_FLIGHT, REPEATS = 100, 8, 300


def seconds(action: Callable[[], object], repeats: int) -> list[float]:
    """Wall time of each of `repeats` calls, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return times


def prepared(n_items: int, d: int, policy: str) -> tuple[AdaptiveEngine, list[str]]:
    """An engine in mid-run, and the items in flight."""
    names = [f"item-{index}" for index in range(n_items)]
    history = simulate_population(1, 100, names, d).responses()
    bank = calibrate(history, CalibrationSettings(dims=d, max_iterations=60)).bank
    settings = EngineSettings(policy=policy_named(policy), stops=(), seed=1, allow_unconverged=True)
    engine = AdaptiveEngine(bank, settings)
    outcomes = simulate_population(1, 1, names, d, prefix="new").draw(0)
    pending: list[str] = []
    while len(pending) < OUTCOMES + IN_FLIGHT:
        step = engine.next(pending)
        assert isinstance(step, Choice)
        pending.append(step.item)
    for item in pending[:OUTCOMES]:
        engine.observe(item, bool(outcomes[engine.bank.index[item]]))
    return engine, pending[OUTCOMES:]


def time_choices() -> float:
    """Print one line per bank size and policy; returns the slowest median among 519 items, in ms."""
    print(f"{'items':>7} {'d':>2} {'policy':<12} {'choose, ms':>11} {'p99, ms':>8} {'take in an outcome, ms':>23}")
    slowest = 0.0
    for n_items in (519, 10_000):
        for policy in ("d_optimal", "pass_rate", "random"):
            engine, pending = prepared(n_items, 5, policy)
            choosing = seconds(partial(engine.next, pending), REPEATS)
            observing = seconds(partial(engine.state.observe, engine.bank.index[pending[0]], True), REPEATS)
            median, tail = statistics.median(choosing) * 1e3, statistics.quantiles(choosing, n=100)[-1] * 1e3
            update = statistics.median(observing) * 1e3
            print(f"{n_items:>7} {5:>2} {policy:<12} {median:>11.3f} {tail:>8.3f} {update:>23.3f}")
            if n_items == 519:
                slowest = max(slowest, median)
    return slowest


def time_calibrations() -> None:
    """Print one line per model on 287 simulated runs of 519 items."""
    print(f"{'history':>10} {'model':>6} {'calibrate, s':>13} {'iterations':>11} {'converged':>10}")
    names = [f"item-{index}" for index in range(519)]
    history = simulate_population(1, 287, names, 3).responses()
    models: tuple[Dims, ...] = ("rasch", 1, 3, 5, "auto")
    for dims in models:
        settings = CalibrationSettings(dims=dims)
        best = min(seconds(partial(calibrate, history, settings), 3))
        fit = calibrate(history, settings).bank.provenance.convergence
        print(f"{'287×519':>10} {dims!s:>6} {best:>13.2f} {fit.iterations:>11} {fit.converged!s:>10}")


def main() -> int:
    """Print both tables; 1 if choosing among 519 items at d = 5 takes longer than its limit."""
    slowest = time_choices()
    print()
    time_calibrations()
    return int(slowest >= LIMIT_MS)


if __name__ == "__main__":
    raise SystemExit(main())
