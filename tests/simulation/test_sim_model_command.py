"""assay sim-model as a user calls it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from harness.cli.sim_model import app
from harness.formats.suite import find_suite, load_suite
from harness.records.errors import ConfigError
from harness.simulation.population import SimulatedPopulation
from harness.store.history import read_history

FAMILY = str(find_suite("terminal") / "csv-join")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from harness.cli import main; main()", "sim-model", "--suite", FAMILY, *arguments]


def test_history_and_truth_without_serving(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    wishes = ("--agents", "40", "--seed", "3", "--history", str(file), "--exclude", "sim-007", "--truth", "sim-007")
    told = subprocess.run(command(*wishes, "--no-serve"), capture_output=True, text=True, check=True)
    population = SimulatedPopulation(load_suite(FAMILY, ignore_lock=True).tasks, agents=40, seed=3)
    assert told.stdout == f"sim-007 {population.truth('sim-007'):.6f}\n"
    assert set(read_history(file).agents) == set(population.agents) - {"sim-007"}


@pytest.mark.parametrize(
    ("wishes", "told"),
    [
        (("--truth", "sim-999"), "no simulated agent is called 'sim-999'"),
        (("--exclude", "sim-001"), "without --history"),
    ],
)
def test_a_mistake_is_told_before_anything_is_done(wishes: tuple[str, ...], told: str) -> None:
    ended = CliRunner().invoke(app, ["--suite", FAMILY, *wishes])
    assert isinstance(ended.exception, ConfigError)
    assert told in str(ended.exception)


@pytest.mark.parametrize("wishes", [("--port", "70000"), ("--faults", "2"), ("--agents", "0")])
def test_a_number_out_of_range_is_refused(wishes: tuple[str, ...]) -> None:
    assert CliRunner().invoke(app, ["--suite", FAMILY, *wishes]).exit_code == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_end(number: signal.Signals) -> None:
    with subprocess.Popen(command("--port", "0", "--agents", "3"), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert "sim-000 … sim-002 answer at http://127.0.0.1:" in said
        listed = httpx.get(said.split(" answer at ")[1].split()[0] + "/models").json()
        assert len(listed["data"]) == 3
        process.send_signal(number)
        assert process.wait(timeout=20) == 0
