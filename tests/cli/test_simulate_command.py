"""assay simulate: the table, the JSON, the plot."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.adaptive import save_bank, simulate_population
from tests.adaptive.banks import random_bank
from tests.cli.inside import assay


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("files")
    bank = random_bank(2, n=20, d=1)
    save_bank(bank, folder / "bank.npz")
    responses = simulate_population(3, 6, bank.item_ids, d=1).responses()
    rows = ["agent,task,outcome,seconds"]
    for agent, outcomes in zip(responses.run_ids, responses.passes.astype(int).tolist(), strict=True):
        rows += [f"{agent},{item},{outcome},60" for item, outcome in zip(bank.item_ids, outcomes, strict=True)]
    (folder / "runs.csv").write_text("\n".join(rows) + "\n")
    return folder / "runs.csv", folder / "bank.npz"


def test_a_table_of_policies_by_tasks(files: tuple[Path, Path]) -> None:
    history, bank = files
    asked = ("--history", history, "--bank", bank, "--policy", "random", "--policy", "d_optimal+0.1", "--stop", 20)
    ended = assay("simulate", *asked)
    assert ended.code == 0, ended.err
    lines = [line.split() for line in ended.out.splitlines()[2:]]
    assert [(line[0], line[1]) for line in lines] == [
        ("random", "10"),
        ("random", "20"),
        ("d_optimal+0.1", "10"),
        ("d_optimal+0.1", "20"),
    ]
    assert [line[-3:] for line in lines] == [["600", "50", "%"], ["1200", "100", "%"]] * 2
    assert [line[2] for line in lines][1::2] == ["0.00", "0.00"]
    told = assay("simulate", *asked, "--json").json
    assert [line["seconds"] for line in told["lines"]] == [600, 1200, 600, 1200]
    assert told["runs"] == 6


def test_a_plot_is_written(files: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'assay[plot]'")
    history, bank = files
    out = tmp_path / "out.png"
    ended = assay("simulate", "--history", history, "--bank", bank, "--policy", "random", "--stop", 15, "--plot", out)
    assert ended.code == 0, ended.err
    assert out.read_bytes().startswith(b"\x89PNG")
    assert f"wrote {out}" in ended.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--policy", "best"), "no policy 'best'"),
        (("--policy", "random", "--plot", "out.xyz"), "no plot can be written as .xyz"),
        (("--policy", "random", "--plot", "/nowhere/out.png"), "/nowhere: there is no such folder"),
        (("--policy", "random", "--level", "95"), "--level 95.0"),
    ],
)
def test_what_cannot_be_meant_is_exit_2(files: tuple[Path, Path], arguments: tuple[str, ...], words: str) -> None:
    history, bank = files
    ended = assay("simulate", "--history", history, "--bank", bank, *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
