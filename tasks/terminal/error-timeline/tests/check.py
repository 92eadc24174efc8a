"""Builds the timeline from the entries that the logs were written from, and compares line by line."""

import collections
import datetime
import pathlib
import sys

import gen


def utc(ms):
    return (gen.START + datetime.timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def merge(entries, errors, deploys):
    return ["time", "service", "request", "message"], [(utc(e[0]), e[1], e[3], e[4]) for e in errors]


def incidents(entries, errors, deploys):
    groups = [[errors[0]]]
    for before, error in zip(errors, errors[1:]):
        if error[0] > before[0] + ~{ gap }~ * 1000:
            groups.append([])
        groups[-1].append(error)
    rows = [(utc(g[0][0]), utc(g[-1][0]), len(g), "+".join(sorted({e[1] for e in g}))) for g in groups]
    return ["start", "end", "errors", "services"], rows


def causes(entries, errors, deploys):
    rows = []
    for request in {e[3] for e in errors}:
        first = min(e[:2] for e in errors if e[3] == request)
        begin = min(e[0] for e in entries if e[3] == request)
        rows.append((utc(first[0]), request, first[1], first[0] - begin))
    return ["time", "request", "service", "delay"], sorted(rows)


def deploys(entries, errors, deploys):
    rows = []
    for number, (start, version) in enumerate(deploys):
        until = min([start + ~{ window }~ * 1000] + [ms for ms, _ in deploys[number + 1 :]])
        hit = [e for e in errors if start <= e[0] < until]
        rows.append((version, len(hit), hit[0][0] - start if hit else "-", "+".join(sorted({e[1] for e in hit})) or "-"))
    return ["version", "errors", "first", "services"], rows


def cascades(entries, errors, deploys):
    table = collections.defaultdict(list)
    for request in {e[3] for e in errors}:
        own = [e for e in errors if e[3] == request]
        table[">".join(dict.fromkeys(e[1] for e in own))].append(own[0][0])
    rows = [(path, len(times), utc(min(times))) for path, times in table.items()]
    return ["path", "requests", "first"], sorted(rows, key=lambda row: (-row[1], row[0]))


_, entries, deployed = gen.build()
errors = sorted(e for e in entries if e[2] in ~{ levels }~)
header, rows = ~{ report }~(entries, errors, deployed)
separator = {"tsv": "\t", "csv": ","}["~{ format }~"]
wanted = "".join(separator.join(map(str, row)) + "\n" for row in ([header] if "~{ format }~" == "csv" else []) + rows)
path = pathlib.Path("/app/timeline.~{ format }~")
if not path.is_file():
    sys.exit(f"{path} is missing")
found = path.read_bytes().decode("utf-8", "replace")
if found != wanted:
    sys.exit(f"{path} differs\n--- expected\n{wanted[:4000]}--- found\n{found[:4000]}")
print("as expected")
