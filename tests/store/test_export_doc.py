"""docs/export.md describes exactly the columns that the export writes, and the values they take."""

from __future__ import annotations

import re
from pathlib import Path

from harness.records.vocabulary import Outcome, StopReason
from harness.store.flat import COLUMNS

PAGE = (Path(__file__).parents[2] / "docs" / "export.md").read_text()


def rows() -> dict[str, list[str]]:
    """The cells of the table by column name."""
    found = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| `")]
    return {cells[0].strip(" `"): [cell.strip() for cell in cells] for cells in found}


def test_the_page_lists_the_columns_in_their_order() -> None:
    assert tuple(rows()) == COLUMNS


def test_every_column_has_a_meaning_a_unit_and_says_when_it_is_blank() -> None:
    assert all(len(cells) == 4 and all(cells) for cells in rows().values())


def test_the_words_of_a_column_are_those_that_are_written() -> None:
    assert re.findall(r"`([^`]+)`", rows()["outcome"][2]) == [outcome.value for outcome in Outcome]
    written = [stop.value for stop in StopReason if stop is not StopReason.UNKNOWN]  # which is blank
    assert re.findall(r"`([^`]+)`", rows()["stop"][2]) == written
