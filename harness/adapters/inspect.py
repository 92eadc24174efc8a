"""Lets the adaptive engine choose the samples of an Inspect evaluation (inspect_ai's `SampleSource`).

    bank = load_bank("bank.npz").align(sample_ids(dataset))
    run = AdaptiveSamples(AdaptiveEngine(bank, EngineSettings(stops=(TasksStop(200),))), dataset, in_flight=8)
    inspect_ai.eval(Task(dataset=run.source(), solver=…, scorer=…, metrics=[run.metric()]), model=…)
    print(run.engine.estimate())

Samples are the bank's items, by `str(sample.id)`. The accuracy that Inspect computes over the samples that ran is
that of items chosen for what they tell, not an estimate of the whole dataset's: read `engine.estimate()`, or put
`metric()` in the place of the scorer's metrics. Nothing here imports inspect_ai before `source` or `metric` is called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from harness.adaptive.engine import AdaptiveEngine
from harness.adaptive.errors import AdaptiveError
from harness.adaptive.selection import Choice
from harness.adaptive.state import Withdrawal
from harness.adaptive.stops import Stop

CHOICE = "assay_choice"
_WORDS = {"C": True, "I": False, "P": False, "N": False, "yes": True, "true": True, "no": False, "false": False}


class InspectAdapterError(AdaptiveError):
    """A dataset, score or use that the engine cannot be driven with."""


class Scored(Protocol):
    """What is read of an `inspect_ai.log.EvalSample`."""

    id: int | str
    epoch: int
    uuid: str | None
    scores: Any
    error: Any


Passed = Callable[[Any], bool | None]


def sample_ids(samples: Iterable[Any]) -> tuple[str, ...]:
    """The item ids of these samples, in order. Raises InspectAdapterError if one has none or shares one."""
    ids: list[str] = []
    for position, sample in enumerate(samples):
        if sample.id is None:
            raise InspectAdapterError(
                "has no id, so no history can know it",
                place=f"sample {position}",
                remedy="Give every sample an id that stays the same from run to run",
            )
        ids.append(str(sample.id))
    if len(set(ids)) != len(ids):
        twice = next(name for at, name in enumerate(ids) if name in ids[:at])
        raise InspectAdapterError(
            "appears twice", place=f"sample {twice!r}", remedy="Give each sample an id of its own"
        )
    return tuple(ids)


def full_marks(sample: Scored, scorer: str | None = None) -> bool | None:
    """Whether a sample passed: True at full marks ("C", true, 1 or more), False below, None where it has no score.

    A sample without a score (it failed before scoring, or the scorer declined) is no fail: None. One that ended at a
    limit and was scored is graded like any other. `scorer` names the score to read where there are several.

    Raises
    ------
    InspectAdapterError
        If there are several scores and none is named, the named one is not there, or the value is neither a number
        nor one of Inspect's words.
    """
    scores = sample.scores or {}
    if not scores:
        return None
    if len(scores) > 1 if scorer is None else scorer not in scores:
        raise InspectAdapterError(
            f"scores {', '.join(scores)}" + ("" if scorer is None else f", none of them {scorer!r}"),
            place=f"sample {sample.id!r}",
            remedy="Name the one that decides: AdaptiveSamples(…, scorer=NAME)",
        )
    value = scores[scorer or next(iter(scores))].value
    if isinstance(value, str):
        word = _WORDS.get(value, _WORDS.get(value.lower()))
        if word is not None:
            return word
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InspectAdapterError(
            f"score {value!r} is neither a number nor one of Inspect's words",
            place=f"sample {sample.id!r}",
            remedy="Say what passes: AdaptiveSamples(…, passed=lambda sample: …)",
        ) from None
    return None if math.isnan(number) else number >= 1.0


class AdaptiveSamples:
    """One model's adaptive run over a dataset: gives Inspect the next samples, tells the engine their outcomes.

    Parameters
    ----------
    engine : over a bank of exactly these samples (`Bank.align(sample_ids(samples))`).
    samples : an Inspect dataset, or any iterable of samples with ids.
    in_flight : how many samples run at a time, ≥ 1. One is the engine's own order; Inspect's `max_samples` bounds it.
    passed : outcome of a finished sample, None for "no grade"; `full_marks` of `scorer` by default.

    Samples without a grade are withdrawn as ungraded and replaced. Each chosen sample carries the engine's reasons
    in its metadata under "assay_choice", and so does Inspect's log.

    Raises
    ------
    InspectAdapterError
        If samples and bank differ, or `in_flight` < 1.
    """

    def __init__(
        self,
        engine: AdaptiveEngine,
        samples: Iterable[Any],
        *,
        in_flight: int = 1,
        scorer: str | None = None,
        passed: Passed | None = None,
    ) -> None:
        known = list(samples)
        self._samples = dict(zip(sample_ids(known), known, strict=True))
        _require_same(set(self._samples), set(engine.bank.item_ids))
        if in_flight < 1:
            raise InspectAdapterError(f"{in_flight} in flight", place="in_flight", remedy="Give at least 1")
        self.engine = engine
        self.stop: Stop | None = None  # why no further sample was chosen, once that is so
        self._in_flight = in_flight
        self._passed: Passed = passed or (lambda sample: full_marks(sample, scorer))
        self._pending: list[str] = []
        self._graded: dict[str, str | None] = {}  # item -> uuid of the finished sample
        self._ungraded: set[str] = set()

    @property
    def pending(self) -> tuple[str, ...]:
        """The items in flight, in the order of their choice."""
        return tuple(self._pending)

    def source(self) -> Any:
        """A new `inspect_ai.SampleSource`: the `dataset` of one Inspect `Task`, run once, on one model, with one epoch.

        Its first samples are chosen here. Raises ImportError, with the remedy, where inspect_ai is missing or too old.
        """
        try:
            from inspect_ai import SampleSource
        except ImportError as missing:
            raise ImportError("this needs inspect_ai with SampleSource: pip install 'assay[inspect]'") from missing
        return SampleSource.from_samples(
            self.refill(),
            next_samples=self.next_samples,
            sample_complete=self.sample_complete,
            sample_abandoned=self.sample_abandoned,
        )

    def metric(self) -> Any:
        """An Inspect metric for `Task(metrics=[…])`: the engine's estimate of the whole dataset, with its bounds."""
        from inspect_ai.scorer import metric

        def compute(scores: Sequence[Any]) -> dict[str, float]:
            found = self.engine.estimate()
            return {"estimate": found.value, "lower": found.lower, "upper": found.upper}

        return metric(name="full_dataset")(lambda: compute)()

    def refill(self) -> list[Any]:
        """The samples to start now: as many as `in_flight` leaves room for, unless the engine stops."""
        chosen = []
        while len(self._pending) < self._in_flight:
            step = self.engine.next(self._pending)
            if isinstance(step, Stop):
                self.stop = step
                break
            self.stop = None
            self._pending.append(step.item)
            chosen.append(self._carrying(step))
        return chosen

    async def next_samples(self) -> list[Any] | None:
        """Inspect asks when nothing is in flight: what is still listed was never started (`--limit`, `--sample-id`)."""
        for item in list(self._pending):
            self._settle(item, None, "Inspect did not run it")
        return self.refill() or None

    async def sample_complete(self, sample: Scored) -> list[Any]:
        """Take in a finished sample; returns what to run next. One reported again (Inspect's retries) changes nothing.

        Raises
        ------
        InspectAdapterError
            On a second outcome of one sample, or a second epoch.
        """
        item = str(sample.id)
        _require_one_epoch(item, sample.epoch)
        if item in self._graded:
            if self._graded[item] != sample.uuid:
                raise _second(item)
            return self.refill()
        passed = self._passed(sample)
        self._settle(item, passed, "no score" if sample.error is None else f"no score: {sample.error.message}")
        if passed is not None:
            self._graded[item] = sample.uuid
        return self.refill()

    async def sample_abandoned(self, sample: Any, epoch: int) -> list[Any]:
        """Take in that a sample was cancelled before it ran: no grade."""
        item = str(sample.id)
        _require_one_epoch(item, epoch)
        self._settle(item, None, "cancelled before it ran")
        return self.refill()

    def _settle(self, item: str, passed: bool | None, why: str) -> None:
        """An item leaves those in flight; one that had no grade may come back with one (Inspect's requeue)."""
        if item in self._pending:
            self._pending.remove(item)
        if item in self._ungraded:
            if passed is None:
                return
            self._ungraded.remove(item)
            self.engine.reinstate(item)
        if passed is None:
            self._ungraded.add(item)
            self.engine.withdraw(item, Withdrawal.UNGRADED, why)
        else:
            self.engine.observe(item, passed)

    def _carrying(self, choice: Choice) -> Any:
        """The chosen sample with the reasons for its choice in its metadata; the dataset's own stays as it is."""
        sample = self._samples[choice.item]
        return sample.model_copy(update={"metadata": {**(sample.metadata or {}), CHOICE: choice.as_event()}})


def _require_same(samples: set[str], items: set[str]) -> None:
    if samples == items:
        return
    odd = sorted(samples ^ items)[0]
    raise InspectAdapterError(
        f"{len(samples - items)} samples that the bank does not hold, {len(items - samples)} items without a sample,"
        f" such as {odd!r}",
        place="samples",
        remedy="Align the bank first: bank.align(sample_ids(samples))",
    )


def _require_one_epoch(item: str, epoch: int) -> None:
    if epoch != 1:
        raise InspectAdapterError(
            f"epoch {epoch}",
            place=f"sample {item!r}",
            remedy="Run with one epoch: the engine takes one outcome per item",
        )


def _second(item: str) -> InspectAdapterError:
    return InspectAdapterError(
        "came with a second outcome",
        place=f"sample {item!r}",
        remedy="Make an engine and an AdaptiveSamples of its own for each model and each evaluation",
    )
