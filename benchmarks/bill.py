"""How long a million spans take to bill, in seconds of one core, and how much memory: budget 3 s and 500 MB.

    python -m benchmarks.bill [--spans 1000000]

The spans are those of a wrapped client: calls below agents, each recorded again by the client below it, with response
ids, costs, an outer orchestrator without usage, and one call in a thousand without usage. Rows come from a generator,
so that what is measured is the reading into columns and the fold, and the memory is that of the whole process. The
yardstick is a loop that does nothing but add the same tokens up in a dictionary by response.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Iterator

from harness.billing.columns import SpanRow, columns_of
from harness.billing.fold import fold_columns

LIMIT_S, LIMIT_MB = 3.0, 500.0
CALLS_PER_AGENT = 50


def rows(count: int) -> Iterator[SpanRow]:
    """`count` spans, children before their parents now and then."""
    yield ("run", None, 1, None, None, None, None, None, True)
    made, call = 1, 0
    while made < count:
        agent = f"agent-{call // CALLS_PER_AGENT:08d}"
        if call % CALLS_PER_AGENT == CALLS_PER_AGENT - 1:
            yield (agent, "run", 1, None, None, None, None, None, True)
            made += 1
        outer, response = f"{call:016x}", f"resp_{call:024x}"
        tokens = (1000 + call % 977, 500, -1, 100, 7, -1, -1) if call % 1000 else None
        yield (f"{outer}-client", outer, 1, "openai", response, "gpt", tokens, 0.01, True)
        yield (outer, agent, 1, "openai", response, "gpt", tokens, 0.01, True)
        made += 2
        call += 1


def yardstick_s(count: int) -> float:
    """Seconds for the same rows through a plain dictionary."""
    start = time.process_time()
    sums: dict[str | None, int] = {}
    for row in rows(count):
        if row[6] is not None:
            sums[row[4]] = sum(row[6])
    return time.process_time() - start


def main() -> int:
    """Print the figures; 1 when one is over its budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, default=1_000_000)
    count = parser.parse_args().spans
    start = time.process_time()
    made = sum(1 for _ in rows(count))
    making = time.process_time() - start
    start = time.process_time()
    columns = columns_of(rows(count))
    read = time.process_time()
    folded = fold_columns(columns)
    end = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    took = end - start - making
    print(f"{made} spans: {took:.2f} s (reading {read - start - making:.2f}, folding {end - read:.2f}), {peak:.0f} MB")
    assert folded.usage is not None
    assert folded.all_spans is not None
    print(
        f"billed {folded.billed.size}, missing {folded.missing.size},"
        f" ratio {folded.all_spans.total / folded.usage.total}"
    )
    print(f"yardstick, a dictionary by response: {yardstick_s(count) - making:.2f} s")
    return int(took > LIMIT_S or peak > LIMIT_MB)


if __name__ == "__main__":
    sys.exit(main())
