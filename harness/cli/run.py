"""assay run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.api.request import (
    AdaptiveRequest,
    ConfigFile,
    KeyPath,
    Origin,
    RunRequest,
    make_request,
    merged,
    read_values,
)
from harness.api.wiring import OPENAI_URL
from harness.cli.execution import carry_out
from harness.cli.options import AsJson
from harness.records.errors import ConfigError

app = typer.Typer(rich_markup_mode=None, add_completion=False)

Text = str | None
RUN, ADAPTIVE = RunRequest.model_fields, AdaptiveRequest.model_fields
POLICY = (
    "Adaptive: auto (what the bank's back-test found), d_optimal, pass_rate, random, rasch_fisher, mid_range,"
    " difficulty_strata, cost_aware, time_aware or balanced (NAME:BASE for the last three; in back-tests history_cache"
    " too), +SHARE for a share drawn at random."
)
EACH_TASKS = "each task's own"
NAMES: dict[KeyPath, str] = {
    ("tasks",): "--task",
    ("budget", "wall_s"): "--max-seconds",
    ("budget", "tokens"): "--max-tokens",
    ("budget", "steps"): "--max-steps",
    ("budget", "cost_usd"): "--max-cost",
}
EXAMPLES = """\b
Examples:
  assay run configs/demo.toml
  assay run --suite terminal --solver reference --task 'csv-join/*'
  assay run --suite terminal --solver agent --model gpt-5-mini --adaptive --stop 200 --history runs.csv
  assay run --suite terminal --solver agent --model gpt-5-mini --adaptive --bank bank.npz --stop-decision 62.5%:2pp
  assay run --suite terminal --solver agent --model my-model --base-url http://127.0.0.1:8000/v1 --prices prices.toml
  assay run --suite terminal --solver agent --model my-model --base-url http://127.0.0.1:8000/v1 --allow-unknown-price
"""


def _help(text: str, default: object) -> str:
    """The help of an option that overrides a configuration, with what holds when neither says it."""
    return f"{text} [default: {default}]"


@app.command(epilog=EXAMPLES)
def run(
    config: Annotated[Path | None, typer.Argument(help="A configuration file; options below override it.")] = None,
    suite: Annotated[Text, typer.Option(help="Suite folder, or a bundled suite (terminal).")] = None,
    solver: Annotated[
        Text,
        typer.Option(
            help=_help("reference, noop, mutated, agent, command, or path/to/file.py:name.", RUN["solver"].default)
        ),
    ] = None,
    solver_option: Annotated[list[str] | None, typer.Option(help="KEY=VALUE for the solver; repeatable.")] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(help=_help("Only tasks whose id matches this glob; repeatable.", "all")),
    ] = None,
    model: Annotated[Text, typer.Option(help="Model name, as the service knows it.")] = None,
    base_url: Annotated[
        Text,
        typer.Option(
            help=_help(
                "OpenAI-compatible service, e.g. http://127.0.0.1:8000/v1"
                " (with --prices FILE or --allow-unknown-price).",
                f"$OPENAI_BASE_URL, or {OPENAI_URL}",
            )
        ),
    ] = None,
    api_key_env: Annotated[
        Text, typer.Option(help=_help("Variable that holds the API key.", RUN["api_key_env"].default))
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(help=_help("Trials in flight.", RUN["concurrency"].default))
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(help=_help("Trials per task (fixed runs).", RUN["repeats"].default))
    ] = None,
    adaptive: Annotated[bool, typer.Option("--adaptive", help="Let the adaptive engine choose the tasks.")] = False,
    stop: Annotated[
        int | None, typer.Option(help=_help("Adaptive: stop at this many graded tasks.", ADAPTIVE["stop"].default))
    ] = None,
    stop_se: Annotated[float | None, typer.Option(help="Adaptive: or at this standard error, in pp.")] = None,
    stop_cost: Annotated[float | None, typer.Option(help="Adaptive: or at this cost of all attempts, in USD.")] = None,
    stop_seconds: Annotated[
        float | None, typer.Option(help="Adaptive: or at this time on the solver's clock, added up over the tasks.")
    ] = None,
    stop_decision: Annotated[
        Text,
        typer.Option(
            metavar="BASELINE:MARGIN",
            help="Adaptive: or once it is better, no worse or worse than a run of this store, or than a rate:"
            " 20251130-101500-ab12cd:2pp, 62.5%:2pp.",
        ),
    ] = None,
    policy: Annotated[Text, typer.Option(help=_help(POLICY, ADAPTIVE["policy"].default))] = None,
    estimator: Annotated[
        Text,
        typer.Option(help=_help("Adaptive: estimator of the full pass rate.", "hybrid, or what --policy auto found")),
    ] = None,
    history: Annotated[Text, typer.Option(help="Adaptive: flat CSV of past runs to calibrate on.")] = None,
    bank: Annotated[Text, typer.Option(help="Adaptive: a calibrated bank (npz) instead of a history.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help=_help("Override the wall-time budget.", EACH_TASKS))] = None,
    max_tokens: Annotated[int | None, typer.Option(help=_help("Override the token budget.", EACH_TASKS))] = None,
    max_steps: Annotated[int | None, typer.Option(help=_help("Override the step budget.", EACH_TASKS))] = None,
    max_cost: Annotated[float | None, typer.Option(help=_help("Override the cost budget, in USD.", EACH_TASKS))] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Ask the service for streamed answers.")] = False,
    prices: Annotated[
        Text, typer.Option(help=_help("Price table (TOML; docs/prices.md).", "the lists of genai-prices"))
    ] = None,
    allow_unknown_price: Annotated[
        bool, typer.Option("--allow-unknown-price", help="Run without cost budgets when the price is unknown.")
    ] = False,
    no_preflight: Annotated[
        bool, typer.Option("--no-preflight", help="Do not ask the service for its models before the run.")
    ] = False,
    retries: Annotated[
        int | None, typer.Option(help=_help("New attempts after infrastructure faults.", RUN["retries"].default))
    ] = None,
    keep_mb: Annotated[
        float | None,
        typer.Option(
            help=_help("MB kept of each sealed container, for `assay regrade`; 0: none.", RUN["keep_mb"].default)
        ),
    ] = None,
    agent: Annotated[Text, typer.Option(help=_help("The agent's name in exports.", "solver, or solver/model"))] = None,
    seed: Annotated[int | None, typer.Option(help=_help("Seed of the run.", RUN["seed"].default))] = None,
    fail_under: Annotated[float | None, typer.Option(help="Exit 4 when the score is below this (0 to 1).")] = None,
    store: Annotated[
        Text, typer.Option(envvar="ASSAY_STORE", help=_help("Folder of the evidence store.", RUN["store"].default))
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a solver on a suite, fixed or adaptively."""
    chosen = {
        "stop": stop,
        "stop_se": stop_se,
        "stop_cost": stop_cost,
        "stop_seconds": stop_seconds,
        "stop_decision": stop_decision,
        "policy": policy,
        "estimator": estimator,
        "history": history,
        "bank": bank,
    }
    wanted = {key: value for key, value in chosen.items() if value is not None}
    values: dict[str, Any] = {
        "suite": suite,
        "solver": solver,
        "solver_options": _pairs(solver_option or []) or None,
        "tasks": tuple(task) if task else None,
        "model": model,
        "base_url": base_url,
        "api_key_env": api_key_env,
        "concurrency": concurrency,
        "repeats": repeats,
        "adaptive": wanted or None,
        "budget": {"wall_s": max_seconds, "tokens": max_tokens, "steps": max_steps, "cost_usd": max_cost},
        "stream": True if stream else None,
        "prices": prices,
        "allow_unknown_price": True if allow_unknown_price else None,
        "preflight": False if no_preflight else None,
        "retries": retries,
        "keep_mb": keep_mb,
        "agent": agent,
        "seed": seed,
        "store": store,
    }
    carry_out(_request(config, values, adaptive), as_json=as_json, fail_under=fail_under)


def _request(config: Path | None, values: dict[str, Any], adaptive: bool) -> RunRequest:
    if config is None and values["suite"] is None:
        raise ConfigError("no suite", remedy="give --suite NAME or a configuration file")
    base = ConfigFile({}, Origin()) if config is None else read_values(config)
    if values["adaptive"] and not adaptive and "adaptive" not in base.values:
        raise ConfigError(
            f"{', '.join('--' + key.replace('_', '-') for key in values['adaptive'])} without --adaptive",
            remedy="add --adaptive",
        )
    plain = merged(base.values, values)
    if adaptive:
        plain.setdefault("adaptive", {})
    return make_request(plain, replace(base.origin, options=_options(values)))


def _options(values: dict[str, Any], table: KeyPath = ()) -> dict[KeyPath, str]:
    """The option behind each value that one gave, by the value's key path."""
    found: dict[KeyPath, str] = {}
    for key, value in values.items():
        path = (*table, key)
        if isinstance(value, dict) and key in ("adaptive", "budget"):
            found |= _options(value, path)
        elif value is not None:
            found[path] = NAMES.get(path, "--" + key.replace("_", "-"))
    return found


def _pairs(options: list[str]) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for option in options:
        key, separator, value = option.partition("=")
        if not separator or not key:
            raise ConfigError(f"--solver-option {option!r} is not KEY=VALUE")
        pairs[key] = value
    return pairs
