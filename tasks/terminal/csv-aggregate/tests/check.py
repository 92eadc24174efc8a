"""Summarises the pristine table with exact decimals and compares line by line."""

import collections
import decimal
import pathlib
import re
import sys

import gen

GROUP, METRICS, STATE = ~{ group }~, ~{ metrics }~, "~{ stv }~"
NAMES = {"count": "rows", "sum_n": "~{ n }~_sum", "distinct": "~{ g2 }~_distinct", "share": "share"}
NAMES.update({f"{kind}_amt": f"~{ amt }~_{kind}" for kind in ("sum", "max", "min", "mean")})


def counted():
    """The lines that count, as dictionaries with exact amounts."""
    header, *lines = [line.split(",") for line in gen.build().splitlines()]
    for line in lines:
        row = dict(zip(header, line))
        row["month"] = row["date"][:7]
        state, text = row["~{ st }~"], row["~{ amt }~"]
        kept = {"none": True, "status": state != STATE, "only": state == STATE}
        kept["dates"] = "2024-02-10" <= row["date"] <= "2024-03-20"
        if kept["~{ filter }~"] and re.fullmatch(r"\d+\.\d\d", text):
            sign = -1 if ~{ negative }~ and state == STATE else 1
            if ~{ fold }~:
                row[GROUP[-1]] = row[GROUP[-1]].strip().lower()
            yield {**row, "n": int(row["~{ n }~"]), "cents": sign * int(decimal.Decimal(text) * 100)}


def measure(metric, rows, all_cents):
    cents = [row["cents"] for row in rows]
    numbers = {"count": len(rows), "sum_n": sum(row["n"] for row in rows)}
    numbers["distinct"] = len({row["~{ g2 }~"] for row in rows})
    numbers["share"] = 100 * sum(cents) // all_cents
    money = {"sum_amt": sum(cents), "max_amt": max(cents), "min_amt": min(cents), "mean_amt": sum(cents) // len(cents)}
    return decimal.Decimal(money[metric]).scaleb(-2) if metric in money else numbers[metric]


def expected():
    groups = collections.defaultdict(list)
    for row in counted():
        groups[tuple(row[name] for name in GROUP)].append(row)
    all_cents = sum(row["cents"] for rows in groups.values() for row in rows)
    lines = [(key, [measure(m, rows, all_cents) for m in METRICS]) for key, rows in groups.items() if len(rows) >= ~{ having }~]
    lines.sort(key=lambda line: (-line[1][0] if "~{ order }~" == "metric" else 0, line[0]))
    lines = lines[: ~{ top }~ or None]
    if ~{ total }~:
        blank = ("TOTAL", "")[: len(GROUP)]
        lines.append((blank, [sum(column) for column in zip(*(line[1] for line in lines))]))
    table = [[*GROUP, *(NAMES[m] for m in METRICS)]] + [[*key, *map(str, values)] for key, values in lines]
    if "~{ format }~" == "md":
        table.insert(1, ["---"] * len(table[0]))
        return [f"| {' | '.join(row)} |" for row in table]
    return [{"csv": ",", "tsv": "\t"}["~{ format }~"].join(row) for row in table]


path = pathlib.Path("/app/summary.csv")
if not path.is_file():
    sys.exit(f"{path} is missing")
wanted = "".join(line + "\n" for line in expected())
found = path.read_bytes().decode("utf-8", "replace")
if found != wanted:
    sys.exit(f"{path} differs\n--- expected\n{wanted}--- found\n{found[:4000]}")
print("as expected")
