"""What a user need not say: where and how an archive is replayed, and by which rule, with the evidence of each."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.importers.hal_sources import references_of
from harness.records.archive import ImportOptions
from tests.cli.inside import assay
from tests.importers.reading import write_json
from tests.replay.archives import AIRLINE, needs_airline

OURS = Path(__file__).resolve().parents[2] / "tasks" / "airline" / "data"
AIRPORTS = {"name": "list_all_airports", "kwargs": {}}
SUM = {"name": "calculate", "kwargs": {"expression": "1 + 1"}}
TASKS = [{"task_id": n, "user_id": "u", "instruction": "Ask.", "actions": [], "outputs": ["2"]} for n in range(3)]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASSAY_ENVIRONMENT_DATA", raising=False)


def beside(folder: Path) -> Path:
    """A folder with a small airline's data."""
    shutil.copytree(OURS, folder, dirs_exist_ok=True)
    return folder


def spoken(task: int, trial: int, *, graded: bool = True, says: str = "It is 2.") -> dict[str, Any]:
    function = {"name": "calculate", "arguments": json.dumps(SUM["kwargs"])}
    traj = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "How much is 1 + 1?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "name": "calculate", "content": "2.0"},
        {"role": "assistant", "content": says},
        {"role": "user", "content": "###STOP###" if graded else "And then?"},
    ]
    reward = float("2" in says) if graded else 0.0
    info = {"task": TASKS[task], "source": "user", "user_cost": None}
    return {
        **{"task_id": task, "trial": trial, "reward": reward, "traj": traj},
        "info": info | {"reward_info": {"reward": reward} if graded else None},
    }


def lists(*, of: int = 3) -> dict[str, Any]:
    """HAL-like action lists in which an agent adds up and says so."""
    done = [{**SUM}, {"name": "respond", "kwargs": {"content": "It is 2."}}]
    return {"set": {f"{n}/0": {"reward": float(n > 0), "taken_actions": done} for n in range(of)}}


def test_an_archive_with_its_data_beside_it_needs_no_option(tmp_path: Path) -> None:
    folder = beside(tmp_path / "archive")
    path = write_json(folder / "runs" / "airline.json", [spoken(0, 0), spoken(1, 0, says="It is 3.")])
    ended = assay("replay", path, "--json")
    assert ended.code == 0, ended.err
    assert (ended.json["header"]["environment"], ended.json["header"]["mode"]) == ("airline@v1", "normal")
    assert [note.split(":")[0] for note in ended.json["taken"]] == [
        "--environment airline@v1",
        f"--environment-data {folder}",
        "--mode normal",
    ]
    assert "taken: --environment airline@v1: it has all that is called, 1 tool" in assay("replay", path).out
    assert assay("replay", "show", path, "1/0").code == 0
    crossed = assay("cross", path, "--graders", "tau-bench@718ffa1")
    assert (crossed.code, "taken: --environment airline@v1" in crossed.out) == (0, True)
    regraded = assay("regrade", path, "--grader", "tau-bench@718ffa1", "--store", "store")
    assert (regraded.code, "taken: --environment airline@v1" in regraded.err) == (0, True)
    migrated = assay("migrate", path, "--to", "jsonl", "--check")
    assert migrated.code == 0, migrated.err
    assert "taken: --grader tau-bench@718ffa1: it gives 2 of 2 recorded verdicts again" in migrated.out


def test_restoring_bare_action_lists_takes_the_tasks_beside_the_data(tmp_path: Path) -> None:
    folder = beside(tmp_path / "archive")
    write_json(folder / "tasks.json", TASKS)
    path = write_json(folder / "lists.json", lists())
    ended = assay("replay", path, "--restore-ungraded", "--fidelity", 0.1, "--json")
    assert ended.code == 0, ended.err
    taken = " | ".join(ended.json["taken"])
    assert f"--reference {folder / 'tasks.json'}: all 3 tasks of the archive are in it" in taken
    assert "--grader tau-bench@718ffa1+without-end: it gives 2 of 2 recorded verdicts again" in taken
    assert ended.json["restored"]["restored"] == 1
    assert ended.json["episodes"][0]["restored"] == "passed"  # it said 2, as the task in that file asks


def test_tasks_that_are_not_the_archive_s_are_not_taken(tmp_path: Path) -> None:
    folder = beside(tmp_path / "archive")
    write_json(folder / "tasks.json", TASKS[:2])
    ended = assay("replay", write_json(folder / "lists.json", lists()), "--json")
    assert ended.code == 3
    assert not any("--reference" in note for note in ended.json["taken"])
    assert "--reference names a file of tasks" in ended.json["episodes"][0]["fidelity"]["detail"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (json.dumps(TASKS)[:-60], ", byte "),  # some of them are there
        ("[{", ", byte "),
        ("{}", ": no tasks with reference actions"),
    ],
)
def test_tasks_that_cannot_be_read_are_named_with_the_reason(tmp_path: Path, content: str, said: str) -> None:
    folder = beside(tmp_path / "archive")
    (folder / "tasks.json").write_text(content)
    path = write_json(folder / "lists.json", lists())
    ended = assay("replay", path, "--json")
    assert ended.code == 3
    (note,) = [note for note in ended.json["taken"] if "--reference" in note]
    assert note.startswith(f"no --reference: {folder / 'tasks.json'}{said}")
    named = assay("replay", path, "--reference", folder / "tasks.json")
    assert (named.code, f"{folder / 'tasks.json'}{said}" in named.err) == (2, True)


def test_references_are_whole_tasks_so_that_a_grader_can_read_them(tmp_path: Path) -> None:
    known = references_of(ImportOptions(reference=str(write_json(tmp_path / "tasks.json", TASKS))))
    assert known["1"] == TASKS[1]


def test_data_beside_the_archive_is_taken_where_all_else_is_said(tmp_path: Path) -> None:
    folder = beside(tmp_path / "archive")
    path = write_json(folder / "airline.json", [spoken(0, 0)])
    ended = assay("replay", path, "--environment", "airline@v1", "--mode", "normal", "--json")
    assert ended.code == 0, ended.err
    assert ended.json["taken"] == [f"--environment-data {folder}: its data lies there, beside the archive"]


def test_data_that_lies_nowhere_is_asked_for_with_the_command(tmp_path: Path) -> None:
    path = write_json(tmp_path / "alone" / "deep" / "down" / "airline.json", [spoken(0, 0)])
    ended = assay("replay", path)
    assert (ended.code, ended.out) == (2, "")
    assert "it does not lie beside the archive, and no folder is named" in ended.err
    assert f"assay replay {path} --environment airline@v1 --environment-data FOLDER" in ended.err


def test_tools_that_no_environment_has_are_not_made_to_fit(tmp_path: Path) -> None:
    folder = beside(tmp_path / "archive")
    text = json.dumps([spoken(0, 0)]).replace("calculate", "find_order_by_zip")
    (folder / "retail.json").write_text(text)
    ended = assay("replay", folder / "retail.json")
    assert ended.code == 2
    assert "it calls find_order_by_zip; airline@v1 has not all of its tools" in ended.err


def test_a_rule_that_gives_none_of_the_verdicts_again_is_not_taken(tmp_path: Path) -> None:
    folder = beside(tmp_path / "archive")
    wrong = spoken(0, 0)
    wrong["reward"] = wrong["info"]["reward_info"]["reward"] = 0.0  # it did what its task asks
    ended = assay(
        "replay", write_json(folder / "airline.json", [wrong, spoken(1, 0, graded=False)]), "--restore-ungraded"
    )
    assert ended.code == 2
    assert "by which rule it was graded it does not show: tau-bench@718ffa1+without-end gives 0 of 1 again" in ended.err


def test_what_is_said_is_not_made_better(tmp_path: Path) -> None:
    folder = beside(tmp_path / "archive")
    path = write_json(folder / "airline.json", [spoken(0, 0)])
    ended = assay("replay", path, "--environment", "airline@tau2", "--environment-data", folder, "--json")
    assert ended.json["header"]["environment"] == "airline@tau2"
    assert [note.split(":")[0] for note in ended.json["taken"]] == ["--mode normal"]


@needs_airline
def test_action_lists_as_hal_keeps_them_are_restored_without_an_option() -> None:
    report = assay("replay", AIRLINE / "hal" / "hal_like_taken_actions.json.gz", "--restore-ungraded", "--json").json
    assert (report["restored"]["restored"], report["restored"]["restored_passed"]) == (21, 16)
    assert len(report["taken"]) == 5


@needs_airline
@pytest.mark.parametrize(
    ("name", "environment", "mode"),
    [
        ("airline_gpt-4.1_20x1", "airline@tau2", "normal"),
        ("airline_toolorchestra_50x1", "airline@tau2", "normal"),
        ("telecom_gpt-4.1_dual_40x1", "telecom@tau2", "normal"),
        ("telecom_gpt-4.1_solo_40x1", "telecom@tau2", "solo"),
    ],
)
def test_results_of_tau2_show_their_domain_and_their_true_mode(name: str, environment: str, mode: str) -> None:
    report = assay("replay", AIRLINE / "tau2" / "results" / f"{name}.json.gz", "--json").json
    assert (report["header"]["environment"], report["header"]["mode"]) == (environment, mode)
    assert report["refused"] == ""
