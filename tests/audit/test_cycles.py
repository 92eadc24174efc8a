"""Cycles through the real pipeline on the in-memory twin: what each finds, and what cuts one short."""

from __future__ import annotations

import json

import pytest

from harness.api.audit_request import AuditRequest
from harness.api.audit_views import decide, explain_task, status
from harness.api.audits import audit_async
from harness.api.runs import Watch, execute
from harness.audit.history import AuditBusy, owned_chain, read_history, receipt_problems, stream_of
from harness.records.audit import AlertKind, Cause, DecisionKind, Sentinel
from harness.records.errors import ConfigError, StoreError
from harness.report.audits import status_text
from harness.runner.run import RunControl
from harness.store.verify import verify_run, verify_stream

from .worlds import CHECK, DIGEST, FAIL, IMAGE, PASS, SOLVE, Files, Laboratory

pytestmark = pytest.mark.anyio
GOOD = Files()
NOTE = ("solver.note",)
LOOSE = Files(check=f"test -f /app/answer && {PASS} || {FAIL}\n")
NUMBER = Files(solve="echo 42 > /app/answer\necho 7 > /app/other\n")


def causes(laboratory: Laboratory) -> dict[str, Cause]:
    found = status(laboratory.request())
    return {one.task: one.cause for one in found.unavailable if one.cause is not None}


async def test_a_cycle_is_ordinary_runs_bound_by_a_receipt(laboratory: Laboratory) -> None:
    laboratory.write({"a": GOOD, "b": GOOD})
    report = await laboratory.audit()
    assert (report.achievable, report.tasks, report.finished) == (2, 2, True)
    assert report.cycle is not None
    runs = report.cycle.runs
    assert [run.sentinel for run in runs] == [Sentinel.GOLD, Sentinel.NULL]
    assert all(verify_run(laboratory.store, run.run).ok for run in runs)
    assert verify_stream(laboratory.store, stream_of("demo")).ok
    assert receipt_problems(laboratory.store, report.cycle) == ()
    assert report.standing == ()

    forged = report.cycle.runs[0].run
    laboratory.store._streams[forged].pop()  # somebody cuts the end of a run's stream
    assert receipt_problems(laboratory.store, report.cycle) == (
        f"the stream of run {forged} is not the one that was measured",
    )
    assert [found.kind for found in status(laboratory.request()).findings] == [AlertKind.EVIDENCE]


async def test_every_kind_of_red_is_named_and_dated(laboratory: Laboratory) -> None:
    laboratory.images["other:1"] = "sha256:" + "ef" * 32
    laboratory.write(
        {
            "broken": Files(check=f"{FAIL}\n"),
            "free": Files(check=f"{PASS}\n"),
            "good": GOOD,
            "imageless": Files(image="other:1"),
            "silent": Files(check="true\n"),
            "slow": Files(solve=f"sleep 700\n{SOLVE}"),
            "unsolved": Files(solve=None),
        }
    )
    laboratory.gone.add("other:1")
    await laboratory.audit()
    assert causes(laboratory) == {
        "broken": Cause.TESTS_FAILED,
        "free": Cause.NULL_PASSED,
        "imageless": Cause.IMAGE_MISSING,
        "silent": Cause.NO_VERDICT,
        "slow": Cause.ALLOWANCE,
        "unsolved": Cause.NO_SOLUTION,
    }
    first = {one.task: one.since for one in status(laboratory.request()).unavailable}
    slow = next(one for one in status(laboratory.request()).unavailable if one.task == "slow")
    assert slow.detail.startswith("wall: used 600.0 s of 600.0 s")
    laboratory.pass_time(days=2)
    await laboratory.audit()
    assert {one.task: one.since for one in status(laboratory.request()).unavailable} == first


async def test_gold_that_passes_now_and_then_is_flaky_not_available(laboratory: Laboratory) -> None:
    laboratory.write({"a": GOOD})
    laboratory.flips = 5
    await laboratory.audit(repeat=5)
    found = status(laboratory.request()).unavailable[0]
    assert (found.cause, found.detail.split(";")[0]) == (Cause.FLAKY, "gold passed 4 of 5 (95 % interval 28 to 99 %)")


async def test_gold_that_nearly_exhausts_an_allowance_is_at_risk_before_it_dies(laboratory: Laboratory) -> None:
    laboratory.write({"a": GOOD})
    laboratory.memory_bytes = 210 * 1024 * 1024  # of 256 MiB
    report = await laboratory.audit()
    assert report.achievable == 1
    assert [alert.finding.kind for alert in report.raised] == [AlertKind.AT_RISK]
    assert "82 % of its memory (210.0 MiB of 256.0 MiB)" in report.raised[0].finding.message
    laboratory.memory_bytes = 256 * 1024 * 1024
    Files(check=f"{FAIL}\n").write(laboratory.suite / "a")
    laboratory.lock()
    await laboratory.audit()
    assert causes(laboratory) == {"a": Cause.ALLOWANCE}


async def test_a_surviving_mutant_is_shown_and_an_accepted_one_dies_with_the_task_version(
    laboratory: Laboratory,
) -> None:
    laboratory.write({"loose": LOOSE, "number": NUMBER})
    report = await laboratory.audit(mutants=3)
    assert report.cycle is not None
    assert max(run.mutant or 0 for run in report.cycle.runs) == 2
    assert causes(laboratory) == {"loose": Cause.MUTANT_PASSED, "number": Cause.MUTANT_PASSED}
    told = explain_task(laboratory.request(), "number")
    assert told.survivors
    for one in told.survivors:  # what the solver says it tried is what the audit says it tried
        [noted] = [json.loads(note.payload["body"])["name"] for note in laboratory.store.events(one.trial, NOTE)]
        assert noted == one.name
    assert all(one.diff.splitlines()[-2] == "-echo 7 > /app/other" for one in told.survivors)
    with pytest.raises(ConfigError, match="no reason"):
        decide(laboratory.request(), DecisionKind.ACCEPT, "number", " ")
    for survivor in told.survivors:
        decide(laboratory.request(), DecisionKind.ACCEPT, "number", "nobody reads it", str(survivor.number))
    assert causes(laboratory) == {"loose": Cause.MUTANT_PASSED}
    Files(solve=NUMBER.solve, wall_s=500.0).write(laboratory.suite / "number")
    laboratory.lock()
    await laboratory.audit(mutants=3)
    assert causes(laboratory) == {"loose": Cause.MUTANT_PASSED, "number": Cause.MUTANT_PASSED}


async def test_what_the_policy_does_not_count_does_not_make_unavailable(laboratory: Laboratory) -> None:
    laboratory.write({"loose": LOOSE})
    policy = laboratory.request().policy.model_copy(update={"mutants": "declared"})
    report = await laboratory.audit(mutants=3, policy=policy)
    assert report.achievable == 1
    assert status(laboratory.request(policy=policy)).survivors.keys() == {"loose"}


async def test_an_interrupted_cycle_is_no_cycle_and_says_so(laboratory: Laboratory) -> None:
    laboratory.write({"a": GOOD})
    control = RunControl()
    control.interrupt()
    report = await audit_async(laboratory.request(), Watch(control=control))
    assert not report.finished
    assert report.problem.startswith("gold was interrupted: 0 of 1 trials")
    assert AlertKind.UNFINISHED in {alert.finding.kind for alert in report.raised}
    assert "cycle.unfinished: cycle cycle-2026" in status_text(status(laboratory.request()))
    after = await laboratory.audit()
    assert after.finished
    assert AlertKind.UNFINISHED in {alert.finding.kind for alert in after.resolved}


async def test_two_cycles_at_once_and_a_clock_that_went_back_are_refused(laboratory: Laboratory) -> None:
    laboratory.write({"a": GOOD})
    with owned_chain(laboratory.store, "demo"), pytest.raises(AuditBusy, match="under way in another process"):
        await laboratory.audit()
    await laboratory.audit()
    laboratory.pass_time(days=-1)
    with pytest.raises(StoreError, match="the clock says"):
        await laboratory.audit()


async def test_a_suite_that_changes_under_a_cycle_is_refused(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    laboratory.write({"a": GOOD})

    async def changed_first(*given: object) -> object:
        Files(wall_s=1.0).write(laboratory.suite / "a")
        laboratory.lock()
        return await execute(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("harness.api.audit_cycle.execute", changed_first)
    with pytest.raises(ConfigError, match="was changed while it was audited"):
        await laboratory.audit()


async def test_a_suite_without_a_lock_is_refused_before_anything_is_stored(laboratory: Laboratory) -> None:
    GOOD.write(laboratory.suite / "a")
    with pytest.raises(ConfigError, match="not locked"):
        await laboratory.audit()
    assert read_history(laboratory.store, "demo").cycles == {}


async def test_explain_shows_what_changed_between_the_last_green_and_the_first_red(laboratory: Laboratory) -> None:
    laboratory.write({"a": Files(check=f"echo checked\n{CHECK}")})
    await laboratory.audit()
    laboratory.pass_time(days=1)
    Files(check=f"echo looking again\n{FAIL}\n", wall_s=300.0).write(laboratory.suite / "a")
    laboratory.lock()
    await laboratory.audit()
    laboratory.pass_time(days=1)
    await laboratory.audit()
    told = explain_task(laboratory.request(), "a")
    assert told.green is not None
    assert told.red is not None
    assert (told.green.at[:10], told.red.at[:10]) == ("2026-03-01", "2026-03-02")
    assert told.changed == ("allowances", "tests")
    last = (await laboratory.audit(sentinels=(Sentinel.NULL,))).cycle
    assert explain_task(laboratory.request(), "a").red == told.red, "gold was measured before the last cycle"
    assert last is not None
    assert last.cycle != told.red.cycle
    assert told.output_diff.splitlines()[-2:] == ["-checked", "+looking again"]
    with pytest.raises(ConfigError, match="no task 'b' in the last audit"):
        explain_task(laboratory.request(), "b")


async def test_words_and_checks_that_part_ways_are_told_until_a_person_says_they_agree(
    laboratory: Laboratory,
) -> None:
    laboratory.write({"a": GOOD, "b": GOOD, "c": GOOD})
    await laboratory.audit()
    Files(do="Write something else. Task number 0").write(laboratory.suite / "a")
    Files(check=f"echo stricter\n{CHECK}").write(laboratory.suite / "b")
    Files(do="Both. Task number 0", check=f"echo both\n{CHECK}").write(laboratory.suite / "c")
    laboratory.lock()
    report = await laboratory.audit()
    told = {alert.finding.subject: alert.finding.message for alert in report.raised}
    assert report.achievable == 3
    assert told.keys() == {"a", "b"}
    assert "the instruction changed since 2026-03-01, the tests did not" in told["a"]
    assert [alert.finding.subject for alert in (await laboratory.audit()).standing] == ["a", "b"]
    decide(laboratory.request(), DecisionKind.REPAIR, "a", "only the wording is better")
    assert [alert.finding.subject for alert in status(laboratory.request()).standing] == ["b"]


async def test_a_pinned_image_is_what_is_audited(laboratory: Laboratory) -> None:
    laboratory.write({"a": GOOD})
    assert laboratory.images == {IMAGE: DIGEST}
    laboratory.images[IMAGE] = "sha256:" + "12" * 32  # the tag moved; the lock still asks for what it was
    await laboratory.audit()
    assert causes(laboratory) == {"a": Cause.IMAGE_MISSING}


async def test_one_pass_more_does_not_clear_a_flaky_task(laboratory: Laboratory) -> None:
    laboratory.write({"t": Files()})
    laboratory.flips = 5
    assert (await laboratory.audit(repeat=5)).achievable == 0
    laboratory.flips = 0
    once = await laboratory.audit(changed=True)
    assert once.audited == {"t": "not green"}
    assert (once.achievable, status(laboratory.request()).unavailable[0].cause) == (0, Cause.FLAKY)
    assert status(laboratory.request()).unavailable[0].detail == "gold passed 5 of 6, most lately 1 of 1"
    assert (await laboratory.audit(changed=True, repeat=4)).achievable == 0
    assert (await laboratory.audit(changed=True, repeat=5)).achievable == 1


async def test_a_red_task_that_is_green_again_unchanged_has_a_note(laboratory: Laboratory) -> None:
    laboratory.write({"t": Files()})
    laboratory.flips = 1
    await laboratory.audit()
    laboratory.flips = 0
    assert (await laboratory.audit(changed=True)).achievable == 1
    assert explain_task(laboratory.request(), "t").note.startswith("gold failed on 2026-03-01 on the same task")


async def test_a_repair_lets_a_flaky_task_be_measured_anew(laboratory: Laboratory) -> None:
    laboratory.write({"t": Files()})
    laboratory.flips = 3
    assert (await laboratory.audit(repeat=3)).achievable == 0
    laboratory.flips = 0
    decide(laboratory.request(), DecisionKind.REPAIR, "t", "the generator has a seed now")
    assert (await laboratory.audit(changed=True)).achievable == 1


async def test_no_mutants_means_no_mutant_sentinel(laboratory: Laboratory) -> None:
    laboratory.write({"t": Files()})
    request = AuditRequest(suite=str(laboratory.suite), store="memory", mutants=0)
    assert request.sentinels == (Sentinel.GOLD, Sentinel.NULL)
    assert (await audit_async(request, Watch())).achievable == 1
    due = await laboratory.audit(sentinels=("gold", "null", "mutant"), mutants=1, changed=True)
    assert due.audited == {"t": "never audited"}
