"""The bundled suite's own soundness: gold passes all, null passes none, no declared mutant passes.

    python -m benchmarks.audit [--suite terminal] [--sample N] [--concurrency 4] [--store .assay]

Exits 4 when an invariant is broken and names every task that breaks it. `--sample N` takes N variants of each
family, spread over its range.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from harness.api import RunRequest, load_suite, run
from harness.records.task import Task
from harness.records.vocabulary import Outcome
from harness.report.summary import Summary


@dataclass(frozen=True)
class Check:
    """One solver over some tasks, and the only outcome that is right."""

    name: str
    solver: str
    options: dict[str, int]
    tasks: tuple[str, ...]
    right: Outcome


def main() -> int:
    """Run the checks; prints a line each and every broken task."""
    options = _arguments()
    tasks = sampled(load_suite(options.suite).tasks, options.sample)
    print(f"{len(tasks)} tasks in {len({task.family for task in tasks})} families")
    broken = 0
    for check in checks(tasks):
        request = RunRequest(
            suite=options.suite,
            solver=check.solver,
            solver_options=check.options,
            tasks=check.tasks,
            concurrency=options.concurrency,
            store=options.store,
        )
        broken += told(check, run(request))
    return 4 if broken else 0


def checks(tasks: Iterable[Task]) -> list[Check]:
    """Gold, null, and one check per mutant number."""
    tasks = tuple(tasks)
    every = tuple(task.id for task in tasks)
    found = [
        Check("gold", "reference", {}, every, Outcome.PASSED),
        Check("null", "noop", {}, every, Outcome.FAILED),
    ]
    most = max((len(task.mutations) for task in tasks), default=0)
    for number in range(most):
        having = tuple(task.id for task in tasks if len(task.mutations) > number)
        found.append(Check(f"mutant {number}", "mutated", {"mutant": number}, having, Outcome.FAILED))
    return found


def told(check: Check, summary: Summary) -> int:
    """Print what came of a check; returns how many tasks broke it."""
    wrong = [line for line in summary.trials if line.outcome is not check.right]
    print(f"{check.name:10} {len(summary.trials) - len(wrong)}/{len(check.tasks)} {check.right.value}  ({summary.run})")
    for line in wrong:
        print(f"  {line.task}: {line.outcome} {line.reason or ''} {line.detail}  (assay trial {line.trial})")
    return len(wrong) + len(check.tasks) - len(summary.trials)


def sampled(tasks: Iterable[Task], count: int) -> tuple[Task, ...]:
    """`count` tasks of each family, spread evenly; all when it is 0."""
    if not count:
        return tuple(tasks)
    families: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        families[task.family].append(task)
    chosen: list[Task] = []
    for members in families.values():
        step = max(1, len(members) // count)
        chosen += members[step // 2 :: step][:count]
    return tuple(chosen)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="terminal")
    parser.add_argument("--sample", type=int, default=0, help="variants per family; 0: all")
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--store", default=".assay")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
