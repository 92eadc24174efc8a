"""Compares with what was hidden in the text when it was written."""

import collections
import pathlib
import sys

import gen

truth = sorted(gen.build()[1], key=lambda entry: entry[:2])
values = [value for _, _, value in truth]
counts = collections.Counter(values)
~% if post == "list" %~wanted = values
~% elif post == "unique" %~wanted = sorted(counts, key=str.encode)
~% elif post == "first" %~wanted = list(dict.fromkeys(values))
~% elif post == "count" %~wanted = [f"{count} {value}" for value, count in sorted(counts.items(), key=lambda row: (-row[1], row[0].encode()))]
~% elif post == "lines" %~wanted = [f"{number}:{value}" for _, number, value in truth]
~% elif post == "sum" %~cents = sum(int(value.replace(".", "")) for value in values)
wanted = [f"{len(values)} {cents // 100}.{cents % 100:02d}"]
~% elif post == "numeric" %~wanted = sorted(counts, key=lambda value: tuple(map(int, value.split("."))))
~% else %~wanted = [f"{path.removeprefix('docs/')}:{number}:{value}" for path, number, value in truth]

~% endif %~path = pathlib.Path("/app/found.txt")
if not path.is_file():
    sys.exit(f"{path} is missing")
text = "".join(line + "\n" for line in wanted)
found = path.read_bytes().decode("utf-8", "replace")
if found != text:
    sys.exit(f"{path} differs\n--- expected\n{text[:4000]}--- found\n{found[:4000]}")
print("as expected")
