"""What a run is asked to be: from the command line, from a `configs/*.toml`, or from Python."""

from __future__ import annotations

import difflib
import importlib.resources
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, Strict, ValidationError, field_validator, model_validator

from harness.formats.toml_lines import key_lines, nearest_line
from harness.records.base import Record
from harness.records.errors import ConfigError
from harness.records.task import Budget

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

DEFAULT_STORE = ".assay"

# TOML and Python have types: `repeats = "2"` or `concurrency = true` is a slip, not a number.
Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict()]
Flag = Annotated[bool, Strict()]


class Request(Record):
    """A record that a caller makes by hand: what is wrong with it is a ConfigError."""

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise refused(error, Origin(type(self).__name__)) from error

    # Where a request is a part of another, pydantic validates it in place, so that all problems come at once.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


class AdaptiveRequest(Request):
    """Choose tasks adaptively. The bank comes from `bank` (npz) or is calibrated on `history` (flat CSV).

    The run stops at `stop` graded tasks, or before that at one of the others.
    """

    stop: Whole = Field(default=200, gt=0)
    stop_se: Number | None = Field(default=None, gt=0)  # percentage points
    stop_cost: Number | None = Field(default=None, gt=0)  # USD, of all attempts
    stop_seconds: Number | None = Field(default=None, gt=0)  # on the solvers' clocks, added up
    stop_decision: str | None = None  # BASELINE:MARGIN, a run of the same store or a rate: 20251130-101500-ab12cd:2pp
    policy: str = "d_optimal"
    estimator: str | None = None  # None: hybrid, or what `auto` found
    history: str | None = None
    bank: str | None = None
    dims: Whole | None = Field(default=None, gt=0)  # None: chosen by held-out likelihood
    seed: Whole = 0

    @field_validator("stop_decision")
    @classmethod
    def _a_baseline_and_a_margin(cls, value: str | None) -> str | None:
        if value is not None:
            read_decision(value)
        return value


class SimulationRequest(Request):
    """Serve the simulated model on loopback for this run, and let its past agents be the history."""

    agents: Whole = Field(default=300, gt=1)
    seed: Whole = 7
    faults: Number = Field(default=0.0, ge=0, le=1)  # share of answers that come as 429, slow, or cut


MOST_REPEATS = 10_000  # of a task in one run: the plan of every slot is held in memory


class RunRequest(Request):
    """One run. Every field is a key of a configuration file; most are options of `assay run` too."""

    suite: str = Field(min_length=1)
    solver: str = "agent"
    solver_options: dict[str, Any] = {}
    tasks: tuple[str, ...] = ()  # globs over task ids; empty: all
    model: str | None = None
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    scaffold: str | None = None
    agent: str | None = None
    repeats: Whole = Field(default=1, gt=0, le=MOST_REPEATS)
    concurrency: Whole = Field(default=4, gt=0)
    budget: Budget = Budget()
    retries: Whole = Field(default=1, ge=0)
    seed: Whole = 0
    adaptive: AdaptiveRequest | None = None
    simulation: SimulationRequest | None = None
    stream: Flag = False  # ask the model service for streamed answers
    prices: str | None = None  # a price table (TOML); genai-prices when None
    allow_unknown_price: Flag = False  # run without cost budgets when the price is unknown
    preflight: Flag = True  # ask the model service for its models before anything begins
    secrets: tuple[str, ...] = ()  # further environment variables whose values must never be stored
    keep_mb: Number = Field(default=4.0, ge=0, le=1024)  # of each sealed container, to grade it again
    store: str = Field(default=DEFAULT_STORE, min_length=1)

    @model_validator(mode="after")
    def _one_source_of_items(self) -> Self:
        if self.adaptive is not None and self.adaptive.history and self.adaptive.bank:
            raise ValueError("give adaptive.history or adaptive.bank, not both")
        if self.adaptive is not None and self.repeats != 1:
            raise ValueError("an adaptive run attempts a task once: repeats must be 1")
        return self

    @model_validator(mode="after")
    def _one_word_on_cost(self) -> Self:
        if self.allow_unknown_price and self.budget.cost_usd is not None:
            raise ValueError(
                "a cost budget (--max-cost) cannot be kept at an unknown price (--allow-unknown-price)"
                " — give one of the two, or --prices FILE with the price"
            )
        return self


_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%", re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d+)?|\.\d+", re.ASCII)
_POINTS = re.compile(r"(\d+(?:\.\d+)?) ?(?:pp)?", re.ASCII)


def read_decision(text: str) -> tuple[str | float, float]:
    """Baseline and margin of `BASELINE:MARGIN`: a run's id or a rate (a share), and a share. Raises ValueError."""
    baseline, separator, margin = text.rpartition(":")
    if not separator or not baseline:
        raise ValueError("give BASELINE:MARGIN, such as 20251130-101500-ab12cd:2pp or 62.5%:2pp")
    return read_baseline(baseline), read_points(margin)


def read_baseline(text: str) -> str | float:
    """A run's id as it is, a rate such as 62.5% as a share. Raises ValueError for a rate above 100 %, and for a bare
    number: 0.55 may be meant as a rate, and is no run's id."""
    rate = _PERCENT.fullmatch(text)
    if rate is None:
        if _NUMBER.fullmatch(text) and float(text) <= 100:
            percent = 100 * float(text) if "." in text and float(text) <= 1 else float(text)
            raise ValueError(f"{text!r} is neither a run's id nor a rate: write {percent:.12g}% for a rate")
        return text
    if float(rate[1]) > 100:
        raise ValueError(f"{text!r} is no pass rate: it is at most 100%")
    return float(rate[1]) / 100


def read_points(text: str) -> float:
    """Percentage points such as 2pp or 0.5, as a share. Raises ValueError."""
    found = _POINTS.fullmatch(text)
    if found is None or not float(found[1]) < 100:
        raise ValueError(f"{text!r} is no number of percentage points: 2pp is two points")
    return float(found[1]) / 100


KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Origin:
    """Where the values of a request were written: a file, with lines, and the options on top of it by key path."""

    file: str = ""
    lines: dict[KeyPath, int] = field(default_factory=dict)
    options: Mapping[KeyPath, str] = field(default_factory=dict)

    def line(self, path: KeyPath) -> int | None:
        """The line of a value, or of the table that should hold it."""
        return nearest_line(self.lines, path)

    def place(self, path: KeyPath) -> str:
        """File, line and key of a value, or the option that it was given by."""
        if path in self.options:
            return self.options[path]
        line = self.line(path)
        file = f"{self.file}:{line}" if line is not None else self.file
        return ": ".join(part for part in (file, ".".join(str(part) for part in path)) if part)


@dataclass(frozen=True)
class ConfigFile:
    """The plain values of a configuration file, and where each stands."""

    values: dict[str, Any]
    origin: Origin


def read_request(path: Path, overrides: dict[str, Any] | None = None) -> RunRequest:
    """A request from a TOML file, with overrides (nested dicts, None values ignored) on top.

    Raises ConfigError with file, line and key of every problem at once.
    """
    config = read_values(path)
    return make_request(merged(config.values, overrides or {}), config.origin)


def read_values(path: Path) -> ConfigFile:
    """A configuration file as it is; a path that is not there may name a bundled one. Raises ConfigError."""
    if not path.exists() and path.name in (bundled := bundled_configs()):
        path = bundled[path.name]
    try:
        text = path.read_text("utf-8")
        values = tomllib.loads(text)
    except FileNotFoundError:
        raise ConfigError("there is no such configuration file", place=str(path)) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", place=str(path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"not valid TOML: {error}", place=str(path)) from error
    return ConfigFile(values, Origin(str(path), key_lines(text)))


def make_request(values: dict[str, Any], place: str | Origin = "") -> RunRequest:
    """Validate plain values from `place`. Raises ConfigError that names every key that is wrong."""
    try:
        return RunRequest.model_validate(values)
    except ValidationError as error:
        raise refused(error, Origin(place) if isinstance(place, str) else place) from error


def refused(
    error: ValidationError, origin: Origin, known: Iterable[str] = (), see: str = "`assay run --help`"
) -> ConfigError:
    """What is wrong with a request, all of it: place, problem and remedy each.

    `known`: the keys there are, of a file that is no run's, and where it says so.
    """
    parts = sorted(error.errors(include_url=False), key=lambda part: origin.line(part["loc"]) or 0)
    keys = tuple(known) or known_keys()
    problems = [_problem(part, origin, keys, see) for part in parts]
    if len(problems) == 1:
        return problems[0]
    lines = "".join(f"\n  {problem}" for problem in problems)
    return ConfigError(f"{len(problems)} problems{lines}", place=origin.file)


def _problem(part: ErrorDetails, origin: Origin, known: Sequence[str], see: str) -> ConfigError:
    what, remedy = part["msg"].removeprefix("Value error, "), ""
    if part["type"] == "extra_forbidden":
        what = "there is no such key"
        near = difflib.get_close_matches(str(part["loc"][-1]), known, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else f"see {see} for the keys"
    elif part["type"] == "tuple_type":
        what = f"{part['input']!r} is no list"
        remedy = f"write [{json.dumps(part['input'])}]" if isinstance(part["input"], str) else ""
    elif part["type"] == "missing":
        what = "is missing"
    elif part["loc"]:
        what = f"{part['input']!r}: {what[:1].lower()}{what[1:]}"
    return ConfigError(what, place=origin.place(part["loc"]), remedy=remedy)


def bundled_configs() -> dict[str, Path]:
    """The shipped configuration files by name: in an installed package, or in a checkout."""
    package = Path(str(importlib.resources.files("harness")))
    folders = (package / "data" / "configs", package.parent / "configs")
    return {path.name: path for folder in reversed(folders) if folder.is_dir() for path in folder.glob("*.toml")}


def known_keys() -> list[str]:
    """Every key a configuration file may have, at any level."""
    tables = (RunRequest, AdaptiveRequest, SimulationRequest, Budget)
    return sorted({name for table in tables for name in table.model_fields})


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`base` with `over` on top, table by table; None in `over` changes nothing."""
    result = dict(base)
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        elif isinstance(value, dict):
            inner = merged({}, value)
            if inner:
                result[key] = inner
        elif value is not None:
            result[key] = value
    return result
