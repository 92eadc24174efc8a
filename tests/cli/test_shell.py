"""The command line as a whole: help without imports, documented commands, errors with exit codes."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import typer

from harness.cli import gc, verify
from harness.cli.exits import Exit
from harness.cli.shell import COMMANDS, module_of

ASSAY = [sys.executable, "-c", "from harness.cli import main; main()"]


def assay(
    *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [*ASSAY, *arguments], capture_output=True, text=True, cwd=cwd, env=env, timeout=120, check=False
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_help_the_shell_lists_and_an_example(name: str) -> None:
    module = importlib.import_module(module_of(name))
    command = typer.main.get_command(module.app)
    first_line = (command.help or "").strip().splitlines()[0]
    assert first_line == COMMANDS[name]
    subcommands = getattr(command, "commands", {"": command})
    for subcommand in subcommands.values():
        assert "xample" in (subcommand.epilog or ""), subcommand.name


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_help_speaks_of_its_own_options_only(name: str) -> None:
    module = importlib.import_module(module_of(name))
    command = typer.main.get_command(module.app)
    for one in (command, *getattr(command, "commands", {}).values()):
        assert not [option for option in one.params if "completion" in option.name]


def test_the_shell_completes_commands_and_options() -> None:
    for typed, completed in (("assay sho", "show"), ("assay verify --js", "--json")):
        words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
        done = subprocess.run(
            [sys.executable, "-c", "import sys; sys.argv[0] = 'assay'; from harness.cli import main; main()"],
            env={**os.environ, "_ASSAY_COMPLETE": "complete_bash", **words},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stdout.split() == [completed], done.stderr


def test_the_version_is_that_of_the_distribution() -> None:
    done = assay("--version")
    assert (done.returncode, done.stdout) == (0, f"assay {version('assay')}\n")


def test_exit_code_3_is_told_as_it_is_used() -> None:
    """DESIGN: some planned trial has no grade, or an alert fired; what does not verify is an alert."""
    assert int(Exit.ALERT) == int(Exit.NO_GRADE) == 3
    told = " ".join(assay("--help").stdout.split())
    assert "3 some planned trial has no grade, or an alert fired (broken evidence, leftovers that stay);" in told
    for module in (verify, gc):
        assert "Exits 3 (an alert) when" in (typer.main.get_command(module.app).help or "")


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from harness.cli import main; sys.argv=['assay','--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'numpy','scipy','pandas','docker','pydantic','httpx','starlette'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "Exit codes" in done.stdout


def test_importing_the_package_does_nothing() -> None:
    script = "import sys, harness; assert not {'pydantic','docker'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_unknown_suite_is_one_message_with_a_remedy(tmp_path: Path) -> None:
    done = assay("suite", "list", "terminl", cwd=tmp_path)
    assert done.returncode == 2
    assert "terminal" in done.stderr
    assert "Traceback" not in done.stderr


def test_show_without_a_store_says_where_it_looked(tmp_path: Path) -> None:
    done = assay("show", "latest", cwd=tmp_path)
    assert done.returncode == 2
    assert ".assay: there is no evidence store here" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("host", "words"),
    [("unix:///nope/docker.sock", "/nope/docker.sock"), ("tcp://127.0.0.1:9", "127.0.0.1:9")],
)
def test_an_engine_that_is_not_there_is_exit_5_in_one_line(tmp_path: Path, host: str, words: str) -> None:
    env = {**os.environ, "DOCKER_HOST": host}
    done = assay("doctor", cwd=tmp_path, env=env)
    assert done.returncode == 5
    assert words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_typo_in_a_configuration_names_the_key(tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text('suite = "terminal"\nsolvr = "noop"\n')
    done = assay("run", str(config), cwd=tmp_path)
    assert done.returncode == 2
    assert "solvr" in done.stderr
    assert "did you mean 'solver'" in done.stderr


def test_a_gate_that_no_score_can_meet_is_refused_before_the_run(tmp_path: Path) -> None:
    done = assay("run", "--suite", "terminal", "--solver", "noop", "--fail-under", "85", cwd=tmp_path)
    assert done.returncode == 2
    assert "0.85" in done.stderr
    assert not (tmp_path / ".assay").exists()


def test_adaptive_options_without_adaptive_are_refused_also_beside_a_file(tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text('suite = "terminal"\nsolver = "noop"\n')
    for arguments in (["--suite", "terminal", "--solver", "noop"], [str(config)]):
        done = assay("run", *arguments, "--stop", "5", cwd=tmp_path)
        assert done.returncode == 2
        assert "--stop without --adaptive" in done.stderr
