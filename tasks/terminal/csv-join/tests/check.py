"""Joins the pristine tables with dictionaries and compares row by row."""

import csv
import io
import pathlib
import sys

import gen

FILL, MIN_VAL = "~{ fill }~", ~{ min_val }~


def spelled(key):
    return key.strip(" ").upper() if ~{ norm }~ else key


def partners(rows):
    found = {}
    for row in rows:
        found.setdefault(spelled(row["~{ key }~"]), []).append(row)
    for key, group in found.items():
        if "~{ dup }~" == "latest":
            found[key] = [sorted(group, key=lambda row: row["updated"])[-1]]
        elif "~{ dup }~" == "first":
            found[key] = group[:1]
        elif "~{ dup }~" == "sum":
            found[key] = [{**group[0], "~{ rval }~": str(sum(int(row["~{ rval }~"]) for row in group))}]
    return found


def expected():
    tables = {name: list(csv.DictReader(io.StringIO(text, newline=""))) for name, text in gen.build().items()}
    left, right = tables["~{ left }~.csv"], partners(tables["~{ right }~.csv"])
    labels = {row["code"]: row["label"] for row in tables.get("~{ third }~.csv", [])}
    pairs = []
    for row in left:
        key = spelled(row["~{ key }~"])
        if int(row["~{ lval }~"]) >= MIN_VAL and ("~{ how }~" != "anti" or key not in right):
            empty = [] if "~{ how }~" == "inner" else [{}]
            pairs += [{**other, **row, "~{ key }~": key} for other in right.get(key, empty)]
    if "~{ how }~" == "full":
        keys = {spelled(row["~{ key }~"]) for row in left}
        pairs += [{**other, "~{ key }~": key} for key, group in right.items() if key not in keys for other in group]
    for pair in pairs:
        if pair.get("~{ rval }~") in labels:
            pair["label"] = labels[pair["~{ rval }~"]]
    number = (lambda pair: -int(pair["~{ lval }~"])) if "~{ order }~" == "value" else (lambda pair: 0)
    first = "~{ key if order == "key" else lid }~"
    pairs.sort(key=lambda pair: (number(pair), *(pair.get(col, "") for col in (first, "~{ lid }~", "~{ rname }~"))))
    cols = ~{ cols }~
    lost = {spelled(row["~{ key }~"]) for row in left} - set(right)
    return [cols] + [[pair.get(col, FILL) for col in cols] for pair in pairs], sorted(lost)


def produced(name):
    path = pathlib.Path("/app") / name
    if not path.is_file():
        sys.exit(f"{path} is missing")
    text = path.read_bytes().decode("utf-8", "replace")
    if "\r" in text or not text.endswith("\n"):
        sys.exit(f"{path}: lines must end in a single LF")
    return text


def compare(what, got, wanted):
    for number, (mine, theirs) in enumerate(zip(wanted, got), 1):
        if mine != theirs:
            sys.exit(f"{what} line {number}: expected {mine}, found {theirs}")
    if len(got) != len(wanted):
        sys.exit(f"{what}: expected {len(wanted)} lines, found {len(got)}")


rows, rejects = expected()
compare("joined.csv", list(csv.reader(io.StringIO(produced("joined.csv"), newline=""), delimiter="~{ sep }~")), rows)
~% if rejects %~compare("rejects.txt", produced("rejects.txt").splitlines(), rejects)
~% endif %~print("as expected")
