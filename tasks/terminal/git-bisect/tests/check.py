"""Build the same history again, so that the hashes are known, and compare /app/answer.txt line by line."""

import subprocess
import sys
import tempfile
import time

sys.path.insert(0, "/tests")
import gen

WANTED = "~{ answer | join(' ') }~".split()
MAIN = ["git", "--no-replace-objects", "-C", "/app/repo", "rev-parse", "main"]

with tempfile.TemporaryDirectory() as scratch:
    hashes = gen.write(scratch + "/repo")
gen.RNG.seed(int("~{ seed }~"))
commits = gen.history()
state = [commit["state"] for commit in commits]
events = {event: number for number, commit in enumerate(commits) for event in commit["events"]}


def line(item: str) -> str:
    """`commit:2` is the commit of the third event; `subject:0` and so on are its data."""
    kind, _, which = item.partition(":")
    if kind == "badcount":
        key, _, limit = which.partition(">")
        return str(sum(s[key] > int(limit) if limit else s[key] == "bad" for s in state))
    if kind == "merge":
        return hashes[next(n for n, c in enumerate(commits) if c.get("merges") == int(which))]
    number = events[int(which)]
    commit = commits[number]
    if kind == "parent":
        return hashes[commit["parents"][0]]
    if kind == "date":
        return time.strftime("%Y-%m-%d", time.gmtime(commit["time"]))
    return hashes[number] if kind == "commit" else commit[kind]


want = [line(item) for item in WANTED]
try:
    with open("/app/answer.txt", encoding="utf-8", errors="replace") as file:
        have = file.read().split("\n")
    with open("/app/repo/.git/HEAD") as file:
        head = file.read().strip()
except OSError as error:
    sys.exit(str(error))
have = [text.rstrip() for text in have]
while have and not have[-1]:
    have.pop()
if have != want:
    sys.exit(f"expected {want}, found {have}")
tip = subprocess.run(MAIN, capture_output=True, text=True).stdout.strip()
if head != "ref: refs/heads/main" or tip != hashes[-1]:
    sys.exit(f"HEAD is {head!r}, main is {tip}, expected {hashes[-1]}")
print("as expected")
