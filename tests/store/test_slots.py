"""One budget of trials in flight for all that runs on a store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.records.errors import StoreError
from harness.store.slots import Slots


def test_no_more_places_than_the_budget_has_and_closed_ones_are_free_again(tmp_path: Path) -> None:
    slots = Slots(tmp_path)
    assert (slots.budget(), slots.taken()) == (None, 0)
    slots.limit(2)
    first, second = slots.take(2), slots.take(2)
    assert first is not None
    assert second is not None
    assert Slots(tmp_path).take(2) is None
    assert slots.taken() == 2
    os.close(first)
    third = Slots(tmp_path).take(2)
    assert third is not None
    os.close(second)
    os.close(third)
    slots.limit(None)
    assert slots.budget() is None


def test_a_process_that_is_killed_gives_its_place_back(tmp_path: Path) -> None:
    Slots(tmp_path).limit(1)
    code = (
        "import sys, time; from pathlib import Path; from harness.store.slots import Slots;"
        " assert Slots(Path(sys.argv[1])).take(1) is not None; print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        assert Slots(tmp_path).take(1) is None
        child.send_signal(signal.SIGKILL)
    place = Slots(tmp_path).take(1)
    assert place is not None
    os.close(place)


def test_a_budget_that_cannot_be_written_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "slots").write_text("a file")
    with pytest.raises(StoreError, match="slots"):
        Slots(tmp_path).limit(2)
