"""When the whole run must stop: faults that every further trial would meet too. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from harness.records.grade import TrialResult
from harness.records.vocabulary import Reason

AT_ONCE = frozenset({Reason.ENGINE_UNREACHABLE, Reason.DISK_FULL, Reason.NETWORK_POOL})
PROVIDER_IN_A_ROW = 5
UNKNOWN_SPENDS_IN_A_ROW = 3
REFUSALS_IN_A_ROW = 3
NEVER_BETTER = frozenset({401, 403, 404})  # the key, the permission, the model's name


@dataclass(frozen=True)
class Halting:
    """Counts faults of the model service in a row; a run-level fault halts when retries did not cure it.

    A refusal (400, 413, 422) may be of one task's making, such as a long instruction: only the same words in a row
    halt.
    """

    provider_faults: int = 0
    unknown_spends: int = 0
    refusals: int = 0
    refusal: str = ""  # what the service said, the same each time

    def after(self, result: TrialResult, *, settled: bool) -> tuple[Halting, str | None]:
        """The next state, and why to stop scheduling, if so."""
        if result.reason in AT_ONCE and settled:
            return self, result.detail or str(result.reason)
        if result.reason is Reason.SPEND_UNKNOWN:
            unkept = Halting(unknown_spends=self.unknown_spends + 1)
            if unkept.unknown_spends < UNKNOWN_SPENDS_IN_A_ROW:
                return unkept, None
            why = f"{unkept.unknown_spends} trials in a row: {result.detail}"
            return unkept, f"{why}; use a service that reports usage, or suites and options without that budget"
        if result.reason is Reason.PROVIDER_REFUSED:
            same = self.refusals if result.detail == self.refusal else 0
            refused = Halting(refusals=same + 1, refusal=result.detail)
            if refused.refusals < REFUSALS_IN_A_ROW:
                return refused, None
            return refused, f"the model service refused the solver's first call {same + 1} times alike: {result.detail}"
        if result.reason is not Reason.PROVIDER:
            return Halting(), None
        if result.provider_status in NEVER_BETTER:
            return self, f"the model service refuses every call: {result.detail}"
        counted = Halting(self.provider_faults + 1)
        if counted.provider_faults >= PROVIDER_IN_A_ROW:
            return counted, f"the model service failed {counted.provider_faults} trials in a row: {result.detail}"
        return counted, None
