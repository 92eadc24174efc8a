"""The documented Python entry points: load a suite, run a solver, read outcomes as a DataFrame.

    from harness.api import RunRequest, load_suite, outcomes, run

    suite = load_suite("tasks/terminal")
    summary = run(RunRequest(suite="terminal", solver="reference", tasks=("csv-join/*",)))
    outcomes(summary.run)          # one row per attempt, as a pandas DataFrame

Every function that reads evidence takes the store's folder as an argument (`.assay` in the working directory by
default) and refuses one that is not there; the variable ASSAY_STORE is read by the command alone.

Everything the `assay` command does goes through these; the command adds only printing and exit codes. A name is
imported when it is asked for: a scheduler that waits for days carries no engine and no arrays.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.api.request import AdaptiveRequest, RunRequest, SimulationRequest, read_request
    from harness.api.runs import execute, resume, resume_async, run
    from harness.api.stores import list_runs, open_store, outcomes, summary
    from harness.api.suites import load_suite

_HOMES = {
    "request": ("AdaptiveRequest", "RunRequest", "SimulationRequest", "read_request"),
    "runs": ("execute", "resume", "resume_async", "run"),
    "stores": ("list_runs", "open_store", "outcomes", "summary"),
    "suites": ("load_suite",),
}

__all__ = [
    "AdaptiveRequest",
    "RunRequest",
    "SimulationRequest",
    "execute",
    "list_runs",
    "load_suite",
    "open_store",
    "outcomes",
    "read_request",
    "resume",
    "resume_async",
    "run",
    "summary",
]


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
