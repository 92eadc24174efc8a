"""Span files: JSON or JSON lines, gzipped or not, in any shape of :mod:`harness.billing.span_shapes`; and which of
them belong together.

Files that share a trace are one run, so that a tree split into files bills as the whole. A file that says what its
source's total was (an upload of the Holistic Agent Leaderboard) keeps it, for the diagnosis.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.billing.columns import SpanColumns, SpanRow, columns_of, counts_of
from harness.billing.price import cost_usd
from harness.billing.prices import PriceTable
from harness.billing.span_shapes import Reading, readings
from harness.billing.usage import normalise
from harness.records.errors import ConfigError

SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
LARGEST_DOCUMENT_BYTES = 1 << 30  # of one JSON document, which is read whole; JSON lines may be of any length


@dataclass
class SpanFile:
    """What one file holds. `archived_tokens`, `archived_cost_usd`: its source's own total, None where it says none.

    `faults` are lines that could not be read, each with its place.
    """

    path: Path
    scaffold: str | None = None
    archived_tokens: int | None = None
    archived_cost_usd: float | None = None
    columns: SpanColumns = field(default_factory=lambda: columns_of(()))
    traces: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)


def read_spans(path: str | Path, prices: PriceTable | None = None) -> SpanFile:
    """Read one file into columns, priced by the table, or at the costs that it records.

    Raises ConfigError when nothing of it can be read; single bad lines become `faults`.
    """
    file = SpanFile(Path(path))
    file.columns = columns_of(priced_rows(_readings(file), prices))
    return file


def _readings(file: SpanFile) -> Iterator[Reading]:
    for document in _documents(file):
        if isinstance(document, Mapping):
            _note_totals(document, file)
        for span in readings(document):
            if span.trace:
                file.traces.add(span.trace)
            yield span


def span_files(path: str | Path) -> list[Path]:
    """The span files at a path: itself, or everything of a known suffix below a folder, by name. Raises ConfigError."""
    root = Path(path)
    if root.is_file():
        return [root]
    if not root.is_dir():
        raise ConfigError("there is no such file or folder", place=str(root))
    found = sorted(file for file in root.rglob("*") if file.is_file() and file.name.lower().endswith(SUFFIXES))
    if not found:
        raise ConfigError("no span file in this folder", place=str(root), remedy=f"known are {', '.join(SUFFIXES)}")
    return found


def together(files: Iterable[SpanFile]) -> list[list[SpanFile]]:
    """Files by run: those that share a trace, directly or by way of others, in order of the first."""
    groups: list[list[SpanFile]] = []
    for file in files:
        traces = file.traces
        sharing = [group for group in groups if any(traces & other.traces for other in group)]
        merged = [one for group in sharing for one in group] + [file]
        at = groups.index(sharing[0]) if sharing else len(groups)
        groups = [group for group in groups if group not in sharing]
        groups.insert(at, merged)
    return groups


def priced_rows(spans: Iterable[Reading], prices: PriceTable | None) -> Iterator[SpanRow]:
    """Spans as rows for the fold, priced by the table; without one, costs are those that the source recorded."""
    for span in spans:
        usage = span.usage
        yield (
            span.span,
            span.parent,
            span.attempt,
            span.provider,
            span.response,
            # A usage object that cannot be read is a call without usage, not a mere bracket around others.
            span.model or ("unknown" if span.failed_usage else None),
            None if usage is None else counts_of(usage),
            span.cost_usd if prices is None else _priced(span, prices),
            span.charged,
        )


def _priced(span: Reading, prices: PriceTable) -> float | None:
    total = 0.0
    for part in span.parts:
        price = prices.price(part.model) if part.model is not None else None
        cost = cost_usd(part.usage, None if price is None else price.of_tier(part.tier))
        if cost is None:
            return None
        total += cost
    return total if span.parts else None


def _documents(file: SpanFile) -> Iterator[Any]:
    """The JSON documents of a file: one, or one a line."""
    place = str(file.path)
    try:
        with _opened(file.path) as source:
            first = source.readline()
            try:
                yield json.loads(first)
            except ValueError:  # no JSON lines, then: one document over several lines
                rest = source.read(LARGEST_DOCUMENT_BYTES + 1)
                if len(rest) > LARGEST_DOCUMENT_BYTES:
                    raise ConfigError(
                        "the document is larger than 1 GiB", place=place, remedy="write it as JSON lines"
                    ) from None
                yield _whole(first + rest, place)
                return
            for number, line in enumerate(source, start=2):
                if not line.strip():
                    continue
                try:
                    yield json.loads(line)
                except (ValueError, RecursionError) as error:
                    file.faults.append(f"{place}:{number}: {error}")
    except (OSError, EOFError) as error:
        raise ConfigError(f"cannot be read: {error}", place=place) from error
    except RecursionError:
        raise ConfigError("nested too deep to be a span file", place=place) from None


def _opened(path: Path) -> Any:
    return gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb")


def _whole(data: bytes, place: str) -> Any:
    try:
        return json.loads(data)
    except ValueError as error:
        line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise ConfigError(f"not valid JSON: {error}", place=place + line) from error


def _note_totals(document: Mapping[str, Any], file: SpanFile) -> None:
    """The totals that an upload states: `total_usage` by model, and `total_cost` among its results."""
    usage, config = document.get("total_usage"), document.get("config")
    if isinstance(usage, Mapping):
        counts = [normalise(one) for one in usage.values()]
        if counts and all(one is not None for one in counts):
            file.archived_tokens = sum(one.total for one in counts if one is not None)
    for holder in (document.get("results"), document):
        cost = holder.get("total_cost") if isinstance(holder, Mapping) else None
        if isinstance(cost, (int, float)) and not isinstance(cost, bool) and file.archived_cost_usd is None:
            file.archived_cost_usd = float(cost)
    if isinstance(config, Mapping) and isinstance(config.get("agent_name"), str):
        file.scaffold = config["agent_name"]
