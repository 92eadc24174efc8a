"""Compares with the dates that the file was written from."""

import collections
import pathlib
import sys

import gen


def shown(d):
    year, week, weekday = d.isocalendar()
    iso = f"{d.year}-{d.month:02d}-{d.day:02d}"
    return {
        "iso": iso, "week": f"{year}-W{week:02d}-{weekday}", "ordinal": f"{d.year}-{d.timetuple().tm_yday:03d}",
        "weekday": f"{('Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun')[weekday - 1]} {iso}",
        "long": f"{d.day} {gen.MONTHS[d.month - 1]} {d.year}", "zulu": f"{iso}T{d.hour:02d}:{d.minute:02d}:{d.second:02d}Z",
    }["~{ out }~"]


def due(d):
    month = d.month - 1 + ~{ months }~
    first = d.replace(day=1, year=d.year + month // 12, month=month % 12 + 1)
    days = [first + gen.DAY * n for n in range(d.day)]
    return [day for day in days if day.month == first.month][-1]


def between(first, last):
    if None in (first, last):
        return "invalid"
    if "~{ kind }~" == "diff":
        return (last - first).days
    count, day = 0, first
    while day < last:
        count, day = count + (day.isoweekday() <= 5), day + gen.DAY
    return count


def bucket(d):
    year, week, weekday = d.isocalendar()
    quarter = "1112223334444"[d.month - 1] if d.month < 10 else "4"
    names = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    return {"month": f"{d.year}-{d.month:02d}", "quarter": f"{d.year}-Q{quarter}", "week": f"{year}-W{week:02d}", "weekday": names[weekday - 1]}["~{ bucket }~"]


def expected(text, rows):
~% if kind == "text" %~    for _, [(written, d)] in sorted(rows, key=lambda row: -len(row[1][0][0])):
        text = text.replace(f" {written}", f" {shown(d)}")
    return text
~% else %~~% if kind == "column" %~    table = [("id", "date")] + [(name, shown(d) if d else "invalid") for name, [(_, d)] in rows]
~% elif kind == "due" %~    table = [("id", "due")] + [(name, shown(due(d))) for name, [(_, d)] in rows if d]
~% elif kind in ["diff", "workdays"] %~    table = [("id", "~{ "days" if kind == "diff" else "workdays" }~")] + [(name, between(first, last)) for name, [(_, first), (_, last)] in rows]
~% elif kind == "bucket" %~    counts = collections.Counter(bucket(d) for _, [(_, d)] in rows if d)
    table = [("~{ bucket }~", "count")] + sorted(counts.items(), key=lambda row: (-row[1] if "~{ order }~" == "count" else 0, row[0]))
~% else %~    valid = sorted((d.timestamp() * (-1 if "~{ order }~" == "desc" else 1), name, shown(d)) for name, [(_, d)] in rows if d)
    table = [("id", "~{ "time" if kind == "utc" else "date" }~")] + [row[1:] for row in valid]
~% endif %~    return "".join(f"{left};{right}\n" for left, right in table)


~% endif %~def compare(name, wanted):
    path = pathlib.Path("/app", name)
    if not path.is_file():
        sys.exit(f"{path} is missing")
    found = path.read_bytes().decode("utf-8", "replace")
    if found != wanted:
        sys.exit(f"{path} differs\n--- expected\n{wanted[:4000]}--- found\n{found[:4000]}")


_, text, rows = gen.build()
compare("~{ "out.txt" if kind == "text" else "out.csv" }~", expected(text, rows))
~% if rejects %~compare("rejects.csv", "".join(f"{name};{written}\n" for name, [(written, d)] in rows if d is None))
~% endif %~print("as expected")
