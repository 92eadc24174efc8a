"""What a trial needs from outside, as one argument: its services share no state with its siblings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from harness.protocols import ChatModel, EvidenceStore, Grader, SandboxProvider, Solver
from harness.records.event import Event
from harness.records.trial import SolverSpec
from harness.records.usage import Account
from harness.runner.handles import Price
from harness.runner.redaction import Redactor


@dataclass(frozen=True)
class Services:
    """`solver` builds one per trial, `grader` finds one by `id@version`, `account` folds events to a bill."""

    provider: SandboxProvider
    store: EvidenceStore
    solver: Callable[[SolverSpec], Solver]
    grader: Callable[[str], Grader]
    account: Callable[[Iterable[Event]], Account]
    price: Price
    model: ChatModel | None = None
    redactor: Redactor = field(default_factory=Redactor)
    host_env: Mapping[str, str] = field(default_factory=dict)  # for `${NAME}` in tasks; its values are secrets
