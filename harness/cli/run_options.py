"""The options of `assay run`. None: not given, so that a configuration or the default holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.api.request import AdaptiveRequest, RunRequest
from harness.api.wiring import OPENAI_URL

Text = str | None
RUN, ADAPTIVE = RunRequest.model_fields, AdaptiveRequest.model_fields
POLICY = (
    "Adaptive: auto (what the bank's back-test found), d_optimal, pass_rate, random, rasch_fisher, mid_range,"
    " difficulty_strata, cost_aware, time_aware or balanced (NAME:BASE for the last three; in back-tests history_cache"
    " too), +SHARE for a share drawn at random."
)
EACH_TASKS = "each task's own"


def _help(text: str, default: object) -> str:
    """The help of an option that overrides a configuration, with what holds when neither says it."""
    return f"{text} [default: {default}]"


ConfigPath = Annotated[Path | None, typer.Argument(help="A configuration file; options below override it.")]
Suite = Annotated[Text, typer.Option(help="Suite folder, or a bundled suite (terminal).")]
Solver = Annotated[
    Text,
    typer.Option(
        help=_help("reference, noop, mutated, agent, command, or path/to/file.py:name.", RUN["solver"].default)
    ),
]
SolverOption = Annotated[list[str] | None, typer.Option(help="KEY=VALUE for the solver; repeatable.")]
Task = Annotated[
    list[str] | None,
    typer.Option(help=_help("Only tasks whose id matches this glob; repeatable.", "all")),
]
ModelName = Annotated[Text, typer.Option(help="Model name, as the service knows it.")]
BaseUrl = Annotated[
    Text,
    typer.Option(
        help=_help(
            "OpenAI-compatible service, e.g. http://127.0.0.1:8000/v1 (with --prices FILE or --allow-unknown-price).",
            f"$OPENAI_BASE_URL, or {OPENAI_URL}",
        )
    ),
]
ApiKeyEnv = Annotated[Text, typer.Option(help=_help("Variable that holds the API key.", RUN["api_key_env"].default))]
Concurrency = Annotated[int | None, typer.Option(help=_help("Trials in flight.", RUN["concurrency"].default))]
Repeats = Annotated[int | None, typer.Option(help=_help("Trials per task (fixed runs).", RUN["repeats"].default))]
Adaptive = Annotated[bool, typer.Option("--adaptive", help="Let the adaptive engine choose the tasks.")]
Stop = Annotated[
    int | None, typer.Option(help=_help("Adaptive: stop at this many graded tasks.", ADAPTIVE["stop"].default))
]
StopSe = Annotated[float | None, typer.Option(help="Adaptive: or at this standard error, in pp.")]
StopCost = Annotated[float | None, typer.Option(help="Adaptive: or at this cost of all attempts, in USD.")]
StopSeconds = Annotated[
    float | None, typer.Option(help="Adaptive: or at this time on the solver's clock, added up over the tasks.")
]
StopDecision = Annotated[
    Text,
    typer.Option(
        metavar="BASELINE:MARGIN",
        help="Adaptive: or once it is better, no worse or worse than a run of this store, or than a rate:"
        " 20251130-101500-ab12cd:2pp, 62.5%:2pp.",
    ),
]
Policy = Annotated[Text, typer.Option(help=_help(POLICY, ADAPTIVE["policy"].default))]
Estimator = Annotated[
    Text,
    typer.Option(help=_help("Adaptive: estimator of the full pass rate.", "hybrid, or what --policy auto found")),
]
History = Annotated[Text, typer.Option(help="Adaptive: flat CSV of past runs to calibrate on.")]
Bank = Annotated[Text, typer.Option(help="Adaptive: a calibrated bank (npz) instead of a history.")]
MaxSeconds = Annotated[float | None, typer.Option(help=_help("Override the wall-time budget.", EACH_TASKS))]
MaxTokens = Annotated[int | None, typer.Option(help=_help("Override the token budget.", EACH_TASKS))]
MaxSteps = Annotated[int | None, typer.Option(help=_help("Override the step budget.", EACH_TASKS))]
MaxCost = Annotated[float | None, typer.Option(help=_help("Override the cost budget, in USD.", EACH_TASKS))]
Stream = Annotated[bool, typer.Option("--stream", help="Ask the service for streamed answers.")]
Prices = Annotated[Text, typer.Option(help=_help("Price table (TOML; docs/prices.md).", "the lists of genai-prices"))]
AllowUnknownPrice = Annotated[
    bool, typer.Option("--allow-unknown-price", help="Run without cost budgets when the price is unknown.")
]
NoPreflight = Annotated[
    bool, typer.Option("--no-preflight", help="Do not ask the service for its models before the run.")
]
Retries = Annotated[
    int | None, typer.Option(help=_help("New attempts after infrastructure faults.", RUN["retries"].default))
]
KeepMb = Annotated[
    float | None,
    typer.Option(help=_help("MB kept of each sealed container, for `assay regrade`; 0: none.", RUN["keep_mb"].default)),
]
AgentName = Annotated[Text, typer.Option(help=_help("The agent's name in exports.", "solver, or solver/model"))]
Seed = Annotated[int | None, typer.Option(help=_help("Seed of the run.", RUN["seed"].default))]
FailUnder = Annotated[float | None, typer.Option(help="Exit 4 when the score is below this (0 to 1).")]
StoreFolder = Annotated[
    Text, typer.Option(envvar="ASSAY_STORE", help=_help("Folder of the evidence store.", RUN["store"].default))
]
