"""Removes repetitions from the pristine texts in plain Python and compares."""

import collections
import os
import pathlib
import re
import sys

import gen


def compare(name, wanted):
    path = pathlib.Path("/app", name)
    if not path.is_file():
        sys.exit(f"{path} is missing")
    found = path.read_bytes().decode("utf-8", "replace")
    if found != wanted:
        sys.exit(f"{path} differs\n--- expected\n{wanted[:4000]}--- found\n{found[:4000]}")


def joined(lines):
    return "".join(line + "\n" for line in lines)


files = gen.build()
~% if unit == "files" %~groups = collections.defaultdict(list)
for path in sorted(files, key=str.encode):
    if files[path]:
        groups[files[path]].append(path)
copies = [path for group in groups.values() for path in group[1:]]
kept = {path for path in files if "~{ action }~" != "delete" or path not in copies}
found = {str(path.relative_to("/app")) for path in pathlib.Path("/app/tree").rglob("*") if path.is_symlink() or not path.is_dir()}
if found != kept:
    sys.exit(f"paths below /app/tree: missing {sorted(kept - found)}, too many {sorted(found - kept)}")
for path in kept:
    if os.path.islink(f"/app/{path}") or pathlib.Path("/app", path).read_text(encoding="utf-8") != files[path]:
        sys.exit(f"/app/{path} is not the file that it was")
inodes = {path: os.stat(f"/app/{path}").st_ino for path in kept}
for path in kept:
    same = {other for other in kept if inodes[other] == inodes[path]}
    if same != (set(groups[files[path]]) if "~{ action }~" == "link" and files[path] else {path}):
        sys.exit(f"/app/{path} shares its content with {sorted(same)}")
short = {path: path.removeprefix("tree/") for path in files}
~% if action == "report" %~compare("copies.txt", joined(sorted((" = ".join(short[p] for p in g) for g in groups.values() if len(g) > 1), key=str.encode)))
~% elif action == "delete" %~compare("deleted.txt", joined(sorted((short[path] for path in copies), key=str.encode)))
~% else %~compare("linked.txt", f"{len(copies)}\n")
~% endif %~~% elif unit == "runs" %~runs = []
for line in files["notes.txt"].splitlines():
    key = line.split(" ", 1)[1] if ~{ stamp }~ else line
    key = key.lower() if "case" in ~{ norm }~ else key
    if runs and runs[-1][0] == key:
        runs[-1][2] += 1
    else:
        runs.append([key, line, 1])
compare("out.txt", joined(line + (f" (x{count})" if count > 1 and "~{ show }~" == "count" else "") for _, line, count in runs))


~% else %~def key_of(unit):
    columns = ~{ columns }~
    parts = [unit.split(";")[column - 1] for column in columns] if columns else unit.split("\n")
    for rule in ~{ norm }~:
        change = {"case": str.lower, "punct": lambda s: s.translate(dict.fromkeys(map(ord, ".,;:!?"))), "digits": lambda s: re.sub(r"\d+", "#", s), "space": lambda s: " ".join(s.split())}
        parts = [change[rule](part) for part in parts]
    return tuple(parts)


text = "".join(files[name] for name in sorted(files))
units = [unit.strip("\n") for unit in re.split(r"\n{2,}", text)] if "~{ unit }~" == "records" else text.splitlines()
groups = collections.defaultdict(list)
for place, unit in enumerate(units):
    groups[key_of(unit)].append(place)
best = {"first": lambda p: -p, "last": lambda p: p, "longest": lambda p: (len(units[p]), -p), "value": lambda p: (int(units[p].split(";")[3]), -p)}
chosen = {max(group, key=best["~{ keep }~"]): len(group) for group in groups.values()}
wanted = [p for p in sorted(chosen) if {"all": True, "once": chosen[p] == 1, "repeated": chosen[p] > 1}["~{ only }~"]]
if "~{ order }~" != "input":
    wanted.sort(key=lambda p: units[p].encode() if "~{ order }~" == "sorted" else -chosen[p])
between = "\n\n" if "~{ unit }~" == "records" else "\n"
compare("out.txt", between.join((f"{chosen[p]}\t" if "~{ show }~" == "count" else "") + units[p] for p in wanted) + "\n")
if ~{ removed }~:
    compare("removed.txt", between.join(unit for place, unit in enumerate(units) if place not in chosen) + "\n")
~% endif %~print("as expected")
