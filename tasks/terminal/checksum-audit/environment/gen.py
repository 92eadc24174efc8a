"""The files of the audit, and the report they call for."""

import fnmatch
import hashlib
import json
import os
import random

KIND, ALGO, FMT, SCOPE, PRUNE = "~{ kind }~", "~{ algo }~", "~{ fmt }~", "~{ scope }~", "~{ prune }~"
MOVED, OK, COUNTS, MESSY, OFF, MIN = ~{ moved }~, ~{ ok }~, ~{ counts }~, ~{ messy }~, ~{ off }~, ~{ min }~
SKIP, MIRRORS = ~{ skip | tojson }~, ~{ mirrors | tojson }~
SUMS = ALGO.upper() + "SUMS"
rng = random.Random(~{ seed }~)


def digest(data):
    return hashlib.new(ALGO, data).hexdigest()


def skipped(path):
    return any(fnmatch.fnmatchcase(os.path.basename(path), pattern) for pattern in SKIP)


def originals():
    names = [
        "a.txt",
        "b.txt",
        "notes 2.txt",
        ".hidden",
        "photo.raw",
        "x.csv",
        "Zeta",
        "alpha",
        "data-1.bin",
        "data-10.bin",
        "data-2.bin",
    ]
    folders = ["", "docs", "docs/old", "img", "img/raw files", "sets/a", "sets/b"]
    files = {
        os.path.join(folder, name): rng.randbytes(rng.randint(20, 400))
        for folder in folders
        for name in rng.sample(names, 5)
    }
    files["docs/.keep"] = b"kept\n" * 30
    return files


def damaged(data):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]  # the size stays


def spelled(hexa):
    return hexa.upper() if MESSY and rng.random() < 0.4 else hexa


def manifest(files, top):
    """{absolute path: content} of the manifest in its format."""
    line = {"gnu": "{d}  {p}\n", "bsd": ALGO.upper() + " ({p}) = {d}\n"}.get(FMT, "{d}  {p}\n")
    if FMT == "json":
        return {
            "/app/manifest.json": json.dumps(
                {p: {"size": len(c), "digest": digest(c)} for p, c in files.items()}, indent=1
            )
        }
    if FMT == "perdir":
        folders = sorted({os.path.dirname(p) for p in files})
        return {
            os.path.join(top, folder, SUMS): "".join(
                line.format(d=digest(c), p=os.path.basename(p))
                for p, c in files.items()
                if os.path.dirname(p) == folder
            )
            for folder in folders
        }
    lines = [line.format(d=spelled(digest(c)), p=p) for p, c in files.items()]
    if MESSY:
        old = [line.format(d=spelled(digest(c + b"old")), p=p) for p, c in rng.sample(sorted(files.items()), 6)]
        lines = ["# delivered in two parts\n", *old, "\n", *lines]
    return {"/app/" + SUMS: "".join(lines)}


def audit():
    should, have, rows = originals(), {}, []
    have.update(should)
    victims = rng.sample(sorted(set(should) - {"docs/.keep"}), 16)
    for path in victims[:5]:
        have[path] = damaged(have[path])
        rows.append(("CHANGED", path))
    for path in victims[5:9]:
        del have[path]
        rows.append(("MISSING", path))
    for path in victims[9:12]:
        new = os.path.join("img", "was " + os.path.basename(path) + str(len(rows)))
        have[new] = have.pop(path)
        rows += [("MOVED", path, new)] if MOVED else [("MISSING", path), ("EXTRA", new)]
    for path in victims[12:14]:
        have[path + ".copy"] = have[path]
        rows.append(("EXTRA", path + ".copy"))
    for path in ("new.txt", "docs/.extra", "sets/a/scratch.tmp", "img/.x.swp", "sets/c/new one.bin"):
        have[path] = rng.randbytes(50)
        rows += [] if skipped(path) else [("EXTRA", path)]
    if OK:
        rows += [("OK", path) for path in should if have.get(path) == should[path]]
    kinds = ["CHANGED", "MISSING", "EXTRA"] + ["MOVED"] * MOVED + ["OK"] * OK
    total = [["TOTAL"] + [f"{kind}={sum(row[0] == kind for row in rows)}" for kind in kinds]] if COUNTS else []
    return {"/app/data/" + p: c for p, c in have.items()} | manifest(should, "/app/data"), sorted(
        rows, key=lambda row: row[1].encode()
    ) + total


def mirrored(share):
    """Originals, and each mirror's copies: damaged or absent with the given chance."""
    should = originals()
    return should, {
        m: {p: damaged(c) if rng.random() < share else c for p, c in should.items() if rng.random() > share}
        for m in MIRRORS
    }


def restore():
    should, copies = mirrored(0.3)
    order = rng.sample(MIRRORS, len(MIRRORS))
    off = order[:1] if OFF else []
    rows = [(p, next((m for m in order if m not in off and copies[m].get(p) == c), "-")) for p, c in should.items()]
    world = {f"/app/mirrors/{m}/{p}": c for m in MIRRORS for p, c in copies[m].items()}
    world["/app/mirrors.txt"] = "".join(("-" if m in off else "") + m + "\n" for m in order)
    return world | manifest(should, "/"), sorted(rows, key=lambda row: row[0].encode())


def vote():
    should, copies = mirrored(0.22)
    for path, data in rng.sample(sorted(should.items()), 4):  # the same damage twice: a plurality at most
        for mirror in MIRRORS[:2]:
            copies[mirror][path] = data + b"!"
        for at, mirror in enumerate(MIRRORS[2:]):
            copies[mirror][path] = data + bytes([at])
    for mirror in MIRRORS[1:]:
        copies[mirror]["docs/cache.tmp"] = b"t" * 9
    rows = []
    for path in sorted({p for m in MIRRORS for p in copies[m]}, key=str.encode):
        held = [copies[m].get(path) for m in MIRRORS]
        best = max((c for c in held if c is not None), key=held.count)
        if skipped(path):
            continue
        if 2 * held.count(best) <= len(MIRRORS):
            rows.append((path, "?"))
        elif len(best) > MIN:
            odd = ",".join(sorted(m for m in MIRRORS if copies[m].get(path) != best))
            rows += [(path, odd or "ok")] if odd or OK else []
    return {f"/app/mirrors/{m}/{p}": c for m in MIRRORS for p, c in copies[m].items()}, rows


def listing():
    have = originals()
    for path in (
        f"docs/{PRUNE}/deep/a.txt",
        f"{PRUNE}/b.txt",
        f"img/{PRUNE}er/c.txt",
        "sets/x.tmp",
        "sets/.y.swp",
        "img/z.tmp.txt",
        "docs/w.bak",
    ):
        have[path] = rng.randbytes(300)
    rows = []
    for path, data in sorted(have.items(), key=lambda item: item[0].encode()):
        if not skipped(path) and PRUNE not in path.split("/")[:-1] and len(data) >= MIN:
            rows.append(
                {
                    "gnu": f"{digest(data)}  {path}",
                    "bsd": f"{ALGO.upper()} ({path}) = {digest(data)}",
                    "csv": f"{path},{len(data)},{digest(data)}",
                }[FMT]
            )
    seal = ["# " + digest("".join(row + "\n" for row in rows).encode())] if COUNTS else []
    return {"/app/data/" + p: c for p, c in have.items()}, [[row] for row in rows + seal]


def dupes():
    have = {p: c for p, c in originals().items()}
    for path in rng.sample(sorted(have), 6):
        for copy in range(rng.randint(1, 2)):
            have[f"sets/{copy}{os.path.basename(path)}{'.tmp' if copy else '.dup'}"] = have[path]
    have |= {"img/.again": have["docs/.keep"], "img/a0.tmp": have["docs/.keep"], "e1": b"", "docs/e2": b""}
    coming = {f"in {n}/{os.path.basename(p)}": c for n, (p, c) in enumerate(rng.sample(sorted(have.items()), 14))}
    coming |= {"new": b"n" * 40, ".seen": have["docs/.keep"], "seen.tmp": have["docs/.keep"], "void": b""}
    usable = {p: c for p, c in have.items() if not skipped(p) and (c or not MIN)}
    groups = {}
    for path, data in sorted(usable.items(), key=lambda item: item[0].encode()):
        groups.setdefault(digest(data), []).append(path)
    if SCOPE == "two":
        rows = [
            (p, groups[digest(c)][0])
            for p, c in sorted(coming.items(), key=lambda item: item[0].encode())
            if not skipped(p) and (c or not MIN) and digest(c) in groups
        ]
    else:
        rows = [(d, str(len(paths)), *paths) for d, paths in sorted(groups.items()) if len(paths) > 1]
    return {"/app/data/" + p: c for p, c in have.items()} | (
        {"/app/incoming/" + p: c for p, c in coming.items()} if SCOPE == "two" else {}
    ), rows


def world_and_report():
    world, rows = {"audit": audit, "restore": restore, "vote": vote, "manifest": listing, "dupes": dupes}[KIND]()
    return world, "".join("\t".join(row) + "\n" for row in rows)


if __name__ == "__main__":
    for place, content in world_and_report()[0].items():
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
    if KIND == "manifest":
        os.symlink("docs", "/app/data/linked")
        os.symlink("../docs/.keep", "/app/data/img/kept")
