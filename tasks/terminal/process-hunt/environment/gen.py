"""The fleet: sleeping processes with a directory, variables, open files, sockets, limits of their own."""

import os
import random
import resource
import signal
import socket

CLAUSES, ACT, TARGETS = ~{ clauses | tojson }~, "~{ act }~", ~{ targets }~
PLACES = ["/app/srv/spare", "/app/srv/east", "/app/srv/west"]


def worker(rng, number, job=True):
    return {
        "id": str(86400 + number),
        "job": f"{rng.choice('abcxyz')}{rng.randint(100, 999)}-{number}" if job else "",
        "title": rng.choice(["mailer", "indexer", "pruner"]),
        "cwd": rng.choice(PLACES),
        "queue": rng.choice(["grey", "white", "black"]),
        "env": {},
        "files": [],
        "ports": [],
        "args": [],
        "nice": 0,
        "umask": 0o022,
        "nofile": 0,
        "stopped": False,
        "deaf": False,
        "parent": None,
    }


def fit(w, clause, near):
    """Make the worker fit a clause; with `near`, make it miss by little."""
    kind, arg = clause
    if kind == "cwd":
        w["cwd"] = arg + ("-old" if near else "")
    elif kind in ("open", "writes"):
        w["files"].append(
            (arg + (".1" if near and kind == "open" else ""), "a" if kind == "writes" and not near else "r")
        )
    elif kind == "deleted":
        w["files"].append(
            ("/app/srv/kept (deleted) 1.tmp" if near else f"/app/srv/gone-{w['id']}.tmp", "r" if near else "d")
        )
    elif kind == "env":
        name, value = arg.split("=")
        w["env"] |= {name: value + "2", "OLD_" + name: value} if near else {name: value}
    elif kind == "title":
        w["title"] = arg + ("d" if near else "")
    elif kind == "port":
        w["ports"].append((int(arg) + 1, "tcp") if near else (int(arg), "tcp"))
        w["ports"] += [(int(arg), "udp")] if near else []
    elif kind == "child":
        w["parent"] = arg + ("-b" if near else "")
    elif kind == "stopped":
        w["stopped"] = not near
    elif kind in ("nice", "nofile"):
        w[kind] = int(arg) - near
    elif kind == "umask":
        w["umask"] = 0o037 if near else int(arg, 8)
    elif kind == "arg":
        w["args"].append(arg + "0" if near else arg)
    elif kind == "count":
        folder, least = arg.split()
        w["files"] += [(f"{folder}/{n}.dat", "r") for n in range(int(least) - near)] + [
            (f"{folder}-not/{n}.dat", "r") for n in range(3 * near)
        ]


def fleet():
    """All workers: targets, one near miss for each clause, others; parents and descendants are workers of their own."""
    rng = random.Random(~{ seed }~)
    workers = []

    def add(clauses_missed, job=True):
        w = worker(rng, len(workers), job)
        for clause in CLAUSES:
            fit(w, clause, clause in clauses_missed)
        workers.append(w | {"target": not clauses_missed and job})
        return workers[-1]

    for _ in range(TARGETS):
        target = add([])
        target["deaf"] = ACT in ("KILL", "TREE")
    for clause in CLAUSES:
        add([clause])
    add(CLAUSES)
    add([], job=False)
    workers += [worker(rng, len(workers) + n) for n in range(2)]
    for w in list(workers):
        if w["parent"]:
            workers.append(worker(rng, len(workers)) | {"title": w["parent"], "children": [w]})
        if ACT == "TREE" and w.get("target"):
            below = [worker(rng, len(workers) + n) | {"below": True, "deaf": n == 1} for n in range(3)]
            w["children"], below[0]["children"] = below[:2], below[2:]
            workers += below
    for w in workers:
        w["address"] = f"127.0.0.{10 + workers.index(w)}"
    return workers


def start(w, done):
    if os.fork():
        return
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    for child in w.get("children", []):
        start(child, done)
    for path, mode in w["files"]:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.set_inheritable(os.open(path, os.O_CREAT | (os.O_RDONLY if mode == "r" else os.O_WRONLY)), True)
        if mode == "d":
            os.unlink(path)
    for port, kind in w["ports"]:
        end = socket.socket(type=socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
        end.bind((w["address"], port))
        if kind == "tcp":
            end.listen()
        os.set_inheritable(end.detach(), True)
    os.makedirs(w["cwd"], exist_ok=True)
    os.chdir(w["cwd"])
    if w["nofile"]:
        resource.setrlimit(resource.RLIMIT_NOFILE, (w["nofile"], 4096))
    if w["deaf"]:
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, signal.SIG_IGN)
    os.nice(w["nice"])
    os.umask(w["umask"])
    variables = {
        "PATH": "/usr/bin:/bin",
        "QUEUE": w["queue"],
        **w["env"],
        **({"JOB": w["job"]} if w["job"] else {"JOBS": "0"}),
    }
    os.execve("/bin/sleep", [w["title"], w["id"], *w["args"]], variables)


if __name__ == "__main__":
    ready, done = os.pipe()  # closed on exec: end of file when all run
    workers = fleet()
    inner = [id(child) for w in workers for child in w.get("children", [])]
    for w in workers:
        if id(w) not in inner:
            start(w, done)
    os.close(done)
    os.read(ready, 1)
    stopped = {w["id"] for w in workers if w["stopped"]}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        line = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
        if len(line) > 1 and line[1].decode() in stopped:
            os.kill(int(pid), signal.SIGSTOP)
