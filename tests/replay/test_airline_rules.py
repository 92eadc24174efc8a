"""The rules on real episodes: what was recorded is reproduced, and what moves moves where the tasks' changes say."""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.api.crosses import CrossRequest, cross_archives
from harness.api.crosses_reading import Reading
from harness.environments.registry import environment
from harness.grading.episodes.registry import episode_grader
from harness.protocols import EpisodeCase
from harness.records.cross import CrossTable
from harness.records.environment import Opening
from harness.replay.engine import replay_episode
from tests.grading.episodes.shop import hear, say

AIRLINE = Path(__file__).parents[3] / "shared" / "data" / "tau_airline"
pytestmark = pytest.mark.skipif(
    not AIRLINE.is_dir(), reason="the recorded airline episodes are not beside this checkout"
)

V1 = AIRLINE / "v1" / "gpt-4o-airline.json.gz"
OLD, NEW, FORK = "tau-bench@until-718ffa1", "tau-bench@718ffa1", "tau-bench@hal-cb7cf03"
TASKS = {
    "v0": AIRLINE / "tau2" / "airline_tasks_v0_37199f3.json.gz",
    "v1": AIRLINE / "tau2" / "airline_tasks_v1_01e812d.json.gz",
}


def crossed(path: Path, world: str, graders: tuple[str, ...], data: tuple[str, ...] = (), **fields: Any) -> CrossTable:
    return cross_archives(CrossRequest((str(path),), world, graders, data, environment_data=AIRLINE, **fields))


def changed_tasks(*signs: str) -> set[tuple[str, str]]:
    """Tasks (tau-bench's name, tau2's) for which one of the signs holds."""
    stated = json.loads((AIRLINE / "tau2" / "airline_tasks_diff.json").read_text())
    holds: dict[str, Callable[[Any], bool]] = {
        "v0 differs": lambda task: not task["reference_end_state_v0_equals_v1bench"],
        "v1 differs": lambda task: not task["reference_end_state_v1_equals_v1bench"],
        "outputs differ": lambda task: any("outputs" in name for name in task["details"]),
        "state moved": lambda task: task["reference_end_state_changed"],
        "words moved": lambda task: task["communicate_info_changed"],
    }
    return {
        (str(task["tau_bench_v1_task_index"]), task["tau2_task_id"])
        for task in stated
        if any(holds[sign](task) for sign in signs)
    }


def test_every_recorded_reward_of_tau_bench_is_reproduced_by_every_version_of_its_rule() -> None:
    table = crossed(V1, "airline@v1", (OLD, NEW, FORK), ("A",))
    assert table.episodes == 200
    for line in table.cells:
        assert (line.passed, line.valid, line.without) == (84, 195, {"verdict.missing": 5})
    assert table.attribution is not None
    assert table.attribution.clean
    moves = table.attribution.pipeline
    assert (moves.n11, moves.n00, moves.n01, moves.n10) == (84, 111, 0, 0)


def test_in_another_version_of_the_database_most_replays_diverge_and_the_rest_stays() -> None:
    table = crossed(V1, "airline@v1", (NEW,), ("A", "B", "C"))
    for line in table.cells[1:]:
        assert (line.passed, line.valid) == (43, 79)
        assert line.without == {"diverged": 120, "verdict.missing": 1}
    assert all((moved.n11, moved.n00, moved.n01, moved.n10) == (43, 36, 0, 0) for moved in table.transitions)


def test_under_later_tasks_only_those_move_that_were_changed() -> None:
    data = ("recorded", f"v0={TASKS['v0']}", f"v1={TASKS['v1']}")
    table = crossed(V1, "airline@v1", (NEW,), data, task_map=AIRLINE / "tau2" / "airline_task_map.json")
    to_v0, to_v1 = table.transitions
    assert (to_v0.n10, to_v0.n01, to_v0.n11, to_v0.n00) == (7, 0, 77, 111)
    assert (to_v1.n10, to_v1.n01, to_v1.n11, to_v1.n00) == (16, 7, 68, 104)
    assert {task.task for task in to_v0.tasks} <= {old for old, _ in changed_tasks("v0 differs", "outputs differ")}
    assert {task.task for task in to_v1.tasks} <= {
        old for old, _ in changed_tasks("v1 differs", "outputs differ", "words moved")
    }


def test_tau2_s_own_verdicts_are_reproduced_once_the_labels_are_put_right() -> None:
    moved = {new for _, new in changed_tasks("state moved", "words moved")}
    for name, passed, later in (("airline_gpt-4.1_20x1", 10, (1, 0)), ("airline_toolorchestra_50x1", 28, (0, 4))):
        path = AIRLINE / "tau2" / "results" / f"{name}.json.gz"
        data = ("recorded", f"v0={TASKS['v0']}", f"v1={TASKS['v1']}")
        table = crossed(path, "airline@tau2", ("tau2@0.1", "tau2@1.0"), data, relabel=True)
        assert table.attribution is not None
        assert table.attribution.clean
        assert {(line.passed, line.valid) for line in table.cells if line.cell.data != "v1"} == {
            (passed, table.episodes)
        }
        for line in table.transitions:
            if line.new.endswith("on v1, normal"):
                assert (line.n10, line.n01) == later
                assert {task.task for task in line.tasks} <= moved


def test_a_published_file_with_shifted_labels_has_no_verdict_unless_they_are_put_right() -> None:
    path = AIRLINE / "tau2" / "results" / "airline_toolorchestra_50x1.json.gz"
    (line,) = crossed(path, "airline@tau2", ("tau2@0.1",)).cells
    assert line.without == {"label": 49}


def test_second_endings_give_the_rewards_that_the_benchmark_s_own_code_gave() -> None:
    """48 episodes that ended by a transfer, two messages longer. The rewards are of tau-bench's own environment, which
    then graded the reference's state: 12 fails became passes."""
    stated = json.loads(gzip.decompress((AIRLINE / "hal" / "hal_like_taken_actions.json.gz").read_bytes()))
    world, opening = environment("airline@v1", AIRLINE), Opening("normal", "A")
    episodes = {read.episode.id: read.episode for read in Reading([str(V1)]).episodes()}
    counts: Counter[tuple[str, float, float | None]] = Counter()
    for key, entry in stated["C_twice"].items():
        added = (*say("Please hold on."), *hear("Okay."), *say("Goodbye."), *hear("###STOP###"))
        longer = dataclasses.replace(episodes[key], steps=episodes[key].steps + added)
        case = EpisodeCase(replay_episode(longer, world, opening), longer.definition, world, opening)
        for name in (NEW, f"{NEW}+own-state"):
            counts[name, entry["reward"], episode_grader(name).grade(case).reward] += 1
    assert counts == {
        (NEW, 1.0, 1.0): 47,
        (NEW, 0.0, 0.0): 1,
        (f"{NEW}+own-state", 1.0, 1.0): 35,
        (f"{NEW}+own-state", 1.0, 0.0): 12,
        (f"{NEW}+own-state", 0.0, 0.0): 1,
    }
