"""The documented Python entry points: load a suite, run a solver, read outcomes as a DataFrame.

    from harness.api import RunRequest, load_suite, outcomes, run

    suite = load_suite("tasks/terminal")
    summary = run(RunRequest(suite="terminal", solver="reference", tasks=("csv-join/*",)))
    outcomes(summary.run)          # one row per attempt, as a pandas DataFrame

Every function that reads evidence takes the store's folder as an argument (`.assay` in the working directory by
default) and refuses one that is not there; the variable ASSAY_STORE is read by the command alone.

Everything the `assay` command does goes through these; the command adds only printing and exit codes.
"""

from harness.api.request import AdaptiveRequest, RunRequest, SimulationRequest, read_request
from harness.api.runs import execute, resume, resume_async, run
from harness.api.stores import list_runs, open_store, outcomes, summary
from harness.api.suites import load_suite

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
