import os
import sys
import time

import gen

NICE, OUT = ~{ nice }~, ~{ out | tojson }~


def running():
    """{id: (pid, state, nice, argument 0, working directory)} of the workers alive."""
    alive = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = open(f"/proc/{pid}/cmdline", "rb").read().decode(errors="replace").split("\0")
            fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
            if len(line) > 1 and line[1] in ids and os.readlink(f"/proc/{pid}/exe").endswith("/sleep"):
                alive[line[1]] = pid, fields[0], int(fields[16]), line[0], os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            pass  # it ended while it was looked at
    return alive


workers = gen.fleet()
ids = {w["id"] for w in workers}
targets = [w for w in workers if w.get("target")]
ended = (
    {w["id"] for w in workers if w.get("target") or w.get("below")} if gen.ACT in ("TERM", "KILL", "TREE") else set()
)
deadline = time.monotonic() + 3
while (alive := running()).keys() & ended and time.monotonic() < deadline:
    time.sleep(0.05)
wrong = [f"worker {w['job'] or w['id']} still runs" for w in workers if w["id"] in ended & alive.keys()]
for w in workers:
    if w["id"] in ended:
        continue
    if w["id"] not in alive:
        wrong.append(f"worker {w['job'] or w['id']} is gone")
        continue
    _, state, nice, title, cwd = alive[w["id"]]
    mine = w.get("target")
    stopped = {"STOP": True, "CONT": False}.get(gen.ACT, w["stopped"]) if mine else w["stopped"]
    wanted = stopped, NICE if mine and gen.ACT == "renice" else w["nice"], w["title"], w["cwd"]
    if (state == "T", nice, title, cwd) != wanted:
        wrong.append(f"worker {w['job'] or w['id']}: {(state == 'T', nice, title, cwd)}, wanted {wanted}")
rows = [
    [
        {
            "job": w["job"],
            "pid": alive.get(w["id"], "?")[0],
            "cwd": w["cwd"],
            "queue": w["env"].get("QUEUE", w["queue"]),
        }[column]
        for column in OUT
    ]
    for w in sorted(targets, key=lambda w: w["job"].encode())
]
text = "".join("\t".join(row) + "\n" for row in rows)
try:
    found = open("/app/found.txt", errors="replace").read()
except OSError as error:
    found = str(error)
if found.rstrip("\n") != text.rstrip("\n"):
    wrong.append(f"found.txt: wanted\n{text}found\n{found}")
print("\n".join(wrong) or "found, and all others left alone")
sys.exit(bool(wrong))
