"""What bears witness to a record, and which faults nothing in it would show. Pure.

A replay compares answers and states. Calls that change nothing leave none behind when they are left out together with
their answers, or change places. What shows these lies beside the steps: numbers and times of messages, sums, a second
copy, a model log (:class:`harness.records.archive.Trace`, which importers fill in); the chain of our own streams; and
what the agent knew: an identifier that it used with success, and that nobody had told it, was in something that is
gone. Where there is no such evidence, that is said of the episode (:func:`unshown`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.records.archive import TRACE, Fault, Step, Trace
from harness.records.calls import FAILED
from harness.records.replay import RecordedEpisode
from harness.records.vocabulary import Actor
from harness.replay.order import FULL_DUPLEX, Break, of_interaction, paired

SEALED = "assay"  # the format of our own streams, whose chain is derived again when they are read
_WHOLE = frozenset({"tau-bench", "tau2"})  # formats that keep all that the agent was told
_IDENTIFIERS = re.compile(r"(?:^|_)(?:id|ids|number)$")  # arguments that name something
_RUN = re.compile(r"[A-Za-z0-9]{4,}")
_APART = re.compile(r"[^a-z0-9]+")


def recorded_trace(episode: RecordedEpisode) -> Trace:
    """The evidence beside the steps, as the importer found it."""
    stated = episode.stated.get(TRACE)
    return Trace.model_validate(stated) if isinstance(stated, Mapping) else Trace()


def contradicted(episode: RecordedEpisode, trace: Trace) -> Break | None:
    """The first step that the evidence beside the steps, or what the agent knew, speaks against."""
    found = [Break(*trace.broken)] if trace.broken is not None else []
    unexplained = unexplained_identifier(episode)
    return min([*found, unexplained] if unexplained is not None else found, default=None)


def unshown(episode: RecordedEpisode, trace: Trace, *, answered: bool, states: bool) -> tuple[Fault, ...]:
    """The faults that nothing in the record would show. `answered`: all calls have an answer that was compared;
    `states`: a digest of a whole state was."""
    if episode.format == SEALED:
        return ()
    shown = {*trace.shows, *([Fault.OBSERVATION] if answered else []), *([Fault.ROW] if states else [])}
    return tuple(fault for fault in Fault if fault not in shown)


def unexplained_identifier(episode: RecordedEpisode) -> Break | None:
    """The first call of the agent's that succeeded with an identifier which nothing before it holds.

    Only arguments that are identifiers by name count, and of these the runs of letters and digits with a digit; a guess
    succeeds seldom, and one that was refused proves nothing.
    """
    if episode.format not in _WHOLE or episode.mode == FULL_DUPLEX:
        return None
    answers = paired(episode).answers
    told = list(_given(episode.definition))
    for index, step in enumerate(episode.steps):
        if step.kind == "tool.call" and step.actor is Actor.AGENT and of_interaction(step):
            arguments = step.payload.get("arguments")
            for run in _identifiers(arguments):
                if not _held(run, told) and _succeeded(episode.steps, answers.get(index)):
                    name = step.payload.get("gen_ai.tool.name")
                    return Break(index, f"{name} is called with {run}, which nothing before it says")
            told.append(json.dumps(arguments, ensure_ascii=False))
        elif step.kind in ("message", "tool.result") and step.actor is not Actor.AGENT:
            told.append(str(step.payload.get("content")))
    return None


def _given(definition: Any) -> Iterator[str]:
    """What a task tells the agent before the first step."""
    if isinstance(definition, Mapping):
        for key in ("ticket", "initial_state"):
            if definition.get(key) is not None:
                yield json.dumps(definition[key], ensure_ascii=False)


def _identifiers(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _identifiers(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _identifiers(inner, key)
    elif isinstance(value, str) and _IDENTIFIERS.search(key) and any(map(str.isalpha, value)):
        yield from (run for run in _RUN.findall(value) if any(map(str.isdigit, run)))


def _held(run: str, told: Sequence[str]) -> bool:
    """Whether any of the texts has it, however it is spaced and cased."""
    if any(run in text for text in told):
        return True
    lower = run.lower()
    return any(lower in _APART.sub("", text.lower()) for text in told)


def _succeeded(steps: Sequence[Step], answer: int | None) -> bool:
    if answer is None:
        return False
    payload = steps[answer].payload
    return payload.get("error") is not True and not str(payload.get("content")).startswith(FAILED)
