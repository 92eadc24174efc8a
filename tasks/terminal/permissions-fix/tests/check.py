import os
import stat
import sys

import gen

TASK = "~{ task }~"
wrong = []
before, after = gen.nodes(), gen.ruled()
wanted = before if TASK == "audit" else after
for path, (folder, mode, body, group) in wanted.items():
    place = os.path.join(gen.ROOT, path)
    try:
        found = os.lstat(place)
        kind_held = stat.S_ISDIR(found.st_mode) if folder else stat.S_ISREG(found.st_mode)
        if not kind_held or stat.S_IMODE(found.st_mode) != mode or found.st_gid != group or found.st_uid != 0:
            wrong.append(f"{place}: mode {found.st_mode:o} {found.st_uid}:{found.st_gid}, wanted {mode:o} 0:{group}")
        elif not folder and mode & 0o400 and open(place, "rb").read() != body:
            wrong.append(f"{place}: content changed")
    except OSError as error:
        wrong.append(str(error))
present = {
    os.path.relpath(os.path.join(at, name), gen.ROOT)
    for at, folders, files in os.walk(gen.ROOT)
    for name in folders + files
}
for path in sorted(present ^ ({*wanted, *gen.LINKS} - {""})):
    wrong.append(f"{path}: appeared or vanished")
for link, target in gen.LINKS.items():
    place = os.path.join(gen.ROOT, link)
    if not os.path.islink(place) or os.readlink(place) != target:
        wrong.append(f"{place}: no longer a link to {target}")
for path, mode in gen.OUTSIDE.items():
    if not os.path.exists(path) or stat.S_IMODE(os.lstat(path).st_mode) != mode:
        wrong.append(f"{path}: outside the tree, must keep mode {mode:o}")
if TASK != "fix":
    rows = {"./" + path if path else ".": (before[path][1], after[path][1]) for path in before}
    text = "".join(
        f"{path}\t{old:o}\t{new:o}\n"
        for path, (old, new) in sorted(rows.items(), key=lambda row: row[0].encode())
        if old != new
    )
    try:
        found = open("/app/changes.tsv", errors="replace").read()
    except OSError as error:
        found = str(error)
    if found.rstrip("\n") != text.rstrip("\n"):
        wrong.append(f"changes.tsv differs; wanted\n{text}found\n{found}")
print("\n".join(wrong[:40]) or "all modes as ruled")
sys.exit(bool(wrong))
