"""One episode of an archive or run, replayed step by step, to be looked at."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path

from harness.api.replays import ReplayRequest, completed
from harness.api.replays_reading import SourceEpisode, source_of
from harness.records.errors import ConfigError
from harness.records.replay import Replayed
from harness.replay.engine import Comparison, replay_episode
from harness.replay.normalise import normalisations
from harness.store.sqlite import SqliteStore

_MOST_NAMES = 20_000


def replay_one(request: ReplayRequest, episode: str, store: SqliteStore | None = None) -> Replayed:
    """The episode of that name (TASK/TRIAL, or a trial's id or the beginning of it), with a digest of the state after
    every call that may have changed it. An empty name: the archive's place names a trial of the store. Raises
    ArchiveError, ConfigError, EnvironmentFault, StoreError."""
    if not episode:
        request, episode = _of_store(request, store)
    request, _ = completed(request, "replay show", store)
    comparison = Comparison(normalisations(request.normalise), states=request.states, digests=True)
    with request.places() as places:
        read = _found(request, episode, store)
        place = places.of(read.episode)
        return replay_episode(read.episode, place.world, place.opening_of(read.episode), comparison)


def _of_store(request: ReplayRequest, store: SqliteStore | None) -> tuple[ReplayRequest, str]:
    """The run and trial that a trial's id alone means."""
    if Path(request.archive).exists() or store is None:
        raise ConfigError(
            "which of its episodes is meant is not said",
            place=request.archive,
            remedy="name it too: assay replay show ARCHIVE TASK/TRIAL; a trial's id alone is looked up in the store",
        )
    trial = store.trial(request.archive)
    return replace(request, archive=trial.run), trial.trial


def _found(request: ReplayRequest, wanted: str, store: SqliteStore | None) -> SourceEpisode:
    names: list[str] = []
    begins: list[SourceEpisode] = []
    for read in source_of(request.archive, store, request.reading).episodes():
        known = {read.episode.id, read.trial or "", f"{read.episode.task}/{read.episode.repeat}"}
        if wanted in known:
            return read
        if read.trial is not None and read.trial.startswith(wanted):
            begins.append(read)
        if len(names) < _MOST_NAMES:
            names.append(f"{read.episode.task}/{read.episode.repeat}")
    if len(begins) == 1:
        return begins[0]
    near = difflib.get_close_matches(wanted, names, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"they are called TASK/TRIAL, e.g. {names[0]}"
    several = f"{len(begins)} episodes begin with {wanted!r}" if begins else f"there is no episode {wanted!r}"
    raise ConfigError(several, place=request.archive, remedy=hint)
