"""The published example (SOURCES S1) through the whole pipeline: runs, cycles, scores, diagnosis; and its mirror."""

from __future__ import annotations

import pytest

from harness.api.scores import score
from harness.records.audit import Cause
from harness.records.score import Verdict
from harness.records.vocabulary import Outcome

from .worlds import CHECK, SOLVE, Files, Laboratory

pytestmark = pytest.mark.anyio
SIX_WEEKS = 42


def tasks() -> dict[str, Files]:
    """180 tasks. Of those that will die, 104 to 111 the agent solves, 112 to 115 it does not."""
    found = {}
    for number in range(180):
        check, solve, image = CHECK, SOLVE, "base:1"
        if 104 <= number < 113:
            check = f"echo 0 > /logs/verifier/reward.txt\ngrep -q 1.2 /lib/dependency && {CHECK}"
        elif number in (113, 114):
            image = "tagged:1"
        elif number == 115:
            solve = f"sleep 200\n{SOLVE}"
        found[f"t{number:03}"] = Files(
            do=f"Write the answer. Task number {number}", check=check, solve=solve, image=image
        )
    return found


@pytest.fixture
def suite(laboratory: Laboratory) -> Laboratory:
    laboratory.image_files["/lib/dependency"] = b"1.2\n"
    laboratory.images["tagged:1"] = "sha256:" + "cd" * 32
    laboratory.write(tasks())
    return laboratory


def rot(laboratory: Laboratory) -> None:
    """Nine dependencies that resolve to something else, two images whose tag moved on, one mirror that got slower."""
    laboratory.image_files["/lib/dependency"] = b"2.0\n"
    laboratory.gone.add("tagged:1")
    laboratory.slow = 4.0


async def test_an_unchanged_agent_on_a_suite_of_which_twelve_tasks_died(suite: Laboratory) -> None:
    first = await suite.audit()
    assert first.achievable == 180
    before = await suite.run(below=112)
    suite.pass_time(days=SIX_WEEKS)
    rot(suite)
    second = await suite.audit()
    after = await suite.run(below=112)

    assert (before.outcomes[Outcome.PASSED], after.outcomes[Outcome.PASSED]) == (112, 104)
    assert second.achievable == 168
    assert second.cycle is not None
    assert second.cycle.causes == {Cause.TESTS_FAILED: 9, Cause.IMAGE_MISSING: 2, Cause.ALLOWANCE: 1}

    found = score(after.run, before.run)
    assert found.baseline is not None
    assert found.baseline.score == pytest.approx(0.622, abs=5e-4)
    now = found.score
    assert now.raw_score is not None
    assert now.score is not None
    assert (now.achievable, now.unavailable, now.tasks) == (168, 12, 180)
    assert now.score == pytest.approx(104 / 168)
    assert f"{100 * now.score:.1f}" == "61.9"
    # Two images are gone, so two trials have no grade at all: counted as fails, the raw rate is the published one.
    assert now.raw_interval is not None
    assert f"{100 * now.raw_interval[0]:.1f}" == "57.8"

    told = found.diagnosis
    assert told is not None
    assert told.verdict is Verdict.INSTRUMENT
    assert (len(told.died), told.died_change, told.change) == (12, -8, -8)
    assert (told.common, told.gained, told.lost) == (168, 0, 0)
    assert told.interval == pytest.approx((-0.0127, 0.0127), abs=1e-4)
    assert told.sentence == (
        "the change is in the instrument: -8 passes; 12 tasks died (-8 passes); 0 gained and 0 lost on the 168 tasks"
        " available in both (+0.0 pp, 95 % interval [-1.3, +1.3])"
    )


async def test_the_mirror_gold_holds_and_the_agent_falls(laboratory: Laboratory) -> None:
    laboratory.write({f"t{number:02}": Files(do=f"Task {number}") for number in range(45)})
    await laboratory.audit()
    before = await laboratory.run(below=28)
    laboratory.pass_time(days=SIX_WEEKS)
    second = await laboratory.audit()
    after = await laboratory.run(below=20)

    assert second.achievable == 45
    found = score(after.run, before.run)
    assert found.score.score == found.score.raw_score == pytest.approx(20 / 45)
    told = found.diagnosis
    assert told is not None
    assert told.verdict is Verdict.AGENT
    assert (told.died, told.gained, told.lost, told.common) == ((), 0, 8, 45)
    assert told.interval is not None
    assert told.interval[1] < 0
