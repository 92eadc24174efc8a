"""What a run is asked to be: from the command line, from a `configs/*.toml`, or from Python."""

from __future__ import annotations

import difflib
import importlib.resources
import tomllib
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from harness.records.base import Record
from harness.records.errors import ConfigError
from harness.records.task import Budget

DEFAULT_STORE = ".assay"


class AdaptiveRequest(Record):
    """Choose tasks adaptively. The bank comes from `bank` (npz) or is calibrated on `history` (flat CSV)."""

    stop: int = Field(default=200, gt=0)
    stop_se: float | None = Field(default=None, gt=0)  # percentage points
    policy: str = "d_optimal"
    history: str | None = None
    bank: str | None = None
    dims: int | None = Field(default=None, gt=0)  # None: chosen by held-out likelihood
    seed: int = 0


class SimulationRequest(Record):
    """Serve the simulated model on loopback for this run, and let its past agents be the history."""

    agents: int = Field(default=300, gt=1)
    seed: int = 7
    faults: float = Field(default=0.0, ge=0, le=1)  # share of answers that come as 429, slow, or cut


class RunRequest(Record):
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
    repeats: int = Field(default=1, gt=0)
    concurrency: int = Field(default=4, gt=0)
    budget: Budget = Budget()
    retries: int = Field(default=1, ge=0)
    seed: int = 0
    adaptive: AdaptiveRequest | None = None
    simulation: SimulationRequest | None = None
    stream: bool = False  # ask the model service for streamed answers
    prices: str | None = None  # a price table (TOML); genai-prices when None
    allow_unknown_price: bool = False
    secrets: tuple[str, ...] = ()  # further environment variables whose values must never be stored
    store: str = Field(default=DEFAULT_STORE, min_length=1)

    @model_validator(mode="after")
    def _one_source_of_items(self) -> Self:
        if self.adaptive is not None and self.adaptive.history and self.adaptive.bank:
            raise ValueError("give adaptive.history or adaptive.bank, not both")
        if self.adaptive is not None and self.repeats != 1:
            raise ValueError("an adaptive run attempts a task once: repeats must be 1")
        return self


def read_request(path: Path, overrides: dict[str, Any] | None = None) -> RunRequest:
    """A request from a TOML file, with overrides (nested dicts, None values ignored) on top.

    Raises ConfigError with file, line where TOML gives one, and key.
    """
    return make_request(merged(read_values(path), overrides or {}), place=str(path))


def read_values(path: Path) -> dict[str, Any]:
    """The plain values of a configuration file; a path that is not there may name a bundled one. Raises ConfigError."""
    if not path.exists() and path.name in (bundled := bundled_configs()):
        path = bundled[path.name]
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise ConfigError("there is no such configuration file", place=str(path)) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", place=str(path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"not valid TOML: {error}", place=str(path)) from error


def make_request(values: dict[str, Any], place: str = "") -> RunRequest:
    """Validate plain values. Raises ConfigError that names the key, with a near match for an unknown one."""
    try:
        return RunRequest(**values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        remedy = ""
        if first["type"] == "extra_forbidden":
            near = difflib.get_close_matches(str(first["loc"][-1]), known_keys(), n=1)
            remedy = f"did you mean {near[0]!r}?" if near else "see `assay run --help` for the keys"
        what = first["msg"].removeprefix("Value error, ")
        raise ConfigError(what, place=": ".join(part for part in (place, key) if part), remedy=remedy) from error


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
