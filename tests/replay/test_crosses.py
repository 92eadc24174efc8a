"""Archives crossed: every cell from recorded episodes, through replay and graders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.api.archives import import_archive
from harness.api.crosses import CrossRequest, cross_archives, crossed
from harness.api.crosses_data import data_versions, read_task_map, read_tasks
from harness.api.replays import ReplayRequest, replay_archive
from harness.records.cross import CrossTable
from harness.records.environment import EnvironmentFault
from harness.records.errors import ConfigError
from harness.records.vocabulary import Outcome
from harness.report.cross import cross_text
from harness.store.sqlite import SqliteStore
from tests.grading.episodes.shop import Shop
from tests.importers.reading import write_json
from tests.replay.shop_archives import SHOP, other_tasks, tau_bench_archive

OLD, NEW = "tau-bench@until-718ffa1", "tau-bench@718ffa1"


def table(path: Path, *graders: str, data: tuple[str, ...] = (), **fields: Any) -> CrossTable:
    return cross_archives(CrossRequest((str(path),), SHOP, graders or (OLD,), data, **fields))


def test_every_cell_of_rules_and_data(tmp_path: Path) -> None:
    later = other_tasks(tmp_path)
    found = table(tau_bench_archive(tmp_path), OLD, NEW, data=("recorded", f"later={later}"))
    assert (found.episodes, found.tasks, found.common) == (5, 2, 4)
    passed = {str(line.cell): (line.passed, line.valid, line.planned) for line in found.cells}
    assert passed == {
        f"{OLD} on recorded, normal": (3, 4, 5),
        f"{NEW} on recorded, normal": (2, 4, 5),  # words alone are no longer enough
        f"{OLD} on later, normal": (2, 4, 5),  # task 0 expects nothing, task 1 the booking
        f"{NEW} on later, normal": (2, 4, 5),
    }
    assert all(line.without == {"verdict.missing": 1} for line in found.cells)
    assert found.attribution is not None
    assert found.attribution.clean
    (effect,) = found.effects
    assert effect.grader_first == (-0.25, 0.0)
    assert effect.data_first == (-0.25, 0.0)
    assert effect.interaction == 0.25
    moved = {line.new: (line.n10, line.n01) for line in found.transitions}
    assert moved[f"{NEW} on recorded, normal"] == (1, 0)
    assert moved[f"{OLD} on later, normal"] == (2, 1)


def test_what_the_cells_are_made_of_is_named_by_digest(tmp_path: Path) -> None:
    path, later = tau_bench_archive(tmp_path), other_tasks(tmp_path)
    found = table(path, OLD, NEW, data=("recorded", f"later={later}"))
    assert len({line.data_digest for line in found.cells}) == 2
    assert all(line.code.startswith("sha256:") and line.rule for line in found.cells)
    again_ = table(path, OLD, NEW, data=("recorded", f"later={later}"))
    assert [line.data_digest for line in again_.cells] == [line.data_digest for line in found.cells]


def test_other_data_of_the_environment_makes_replays_invalid_and_not_fails(tmp_path: Path) -> None:
    """The door is shut in the later data: the episode that looked at it diverges."""
    found = table(tau_bench_archive(tmp_path), OLD, data=("early", "late"))
    early, late = found.cells
    assert (early.valid, late.valid) == (4, 3)
    assert late.without == {"diverged": 1, "verdict.missing": 1}
    assert late.bounds == (0.6, 1.0)


def test_a_wrong_baseline_is_said_and_its_moves_are_in_no_rule_s_column(tmp_path: Path) -> None:
    found = table(tau_bench_archive(tmp_path), NEW, OLD)
    assert found.attribution is not None
    assert (found.attribution.clean, found.attribution.pipeline.n10) == (False, 1)
    assert "1 of 4 recorded outcomes moved" in cross_text(found)


def test_the_mode_is_the_recorded_one_or_asked_for(tmp_path: Path) -> None:
    path = tau_bench_archive(tmp_path)
    assert {line.cell.mode for line in table(path).cells} == {"normal"}
    both = table(path, modes=("normal", "solo"))
    assert [line.cell.mode for line in both.cells] == ["normal", "solo"]
    with pytest.raises(EnvironmentFault, match="no mode 'group'"):
        table(path, modes=("group",))


def test_several_archives_are_several_agents(tmp_path: Path) -> None:
    first, second = tau_bench_archive(tmp_path), tau_bench_archive(tmp_path, "other.json")
    entries = json.loads(second.read_text())
    write_json(second, entries[:2])
    found = cross_archives(CrossRequest((str(first), str(second)), SHOP, (OLD, NEW)))
    assert len(found.agents) == 2
    (line,) = found.reversals
    assert (line.agents, line.pairs, line.reversed, line.ties_entered) == (2, 1, 0, 1)
    assert "0 of 1 pair of 2 agents change order; ties: 1 entered" in cross_text(found)


def test_an_episode_labelled_as_another_task_is_invalid_or_graded_as_what_it_is(tmp_path: Path) -> None:
    path = _tau2_archive(tmp_path)
    stated = cross_archives(CrossRequest((str(path),), SHOP, ("tau2@0.1",)))
    assert stated.cells[0].without == {"label": 2}
    assert any("--relabel" in note for note in stated.notes)
    put_right = cross_archives(CrossRequest((str(path),), SHOP, ("tau2@0.1",), relabel=True))
    assert (put_right.cells[0].passed, put_right.cells[0].valid) == (2, 2)
    assert put_right.attribution is not None
    assert put_right.attribution.clean


def test_what_was_planned_and_is_not_there_counts_as_planned(tmp_path: Path) -> None:
    path = _tau2_archive(tmp_path)
    stated = json.loads(path.read_text())
    stated["info"]["num_trials"] = 2
    found = cross_archives(CrossRequest((str(write_json(path, stated)),), SHOP, ("tau2@0.1",), relabel=True))
    (line,) = found.cells
    assert (line.planned, line.valid, line.passed, line.bounds) == (4, 2, 2, (0.5, 1.0))
    assert line.without == {"absent": 2}


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        ("1", ("1/1",)),  # of trial 1 there is one episode, labelled 1, and it is task 0's
        ("10", ()),  # two, both task 0's: four episodes of four that were planned
    ],
)
def test_a_replay_and_a_cross_table_lack_the_same_trials_when_labels_are_put_right(
    tmp_path: Path, labels: str, missing: tuple[str, ...]
) -> None:
    path = _tau2_archive(tmp_path)
    stated = json.loads(path.read_text())
    stated["info"]["num_trials"] = 2
    first = stated["simulations"][0]
    stated["simulations"] += [{**first, "id": f"again{label}", "task_id": label, "trial": 1} for label in labels]
    stored = str(write_json(path, stated))
    crossed_ = crossed(CrossRequest((stored,), SHOP, ("tau2@0.1",), relabel=True))
    assert tuple(one.id for one in crossed_.episodes if one.recorded is Outcome.UNGRADED) == missing
    assert crossed_.table.cells[0].planned == 4
    with SqliteStore(tmp_path / "store") as store:
        (imported,) = import_archive(stored, store).runs
        for archive in (stored, imported.run):
            report = replay_archive(ReplayRequest(archive, SHOP, "normal", relabel=True), store)
            assert (report.missing, report.planned, report.read) == (missing, 4, 4 - len(missing))


def test_an_archive_in_the_wrong_mode_is_in_no_cell_of_it_as_a_whole(tmp_path: Path) -> None:
    """One of its users called a tool: none of the file was recorded without a user, or with one that had no tools."""
    path = _tau2_archive(tmp_path)
    stated = json.loads(path.read_text())
    for simulation in stated["simulations"][:1]:
        asked = {"id": "u", "name": "toggle", "arguments": {"name": "data"}, "requestor": "user"}
        answer = {"role": "tool", "id": "u", "content": "data is on", "requestor": "user", "error": False}
        simulation["messages"][5:5] = [{"role": "user", "content": None, "tool_calls": [asked]}, answer]
    stored = str(write_json(path, stated))
    found = cross_archives(CrossRequest((stored,), SHOP, ("tau2@0.1",), modes=("solo", "normal"), relabel=True))
    solo, normal = found.cells
    assert solo.without == {"mode": 2}
    assert normal.valid == 2
    assert any("not recorded in solo: episode 1/0" in note for note in found.notes)


def test_second_records_count_once_and_conflicting_ones_not_at_all(tmp_path: Path) -> None:
    path = tau_bench_archive(tmp_path)
    entries = json.loads(path.read_text())
    other = {**entries[1], "reward": 1.0, "info": {**entries[1]["info"], "reward_info": {"reward": 1.0}}}
    found = table(write_json(path, [*entries, entries[0], other]), OLD)
    (line,) = found.cells
    assert (line.planned, line.valid) == (5, 3)
    assert line.without == {"label": 1, "verdict.missing": 1}
    assert "left out: 2 second records of a trial" in found.notes


def test_a_table_of_no_archive_or_no_grader_is_refused() -> None:
    with pytest.raises(ConfigError, match="no archive is named"):
        cross_archives(CrossRequest((), SHOP, (OLD,)))
    with pytest.raises(ConfigError, match="no grader is named"):
        cross_archives(CrossRequest(("a.json",), SHOP, ()))


def test_a_grader_or_mode_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    path = tau_bench_archive(tmp_path)
    with pytest.raises(ConfigError, match="named twice"):
        table(path, OLD, OLD)
    with pytest.raises(ConfigError, match="named twice"):
        table(path, modes=("normal", "normal"))


def _tau2_archive(folder: Path) -> Path:
    """Two episodes with their labels exchanged; the echoed reference actions say whose they are."""
    tasks, simulations = [], []
    for number, name in enumerate(("A", "B")):
        arguments = {"id": name, "payments": [1]}
        action = {"action_id": f"{number}_0", "requestor": "assistant", "name": "book", "arguments": arguments}
        tasks.append({"id": str(number), "evaluation_criteria": {"actions": [action], "communicate_info": []}})
        asked = {"id": "c", "name": "book", "arguments": arguments, "requestor": "assistant"}
        messages = [
            {"role": "assistant", "content": "Hi!", "turn_idx": 0},
            {"role": "user", "content": "Book."},
            {"role": "assistant", "content": None, "tool_calls": [asked]},
            {"role": "tool", "id": "c", "content": f"booked {name}", "requestor": "assistant", "error": False},
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": "###STOP###"},
        ]
        reward = {"reward": 1.0, "action_checks": [{"action": action}]}
        simulation = {"id": f"s{number}", "task_id": str(1 - number), "trial": 0, "messages": messages}
        simulations.append({**simulation, "reward_info": reward, "termination_reason": "user_stop"})
    info = {
        "environment_info": {"domain_name": "shop"},
        "agent_info": {"implementation": "llm_agent", "llm": "m"},
        "user_info": {"implementation": "user_simulator"},
    }
    return write_json(folder / "results.json", {"info": info, "tasks": tasks, "simulations": simulations})


def test_data_versions_are_read_from_names_and_files(tmp_path: Path) -> None:
    capabilities, later = Shop().capabilities, other_tasks(tmp_path)
    recorded, late, both = data_versions(["recorded", "late", f"x=late+{later}"], capabilities)
    assert (recorded.name, recorded.environment, recorded.tasks) == ("recorded", "", None)
    assert (late.name, late.environment, late.tasks) == ("late", "late", None)
    assert (both.name, both.environment, sorted(both.tasks or {})) == ("x", "late", ["0", "1"])
    assert data_versions([], capabilities)[0].name == "recorded"
    assert data_versions([str(later)], capabilities)[0].name == later.name
    with pytest.raises(ConfigError, match="data versions are early, late"):
        data_versions(["lat"], capabilities)
    with pytest.raises(ConfigError, match="label"):
        data_versions(["late", "late"], capabilities)


def test_files_of_tasks_may_have_several_shapes_and_no_doubles(tmp_path: Path) -> None:
    listed = write_json(tmp_path / "a.json", [{"task_id": 3, "actions": []}])
    by_id = write_json(tmp_path / "b.json", {"3": {"actions": []}})
    results = write_json(tmp_path / "c.json", {"tasks": [{"id": "3"}], "info": {}})
    assert [list(read_tasks(path)) for path in (listed, by_id, results)] == [["3"]] * 3
    for wrong in ([{"name": "x"}], [{"id": 1}, {"id": 1}], 5):
        with pytest.raises(ConfigError):
            read_tasks(write_json(tmp_path / "wrong.json", wrong))
    assert read_task_map(write_json(tmp_path / "m.json", {"note": "ours", "map": {"0": "20"}})) == {"0": "20"}
    assert read_task_map(write_json(tmp_path / "m.json", {"0": 20})) == {"0": "20"}
    with pytest.raises(ConfigError):
        read_task_map(write_json(tmp_path / "m.json", [1]))


def test_a_task_that_the_data_lacks_has_no_verdict(tmp_path: Path) -> None:
    tasks = write_json(tmp_path / "few.json", [{"id": "zero", "actions": [], "outputs": []}])
    ids = write_json(tmp_path / "ids.json", {"0": "zero"})
    found = table(tau_bench_archive(tmp_path), NEW, data=(str(tasks),), task_map=ids)
    assert found.cells[0].without == {"evidence.missing": 2, "verdict.missing": 1}
    assert (found.cells[0].passed, found.cells[0].valid) == (1, 2)
