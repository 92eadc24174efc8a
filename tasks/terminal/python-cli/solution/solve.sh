#!/bin/bash
set -eu
ls -l /app
cat > /app/tool.py <<'PY'
~%- if tool == "tally" %~
import sys
from collections import Counter

def fail(text):
    print("error:", text, file=sys.stderr)
    sys.exit(2)

def whole(text):
    if not text.isdecimal() or int(text) < 1: fail(f"not a number from 1: {text}")
    return int(text)

key = sep = None
least, fold, percent, files = 1, False, False, []
words = sys.argv[1:]
while words:
    word = words.pop(0)
    if word in ("-k", "-t", "-m") and not words: fail(f"{word} needs a value")
    if word == "-k": key = whole(words.pop(0))
    elif word == "-t": sep = words.pop(0)
    elif word == "-m": least = whole(words.pop(0))
    elif word == "-i": fold = True
    elif word == "-p": percent = True
    elif word.startswith("-"): fail(f"unknown option {word}")
    else: files.append(word)
try:
    lines = [line for name in files or ["/dev/stdin"] for line in open(name).read().split("\n")]
except OSError as error:
    fail(error)
counts = Counter()
for line in lines:
    line = ~% if "fold" in has %~line.lower() if fold else line~% else %~line~% endif %~

    if key:
        fields = line.split(sep)
        line = fields[key - 1] if len(fields) >= key else ""
    if line:
        counts[line] += 1
total = sum(counts.values())
for line, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
    if n >= least:
        print(n, line, *([f"{100 * n / total:.1f}"] if percent else []), sep="\t")
~%- elif tool == "dur" %~
import math, re, sys
from fractions import Fraction

UNITS = [("d", 86400), ("h", 3600), ("m", 60), ("s", 1)]
NUMBER = r"([0-9]+~% if "fraction" in has %~(?:\.[0-9]+)?~% endif %~)"

def seconds(text):
    found = text and re.fullmatch("".join(f"(?:{NUMBER}{unit})?" for unit in "dhms"), text)
    if found:
        return sum(Fraction(n or 0) * size for n, size in zip(found.groups(), (86400, 3600, 60, 1)))
~%- if "colon" in has %~
    found = re.fullmatch(r"(?:([0-9]+):([0-5][0-9])|([0-9]+)):([0-5][0-9])", text)
    if found:
        hours, minutes, first, rest = (int(group or 0) for group in found.groups())
        return sum(n * size for n, size in zip((hours, minutes + first, rest), (3600, 60, 1)))
~%- endif %~
    print("error: bad duration:", text, file=sys.stderr)
    sys.exit(2)

def show(total):
    sign, total, text = "-" if total < 0 else "", abs(total), ""
    for unit, size in UNITS:
        if total >= size: text += f"{total // size}{unit}"
        total %= size
    return sign + (text or "0s")

words = sys.argv[1:]
plain = words[0] == "-s"
command, *values = words[plain:]
values = [seconds(text) for text in values]
total, count = sum(values), len(values)
~%- if "sub" in has %~
if command == "sub": total = values[0] - values[1]
~%- endif %~
~%- if "mean" in has %~
if command == "mean": total = (2 * total + count) // (2 * count)
~%- endif %~
total = math.floor(total)
if plain:
    print(total)
else:
    print(show(total))
~%- elif tool == "store" %~
import json, os, re, sys

path, command, *rest = sys.argv[1:]
data = json.load(open(path)) if os.path.exists(path) else {}

def flatten(node, before=""):
    for key, value in node.items():
        if isinstance(value, dict): yield from flatten(value, f"{before}{key}.")
        else: yield before + key, value

def save():
    tree = {}
    for key, value in flat.items():
        *parents, last = key.split(".") if ~{ "nested" in has }~ else [key]
        node = tree
        for parent in parents: node = node.setdefault(parent, {})
        node[last] = value
    with open(path, "w") as file:
        file.write(json.dumps(tree, indent=2, sort_keys=True) + "\n")

def clash(new):
    """Whether a text at `new` would stand in the way of others, or they in its."""
    return ~{ "nested" in has }~ and any(k.startswith(new + ".") or new.startswith(k + ".") for k in flat)

flat = dict(flatten(data))
whole = lambda text: re.fullmatch("-?[0-9]+", text)
size = len(rest)
if command == "get" and size == 1:
    inside = {k[len(rest[0]) + 1:]: v for k, v in flat.items() if ~{ "nested" in has }~ and k.startswith(rest[0] + ".")}
    if rest[0] in flat: print(flat[rest[0]])
    elif inside:
        value = data
        for part in rest[0].split("."): value = value[part]
        print(json.dumps(value, sort_keys=True, separators=(',', ':')))
    else: sys.exit(1)
elif command == "set" and size == 2:
    if clash(rest[0]): sys.exit(2)
    flat[rest[0]] = rest[1]
    save()
elif command == "del" and size == 1:
    gone = [k for k in flat if k == rest[0] or ~{ "nested" in has }~ and k.startswith(rest[0] + ".")]
    if not gone: sys.exit(1)
    for k in gone: del flat[k]
    save()
elif command == "list" and size <= ~{ 1 if "prefix" in has else 0 }~:
    for key in sorted(flat):
        if key.startswith(*rest or [""]): print(f"{key}={flat[key]}")
~%- if "incr" in has %~
elif command == "incr" and 1 <= size <= 2:
    old = flat.get(rest[0], "0")
    if not whole(old) or (size == 2 and not whole(rest[1])) or clash(rest[0]): sys.exit(2)
    flat[rest[0]] = str(int(old) + (int(rest[1]) if size == 2 else 1))
    print(flat[rest[0]])
    save()
~%- endif %~
~%- if "move" in has %~
elif command == "mv" and size == 2:
    if rest[0] not in flat: sys.exit(1)
    if rest[1] in flat or clash(rest[1]): sys.exit(2)
    flat[rest[1]] = flat.pop(rest[0])
    save()
~%- endif %~
else: sys.exit(2)
~%- elif tool == "fill" %~
import re, sys
from pathlib import Path

values, missing = {}, set()
for line in Path(sys.argv[2]).read_text().split("\n"):
    name, sign, value = line.partition("=")
    if sign and not line.startswith("#"):
        name = name.strip()
        values[name] = value

def lines(path, shown):
    try: text = path.read_text()
    except OSError:
        print("error:", shown, file=sys.stderr)
        sys.exit(2)
    for line in text.splitlines(keepends=True):
        found = ~% if "include" in has %~re.fullmatch(r"@include (.+?)\n?", line)~% else %~None~% endif %~

        if found: yield from lines(path.parent / found[1], found[1])
        else: yield line

def put(found):
    if found[0] == "$$":
        return "$"
    parts = found.groupdict()
    name, default = parts["name"], parts.get("default")
    if default is not None:
        if not values.get(name): return default
    elif name not in values:
        missing.add(name)
    value = values.get(name, "")
    return value.upper() if parts.get("upper") else value

pattern = r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:\A~% if "upper" in has %~|(?P<upper>\^\^)~% endif %~~% if "default" in has %~|:-(?P<default>[^}]*)~% endif %~)?\}~% if "escape" in has %~|\$\$~% endif %~"
text = re.sub(pattern, put, "".join(lines(Path(sys.argv[1]), sys.argv[1])))
~%- if "missing" in has %~
if missing:
    print("missing:", ", ".join(sorted(missing)), file=sys.stderr)
    sys.exit(3)
~%- endif %~
sys.stdout.write(text)
~%- else %~
import re, sys

options = {"-c": [], "-x": [], "-w": [], "-s": [], "-r": []}
for option, value in zip(sys.argv[1::2], sys.argv[2::2]):
    options[option].append(value)
head, *rows = [line.rstrip("\n").split("\t") for line in sys.stdin]
number = lambda text: re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text)

def known(name):
    if name not in head:
        print("error: no column", name, file=sys.stderr)
        sys.exit(2)
    return name

names = [known(name) for value in options["-c"] for name in value.split(",")] or head
drop = [known(name) for value in options["-x"] for name in value.split(",")]
conditions = [re.match(r"(.*?)(!=|=|<|>)(.*)", value).groups() for value in options["-w"]]
for name, _, _ in conditions: known(name)

def holds(row, name, sign, text):
    cell = row[head.index(name)]
    if sign in ("=", "!="): return (cell == text) == (sign == "=")
    return bool(number(cell)) and (float(cell) < float(text) if sign == "<" else float(cell) > float(text))

found = [row for row in rows if all(holds(row, *condition) for condition in conditions)]
for value in options["-s"]:
    at = head.index(known(value.removeprefix("-")))
    numbers = all(number(row[at]) for row in rows)
    found.sort(key=lambda row: float(row[at]) if numbers else row[at], reverse=value.startswith("-"))
renamed = dict(value.split("=", 1) for value in options["-r"])
for name in renamed: known(name)
names = [name for name in names if name not in drop]
places = [head.index(name) for name in names]
names = renamed
print("\t".join(names.get(name, name) for name in (head[place] for place in places)))
for row in found: print("\t".join(row[place] for place in places))
~%- endif %~
PY
python3 /app/tool.py ~{ {"tally": "/etc/passwd | head -n 3", "dur": "add 90m 45s", "store": "/tmp/s.json list", "fill": "/etc/hostname /dev/null", "cols": "-c a < <(printf 'a\\tb\\n1\\t2\\n')"}[tool] }~
