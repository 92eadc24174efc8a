"""Archives of others, replayed for real: every answer, every state, every mode. They need the data folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from harness.environments.registry import environment
from harness.importers.container import Archive
from harness.importers.recognition import choose
from harness.protocols import Environment
from harness.records.archive import ArchiveEpisode, ImportOptions, Step
from harness.records.environment import EnvironmentFault, Opening
from harness.records.replay import Invalid, RecordedEpisode, Replayed
from harness.replay.engine import Comparison, replay_episode
from harness.replay.normalise import normalisations
from harness.replay.order import end_of
from harness.replay.recorded import from_archive
from tests.replay.archives import AIRLINE, needs_airline
from tests.replay.world import edited, without

pytestmark = needs_airline
V1 = "v1/gpt-4o-airline.json.gz"


@cache
def episodes(name: str) -> tuple[RecordedEpisode, ...]:
    archive = Archive(AIRLINE / name)
    importer, recognition = choose(archive)
    items = importer.read(archive, ImportOptions())
    return tuple(from_archive(item, recognition.format) for item in items if isinstance(item, ArchiveEpisode))


@cache
def world(name: str) -> Environment:
    return environment(name, Path(AIRLINE))


def replayed(name: str, where: str, opening: Opening) -> Iterator[Replayed]:
    return (replay_episode(episode, world(where), opening) for episode in episodes(name))


def again(episode: RecordedEpisode, data: str = "") -> Replayed:
    return replay_episode(episode, world("airline@v1"), Opening("normal", data))


def a_writing_one() -> RecordedEpisode:
    """An episode that looks, and then books or changes something."""
    return next(one for one in episodes(V1) if again(one).fidelity.required >= 2 and one.states.reference)


def test_all_tau_bench_episodes_replay_with_every_answer_and_state_compared() -> None:
    found = [one.fidelity for one in replayed(V1, "airline@v1", Opening("normal"))]
    assert len(found) == 200
    assert all(fidelity.invalid is None for fidelity in found)
    assert sum(fidelity.steps for fidelity in found) == sum(fidelity.same for fidelity in found) == 1164
    # 182 episodes were graded by state: the reference's, and whether the end state was it.
    assert (
        sum(fidelity.checkpoints for fidelity in found) == sum(fidelity.checkpoints_same for fidelity in found) == 364
    )
    assert sum(fidelity.required for fidelity in found) == sum(fidelity.required_done for fidelity in found) == 177


@pytest.mark.parametrize(
    ("name", "calls"),
    [("tau2/results/airline_gpt-4.1_20x1.json.gz", 148), ("tau2/results/airline_toolorchestra_50x1.json.gz", 581)],
)
def test_tau2_airline_results_replay_the_same(name: str, calls: int) -> None:
    found = [one.fidelity for one in replayed(name, "airline@tau2", Opening("normal"))]
    assert all(fidelity.invalid is None for fidelity in found)
    assert sum(fidelity.same for fidelity in found) == calls
    with pytest.raises(EnvironmentFault, match="no mode 'solo'"):
        next(replayed(name, "airline@tau2", Opening("solo")))


@pytest.mark.parametrize(
    ("name", "true", "wrong"),
    [
        ("tau2/results/telecom_gpt-4.1_dual_40x1.json.gz", "normal", "solo"),
        ("tau2/results/telecom_gpt-4.1_solo_40x1.json.gz", "solo", "normal"),
    ],
)
def test_telecom_files_are_read_in_their_true_mode_alone(name: str, true: str, wrong: str) -> None:
    """What telecom's tools do is not described, so that even in the true mode nothing is said of their answers."""
    for found in replayed(name, "telecom@tau2", Opening(wrong)):
        assert found.fidelity.invalid is Invalid.MODE
    for found in replayed(name, "telecom@tau2", Opening(true)):
        assert found.fidelity.invalid is Invalid.UNREACHABLE
        assert "unimplemented" in found.fidelity.detail


def test_a_voice_episode_is_of_no_mode_of_the_airline() -> None:
    with pytest.raises(EnvironmentFault):
        next(replayed("tau2/results/voice_dir", "airline@tau2", Opening("full_duplex")))
    assert {one.fidelity.invalid for one in replayed("tau2/results/voice_dir", "airline@tau2", Opening("normal"))} == {
        Invalid.MODE
    }


def test_another_version_of_the_data_diverges_unless_its_difference_is_declared() -> None:
    episode = next(one for one in episodes(V1) if "province" in str(one.steps))
    diverged = again(episode, "B").fidelity
    assert diverged.invalid is Invalid.DIVERGED
    assert diverged.detail == "get_user_details: address: without province and with state"
    declared = Comparison(normalisations(["rename:province=state"]), states=False)
    found = replay_episode(episode, world("airline@v1"), Opening("normal", "B"), declared)
    assert found.valid
    assert found.fidelity.cosmetic == diverged.key


@pytest.mark.parametrize("at", range(2, 14))
def test_a_message_that_was_dropped_is_missed(at: int) -> None:
    episode = a_writing_one()
    if episode.steps[at].kind == "model.call":
        pytest.skip("the turn that it begins is still there")
    found = again(without(episode, at)).fidelity
    assert found.invalid is Invalid.TRUNCATED
    assert found.invalid_at in (at - 1, at, at + 1)


def test_a_record_that_is_cut_off_before_its_end() -> None:
    episode = a_writing_one()
    end = end_of(episode.steps)
    cut = replace(episode, steps=(*episode.steps[: end - 4], *episode.steps[end:]), end="")
    assert again(cut).fidelity.invalid is Invalid.TRUNCATED


def test_an_edited_argument_of_a_writing_call_is_found_there() -> None:
    episode = a_writing_one()
    required = [step.index for step in again(episode).steps if step.required]
    at = required[0]
    arguments = dict(episode.steps[at].payload["arguments"])
    key = next(name for name in arguments if name.endswith("_id"))
    found = again(edited(episode, at, arguments={**arguments, key: "nobody"})).fidelity
    assert (found.invalid, found.d_first) == (Invalid.DIVERGED, at)


def test_an_edited_observation_is_found_there() -> None:
    episode = a_writing_one()
    at = next(index for index, step in enumerate(episode.steps) if step.kind == "tool.result")
    content = str(episode.steps[at].payload["content"])
    found = again(edited(episode, at, content=content.replace("0", "1", 1) + "?")).fidelity
    assert (found.invalid, found.d_first) == (Invalid.DIVERGED, at - 1)


def test_swapping_a_writing_call_with_the_one_before_is_found_at_the_first() -> None:
    episode = a_writing_one()
    calls = [step.index for step in again(episode).steps]
    at = next(step.index for step in again(episode).steps if step.required)
    before = calls[calls.index(at) - 1]
    steps: list[Step] = list(episode.steps)
    steps[before], steps[at] = steps[at], steps[before]
    found = again(replace(episode, steps=tuple(steps))).fidelity
    assert found.invalid in (Invalid.DIVERGED, Invalid.TRUNCATED)
    assert found.invalid_at in (before, before + 1)


def test_the_order_of_episodes_does_not_matter() -> None:
    some = episodes(V1)[:24]
    forwards = [again(one).end_state for one in some]
    backwards = [again(one).end_state for one in reversed(some)]
    assert forwards == backwards[::-1]
