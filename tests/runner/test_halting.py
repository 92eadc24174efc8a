"""Faults that every further trial would meet stop the run; others do not."""

from __future__ import annotations

import pytest

from harness.records.grade import TrialResult
from harness.records.vocabulary import Outcome, Reason, StopReason
from harness.runner.halting import PROVIDER_IN_A_ROW, REFUSALS_IN_A_ROW, Halting


def ended(reason: Reason | None, status: int | None = None) -> TrialResult:
    outcome = Outcome.FAILED if reason is None else Outcome.UNGRADED
    return TrialResult(trial="t", outcome=outcome, reason=reason, stop=StopReason.FINISHED, provider_status=status)


@pytest.mark.parametrize("reason", [Reason.ENGINE_UNREACHABLE, Reason.DISK_FULL, Reason.NETWORK_POOL])
def test_an_engine_fault_halts_once_retries_did_not_cure_it(reason: Reason) -> None:
    assert Halting().after(ended(reason), settled=False)[1] is None
    assert Halting().after(ended(reason), settled=True)[1]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_service_that_will_never_answer_halts_at_once(status: int) -> None:
    assert Halting().after(ended(Reason.PROVIDER, status), settled=False)[1]


def test_provider_faults_halt_when_they_come_in_a_row() -> None:
    state, why = Halting(), None
    for number in range(1, PROVIDER_IN_A_ROW + 1):
        assert why is None
        state, why = state.after(ended(Reason.PROVIDER, 500), settled=True)
        assert state.provider_faults == number
    assert why
    state, _ = Halting(PROVIDER_IN_A_ROW - 1).after(ended(None), settled=True)
    assert state == Halting()


def test_a_refusal_halts_when_it_comes_in_a_row_in_the_same_words() -> None:
    def refused(said: str) -> TrialResult:
        return ended(Reason.PROVIDER_REFUSED, 400).model_copy(update={"detail": said})

    def halts(*results: TrialResult) -> list[bool]:
        state, found = Halting(), []
        for result in results:
            state, why = state.after(result, settled=True)
            found.append(why is not None and "offer a tool" in why)
        return found

    no_tool, too_long = refused("400: offer a tool"), refused("400: 9123 tokens are too many")
    assert halts(*[no_tool] * REFUSALS_IN_A_ROW) == [False] * (REFUSALS_IN_A_ROW - 1) + [True]
    assert not any(halts(no_tool, no_tool, too_long, no_tool, no_tool, ended(None), no_tool))


@pytest.mark.parametrize("reason", [Reason.IMAGE_MISSING, Reason.SOLVER_ERROR, Reason.GRADER_TIMEOUT, None])
def test_a_bad_task_or_agent_does_not_halt(reason: Reason | None) -> None:
    assert Halting().after(ended(reason), settled=True)[1] is None
