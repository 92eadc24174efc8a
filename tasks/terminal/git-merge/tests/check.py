"""Work out the merged files from the pristine branches, and compare the merge commits and the tree of main with that."""

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, "/tests")
import gen

RULES = dict((kind + ":").split(":")[:2] for kind in "~{ files | join(' ') }~".split())
GIT = ["git", "--no-replace-objects", "-c", "safe.directory=*", "-c", "core.fsmonitor=false", "-C", "/app/repo"]
COMPLAINTS = []


def git(*words: str) -> str:
    """Plumbing only: it obeys no hook, filter or pager that the repository may have been given."""
    return subprocess.run([*GIT, *words], capture_output=True, text=True, errors="replace").stdout.strip()


def expect(what: str, want, have) -> None:
    if want != have:
        COMPLAINTS.append(f"{what}: expected {want!r}, found {have!r}")


def settings(rule: str, base: str, ours: str, theirs: str) -> str:
    sides = [dict(line.split(" = ") for line in text.splitlines()) for text in (base, ours, theirs)]
    rows = []
    for key in sorted({key for side in sides for key in side}):
        was, *now = (side.get(key) for side in sides)
        states = [state for state in now if state != was]
        values = [int(state) for state in states if state is not None]
        if not states:
            rows.append((key, was))
        elif len(values) == 2 and was is not None:
            total = sum(values) - int(was)
            rows.append((key, {"max": max(values), "min": min(values), "sum": total}[rule]))
        elif values:
            rows.append((key, values[0]))
    return "".join(f"{key} = {value}\n" for key, value in rows)


def words(_rule: str, base: str, ours: str, theirs: str) -> str:
    before, one, two = (set(text.split()) for text in (base, ours, theirs))
    removed = (before - one) | (before - two)
    return "".join(word + "\n" for word in sorted((before | one | two) - removed))


def changelog(rule: str, base: str, ours: str, theirs: str) -> str:
    head, old = base.splitlines()[:2], base.splitlines()[2:]
    entries = []
    for side in (theirs, ours) if rule == "topic" else (ours, theirs):
        entries += [line for line in side.splitlines() if line not in head + old + entries]
    return "\n".join(head + entries + old) + "\n"


def requires(rule: str, base: str, ours: str, theirs: str) -> str:
    rows = [line.split("==") for line in (ours + theirs).splitlines()]
    rows.sort(key=lambda row: tuple(map(int, row[1].split("."))), reverse=rule == "lower")
    return "".join(f"{name}=={version}\n" for name, version in sorted(dict(rows).items()))


def table(_rule: str, base: str, ours: str, theirs: str) -> str:
    split = [[line.split(",") for line in text.splitlines()] for text in (base, ours, theirs)]
    old, one, two = ({int(row[0]): row[1:] for row in rows[1:]} for rows in split)
    top = max([*one, *two])
    for key in sorted(two):
        if key in old:
            one[key] = max(one[key], two[key], key=lambda row: row[2])
        elif one.setdefault(key, two[key]) != two[key]:
            top += 1
            one[top] = two[key]
    rows = [split[0][0]] + [[str(key), *one[key]] for key in sorted(one)]
    return "".join(",".join(row) + "\n" for row in rows)


PATHS = {"settings.ini": settings, "words.txt": words, "CHANGES.md": changelog, "requires.txt": requires, "stock.csv": table}


def merged(base: dict, ours: dict, theirs: dict) -> dict:
    result = {}
    for path in sorted({*base, *ours, *theirs}):
        was, one, two = base.get(path), ours.get(path), theirs.get(path)
        if path in PATHS:
            result[path] = PATHS[path](RULES[PATHS[path].__name__], was, one, two)
        elif one in (was, two):
            result[path] = two
        elif two == was:
            result[path] = one
        elif path.startswith("legacy/"):
            result[path] = {"keep": one or two, "drop": None, "main": one}[RULES["gone"]]
        elif path == "data/layout.txt":
            result[path] = two if RULES["whole"] == "topic" else one
    if "index.txt" in base:
        parts = {path[6:]: body for path, body in result.items() if path.startswith("parts/")}
        result["index.txt"] = "".join(sorted(f"{name} {body.count(chr(10))}\n" for name, body in parts.items()))
    return {path: body for path, body in result.items() if body is not None}


def blob(body: str) -> str:
    return hashlib.sha1(b"blob %d\0" % len(body) + body.encode()).hexdigest()


with tempfile.TemporaryDirectory() as scratch:
    contents, tips = gen.write(scratch + "/repo")
def compare(merge: str, topic: str, want: dict) -> None:
    """The tree of the merge of `topic`, file by file."""
    rows = [line.split(None, 3) for line in git("ls-tree", "-r", merge).splitlines()]
    have = {path: oid for _, _, oid, path in rows}
    expect(f"files after the merge of {topic}", sorted(want), sorted(have))
    for path in sorted(want.keys() & have.keys()):
        if blob(want[path]) != have[path]:
            found = git("cat-file", "blob", have[path])
            COMPLAINTS.append(f"{path} after the merge of {topic}: expected\n{want[path]}found\n{found}")


states = [contents["main"]]
for topic in gen.TOPICS:
    states.append(merged(contents[""], states[-1], contents[topic]))
    expect(f"tip of {topic}", tips[topic], git("rev-parse", f"refs/heads/{topic}"))
here, final = git("rev-parse", "refs/heads/main"), states[-1]
for topic in reversed(gen.TOPICS):
    expect("subject", f"Merge {topic}", git("cat-file", "commit", here).partition("\n\n")[2].split("\n")[0])
    compare(here, topic, states.pop())
    here, *others = git("rev-parse", f"{here}^@").split() or [""]
    expect(f"second parent of the merge of {topic}", [tips[topic]], others)
expect("what the merges stand on", tips["main"], here)
expect("checked out", "refs/heads/main", git("symbolic-ref", "HEAD"))
staged = [line.replace("\t", " ").split(" ", 3) for line in git("ls-files", "-s").splitlines()]
expect("the index", {path: blob(body) for path, body in final.items()}, {path: oid for _, oid, _, path in staged})
repo = Path("/app/repo")
tree = {str(p.relative_to(repo)): p for p in repo.rglob("*") if p.is_file() and ".git" not in p.parts}
expect("files in the work tree", sorted(final), sorted(tree))
changed = [name for name in final.keys() & tree.keys() if tree[name].read_bytes() != final[name].encode()]
expect("changes in the work tree", [], changed)
print("\n".join(COMPLAINTS) or "as expected")
sys.exit(bool(COMPLAINTS))
