"""`--changed`: a fingerprint decides what is run, not a date."""

from __future__ import annotations

import pytest

from harness.records.audit import Sentinel

from .worlds import Files, Laboratory

pytestmark = pytest.mark.anyio


@pytest.fixture
def audited(laboratory: Laboratory) -> Laboratory:
    laboratory.write({name: Files() for name in ("a", "b", "c")})
    return laboratory


async def test_nothing_changed_runs_nothing(audited: Laboratory) -> None:
    first = await audited.audit()
    again = await audited.audit(changed=True)
    assert first.cycle is not None
    assert (again.cycle, again.audited, again.achievable) == (None, {}, 3)


async def test_only_what_changed_is_run_and_the_rest_is_carried_over(audited: Laboratory) -> None:
    await audited.audit()
    Files(wall_s=60.0).write(audited.suite / "b")
    audited.lock()
    report = await audited.audit(changed=True)
    assert report.audited == {"b": "changed: allowances"}
    assert report.cycle is not None
    assert [(run.sentinel, run.tasks) for run in report.cycle.runs] == [(Sentinel.GOLD, 1), (Sentinel.NULL, 1)]
    assert report.achievable == 3


async def test_a_change_back_to_a_known_green_state_runs_nothing_and_says_so(audited: Laboratory) -> None:
    await audited.audit()
    Files(wall_s=60.0).write(audited.suite / "b")
    audited.lock()
    await audited.audit(changed=True)
    Files().write(audited.suite / "b")
    audited.lock()
    report = await audited.audit(changed=True)
    assert report.audited == {}
    assert report.notes == {"b": "back to a state that was audited on 2026-03-01"}
    assert report.cycle is not None  # the suite's version is another one: it gets its own table
    assert report.achievable == 3


async def test_what_is_red_stale_or_lost_its_image_is_run_again(audited: Laboratory) -> None:
    audited.gone.add("base:1")
    await audited.audit()
    audited.gone.clear()
    mended = await audited.audit(changed=True)
    assert set(mended.audited.values()) == {"not green"}
    assert mended.achievable == 3
    audited.gone.add("base:1")
    assert set((await audited.audit(changed=True)).audited.values()) == {"image missing"}
    audited.gone.clear()
    await audited.audit(changed=True)
    audited.pass_time(days=20)
    stale = await audited.audit(changed=True)
    assert set(stale.audited.values()) == {"stale: last audited 2026-03-01"}
    assert stale.achievable == 3


async def test_an_untouched_suite_is_not_even_loaded(audited: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    await audited.audit()
    # The store is in memory, so its folder is not there to be found: stand in for it.
    monkeypatch.setattr("harness.api.audit_state.Path.exists", lambda path: True)

    def refuse(*given: object) -> None:
        raise AssertionError("the suite was loaded")

    with monkeypatch.context() as patched:
        patched.setattr("harness.api.audit_state.load_suite", refuse)
        assert (await audited.audit(changed=True)).cycle is None
        audited.gone.add("base:1")
        with pytest.raises(AssertionError, match="was loaded"):
            await audited.audit(changed=True)
        audited.gone.clear()
        (audited.suite / "a" / "instruction.md").write_text("Write the answer. Task number 0")  # same words, new file
        with pytest.raises(AssertionError, match="was loaded"):
            await audited.audit(changed=True)
    assert (await audited.audit(changed=True)).cycle is None
