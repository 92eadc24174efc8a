"""Finding a run or a trial by what a person types: the exact id, a unique prefix, or `latest`."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from harness.records.errors import StoreError

_MOST_NAMED = 5


def choose(noun: str, asked: str, ids: Sequence[str], *, latest: bool = False) -> str:
    """The one of `ids`, oldest first, that `asked` means. Raises StoreError with near matches."""
    if asked in ids:
        return asked
    if latest and asked == "latest":
        if not ids:
            raise StoreError("the store holds no run yet", remedy="`assay run` makes one")
        return ids[-1]
    beginning = sorted(id_ for id_ in ids if asked and id_.startswith(asked))
    if len(beginning) == 1:
        return beginning[0]
    if beginning:
        named = ", ".join(beginning[:_MOST_NAMED]) + (", …" if len(beginning) > _MOST_NAMED else "")
        raise StoreError(f"{asked!r} begins {len(beginning)} {noun}s: {named}", remedy="write more of the id")
    near = difflib.get_close_matches(asked, ids, n=3, cutoff=0.4)
    if near:
        raise StoreError(f"no {noun} {asked!r}", remedy="did you mean " + " or ".join(near) + "?")
    raise StoreError(f"no {noun} {asked!r}", remedy="`assay runs` lists them of this store")
