"""Results as JSON files of one folder, and as markdown and plots made from them alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"

Row = Mapping[str, Any]


def save(name: str, content: Mapping[str, Any], folder: Path = FOLDER) -> Path:
    """Write `name`.json, one row a line so that a diff can be read."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    head = {key: value for key, value in content.items() if key != "rows"}
    rows = ",\n".join("  " + json.dumps(row, allow_nan=False) for row in content.get("rows", []))
    text = json.dumps(head, indent=1, allow_nan=False)
    path.write_text(f'{text[:-2]},\n "rows": [\n{rows}\n ]\n}}\n', encoding="utf-8")
    return path


def load(name: str, folder: Path = FOLDER) -> dict[str, Any] | None:
    """The content of `name`.json, None if there is none."""
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def interval(figure: Sequence[float] | None, digits: int = 2) -> str:
    """ "1.59 [1.32, 1.87]"; "–" for none."""
    if figure is None or figure[0] != figure[0]:
        return "–"
    value, low, high = figure
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table; the first column is text, the others numbers."""
    rule = ["---", *("---:" for _ in header[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, rule, *lines))


def error_table(rows: Sequence[Row], checkpoints: Sequence[int]) -> str:
    """MAE in percentage points with its interval, one line per method."""
    return _table(rows, checkpoints, lambda row: interval(row["mae_pp"]))


def ratio_table(rows: Sequence[Row], checkpoints: Sequence[int], other: str) -> str:
    """MAE over that of `other`, one line per method."""
    return _table(
        [row for row in rows if other in row["ratio"]], checkpoints, lambda row: interval(row["ratio"][other])
    )


def rank_table(rows: Sequence[Row], checkpoints: Sequence[int]) -> str:
    """Spearman / Kendall."""

    def cell(row: Row) -> str:
        if row["spearman"] is None:
            return "–"
        return f"{row['spearman']:.3f} / {row['kendall']:.3f}"

    return _table(rows, checkpoints, cell)


def interval_table(rows: Sequence[Row], checkpoints: Sequence[int]) -> str:
    """Coverage of the nominal 90 % interval, in %, and its width in percentage points."""

    def cell(row: Row) -> str:
        return f"{100 * row['coverage'][0]:.0f} % ({row['width_pp']:.1f})"

    return _table([row for row in rows if row["coverage"] is not None], checkpoints, cell)


def _table(rows: Sequence[Row], checkpoints: Sequence[int], cell: Any) -> str:
    found = {(row["method"], row["k"]): row for row in rows}
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lines = [[name, *(cell(found[name, k]) if (name, k) in found else "–" for k in checkpoints)] for name in methods]
    return markdown(["method", *(f"k = {k}" for k in checkpoints)], lines)


def report(
    title: str, content: Mapping[str, Any], against: Sequence[str], checkpoints: Sequence[int] | None = None
) -> str:
    """All tables of one experiment."""
    rows, ks = content["rows"], checkpoints or content["checkpoints"]
    parts = [f"## {title}", "", content.get("about", ""), "", "MAE, percentage points [95 % bootstrap]:", ""]
    parts += [error_table(rows, ks), ""]
    for other in against:
        parts += [f"MAE over that of `{other}`:", "", ratio_table(rows, ks, other), ""]
    parts += ["Spearman / Kendall:", "", rank_table(rows, ks), ""]
    parts += ["Coverage of the nominal 90 % interval (mean width, pp):", "", interval_table(rows, ks), ""]
    return "\n".join(parts)
