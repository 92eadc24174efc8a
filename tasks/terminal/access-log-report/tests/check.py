"""Reports on the requests that the log was written from, and compares line by line."""

import collections
import pathlib
import sys

import gen

WINDOW = ~{ window }~


def path_of(request):
    path = request["target"].split("?")[0] if ~{ strip }~ else request["target"]
    return path[:-1] if ~{ slash }~ and path != "/" and path.endswith("/") else path


def counts(r):
    robot = any(word in r["agent"].lower() for word in ("bot", "spider"))
    static = r["target"].split("?")[0].endswith((".css", ".js", ".png"))
    return (
        ("~{ method }~" in ("", r["method"]))
        and not (~{ bots }~ and robot)
        and not (~{ static }~ and static)
        and (not WINDOW or int(WINDOW[0]) <= r["when"].hour <= int(WINDOW[1]))
        and ("~{ report }~" != "broken" or r["status"] == "404")
    )


def key_of(r):
    keys = {"statuses": r["status"], "clients": r["ip"], "peaks": r["ip"], "hours": r["when"].strftime("%Y-%m-%d %H"), "agents": r["agent"].split("/")[0]}
    return keys.get("~{ report }~", path_of(r))


def last_column(group):
    failed = sum(int(r["status"]) >= 500 for r in group)
    times = [r["when"].timestamp() for r in group]
    return {
        "bytes": sum(int(r["bytes"].replace("-", "0")) for r in group),
        "clients": len({r["ip"] for r in group}),
        "errors": failed,
        "failed": 100 * failed // len(group),
        "referrers": len({r["referrer"] for r in group} - {"-"}),
        "peak": max(sum(start <= time < start + 60 for time in times) for start in times),
    }["~{ third }~"]


texts, requests, broken = gen.build()
groups = collections.defaultdict(list)
for request in filter(counts, requests):
    groups[key_of(request)].append(request)
rows = [(key, len(group), last_column(group)) for key, group in sorted(groups.items())]
if "~{ order }~" == "hits":
    rows.sort(key=lambda row: -row[1])
rows = rows[: ~{ top }~ or None]
if "~{ format }~" != "plain":
    rows.insert(0, ("~{ column }~", "hits", "~{ third }~"))
separator = {"tsv": "\t", "csv": ",", "plain": " "}["~{ format }~"]
wanted = "".join(separator.join(map(str, row)) + "\n" for row in rows)
if ~{ skipped }~:
    wanted += f"skipped {broken}\n"
path = pathlib.Path("/app/report.txt")
if not path.is_file():
    sys.exit(f"{path} is missing")
found = path.read_bytes().decode("utf-8", "replace")
if found != wanted:
    sys.exit(f"{path} differs\n--- expected\n{wanted[:4000]}--- found\n{found[:4000]}")
print("as expected")
