"""Reports on the pristine events in plain Python and compares line by line."""

import collections
import datetime
import json
import pathlib
import sys

import gen

STEPS, SEPARATOR = ~{ steps }~, {"tsv": "\t", "csv": ",", "txt": " | "}["~{ format }~"]


def readable(line):
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) and {"id", "ts", "type"} <= value.keys() else None


def settled(entries):
    """The events that count."""
    if "~{ dup }~" != "none":
        by_id = {}
        for entry in entries:
            if "~{ dup }~" == "last" or entry["id"] not in by_id:
                by_id[entry["id"]] = entry
        entries = by_id.values()
    for entry in entries:
        user = entry.get("user") or ("anonymous" if "~{ anon }~" == "name" else None)
        if (user or "~{ anon }~" != "skip") and entry["type"] != "~{ ignore }~" and (entry["ok"] or not ~{ ok }~):
            yield {**entry, "user": user, "day": entry["ts"][:10]}


def session_sizes(events):
    times = sorted(datetime.datetime.strptime(e["ts"], "%Y-%m-%dT%H:%M:%SZ") for e in events)
    sizes = [1]
    for before, after in zip(times, times[1:]):
        if after - before > datetime.timedelta(minutes=~{ gap }~):
            sizes.append(0)
        sizes[-1] += 1
    return sizes


def steps_reached(events):
    reached, since = 0, ""
    for step in STEPS:
        times = [e["ts"] for e in events if e["type"] == step and e["ts"] > since]
        if not times:
            break
        reached, since = reached + 1, min(times)
    return reached


def table(events):
    name = {"types": "type", "slow": "type", "daily": "day"}.get("~{ report }~", "user")
    groups = collections.defaultdict(list)
    for entry in events:
        groups[entry[name]].append(entry)
    if "~{ report }~" == "funnel":
        reached = [steps_reached(group) for group in groups.values()]
        return [["step", "users"]] + [[s, sum(r > n for r in reached)] for n, s in enumerate(STEPS)]
    rows = []
    for key, group in sorted(groups.items()):
        ms, users = sorted(e["ms"] for e in group), len({e["user"] for e in group})
        times = sorted(e["ts"] for e in group)
        tail = {
            "types": {"sum": ["ms_sum", sum(ms)], "max": ["ms_max", ms[-1]], "users": ["users", users]}["~{ measure }~"],
            "users": ["first", times[0], "last", times[-1]],
            "daily": ["users", users],
            "slow": [x for p in (50, ~{ rank }~) for x in (f"p{p}", ms[-(-len(ms) * p // 100) - 1])],
        }
        cells = [name, key, "events", len(group), *tail.get("~{ report }~", [])]
        if "~{ report }~" == "sessions":
            sizes = session_sizes(group)
            cells = [name, key, "sessions", len(sizes), "longest", max(sizes)]
        rows.append(cells[1::2])
        header = cells[::2]
    if "~{ order }~" == "count":
        rows.sort(key=lambda row: -row[1])
    return [header, *rows]


lines = gen.build().splitlines()
entries = [entry for entry in map(readable, lines) if entry is not None]
rows = table(settled(entries)) + ([["skipped", len(lines) - len(entries)]] if ~{ bad }~ else [])
wanted = "".join(SEPARATOR.join(map(str, row)) + "\n" for row in rows)
path = pathlib.Path("/app/report.~{ format }~")
if not path.is_file():
    sys.exit(f"{path} is missing")
found = path.read_bytes().decode("utf-8", "replace")
if found != wanted:
    sys.exit(f"{path} differs\n--- expected\n{wanted}--- found\n{found[:4000]}")
print("as expected")
