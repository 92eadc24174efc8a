"""The tree, its modes, and what the rules make of them."""

import fnmatch
import os
import random

SEED = ~{ seed }~
ROOT = "/app/~{ tree }~"
OUTSIDE = {"/app/outside": 0o731, "/app/outside/secret.conf": 0o600}
LINKS = {"conf/current.conf": "/app/outside/secret.conf", "elsewhere": "/app/outside"}
RULES = ~{ rules | tojson }~
DIRS = [
    "",
    "bin",
    "conf",
    "conf/extra",
    "spool",
    "spool/in",
    "shared",
    "shared/team a",
    "lib",
    "lib/bin",
    "lib/conf",
    "logs",
]
NAMES = [
    "run.sh",
    "clean up.sh",
    "main.conf",
    "local.conf",
    "host.key",
    "notes.txt",
    "report 1.txt",
    ".htaccess",
    ".profile.sh",
    "tool",
    "blob.dat",
    "today.log",
    "old.log",
]
BODIES = [
    b"#!/bin/sh\nexit 0\n",
    b"#!/usr/bin/env python3\nprint(1)\n",
    b"# see below\n#!/bin/sh\n",
    b" #!/bin/sh\n",
    b"",
    b"plain\n",
]


def nodes():
    """{path: [is directory, mode, content, group id]}, before any rule."""
    rng = random.Random(SEED)
    special = any(op == "a-st" for _, _, op in RULES)
    tree = {}
    for folder in DIRS:
        tree[folder] = [True, rng.choice([0o700, 0o755, 0o777, 0o775, 0o711, 0o1777, 0o2755, 0o4755, 0o6770]), b"", 0]
        for name in rng.sample(NAMES, rng.randint(4, 6)):
            body = rng.choice(BODIES) + (rng.randbytes(rng.choice([0, 40, 900, 2500])) if rng.random() < 0.5 else b"")
            mode = rng.choice(
                [0o600, 0o644, 0o664, 0o666, 0o755, 0o777, 0o700, 0o640, 0o444, 0o750, 0o711, 0o645, 0o602]
            )
            if special and rng.random() < 0.4:
                mode |= rng.choice([0o4000, 0o2000, 0o6000, 0o1000])
            tree[os.path.join(folder, name)] = [False, mode, body, 0]
    tree["conf"][1] = 0o6755
    tree["bin/zz-empty.log"] = [False, 0o667, b"", 0]
    tree["spool/in/.zz-large.sh"] = [False, 0o647, b"#!" + b"x" * 2600, 0]
    return tree


def listed():
    files = sorted(path for path, node in nodes().items() if not node[0])
    return random.Random(SEED + 1).sample(files, 7)


def matches(kind, arg, path, node):
    folder, mode, body, _ = node
    name = os.path.basename(path)
    if kind in ("dir", "dirname"):
        return folder and (kind == "dir" or name == arg)
    return (
        not folder
        and {
            "file": lambda: True,
            "glob": lambda: fnmatch.fnmatchcase(name, arg),
            "under": lambda: arg in path.split("/")[:-1],
            "shebang": lambda: body[:2] == b"#!",
            "size": lambda: len(body) > int(arg),
            "empty": lambda: not body,
            "dot": lambda: name.startswith("."),
            "ux": lambda: mode & 0o100,
            "ww": lambda: mode & 0o002,
            "list": lambda: path in listed(),
        }[kind]()
    )


def changed(op, mode):
    if op.startswith("umask:"):
        return (0o777 if mode & 0o111 else 0o666) & ~int(op[6:], 8)
    if op in ("go-w", "g=u", "o=", "a-x", "ug+X", "a-st"):
        return {
            "go-w": mode & ~0o022,
            "g=u": mode & ~0o070 | (mode >> 3 & 0o070),
            "o=": mode & ~0o007,
            "a-x": mode & ~0o111,
            "ug+X": mode | 0o110 if mode & 0o111 else mode,
            "a-st": mode & 0o777,
        }[op]
    return int(op, 8)


def ruled():
    """The same after all rules."""
    tree = nodes()
    for kind, arg, op in RULES:
        for path, node in tree.items():
            if matches(kind, arg, path, node):
                if op.startswith("g:"):
                    node[3] = int(op[2:])
                else:
                    node[1] = changed(op, node[1])
    return tree


def build():
    os.mkdir("/app/outside")
    with open("/app/outside/secret.conf", "w") as file:
        file.write("token=1\n")
    tree = nodes()
    for path, (folder, _, body, _) in tree.items():
        if folder:
            os.makedirs(os.path.join(ROOT, path), exist_ok=True)
        else:
            with open(os.path.join(ROOT, path), "wb") as file:
                file.write(body)
    for link, target in LINKS.items():
        os.symlink(target, os.path.join(ROOT, link))
    for path, (_, mode, _, _) in tree.items():
        os.chmod(os.path.join(ROOT, path), mode)
    for path, mode in OUTSIDE.items():
        os.chmod(path, mode)
    for kind, arg, _ in RULES:
        if kind == "list":
            with open("/app/" + arg, "w") as file:
                file.write("# reviewed by hand\n\n" + "".join(path + "\n" for path in listed()) + "# end\n")


if __name__ == "__main__":
    build()
