"""What `assay run` finds out before anything is begun: a code, a message with the remedy, and nothing made.

The engine is one that is not there: a run that gets past its own checks ends with exit 5 at the engine.
"""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.records.task import ImagePin
from tests.integration.world import ACTORS, OBEDIENT, RIGHT, Done, TaskFiles, World

PIN = ImagePin(reference="assay-base:1", digest="sha256:" + "ab" * 32)
PRICES = 'date = "2026-01-01"\n[models."m-1"]\ninput = 1.0\noutput = 10.0\n'
ENGINE = "see that the engine runs"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ASSAY_STORE"):
        monkeypatch.delenv(name, raising=False)
    made = World(tmp_path, PIN)
    made.tasks(one=TaskFiles(RIGHT), two=TaskFiles(RIGHT))
    (tmp_path / "prices.toml").write_text(PRICES)
    return made


@pytest.fixture
def service() -> Iterator[str]:
    """A model service that has the model m-1."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"data": [{"id": "m-1"}]}).encode())

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nobody listens, while the test lasts."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}/v1"


def refused(world: World, code: int, *words: str, done: Done) -> None:
    assert done.code == code, done.err
    for word in words:
        assert word in done.err
    assert "Traceback" not in done.err
    assert done.out == ""
    assert not world.store.exists()


def priced(world: World) -> tuple[str, str]:
    return ("--prices", str(world.root / "prices.toml"))


@pytest.mark.parametrize(
    ("solver", "options", "words"),
    [
        ("command", (), "has no command"),
        ("command", ("comand=x",), "no option 'comand'"),
        ("noop", ("x=1",), "no option 'x'"),
        ("reference", ("x=1",), "no option 'x'"),
        ("mutated", ("mutant=nosuch",), "no task of this run has a mutant called 'nosuch'"),
        ("mutated", ("mutant=4000",), "no task of this run has a mutant number 4000"),
        ("agent", ("temperatur=1",), "did you mean 'temperature'?"),
    ],
)
def test_a_solvers_own_options(world: World, solver: str, options: tuple[str, ...], words: str) -> None:
    given = [part for option in options for part in ("--solver-option", option)]
    refused(world, 2, words, done=world.run(solver, *given))


def test_a_key_that_a_provider_needs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("--model", "gpt-5-mini")
    done = world.run("agent", *asked)
    refused(world, 2, "OpenAI needs an API key", "$OPENAI_API_KEY is not set", "--api-key-env", done=done)
    done = world.run("agent", *asked, "--base-url", "http://127.0.0.1:9/v1", "--api-key-env", "MY_KEY")
    refused(world, 2, "$MY_KEY is not set", "export MY_KEY", done=done)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1\n")
    refused(world, 2, "$OPENAI_API_KEY", "set it again", done=world.run("agent", *asked))


def test_a_service_that_is_not_there(world: World, nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.gateway.checking.PAUSE_S", 0.01)
    done = world.run("agent", "--model", "m-1", "--base-url", nobody, *priced(world))
    refused(world, 5, nobody, "check --base-url", done=done)


def test_a_model_that_the_service_does_not_have(world: World, service: str) -> None:
    asked = ("--model", "m-2", "--base-url", service, "--allow-unknown-price")
    refused(world, 2, "no model 'm-2'", "did you mean 'm-1'?", done=world.run("agent", *asked))
    refused(world, 5, ENGINE, done=world.run("agent", *asked, "--no-preflight"))


def test_an_engine_that_is_not_there_leaves_nothing_behind_either(world: World, service: str) -> None:
    done = world.run("agent", "--model", "m-1", "--base-url", service, *priced(world))
    refused(world, 5, ENGINE, done=done)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--policy", "nosuch"), "nosuch"),
        (("--history", "gone.csv"), "gone.csv is not a file"),
        (("--bank", "gone.npz"), "gone.npz is not a file"),
    ],
)
def test_adaptive_options_that_cannot_be_used(world: World, options: tuple[str, ...], words: str) -> None:
    refused(world, 2, words, done=world.run(OBEDIENT, "--adaptive", *options))


def test_nothing_is_calibrated_without_a_history(world: World) -> None:
    done = world.run(OBEDIENT, "--adaptive")
    refused(world, 5, ENGINE, done=done)
    assert "calibrating" not in done.err


def test_unknown_prices_and_a_cost_budget_contradict_each_other(world: World) -> None:
    asked = ("--model", "m-1", "--allow-unknown-price", "--max-cost", "1")
    refused(world, 2, "--max-cost", "--allow-unknown-price", "give one of the two", done=world.run("agent", *asked))


def test_a_model_without_a_price_under_a_cost_budget(world: World) -> None:
    asked = ("--model", "m-9", "--base-url", "http://127.0.0.1:9/v1", "--max-cost", "1")
    refused(world, 2, "'m-9' is unknown", "--prices", done=world.run("agent", *asked, *priced(world)))


def test_a_value_that_an_option_gave_is_told_by_the_option(world: World, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text(f'suite = "{world.suite}"\nrepeats = 0\n[budget]\nwall_s = 5\n')
    done = world.on_store("run", str(config), "--max-seconds", "-5", "--solver", "noop")
    refused(world, 2, f"{config}:2: repeats: 0", "--max-seconds: -5.0: input should be greater than 0", done=done)


def test_a_solver_from_a_file_is_named_without_the_path(world: World) -> None:
    from harness.api.wiring import find_solver

    plugin = find_solver(OBEDIENT, {})
    assert (plugin.label, plugin.spec.name) == ("actors:Obedient", f"{ACTORS}:Obedient")
    assert find_solver("noop", {}).label == "noop"
