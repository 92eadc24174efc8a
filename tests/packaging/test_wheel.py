"""The wheel holds the code and its data, and nothing of the machine it was built on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    script = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    return folder / done.stdout.split()[-1]


def test_it_holds_code_tasks_and_configurations_but_no_lock(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {"harness/cli/__init__.py", "harness/py.typed", "solvers/agent.py"} <= set(names)
    assert "harness/data/tasks/terminal/suite.toml" in names
    assert "harness/data/configs/demo.toml" in names
    assert not [name for name in names if name.endswith(("suite.lock", ".pyc"))]
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]


def test_the_bundled_suite_is_found_in_an_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.unpack_archive(wheel, site, "zip")
    script = (
        "import harness; from harness.formats.suite import load_suite\n"
        "suite = load_suite('terminal', ignore_lock=True)\n"
        "print(harness.__file__, suite.source, len(suite.tasks))"
    )
    env = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    code, source, count = done.stdout.split()
    assert code.startswith(str(site))
    assert source.startswith(str(site))
    assert int(count) >= 520
