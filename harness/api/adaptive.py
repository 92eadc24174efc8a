"""Between the adaptive engine, which knows arrays, and a run, which knows tasks and events."""

from __future__ import annotations

import tempfile
from pathlib import Path

from harness.adaptive.bank import Bank, prior_bank
from harness.adaptive.bank_file import load_bank, save_bank
from harness.adaptive.engine import AdaptiveEngine, EngineSettings
from harness.adaptive.policies import policy_named
from harness.adaptive.stops import StandardErrorStop, StopRule, TasksStop
from harness.api.calibrating import CalibrationRequest, calibrated_bank
from harness.api.request import AdaptiveRequest
from harness.protocols import EvidenceStore
from harness.records.errors import ConfigError
from harness.records.run import AdaptiveConfig, RunConfig


def make_bank(request: AdaptiveRequest, tasks: tuple[str, ...]) -> Bank:
    """The bank of a run, aligned with its tasks; items that no history knows get prior-only parameters."""
    if request.bank is not None:
        return load_bank(request.bank).align(tasks)
    if request.history is None:
        return prior_bank(tasks, seed=request.seed)
    asked = CalibrationRequest(history=(request.history,), dims=request.dims or "auto", seed=request.seed)
    return calibrated_bank(asked).align(tasks)


def keep_bank(bank: Bank, store: EvidenceStore) -> str:
    """Put the bank among the run's evidence; returns its digest."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bank.npz"
        save_bank(bank, path)
        return store.put_blob(path.read_bytes())


def read_bank(digest: str, store: EvidenceStore) -> Bank:
    """The bank that :func:`keep_bank` kept. Raises StoreError or BankFileError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bank.npz"
        path.write_bytes(store.blob(digest))
        return load_bank(path)


def engine_for(config: RunConfig, store: EvidenceStore) -> AdaptiveEngine:
    """A new engine of a run's own bank, policy, seed and stops. Raises EngineError for an unknown policy."""
    adaptive = config.adaptive
    if adaptive is None or adaptive.bank is None:
        raise ConfigError("this run is not adaptive")
    return AdaptiveEngine(read_bank(adaptive.bank, store), settings_for(adaptive))


def settings_for(adaptive: AdaptiveConfig) -> EngineSettings:
    """Engine settings of a stored configuration. `stop_se` is in percentage points there, in fractions here."""
    stops: list[StopRule] = [TasksStop(adaptive.stop)]
    if adaptive.stop_se is not None:
        stops.insert(0, StandardErrorStop(adaptive.stop_se / 100))
    return EngineSettings(policy=policy_named(adaptive.policy), stops=tuple(stops), seed=adaptive.seed)
