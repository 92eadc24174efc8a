"""assay calibrate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from harness.adaptive.bank_file import save_bank
from harness.api.calibrating import CalibrationRequest, calibrated_bank
from harness.cli.options import AsJson, print_json, say
from harness.records.errors import ConfigError
from harness.report.banks import bank_plain, bank_text
from harness.report.fits import backtest_text

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  assay export latest --out runs.csv
  assay calibrate runs.csv --out bank.npz
  assay calibrate 2024.csv 2025.csv.gz --out bank.npz --half-life 8w --dims 3
  assay calibrate runs.csv --out new.npz --start bank.npz --drift auto
"""
_DAYS = {"d": 1.0, "w": 7.0}


@app.command(epilog=EXAMPLES)
def calibrate(
    history: Annotated[list[Path], typer.Argument(help="Flat CSV files of past runs, as `assay export` writes them.")],
    out: Annotated[Path, typer.Option(help="The bank to write (npz).")],
    dims: Annotated[str, typer.Option(help="Abilities: a number, rasch, or auto (by held-out likelihood).")] = "auto",
    window: Annotated[str | None, typer.Option(help="Only runs this close to the last one: 28d, 4w.")] = None,
    half_life: Annotated[str | None, typer.Option(help="A run this much older weighs half: 30d, 8w.")] = None,
    drift: Annotated[
        str, typer.Option(help="How far tasks' difficulties move: auto (as the history says), or logits in 30 days.")
    ] = "0",
    start: Annotated[Path | None, typer.Option(help="The last bank: the fit goes on from it, in its axes.")] = None,
    method: Annotated[
        str, typer.Option(help="variational (items with a posterior, priors learnt) or map (the joint maximum).")
    ] = "variational",
    prior: Annotated[
        list[str] | None, typer.Option(help="NAME=SD with --method map: difficulty_sd=2; repeatable.")
    ] = None,
    backtest: Annotated[
        bool, typer.Option("--backtest/--no-backtest", help="Try policies on the history, for --policy auto.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Seed of what is held out to compare models.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Fit a bank of items to past runs, with a report of how well it fits."""
    if not out.parent.is_dir():
        raise ConfigError("there is no such folder", place=str(out.parent), remedy="make it first")
    request = CalibrationRequest(
        history=tuple(str(file) for file in history),
        dims=_dims(dims),
        seed=seed,
        method=_method(method),
        prior=dict(_prior(text) for text in prior or ()),
        window_days=None if window is None else days(window, "--window"),
        half_life_days=None if half_life is None else days(half_life, "--half-life"),
        drift=_drift(drift),
        start=None if start is None else str(start),
        backtest=backtest,
    )
    bank = calibrated_bank(request)
    try:
        save_bank(bank, out)
    except OSError as error:
        raise ConfigError(
            f"the bank cannot be written ({error.strerror})", place=str(out), remedy="give --out a path that can be"
        ) from error
    if as_json:
        print_json({"bank": str(out), **bank_plain(bank)})
    else:
        print(bank_text(bank, str(out)))
        if bank.backtest is not None:
            print(f"\n{backtest_text(bank.backtest)}")
        say(f"to use it: assay run … --adaptive --bank {out}")


def days(text: str, place: str) -> float:
    """A span such as 28d, 4w or 28 (days), in days. Raises ConfigError."""
    unit = _DAYS.get(text[-1:])
    number = text[:-1] if unit is not None else text
    if not number.replace(".", "", 1).isdecimal() or float(number) <= 0:
        raise ConfigError(f"{text!r} is not a span of time", place=place, remedy="give days or weeks: 28d, 4w")
    return float(number) * (unit or 1.0)


def _dims(text: str) -> int | Literal["auto", "rasch"]:
    if text == "auto":
        return "auto"
    if text == "rasch":
        return "rasch"
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise ConfigError(f"--dims {text!r} is not a number of abilities", remedy="give 1 or more, rasch, or auto")


def _drift(text: str) -> float | Literal["auto"]:
    if text == "auto":
        return "auto"
    if text.replace(".", "", 1).isdecimal():
        return float(text)
    raise ConfigError(f"--drift {text!r} is not how far items move", remedy="give auto, or logits in 30 days: 0.8")


def _method(text: str) -> Literal["variational", "map"]:
    if text == "variational":
        return "variational"
    if text == "map":
        return "map"
    raise ConfigError(f"--method {text!r}", remedy="give variational or map")


def _prior(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise ConfigError(f"--prior {text!r} is not NAME=SD", remedy="such as difficulty_sd=2") from None
