"""The Inspect adapter's reading of ids and scores, with plain objects in the place of Inspect's."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from harness.adapters.inspect import AdaptiveSamples, InspectAdapterError, full_marks, sample_ids
from harness.adaptive import AdaptiveEngine, EngineSettings, TasksStop
from tests.adaptive.banks import random_bank


class Sample(SimpleNamespace):
    """An Inspect sample as far as the adapter looks at one."""

    def model_copy(self, update: dict[str, Any]) -> Sample:
        return Sample(**{**vars(self), **update})


def dataset(n: int = 12) -> list[Sample]:
    return [Sample(id=f"item-{index}", metadata={"kept": index}) for index in range(n)]


def engine(stop: int = 5, n: int = 12) -> AdaptiveEngine:
    return AdaptiveEngine(random_bank(3, n=n, d=1), EngineSettings(stops=(TasksStop(stop),), seed=5))


def finished(item: str, value: Any = "C", uuid: str = "u", epoch: int = 1) -> Any:
    scores = None if value is None else {"exact": SimpleNamespace(value=value)}
    error = SimpleNamespace(message="the sandbox broke") if value is None else None
    return SimpleNamespace(id=item, epoch=epoch, uuid=f"{uuid}-{item}", scores=scores, error=error)


@pytest.mark.parametrize(
    ("value", "passed"),
    [
        *[("C", True), ("I", False), ("P", False), ("N", False), ("yes", True), ("No", False), ("1", True)],
        *[(True, True), (False, False), (1, True), (0, False), (1.0, True), (0.99, False), (float("nan"), None)],
    ],
)
def test_only_full_marks_pass_and_no_number_is_no_grade(value: Any, passed: bool | None) -> None:
    assert full_marks(finished("a", value)) is passed


@pytest.mark.parametrize("value", ["maybe", {"a": 1}, [1, 0]])
def test_a_score_that_says_neither_is_refused_with_its_sample(value: Any) -> None:
    with pytest.raises(InspectAdapterError, match=r"sample 'a'.*neither.*passed="):
        full_marks(finished("a", value))


def test_of_several_scores_the_named_one_decides() -> None:
    sample = finished("a")
    sample.scores = {"style": SimpleNamespace(value=1), "tests": SimpleNamespace(value="I")}
    assert full_marks(sample, "tests") is False
    with pytest.raises(InspectAdapterError, match=r"style, tests.*scorer=NAME"):
        full_marks(sample)
    with pytest.raises(InspectAdapterError, match="none of them 'test'"):
        full_marks(sample, "test")


def test_samples_need_ids_of_their_own() -> None:
    assert sample_ids([SimpleNamespace(id=1), SimpleNamespace(id="b")]) == ("1", "b")
    with pytest.raises(InspectAdapterError, match="sample 1: has no id"):
        sample_ids([SimpleNamespace(id="a"), SimpleNamespace(id=None)])
    with pytest.raises(InspectAdapterError, match="'1': appears twice"):
        sample_ids([SimpleNamespace(id=1), SimpleNamespace(id="1")])


def test_samples_and_bank_must_be_the_same_items() -> None:
    with pytest.raises(InspectAdapterError, match=r"1 samples that.*2 items without.*align"):
        AdaptiveSamples(engine(), [*dataset(10), Sample(id="other", metadata={})])


def test_a_chosen_sample_carries_the_reasons_and_the_dataset_stays_as_it_was() -> None:
    samples = dataset()
    run = AdaptiveSamples(engine(), samples, in_flight=2)
    first, second = run.refill()
    assert first.metadata["kept"] == int(first.id.split("-")[1])
    assert first.metadata["assay_choice"]["item"] == first.id
    assert second.metadata["assay_choice"]["pending"] == [first.id]
    assert all("assay_choice" not in sample.metadata for sample in samples)
    assert run.pending == (first.id, second.id)


def test_what_inspect_never_started_is_ungraded_and_replaced() -> None:
    run = AdaptiveSamples(engine(stop=2), dataset())
    [skipped] = run.refill()
    [replacement] = anyio.run(run.next_samples) or []
    assert replacement.id != skipped.id
    assert run.engine.events[0] == {
        "kind": "withdraw",
        "item": skipped.id,
        "as": "ungraded",
        "reason": "Inspect did not run it",
    }


def test_reported_again_changes_nothing_and_a_second_outcome_is_refused() -> None:
    run = AdaptiveSamples(engine(), dataset())
    [sample] = run.refill()
    anyio.run(run.sample_complete, finished(sample.id))
    events = run.engine.events
    assert anyio.run(run.sample_complete, finished(sample.id)) == []
    assert run.engine.events == events
    with pytest.raises(InspectAdapterError, match=f"{sample.id}.*second outcome.*each model"):
        anyio.run(run.sample_complete, finished(sample.id, uuid="v"))


def test_a_sample_that_failed_first_and_was_run_again_counts_with_its_outcome() -> None:
    run = AdaptiveSamples(engine(), dataset())
    [sample] = run.refill()
    anyio.run(run.sample_complete, finished(sample.id, None))
    assert run.engine.events[-1]["reason"] == "no score: the sandbox broke"
    anyio.run(run.sample_complete, finished(sample.id, None))
    anyio.run(run.sample_complete, finished(sample.id, "I"))
    kinds = [(event["kind"], event["item"]) for event in run.engine.events]
    assert kinds == [("withdraw", sample.id), ("reinstate", sample.id), ("observe", sample.id)]
    assert run.engine.estimate().executed == 1


def test_a_cancelled_sample_has_no_grade() -> None:
    run = AdaptiveSamples(engine(), dataset())
    [sample] = run.refill()
    [replacement] = anyio.run(run.sample_abandoned, sample, 1)
    assert replacement.id != sample.id
    assert run.engine.events[-1]["reason"] == "cancelled before it ran"


def test_a_second_epoch_is_refused() -> None:
    run = AdaptiveSamples(engine(), dataset())
    [sample] = run.refill()
    with pytest.raises(InspectAdapterError, match=r"epoch 2.*one epoch"):
        anyio.run(run.sample_complete, finished(sample.id, epoch=2))


def test_importing_the_adapter_does_not_import_inspect() -> None:
    script = "import sys, harness.adapters.inspect; assert 'inspect_ai' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
