"""The decision what to do about the engine, in tables and under a machine that answers what it likes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.bootstrap.commands import Report
from harness.bootstrap.engine import (
    START_DEADLINE_S,
    Decision,
    Hands,
    Situation,
    Step,
    decide_step,
    describe_failure,
    ensure_engine,
    read_log_tail,
)
from harness.bootstrap.locate import DEFAULT_SOCKET, EngineAddress, Failure, Probe
from harness.bootstrap.machine import Machine
from harness.records.errors import AssayError, EngineUnavailable

DEFAULT = EngineAddress(DEFAULT_SOCKET, "the default socket", wished=False)
WISHED = EngineAddress("tcp://engine.example:2375", "DOCKER_HOST", wished=True)
BARE = Machine(
    root=True,
    debian=True,
    distribution="Debian GNU/Linux 12 (bookworm)",
    architecture="amd64",
    systemd=False,
    dockerd_installed=False,
    iptables_installed=False,
    mmdebstrap_installed=False,
)
INSTALLED = replace(BARE, dockerd_installed=True, iptables_installed=True)
STALE = (Path("/var/run/docker.pid"),)


def silent(failure: Failure = Failure.NO_SOCKET, address: EngineAddress = DEFAULT) -> Probe:
    return Probe(address, failure, "as the system said")


@pytest.mark.parametrize(
    ("situation", "step"),
    [
        (Situation(Probe(DEFAULT, version="20.10"), BARE), Step.USE),
        (Situation(silent(), BARE), Step.INSTALL),
        (Situation(silent(), replace(INSTALLED, iptables_installed=False)), Step.INSTALL),
        (Situation(silent(), INSTALLED), Step.START_DAEMON),
        (Situation(silent(), replace(INSTALLED, debian=False)), Step.START_DAEMON),
        (Situation(silent(), replace(INSTALLED, systemd=True)), Step.START_SERVICE),
        (Situation(silent(Failure.REFUSED), INSTALLED), Step.START_DAEMON),
        (Situation(silent(), replace(INSTALLED, stale_pid_files=STALE)), Step.CLEAR_PID_FILES),
        (Situation(silent(), replace(INSTALLED, dockerd_pid=7)), Step.WAIT),
        (Situation(silent(), replace(BARE, root=False, dockerd_pid=7)), Step.WAIT),
        (Situation(silent(address=WISHED), INSTALLED), Step.REFUSE),
        (Situation(silent(Failure.NOT_PERMITTED), replace(INSTALLED, root=False)), Step.REFUSE),
        (Situation(silent(), replace(INSTALLED, root=False)), Step.REFUSE),
        (Situation(silent(), replace(BARE, debian=False)), Step.REFUSE),
        (Situation(silent(), replace(INSTALLED, dockerd_pid=7), frozenset({Step.WAIT})), Step.REFUSE),
        (Situation(silent(), BARE, frozenset({Step.INSTALL})), Step.REFUSE),
        (Situation(silent(), INSTALLED, frozenset({Step.START_DAEMON}), "no space left"), Step.REFUSE),
    ],
)
def test_each_situation_has_one_next_step(situation: Situation, step: Step) -> None:
    decision = decide_step(situation)
    assert decision.step is step
    assert bool(decision.message) == bool(decision.remedy) == (step is Step.REFUSE)


def test_a_daemon_that_ended_says_its_last_words() -> None:
    decision = decide_step(Situation(silent(), INSTALLED, frozenset({Step.START_DAEMON}), "no space left"))
    assert "no space left" in decision.message


@pytest.mark.parametrize("address", [DEFAULT, WISHED])
def test_every_failure_has_a_message_of_its_own_on_one_line(address: EngineAddress) -> None:
    refusals = [describe_failure(Probe(address, failure, "two\nlines " * 400)) for failure in Failure]
    assert len({refusal.message for refusal in refusals}) == len(Failure)
    for refusal in refusals:
        assert refusal.step is Step.REFUSE
        assert address.url in refusal.message
        assert "\n" not in refusal.message + refusal.remedy
        assert len(refusal.message) < 400


def test_a_context_is_not_mended_by_unsetting_a_variable() -> None:
    address = EngineAddress("unix:///desktop.sock", "docker context 'desktop'", wished=True)
    assert "docker context use default" in describe_failure(silent(address=address)).remedy


probes = st.one_of(st.just(Probe(DEFAULT, version="20.10", api_version="1.41")), st.sampled_from(Failure).map(silent))
machines = st.builds(
    Machine,
    root=st.booleans(),
    debian=st.booleans(),
    distribution=st.just("Some Linux"),
    architecture=st.just("amd64"),
    systemd=st.booleans(),
    dockerd_installed=st.booleans(),
    iptables_installed=st.booleans(),
    mmdebstrap_installed=st.booleans(),
    dockerd_pid=st.none() | st.integers(2, 9),
    stale_pid_files=st.sampled_from([(), STALE]),
)


@given(st.lists(st.tuples(probes, machines), min_size=8, max_size=8))
def test_the_loop_ends_whatever_the_machine_answers(answers: list[tuple[Probe, Machine]]) -> None:
    taken: frozenset[Step] = frozenset()
    steps: list[Step] = []
    for probe, machine in answers:
        situation = Situation(probe, machine, taken)
        decision = decide_step(situation)
        steps.append(decision.step)
        if decision.step in (Step.USE, Step.REFUSE):
            break
        # Only root changes the machine, and only a Debian one gets packages.
        assert machine.root or decision.step is Step.WAIT
        assert machine.debian or decision.step is not Step.INSTALL
        taken = situation.after(decision.step)
    assert steps[-1] in (Step.USE, Step.REFUSE)
    assert steps.count(Step.START_DAEMON) + steps.count(Step.START_SERVICE) <= 1
    assert steps.count(Step.INSTALL) <= 1


@given(machines, st.sampled_from(Failure))
def test_a_wished_address_never_changes_the_machine(machine: Machine, failure: Failure) -> None:
    assert decide_step(Situation(silent(failure, WISHED), machine)).step is Step.REFUSE


@dataclass
class PretendMachine:
    """A machine on a virtual clock: a started daemon answers `answers_after_s` later, or dies, or hangs."""

    machine: Machine
    answers_after_s: float = 3.0
    dies: bool = False
    now_s: float = 0.0
    started_s: float | None = None
    acted: list[Step] = field(default_factory=list)

    def probe(self, address: EngineAddress, environment: Mapping[str, str]) -> Probe:
        up = self.started_s is not None and not self.dies and self.now_s >= self.started_s + self.answers_after_s
        return Probe(address, version="20.10", api_version="1.41") if up else Probe(address, Failure.NO_SOCKET)

    def survey(self) -> Machine:
        alive = self.started_s is not None and not self.dies
        return replace(self.machine, dockerd_pid=7 if alive else None)

    def act(self, step: Step, situation: Situation, report: Report) -> None:
        self.acted.append(step)
        if step is Step.INSTALL:
            self.machine = replace(self.machine, dockerd_installed=True, iptables_installed=True)
        elif step is Step.CLEAR_PID_FILES:
            self.machine = replace(self.machine, stale_pid_files=())
        else:
            self.started_s = self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def hands(self) -> Hands:
        return Hands(self.probe, self.survey, self.act, lambda: self.now_s, self.sleep)


@pytest.fixture
def nowhere(tmp_path: Path) -> dict[str, str]:
    """An environment that names no engine."""
    return {"HOME": str(tmp_path)}


def test_a_bare_machine_gets_an_engine(nowhere: dict[str, str]) -> None:
    pretend = PretendMachine(replace(BARE, stale_pid_files=STALE))
    engine = ensure_engine(nowhere, lambda line: None, pretend.hands())
    assert pretend.acted == [Step.INSTALL, Step.CLEAR_PID_FILES, Step.START_DAEMON]
    assert engine.how == "installed"
    assert 3.0 <= engine.seconds < 4.0


def test_an_engine_that_is_installed_is_started(nowhere: dict[str, str]) -> None:
    pretend = PretendMachine(INSTALLED)
    assert ensure_engine(nowhere, lambda line: None, pretend.hands()).how == "started"


def test_a_daemon_that_comes_up_is_waited_for_and_found(nowhere: dict[str, str]) -> None:
    pretend = PretendMachine(INSTALLED, started_s=0.0)
    assert ensure_engine(nowhere, lambda line: None, pretend.hands()).how == "found"
    assert pretend.acted == []


def test_a_daemon_that_dies_at_once_is_not_waited_for(nowhere: dict[str, str]) -> None:
    pretend = PretendMachine(INSTALLED, dies=True)
    with pytest.raises(EngineUnavailable, match="ended instead of starting"):
        ensure_engine(nowhere, lambda line: None, pretend.hands())
    assert pretend.now_s < 1.0


def test_a_daemon_that_never_answers_ends_at_the_deadline(nowhere: dict[str, str]) -> None:
    pretend = PretendMachine(INSTALLED, answers_after_s=10 * START_DEADLINE_S)
    with pytest.raises(EngineUnavailable, match=r"dockerd runs \(pid 7\) but does not answer"):
        ensure_engine(nowhere, lambda line: None, pretend.hands())
    assert pretend.now_s == pytest.approx(START_DEADLINE_S, abs=1.0)


@pytest.mark.parametrize("error", [AssayError("apt-get ended with status 100"), OSError(28, "No space left on device")])
def test_whatever_breaks_on_the_way_is_an_unavailable_engine(nowhere: dict[str, str], error: Exception) -> None:
    pretend = PretendMachine(BARE)

    def fail(step: Step, situation: Situation, report: Report) -> None:
        raise error

    with pytest.raises(EngineUnavailable, match=r"status 100|No space left") as caught:
        ensure_engine(nowhere, lambda line: None, replace(pretend.hands(), act=fail))
    assert caught.value.exit_code == 5


def test_the_log_tail_is_the_last_line(tmp_path: Path) -> None:
    log = tmp_path / "dockerd.log"
    log.write_bytes(b"x" * 9000 + b"\nlast \xff words\n\n")
    assert read_log_tail(log) == "last � words"
    assert read_log_tail(tmp_path / "none") == ""


def test_a_failure_is_needed_to_describe_one() -> None:
    with pytest.raises(ValueError, match="no failure"):
        describe_failure(Probe(DEFAULT, version="20.10"))
    assert decide_step(Situation(Probe(DEFAULT), BARE)) == Decision(Step.USE)
