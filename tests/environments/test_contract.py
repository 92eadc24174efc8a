"""Every environment, in this process and behind the carrier; a program in another process and in a container."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.environments.airline.tau2 import AirlineTau2
from harness.environments.airline.v1 import AirlineV1
from harness.environments.channel import ProcessChannel
from harness.environments.mock import MockTau2
from harness.environments.remote import RemoteEnvironment
from harness.protocols import Environment
from harness.records.environment import Call, Opening
from harness.records.vocabulary import Actor
from tests.environments.conftest import BUNDLED
from tests.environments.contract import EnvironmentContract, Subject

NAMES = ("airline@v1", "airline@tau2", "mock@tau2", "mock@tau2 solo")
USER = next(iter(json.loads((BUNDLED / "db.json").read_text())["users"]))


def agent(name: str, namespace: str = "agent", **arguments: object) -> Call:
    return Call(Actor.AGENT, name, arguments, namespace)


def subject_of(name: str, environment: Environment) -> Subject:
    """The environment with calls that it knows."""
    if name.startswith("airline"):
        return Subject(
            environment,
            Opening("normal", data="C" if name == "airline@tau2" else "B"),
            write=agent("send_certificate", user_id=USER, amount=50),
            read=agent("get_user_details", user_id=USER),
            refused=agent("get_user_details", user_id="nobody"),
        )
    if name == "mock@tau2":
        return Subject(
            environment,
            Opening("normal"),
            write=agent("create_task", user_id="ada", title="Feed the cat"),
            read=agent("get_users"),
            refused=agent("create_task", user_id="nobody", title="Feed the cat"),
        )
    added = {
        "env_type": "user",
        "func_name": "add_notification",
        "arguments": {"notification_id": "n2", "message": "?"},
    }
    return Subject(
        environment,
        Opening("solo", initial={"initialization_actions": [added]}),
        write=agent("create_task", user_id="ada", title="Feed the cat"),
        read=agent("check_notifications", namespace="user"),
        refused=agent("dismiss_notification", namespace="user", notification_id="n9"),
    )


def here(name: str, desk: Path) -> Environment:
    """The environment in this process."""
    if name == "airline@v1":
        return AirlineV1(BUNDLED)
    return AirlineTau2(BUNDLED) if name == "airline@tau2" else MockTau2(desk)


@contextmanager
def carried(name: str, desk: Path) -> Iterator[Environment]:
    """The environment in another process."""
    folder = BUNDLED if name.startswith("airline") else desk
    command = (sys.executable, "-m", "harness.environments.shim", name.split()[0], str(folder))
    with RemoteEnvironment(lambda: ProcessChannel(command)) as environment:
        yield environment


class TestHere(EnvironmentContract):
    @pytest.fixture(scope="class", params=NAMES)
    @classmethod
    def subject(cls, request: pytest.FixtureRequest, desk: Path) -> Subject:
        return subject_of(request.param, here(request.param, desk))


class TestInAnotherProcess(EnvironmentContract):
    @pytest.fixture(scope="class", params=NAMES)
    @classmethod
    def subject(cls, request: pytest.FixtureRequest, desk: Path) -> Iterator[Subject]:
        with carried(request.param, desk) as environment:
            yield subject_of(request.param, environment)

    def test_it_declares_what_it_declares_here(self, subject: Subject, desk: Path) -> None:
        name = subject.environment.capabilities.environment
        assert subject.environment.capabilities == here(name, desk).capabilities


def counting(environment: Environment) -> Subject:
    return Subject(
        environment,
        Opening("normal"),
        write=agent("add", amount=2),
        read=agent("show"),
        refused=agent("add", amount="many"),
    )


class TestAnyProgram(EnvironmentContract):
    """The program in the guide, which keeps one session: each has a process of its own."""

    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls, counter: Path) -> Iterator[Subject]:
        with RemoteEnvironment(lambda: ProcessChannel((sys.executable, str(counter)))) as environment:
            yield counting(environment)
