"""What happens before the solver's clock starts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.records.task import Budget, Environment, Grading
from harness.records.vocabulary import Outcome, Reason
from tests.runner.scenes import (
    answer,
    carry_out,
    make_services,
    make_task,
    nothing,
    tree,
)

pytestmark = pytest.mark.anyio


async def test_setup_runs_before_the_clock_and_its_failure_is_not_the_agents() -> None:
    slow = Environment(setup="setup.sh", setup_files=tree(setup__sh="sleep 50; echo 42 > /app/answer\n"))
    result = await carry_out(make_services(nothing), make_task(environment=slow, budget=Budget(wall_s=3)))
    assert (result.outcome, result.seconds) == (Outcome.PASSED, 0.0)
    broken = Environment(setup="setup.sh", setup_files=tree(setup__sh="echo no such thing; exit 7\n"))
    result = await carry_out(make_services(answer), make_task(environment=broken))
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, Reason.SETUP_FAILED)
    assert "exit code 7" in result.detail
    assert "no such thing" in result.detail


async def test_host_variables_are_filled_in_and_never_stored() -> None:
    task = make_task(
        environment=Environment(env={"TOKEN": "${HOST_TOKEN}", "MODE": "${MODE:-plain}"}),
        grading=Grading(tests=tree(test__sh="echo $TOKEN $MODE; echo 1 > /logs/verifier/reward.txt\n")),
    )
    services = replace(
        make_services(nothing, secrets={"HOST_TOKEN": "canary-1234"}), host_env={"HOST_TOKEN": "canary-1234"}
    )
    assert (await carry_out(services, task)).outcome is Outcome.PASSED
    grade = next(iter(services.store.events("r1.0000.1", ["grade"])))
    assert services.store.blob(grade.blobs["stdout"]) == b"[secret HOST_TOKEN] plain\n"
    result = await carry_out(make_services(nothing), task)
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, Reason.SETUP_FAILED)
    assert "HOST_TOKEN" in result.detail
