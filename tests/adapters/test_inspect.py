"""The adaptive engine inside real Inspect evaluations of a mock model whose outcomes are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.adapters.inspect import CHOICE, AdaptiveSamples, sample_ids
from harness.adaptive import AdaptiveEngine, Choice, EngineSettings, Estimate, TasksStop
from tests.adaptive.banks import random_bank

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed: pip install 'assay[inspect]'")

BANK = random_bank(11, n=60, d=2)
TASKS = 15


def truth(item: str) -> bool:
    return int(item.split("-")[1]) * 7919 % 101 % 5 < 3


def fresh_engine() -> AdaptiveEngine:
    return AdaptiveEngine(BANK, EngineSettings(stops=(TasksStop(TASKS),), seed=7))


def driven_directly() -> tuple[list[str], Estimate]:
    engine = fresh_engine()
    order = []
    while isinstance(step := engine.next(), Choice):
        order.append(step.item)
        engine.observe(step.item, truth(step.item))
    return order, engine.estimate()


def samples() -> list[Any]:
    from inspect_ai.dataset import Sample

    return [Sample(id=item, input=item, target="right") for item in BANK.item_ids]


def evaluate(run: AdaptiveSamples, logs: Path, *, broken: frozenset[str] = frozenset(), epochs: int = 1) -> Any:
    """Evaluate the mock model, which answers an item `right` where `truth` says so; `broken` items raise."""
    from inspect_ai import Task, eval
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import exact
    from inspect_ai.solver import generate, solver

    def answer(messages: list[Any], *_: Any) -> ModelOutput:
        output = ModelOutput.from_content("mockllm/model", "right" if truth(messages[-1].text) else "wrong")
        output.usage = ModelUsage()  # else the mock counts tokens, with a vocabulary that it downloads
        return output

    async def solve(state: Any, generate: Any) -> Any:
        if str(state.sample_id) in broken:
            raise RuntimeError("the sandbox broke")
        return state

    breaking = solver(name="breaking")(lambda: solve)
    task = Task(dataset=run.source(), solver=[breaking(), generate()], scorer=exact(), metrics=[run.metric()])
    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    [log] = eval(
        task, model=model, log_dir=str(logs), display="none", fail_on_error=False, epochs=epochs, score_display=False
    )
    return log


def test_one_at_a_time_is_the_engine_driven_directly(tmp_path: Path) -> None:
    run = AdaptiveSamples(fresh_engine(), samples())
    log = evaluate(run, tmp_path)
    order, estimate = driven_directly()
    assert log.status == "success", log.error
    assert [event["item"] for event in run.engine.events] == order
    assert run.engine.estimate() == estimate
    assert run.stop is not None
    assert (run.stop.executed, run.stop.pending) == (TASKS, 0)
    ran = {sample.id: sample for sample in log.samples}
    assert set(ran) == set(order)
    assert all(sample.metadata[CHOICE]["item"] == item for item, sample in ran.items())
    shown = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    assert shown == {"estimate": estimate.value, "lower": estimate.lower, "upper": estimate.upper}


def test_several_in_flight_keep_the_stop_and_replay_to_the_same_estimate(tmp_path: Path) -> None:
    run = AdaptiveSamples(fresh_engine(), samples(), in_flight=4)
    log = evaluate(run, tmp_path)
    assert log.status == "success", log.error
    pending = [len(sample.metadata[CHOICE]["pending"]) for sample in log.samples]
    assert len(pending) == TASKS
    assert max(pending) == 3
    again = fresh_engine()
    again.replay(run.engine.events)
    assert again.estimate() == run.engine.estimate()
    assert {event["item"]: event["passed"] for event in run.engine.events} == {s.id: truth(s.id) for s in log.samples}


def test_a_sample_that_breaks_is_ungraded_and_replaced(tmp_path: Path) -> None:
    order, _ = driven_directly()
    broken = frozenset(order[:2])
    run = AdaptiveSamples(fresh_engine(), samples(), in_flight=2)
    log = evaluate(run, tmp_path, broken=broken)
    assert log.status == "success", log.error
    assert len(log.samples) == TASKS + len(broken)
    withdrawn = {event["item"]: event for event in run.engine.events if event["kind"] == "withdraw"}
    assert set(withdrawn) == broken
    assert all(event["as"] == "ungraded" and "the sandbox broke" in event["reason"] for event in withdrawn.values())
    assert run.engine.estimate().executed == TASKS


def test_two_epochs_end_the_evaluation_with_the_reason(tmp_path: Path) -> None:
    log = evaluate(AdaptiveSamples(fresh_engine(), samples()), tmp_path, epochs=2)
    assert log.status == "error"
    assert "Run with one epoch" in log.error.message


def test_item_ids_are_those_of_the_dataset() -> None:
    assert sample_ids(samples()) == BANK.item_ids
