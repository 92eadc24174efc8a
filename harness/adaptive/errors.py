"""Errors of the adaptive engine.

Every error is a `ValueError`, says what was wrong, and carries the place (a field, an item, a file) and the
remedy apart from the sentence, so that a caller can show the three as it likes. This package imports nothing
else of the harness, hence its own root.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial


class AdaptiveError(ValueError):
    """What was wrong (`problem`), where (`place`), and what to do (`remedy`)."""

    def __init__(self, problem: str, *, place: str, remedy: str) -> None:
        self.problem = problem
        self.place = place
        self.remedy = remedy
        super().__init__(f"{place}: {problem}. {remedy}")

    def __reduce__(self) -> tuple[Callable[[str], AdaptiveError], tuple[str]]:
        # A worker process sends its error home by pickling, and an exception's own way forgets keyword arguments.
        return partial(type(self), place=self.place, remedy=self.remedy), (self.problem,)


class ResponsesError(AdaptiveError):
    """A response table that cannot be one: shapes, negative counts, more passes than trials, duplicate ids."""


class CalibrationError(AdaptiveError):
    """A calibration request that cannot be met: impossible dimension, meaningless prior."""


class BankError(AdaptiveError):
    """Item parameters that are not a bank, or an item that the bank does not hold."""


class BankFileError(AdaptiveError):
    """A file that is not a bank written by `save_bank`, or a bank of another format version, or an altered
    one.
    """


class UnconvergedBankError(AdaptiveError):
    """A bank whose fit stopped before the optimum; never used silently."""


class StateError(AdaptiveError):
    """An outcome, withdrawal or pending list that contradicts what is already known."""


class EngineError(AdaptiveError):
    """An engine setting or event that is not understood."""
