"""assay run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from harness.api.request import (
    ConfigFile,
    KeyPath,
    Origin,
    RunRequest,
    make_request,
    merged,
    read_values,
)
from harness.cli import run_options as opt
from harness.cli.execution import carry_out
from harness.cli.options import AsJson
from harness.records.errors import ConfigError

app = typer.Typer(rich_markup_mode=None, add_completion=False)

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


@app.command(epilog=EXAMPLES)
def run(
    config: opt.ConfigPath = None,
    suite: opt.Suite = None,
    solver: opt.Solver = None,
    solver_option: opt.SolverOption = None,
    task: opt.Task = None,
    model: opt.ModelName = None,
    base_url: opt.BaseUrl = None,
    api_key_env: opt.ApiKeyEnv = None,
    concurrency: opt.Concurrency = None,
    repeats: opt.Repeats = None,
    adaptive: opt.Adaptive = False,
    stop: opt.Stop = None,
    stop_se: opt.StopSe = None,
    stop_cost: opt.StopCost = None,
    stop_seconds: opt.StopSeconds = None,
    stop_decision: opt.StopDecision = None,
    policy: opt.Policy = None,
    estimator: opt.Estimator = None,
    history: opt.History = None,
    bank: opt.Bank = None,
    max_seconds: opt.MaxSeconds = None,
    max_tokens: opt.MaxTokens = None,
    max_steps: opt.MaxSteps = None,
    max_cost: opt.MaxCost = None,
    stream: opt.Stream = False,
    prices: opt.Prices = None,
    allow_unknown_price: opt.AllowUnknownPrice = False,
    no_preflight: opt.NoPreflight = False,
    retries: opt.Retries = None,
    keep_mb: opt.KeepMb = None,
    agent: opt.AgentName = None,
    seed: opt.Seed = None,
    fail_under: opt.FailUnder = None,
    store: opt.StoreFolder = None,
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
