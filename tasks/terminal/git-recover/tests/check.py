"""Create the same loss again elsewhere, so that what was lost is known, and compare the repaired repository with it."""

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, "/tests")
import gen

REPO = Path("/app/repo")
GIT = ["git", "--no-replace-objects", "-c", "safe.directory=*", "-C", str(REPO)]
COMPLAINTS = []


def git(*words: str) -> str:
    """Plumbing only: it obeys no hook, filter or pager that the repository may have been given."""
    return subprocess.run([*GIT, *words], capture_output=True, text=True, errors="replace").stdout.strip()


def expect(what: str, want, have) -> None:
    if want != have:
        COMPLAINTS.append(f"{what}: expected {want!r}, found {have!r}")


def compare(folder: Path, want: dict) -> None:
    """Exactly the wanted files, .git aside."""
    found = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file() and ".git" not in p.parts}
    expect(f"files of {folder}", sorted(want), sorted(found))
    for name in want.keys() & found.keys():
        if found[name].read_bytes() != want[name].encode():
            COMPLAINTS.append(f"{folder / name} has other content")


def blob(body: str) -> str:
    data = body.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


with tempfile.TemporaryDirectory() as scratch:
    want = gen.write(scratch + "/repo")
tip = git("rev-parse", "--verify", "refs/heads/main")
if "new" in want:
    added = git("rev-list", "--reverse", "--first-parent", f"{want['main']}..{tip}").split()
    bodies = [git("cat-file", "commit", commit).partition("\n\n")[2] for commit in added]
    expect("subjects added to main", want["new"], [body.split("\n")[0] for body in bodies])
    base = git("rev-parse", "--verify", f"{added[0]}^") if added else ""
    expect("what the first new commit stands on", want["main"], base)
    lines = [line.split(None, 3) for line in git("-c", "core.quotepath=off", "ls-tree", "-r", tip).splitlines()]
    expect("tree of main", {p: blob(b) for p, b in want["tree"].items()}, {path: oid for _, _, oid, path in lines})
elif "~{ keep_main }~" == "True":
    expect("main", want["main"], tip)
for ref, oid in want.get("refs", {}).items():
    expect(ref, oid, git("rev-parse", "--verify", "-q", ref))
if "worktree" in want:
    compare(REPO, want["worktree"])
if "out" in want:
    compare(Path("/app/out"), want["out"])
print("\n".join(COMPLAINTS) or "as expected")
sys.exit(bool(COMPLAINTS))
