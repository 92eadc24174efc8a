"""Which importer an archive is for: asked by content, never by name.

An importer of one's own is found by entry point (group `assay.importers`) or as `path/to/file.py:name`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from harness import plugins
from harness.importers.container import Archive
from harness.importers.shape import only_file, shape
from harness.protocols import Importer
from harness.records.archive import ArchiveError, Recognition

BUILT_IN = {
    "tau-bench": "harness.importers.tau_bench:TauBenchImporter",
    "tau2": "harness.importers.tau2:Tau2Importer",
    "hal": "harness.importers.hal:HalImporter",
    "flat": "harness.importers.flat:FlatImporter",
    "inspect": "harness.importers.inspect_log:InspectImporter",
    "harbor": "harness.importers.harbor:HarborImporter",
    "atif": "harness.importers.atif:AtifImporter",
    "terminal-bench": "harness.importers.terminal_bench:TerminalBenchImporter",
    "swe-bench": "harness.importers.swe_bench:SweBenchImporter",
    "otel": "harness.importers.otel:OtelImporter",
}


_LOOKED_AT = 50  # files, for a word on why none of them is known


def importer_names() -> tuple[str, ...]:
    """The formats that can be imported."""
    return tuple(dict.fromkeys((*BUILT_IN, *plugins.names("importers"))))


def importer_named(name: str) -> Importer:
    """The importer of a format. Raises ConfigError with near matches."""
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        found: Importer = getattr(importlib.import_module(module), attribute)()
        return found
    loaded = plugins.load("importers", name)
    made: Importer = loaded() if isinstance(loaded, type) else loaded
    return made


def choose(archive: Archive, asked: str | None = None) -> tuple[Importer, Recognition]:
    """The importer of an archive and what it says of it. Raises ArchiveError, ConfigError for an unknown name."""
    if asked is not None:
        importer = importer_named(asked)
        recognition = importer.recognises(archive)
        if recognition is None:
            others = [found.format for _, found in _all(archive)]
            hint = f"it looks like {', '.join(others)}" if others else f"it holds {_described(archive)}"
            raise ArchiveError(f"not an archive of format {asked!r}", place=str(archive.path), remedy=hint)
        return importer, recognition
    found = sorted(_all(archive), key=lambda pair: -pair[1].sure)
    if not found:
        raise ArchiveError(
            f"no known format: it holds {_described(archive)}",
            place=str(archive.path),
            remedy=f"known: {', '.join(importer_names())}; name the file or folder that holds the results",
        )
    if len(found) > 1 and found[0][1].sure == found[1][1].sure:
        names = ", ".join(recognition.format for _, recognition in found)
        raise ArchiveError(f"may be {names}", place=str(archive.path), remedy="say which with --format")
    return found[0]


def _all(archive: Archive) -> Iterator[tuple[Importer, Recognition]]:
    for name in importer_names():
        importer = importer_named(name)
        recognition = importer.recognises(archive)
        if recognition is not None:
            yield importer, recognition


def _described(archive: Archive) -> str:
    """A few words on content that nobody knows."""
    name = only_file(archive)
    if name is None:
        told = f"{len(archive.names):,} files" + (f", such as {archive.names[0]}" if archive.names else "")
        problems = (shape(archive, name).problem for name in archive.names[:_LOOKED_AT] if name.endswith(".json"))
        problem = next((problem for problem in problems if problem), None)
        return told + (f"; one cannot be read: {problem}" if problem else "")
    found = shape(archive, name)
    if found.problem:
        return f"what cannot be read ({found.problem})"
    fields = ", ".join(list(found.fields)[:8] or (list(found.first)[:8] if isinstance(found.first, dict) else []))
    return f"{found.kind}" + (f" with {fields}" if fields else "")
