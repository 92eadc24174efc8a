"""Who owns a container: the label, this process, and what the kernel says of other ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.execution import Owner
from harness.sandbox.networks import network_name
from harness.sandbox.ownership import look_around, this_process

WORDS = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="/"), max_size=20)
NUMBERS = st.integers(min_value=0, max_value=2**63)
OWNERS = st.builds(Owner, host=WORDS, machine=WORDS, boot=WORDS, namespace=NUMBERS, pid=NUMBERS, started=NUMBERS)


@given(OWNERS)
def test_a_label_is_read_back(owner: Owner) -> None:
    assert Owner.read(owner.label) == owner


@pytest.mark.parametrize(
    "label", ["", "vm/5409", "vm/m/b/1/2", "vm/m/b/1/2/x", "vm/m/b/1/2/-3", "vm/m/b/1/2/3/4", "a/b/c/²/1/1"]
)
def test_a_label_of_another_form_names_nobody(label: str) -> None:
    assert Owner.read(label) is None


def test_this_process_is_the_same_owner_every_time_and_no_child_is() -> None:
    me = this_process()
    assert me == this_process()
    assert me.pid == os.getpid()
    assert me.started > 0
    assert me.boot
    script = "from harness.sandbox.ownership import this_process; print(this_process().label)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    child = Owner.read(done.stdout.strip())
    assert child is not None
    assert (child.host, child.machine, child.boot, child.namespace) == (me.host, me.machine, me.boot, me.namespace)
    assert (child.pid, child.started) != (me.pid, me.started)


def test_the_living_the_uncollected_and_the_gone_are_told_apart() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        living = look_around([child.pid]).processes[child.pid]
        assert living is not None
        assert living.alive
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and left uncollected
        uncollected = look_around([child.pid]).processes[child.pid]
        assert uncollected is not None
        assert not uncollected.alive
        assert uncollected.key == living.key
    assert child.pid not in look_around([child.pid]).processes


def test_a_process_that_is_hidden_is_not_taken_for_gone(tmp_path: Path) -> None:
    facts = look_around([os.getpid(), 0, -1], proc=tmp_path)
    assert facts.processes == {os.getpid(): None}
    assert facts.me.boot == ""


def test_another_process_never_takes_over_the_network_of_a_run() -> None:
    assert network_name("r", "a") == network_name("r", "a")
    assert len({network_name("r", "a"), network_name("r", "b"), network_name("s", "a")}) == 3
