"""Archives that are cut off, as a shell sees them: how many episodes are missing, in replay, cross and regrade."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.inside import assay
from tests.importers.reading import tau_episode
from tests.replay.archives import DESK, simulation, write_results
from tests.replay.shop_archives import SHOP
from tests.replay.world import usual

RULE = "tau-bench@718ffa1"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # no store but the test's own


def cut_after(path: Path, episodes: list[Any], kept: int) -> Path:
    """A list whose file ends inside the episode after the kept ones."""
    whole = json.dumps(episodes[: kept + 1])
    path.write_text(whole[:-30])
    return path


def test_a_tau_bench_file_lacks_the_rest_of_its_trial_and_who_knows_what(tmp_path: Path) -> None:
    """Six tasks, three trials, trial by trial; it ends inside the third episode of the second trial."""
    episodes = [tau_episode(task, trial) for trial in range(3) for task in range(6)]
    path = cut_after(tmp_path / "cut.json", episodes, 8)
    ended = assay("replay", path, "--environment", SHOP, "--mode", "normal", "--grader", RULE)
    assert ended.code == 3
    assert "8 of at least 12 planned episodes read" in ended.out
    assert "missing: at least 4: 2/1, 3/1, 4/1, 5/1\n" in ended.out
    assert "of at least 12 planned: 66.7 to 100.0 %, and wider with what else is missing" in ended.out
    crossed = assay("cross", path, "--environment", SHOP, "--graders", RULE)
    assert crossed.code == 3
    assert "8/8 of ≥12" in crossed.out
    assert "note: at least 4 planned episodes not in the archive" in crossed.out
    regraded = assay("regrade", path, "--environment", SHOP, "--grader", RULE, "--store", "store")
    assert regraded.code == 3
    assert "missing: at least 4, without a grade: 2/1, 3/1, 4/1, 5/1" in regraded.out
    run = regraded.out.split(",")[0]
    again = assay("replay", run, "--environment", SHOP, "--mode", "normal", "--store", "store")
    assert (again.code, "8 of at least 12 planned" in again.out) == (3, True)


def test_a_compressed_file_that_is_cut_is_cut_once(tmp_path: Path) -> None:
    episodes = [tau_episode(task, trial) for trial in range(2) for task in range(40)]
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(json.dumps(episodes).encode())[:-60])
    report = assay("replay", path, "--environment", SHOP, "--mode", "normal", "--json").json
    assert len(report["unread"]) == 2  # the compressed data, and the document in it
    assert (report["planned"], report["at_least"]) == (80, True)
    assert report["planned"] == report["read"] + len(report["missing"])


def test_a_tau2_file_says_what_it_planned_and_so_exactly_what_is_missing(tmp_path: Path) -> None:
    made = [simulation(replace(usual(), repeat=number), number) for number in range(5)]
    path = write_results(tmp_path / "results.json", made, trials=5)
    path.write_bytes(path.read_bytes()[:-4000])
    ended = assay("replay", path, "--environment", DESK, "--mode", "normal")
    assert ended.code == 3
    assert "of 5 planned episodes read" in ended.out
    assert "at least" not in ended.out
    assert "t/4\n" in ended.out


def test_a_tau2_folder_lacks_the_simulations_that_are_cut_or_gone(tmp_path: Path) -> None:
    made = [simulation(replace(usual(), repeat=number), number) for number in range(4)]
    header = json.loads(write_results(tmp_path / "one.json", [], trials=4).read_text())
    del header["simulations"]
    folder = tmp_path / "run"
    (folder / "simulations").mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps(header))
    for number, one in enumerate(made):
        (folder / "simulations" / f"sim-{number}.json").write_text(json.dumps(one))
    assert assay("replay", folder, "--environment", DESK, "--mode", "normal").code == 0
    (folder / "simulations" / "sim-1.json").unlink()
    broken = folder / "simulations" / "sim-2.json"
    broken.write_text(broken.read_text()[:-50])
    ended = assay("replay", folder, "--environment", DESK, "--mode", "normal")
    assert ended.code == 3
    assert "2 of 4 planned episodes read" in ended.out
    assert "missing: 2: t/1, t/2\n" in ended.out


def test_action_lists_make_no_rows_so_that_at_least_one_is_missing(tmp_path: Path) -> None:
    """Each task has a trial of its own in the second set, and there may have been a third."""
    entry = {"reward": 1.0, "taken_actions": [{"name": "respond", "kwargs": {"content": "Good day."}}]}
    sets = {"A": {f"{n}/0": entry for n in range(3)}, "B": {"0/2": entry, "1/3": entry, "2/1": entry}}
    whole = json.dumps(sets)
    path = tmp_path / "lists.json"
    path.write_text(whole[: whole.rindex('"2/1"') + 20])
    tasks = tmp_path / "tasks.json"
    tasks.write_text(json.dumps([{"task_id": n, "actions": []} for n in range(3)]))
    ended = assay("replay", path, "--environment", SHOP, "--mode", "normal", "--reference", tasks)
    assert ended.code == 3
    assert "5 of at least 6 planned episodes read" in ended.out
    assert "missing: at least 1\n" in ended.out
