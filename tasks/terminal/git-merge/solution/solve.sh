#!/bin/bash
set -eu
cat > /tmp/sides.py <<'PY'
"""The three versions of a file: in the ancestor, in main and on the branch."""
import subprocess
import sys

def git(*words):
    return subprocess.run(["git", "-C", "/app/repo", *words], capture_output=True, text=True)

def show(commit, path):
    found = git("show", f"{commit}:{path}")
    return found.stdout if found.returncode == 0 else None

def three(path):
    return [show(c, path) for c in (git("merge-base", "HEAD", sys.argv[1]).stdout.strip(), "HEAD", sys.argv[1])]
PY
~%- for topic in topics %~
git -C /app/repo merge -q --no-ff --no-commit ~{ topic }~ || true
~%- for file in files %~
~%- if file.startswith("settings") %~
PYTHONPATH=/tmp python3 - ~{ topic }~ > /app/repo/settings.ini <<'PY'
from sides import three
base, ours, theirs = ({k: int(v) for k, v in (l.split(" = ") for l in t.splitlines())} for t in three("settings.ini"))
for key in sorted(base | ours | theirs):
    o, a, b = base.get(key), ours.get(key), theirs.get(key)
    if a == o: v = b
    elif b == o: v = a
    elif a is None or b is None: v = b if a is None else a
    else: v = ~{ {"settings:max": "max(a, b)", "settings:min": "min(a, b)", "settings:sum": "a + b - o"}[file] }~
    if v is not None: print(key, "=", v)
PY
~%- elif file == "words" %~
PYTHONPATH=/tmp python3 - ~{ topic }~ > /app/repo/words.txt <<'PY'
from sides import three
base, ours, theirs = (set(t.split()) for t in three("words.txt"))
print(*sorted((ours & theirs) | (ours - base) | (theirs - base)), sep="\n")
PY
~%- elif file.startswith("changelog") %~
PYTHONPATH=/tmp python3 - ~{ topic }~ > /app/repo/CHANGES.md <<'PY'
from sides import three
base, ours, theirs = (t.splitlines() for t in three("CHANGES.md"))
new = lambda side: [line for line in side if line not in base]
print(*base[:2], *dict.fromkeys(~{ {"changelog:topic": "new(theirs) + new(ours)", "changelog:main": "new(ours) + new(theirs)"}[file] }~), *base[2:], sep="\n")
PY
~%- elif file.startswith("requires") %~
PYTHONPATH=/tmp python3 - ~{ topic }~ > /app/repo/requires.txt <<'PY'
from sides import three
base, ours, theirs = (dict(l.split("==") for l in t.splitlines()) for t in three("requires.txt"))
number = lambda version: [int(part) for part in version.split(".")]
for name in sorted(ours | theirs):
    print(name, ~{ {"requires:higher": "max", "requires:lower": "min"}[file] }~([s[name] for s in (ours, theirs) if name in s], key=number), sep="==")
PY
~%- elif file.startswith("gone") %~
PYTHONPATH=/tmp python3 - ~{ topic }~ <<'PY'
from pathlib import Path
from sides import git, three
for path in git("diff", "--name-only", "--diff-filter=U", "--", "legacy").stdout.split():
    base, ours, theirs = three(path)
    changed = theirs if ours is None else ours
    body = ~{ {"gone:keep": "changed", "gone:drop": "None", "gone:main": "ours"}[file] }~
    file = Path("/app/repo", path)
    file.unlink(missing_ok=True) if body is None else file.write_text(body)
PY
~%- elif file.startswith("whole") %~
git -C /app/repo checkout ~{ {"whole:topic": "--theirs", "whole:main": "--ours"}[file] }~ data/layout.txt
~%- elif file == "index" %~
(cd /app/repo && sh make-index.sh)
~%- elif file == "table" %~
PYTHONPATH=/tmp python3 - ~{ topic }~ > /app/repo/stock.csv <<'PY'
from sides import three
base, ours, theirs = ({int(r[0]): r[1:] for r in (l.split(",") for l in t.splitlines()[1:])} for t in three("stock.csv"))
free = max(ours | theirs) + 1
merged = dict(ours)
for k in sorted(theirs):
    if k not in ours or k in base: merged[k] = ours[k] if k in ours and ours[k][2] > theirs[k][2] else theirs[k]
    elif ours[k] != theirs[k]: merged[free] = theirs[k]; free += 1
print("id,name,count,updated", *(",".join([str(k), *merged[k]]) for k in sorted(merged)), sep="\n")
PY
~%- endif %~
~%- endfor %~
git -C /app/repo add -A
git -C /app/repo commit -q -m 'Merge ~{ topic }~'
~%- endfor %~
git -C /app/repo log --oneline --graph -n 6
