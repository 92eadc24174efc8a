"""Errors keep what they say on the way home from a worker process."""

from __future__ import annotations

import pickle

import pytest

from harness.adaptive.errors import AdaptiveError, CalibrationError, EngineError


@pytest.mark.parametrize("kind", [AdaptiveError, CalibrationError, EngineError])
def test_an_error_survives_pickling_whole(kind: type[AdaptiveError]) -> None:
    error = kind("d = 0", place="dims", remedy="Give d ≥ 1")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (again.problem, again.place, again.remedy) == ("d = 0", "dims", "Give d ≥ 1")
    assert str(again) == str(error)
