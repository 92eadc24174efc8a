"""Find a container engine, or install and start one.

`decide_step` looks at a record of facts and names the one next thing to do; `ensure_engine` does it, looks again and
asks again. Every step but waiting happens at most once, so that the loop ends whatever the machine answers.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from harness.bootstrap.commands import Command, Report, as_unavailable, install_packages, run_command
from harness.bootstrap.locate import EngineAddress, Failure, Probe, choose_address, probe_engine
from harness.bootstrap.machine import Machine, find_program, survey_machine
from harness.records.errors import AssayError, EngineUnavailable

DAEMON_LOG = Path("/var/log/assay-dockerd.log")
START_DEADLINE_S = 90.0
_POLL_S = 0.25
_LOG_TAIL_BYTES = 4096
_DETAIL_CHARACTERS = 200


class Step(StrEnum):
    """What to do next about the engine."""

    USE = "use"
    WAIT = "wait"
    INSTALL = "install"
    CLEAR_PID_FILES = "clear_pid_files"
    START_SERVICE = "start_service"
    START_DAEMON = "start_daemon"
    REFUSE = "refuse"


_STARTS = frozenset({Step.START_SERVICE, Step.START_DAEMON})


@dataclass(frozen=True, slots=True)
class Situation:
    """The facts: who answers, what the machine is, which steps were taken since the last start."""

    probe: Probe
    machine: Machine
    taken: frozenset[Step] = frozenset()
    log_tail: str = ""

    def after(self, step: Step) -> frozenset[Step]:
        """The steps taken once this one is: a start makes waiting worthwhile anew."""
        return (self.taken - {Step.WAIT} if step in _STARTS else self.taken) | {step}


@dataclass(frozen=True, slots=True)
class Decision:
    """The next step; for a refusal what is wrong and what to do."""

    step: Step
    message: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that answered. `how` is found, started or installed."""

    address: EngineAddress
    version: str
    api_version: str
    how: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Hands:
    """What `ensure_engine` touches the world with; tests hand in their own."""

    probe: Callable[[EngineAddress, Mapping[str, str]], Probe] = probe_engine
    survey: Callable[[], Machine] = survey_machine
    act: Callable[[Step, Situation, Report], None] = field(default_factory=lambda: take_step)
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def describe_failure(probe: Probe) -> Decision:
    """The refusal for an address that did not answer: one line, and one remedy."""
    where = f"no container engine at {probe.address.url} ({probe.address.chosen_by})"
    if not probe.address.wished:
        other = "set DOCKER_HOST"
    elif probe.address.chosen_by == "DOCKER_HOST":
        other = "unset DOCKER_HOST to use the default socket"
    else:
        other = "`docker context use default`"
    detail = " ".join(probe.detail.split())[:_DETAIL_CHARACTERS]
    said = {
        Failure.NO_SOCKET: ("there is no such socket", f"start Docker, or {other}"),
        Failure.NOT_PERMITTED: (
            "you have no permission to use the socket",
            "run as root, or join the group that owns the socket (`sudo usermod -aG docker $USER`) and log in again",
        ),
        Failure.REFUSED: (
            "the connection was refused, nothing listens there",
            f"start the Docker daemon behind it, or {other}",
        ),
        Failure.UNKNOWN_HOST: ("the host name is not known", f"correct the address, or {other}"),
        Failure.UNREACHABLE: (f"it cannot be reached: {detail}", f"check the network, or {other}"),
        Failure.NOT_AN_ENGINE: (
            f"what answers does not speak the Engine API: {detail}",
            f"check the address and DOCKER_TLS_VERIFY, or {other}",
        ),
        Failure.UNSUPPORTED: (
            f"the address is not usable: {detail}",
            "set DOCKER_HOST to unix:///path or tcp://host:port (forward a socket for ssh://)",
        ),
    }
    if probe.failure is None:
        raise ValueError("an engine that answered has no failure to describe")
    what, remedy = said[probe.failure]
    return Decision(Step.REFUSE, f"{where}: {what}", remedy)


def decide_step(situation: Situation) -> Decision:
    """The one next thing to do. Pure: no look at the machine, the network or the clock."""
    probe, machine, taken = situation.probe, situation.machine, situation.taken
    if probe.failure is None:
        return Decision(Step.USE)
    refusal = describe_failure(probe)
    if probe.address.wished or probe.failure is Failure.NOT_PERMITTED:
        return refusal
    if machine.dockerd_pid is not None:
        if Step.WAIT not in taken:
            return Decision(Step.WAIT)
        return Decision(
            Step.REFUSE,
            f"dockerd runs (pid {machine.dockerd_pid}) but does not answer at {probe.address.url}",
            f"see its log ({DAEMON_LOG} or `journalctl -u docker`), or set DOCKER_HOST to where it listens",
        )
    if not machine.root:
        return Decision(
            Step.REFUSE,
            refusal.message,
            "start Docker, set DOCKER_HOST, or run `make setup` as root on Debian or Ubuntu, which installs it",
        )
    return _decide_start(situation, refusal)


def _decide_start(situation: Situation, refusal: Decision) -> Decision:
    """The next step as root with no daemon alive."""
    machine, taken = situation.machine, situation.taken
    if not machine.dockerd_installed or (machine.debian and not machine.iptables_installed):
        if not machine.debian:
            return Decision(
                Step.REFUSE,
                f"{refusal.message}, and Docker is not installed",
                f"install Docker for {machine.distribution} and start it; Assay installs it on Debian and Ubuntu only",
            )
        if Step.INSTALL in taken:
            return Decision(
                Step.REFUSE,
                "dockerd or iptables is still not found after installing docker.io and iptables",
                "install Docker by hand and start it",
            )
        return Decision(Step.INSTALL)
    if taken & _STARTS:
        why = f": {situation.log_tail}" if situation.log_tail else ""
        return Decision(
            Step.REFUSE,
            f"the Docker daemon ended instead of starting{why}",
            f"see {'`journalctl -u docker`' if machine.systemd else DAEMON_LOG}",
        )
    if machine.stale_pid_files and Step.CLEAR_PID_FILES not in taken:
        return Decision(Step.CLEAR_PID_FILES)
    return Decision(Step.START_SERVICE if machine.systemd else Step.START_DAEMON)


def ensure_engine(environment: Mapping[str, str], report: Report, hands: Hands | None = None) -> Engine:
    """An engine that answers, whatever it takes on this machine.

    Raises:
        EngineUnavailable: there is none and none can be had; says why and what to do.
    """
    hands = hands or Hands()
    started_s = hands.clock()
    address = choose_address(environment)
    taken: frozenset[Step] = frozenset()
    while True:
        log_tail = read_log_tail(DAEMON_LOG) if taken & _STARTS else ""
        situation = Situation(hands.probe(address, environment), hands.survey(), taken, log_tail)
        decision = decide_step(situation)
        if decision.step is Step.REFUSE:
            raise EngineUnavailable(decision.message, remedy=decision.remedy)
        if decision.step is Step.USE:
            return _engine_record(situation, hands.clock() - started_s)
        if decision.step is Step.WAIT:
            _wait_for_answer(address, environment, hands)
        else:
            _act(hands, decision.step, situation, report)
        taken = situation.after(decision.step)


def _act(hands: Hands, step: Step, situation: Situation, report: Report) -> None:
    try:
        hands.act(step, situation, report)
    except (AssayError, OSError) as error:
        raise as_unavailable(error) from error


def _engine_record(situation: Situation, seconds: float) -> Engine:
    probe, taken = situation.probe, situation.taken
    how = "installed" if Step.INSTALL in taken else "started" if taken & _STARTS else "found"
    return Engine(probe.address, probe.version, probe.api_version, how, seconds)


def _wait_for_answer(address: EngineAddress, environment: Mapping[str, str], hands: Hands) -> None:
    """Until the engine answers, its daemon is gone, or the deadline is over; the caller looks at which."""
    deadline_s = hands.clock() + START_DEADLINE_S
    while hands.clock() < deadline_s:
        if hands.probe(address, environment).failure is None or hands.survey().dockerd_pid is None:
            return
        hands.sleep(_POLL_S)


def take_step(step: Step, situation: Situation, report: Report) -> None:
    """Do one decided step on this machine.

    Raises:
        AssayError: a program that the step runs failed.
    """
    if step is Step.INSTALL:
        install_packages(["docker.io", "iptables"], report)
    elif step is Step.CLEAR_PID_FILES:
        for path in situation.machine.stale_pid_files:
            report(f"removing the pid file of a dead daemon: {path}")
            path.unlink(missing_ok=True)
    elif step is Step.START_SERVICE:
        report("starting the docker service")
        run_command(
            Command(["systemctl", "enable", "--now", "docker"], {}, remedy="see `journalctl -u docker`"), report
        )
    elif step is Step.START_DAEMON:
        _start_daemon(report)
    else:
        raise ValueError(f"{step} is not a step to take")


def _start_daemon(report: Report) -> None:
    """Leave dockerd running in a session of its own, so that it outlives this command and its terminal."""
    program = find_program("dockerd")
    if program is None:  # decided upon a survey that saw it
        raise EngineUnavailable("dockerd vanished between two looks", remedy="run the command again")
    report(f"starting {program} in the background, log in {DAEMON_LOG}")
    # Its helpers (containerd, iptables) are in the administrator's folders, which a user's PATH may lack.
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin"
    with DAEMON_LOG.open("ab") as log:
        subprocess.Popen(
            [program],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={**os.environ, "PATH": path},
            start_new_session=True,
        )


def read_log_tail(path: Path) -> str:
    """The last line of a log, or nothing."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - _LOG_TAIL_BYTES))
            lines = log.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""
