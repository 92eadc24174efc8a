"""The trees, and the links they should end with. Paths are relative to /app; ("link", text), ("file", content)."""

import fnmatch
import os
import posixpath
import random

KIND, STYLE = "~{ kind }~", "~{ style }~"
rng = random.Random(~{ seed }~)


def link(at, target):
    """A link in the wanted style from one path to another, both relative to /app."""
    return "link", posixpath.relpath(target, posixpath.dirname(at)) if STYLE == "relative" else "/app/" + target


def body():
    return rng.randbytes(rng.randint(5, 60))


def base(path):
    return posixpath.basename(path)

~% if kind == "stow" %~
WIN, SKIP, MARKER, LOCAL = "~{ win }~", "~{ skip }~", ~{ marker }~, ~{ local }~


def worlds():
    pool = [
        "bin/run",
        "bin/edit",
        "lib/core.so",
        "lib/x/extra.so",
        "share/doc/README",
        "share/my notes.txt",
        "etc/app.conf",
        "etc/.env",
        "README",
        "lib/core.so.bak",
    ]
    names = rng.sample(["editor", "viewer", "net-tools", "fonts", "games", "extras", "old"], 7)
    before, used = {}, names[:5]
    for name in names:
        for path in rng.sample(pool, 7):
            before[f"packages/{name}/{path}"] = "file", body()
    if MARKER:
        before[f"packages/{used[1]}/.disabled"] = "file", b""
    before["packages.order"] = "file", ("# order matters\n" + "".join(n + "\n" for n in used)).encode()
    farm = {}
    for name in used if WIN == "last" else used[::-1]:
        if MARKER and name == used[1]:
            continue
        for path in before:
            if path.startswith(f"packages/{name}/") and not (SKIP and fnmatch.fnmatchcase(base(path), SKIP)):
                at = "farm/" + path.split("/", 2)[2]
                farm[at] = link(at, path)
    if LOCAL:
        before["farm/etc/app.conf"] = farm["farm/etc/app.conf"] = "file", b"local\n"
        before["farm/bin/mine"] = farm["farm/bin/mine"] = "file", b"mine\n"
        before["farm/lib/gone.so"] = "link", "/app/packages/editor/lib/gone.so"
        before["farm/share/stale"] = (
            "link",
            f"/app/packages/{names[5]}/"
            + next(p for p in before if p.startswith(f"packages/{names[5]}/")).split("/", 2)[2],
        )
    return before, {p: n for p, n in before.items() if not p.startswith("farm/")} | farm

~% elif kind == "repair" %~
HOW, PICK, LOG = "~{ how }~", "~{ pick }~", ~{ log }~


def worlds():
    before = {
        f"store/{folder}/{name}": ("file", body())
        for folder in ("a", "a/deep", "b", "c d", "zz")
        for name in rng.sample(["n1.txt", "n2.txt", "n3.txt", "N1.txt", "two words.md", "x.bin", "y.bin"], 4)
    }
    stored, after, removed = sorted(before), {}, []
    moves = {
        "/old": "/app/store",
        "/old/sub": "/app/store/a",
        "/old/sub/more": "/app/store/c d",
        "/srv/x": "/app/store/zz",
    }
    for number in range(25):
        at = f"links/{rng.choice(['p', 'q', 'q/r', 's t'])}/l{number}"
        target = rng.choice(stored)
        state = number % 5
        if state == 0:  # whole, in either style
            node = "link", rng.choice(["/app/" + target, posixpath.relpath(target, posixpath.dirname(at))])
            before[at] = after[at] = node
            continue
        if HOW == "name":
            name = base(target) if state < 4 else f"lost{number}.txt"
            text = rng.choice([f"/app/store/was/{name}", f"../gone/{name}"]) if number != 9 else base(at)
            found = [p for p in stored if base(p) == base(text)]
            new = (found[0] if PICK == "first" else found[-1]) if found else None
        else:
            old, to = rng.choice(sorted(moves.items()))
            inside = rng.choice([p for p in stored if ("/app/" + p).startswith(to + "/")])
            text = old + ("/app/" + inside)[len(to) :]
            text = {3: text + ".lost", 4: text.replace("/", "x/", 2).replace("x/", "/", 1)}.get(state, text)
            fits = [o for o in moves if text.startswith(o + "/")]
            there = moves[max(fits, key=len)] + text[len(max(fits, key=len)) :] if fits else ""
            new = there[5:] if there[5:] in stored else None
        before[at] = "link", text
        if new:
            after[at] = link(at, new)
        else:
            removed.append(at[6:])
    if HOW == "map":
        before["moves.tsv"] = (
            "file",
            "".join(f"{o}\t{n}\n" for o, n in rng.sample(sorted(moves.items()), len(moves))).encode(),
        )
    kept = {p: n for p, n in before.items() if not p.startswith("links/")}
    if LOG:
        kept["removed.txt"] = "file", "".join(p + "\n" for p in sorted(removed, key=str.encode)).encode()
    return before, kept | after

~% elif kind == "releases" %~
MINOR, PREVIOUS, MARKER, PRE = ~{ minor }~, ~{ previous }~, ~{ marker }~, ~{ pre }~


def worlds():
    before, after = {}, {}
    for app in ("web", "web-api", "db2", "mail", "log-7z", "solo"):
        versions = {
            (major, minor) + rng.choice([(), (rng.randint(0, 30),)])
            for major in rng.sample([1, 2, 3, 10], 2)
            for minor in rng.sample([0, 2, 8, 9, 10, 11], 3)
        }
        versions = sorted(versions | {(1, 9), (1, 10)})[: 1 if app == "solo" else None]
        broken = {versions[-1], versions[0]} | ({(1, 10)} if app == "mail" else set()) if MARKER else set()
        good = []
        for version in versions:
            folder = f"releases/{app}-{'.'.join(map(str, version))}"
            before[folder + "/app"] = "file", body()
            if version in broken:
                before[folder + "/BROKEN"] = "file", b""
            else:
                good.append((version, folder))
        if PRE:
            before[f"releases/{app}-99.1-rc2/app"] = "file", body()
        if good:
            wanted = (
                {app: good[-1][1]}
                | ({f"{app}-{v[0]}": f for v, f in good} if MINOR else {})
                | ({app + ".previous": good[-2][1]} if PREVIOUS and len(good) > 1 else {})
            )
            after |= {f"current/{name}": link(f"current/{name}", folder) for name, folder in wanted.items()}
    return before | {
        "current/web": ("link", "../releases/web-0.1"),
        "current/gone": ("link", "../releases/gone-1.0"),
        "current/solo.previous": ("link", "/app/releases"),
    }, before | after

~% elif kind == "views" %~
YEARS, CLASH, NORM, GHOSTS, SINCE = ~{ years }~, ~{ clash }~, ~{ norm }~, ~{ ghosts }~, "~{ since }~"


def worlds():
    before, after, rows = {}, {}, ["path\tdate\ttags"]
    for number in range(24):
        name = f"d{rng.randint(1, 4)} plan.txt" if CLASH and number % 2 else f"doc{number}.txt"
        path = f"{rng.choice(['in', 'in/sub', 'out'])}/{name}" if not CLASH else f"f{number}/{name}"
        date = f"{rng.randint(2019, 2022)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
        tags = rng.sample(
            ["red", "blue", "Green", "big", "Old"] if NORM else ["red", "blue", "green", "big"], rng.randint(1, 3)
        )
        listed = (
            ",".join(rng.choice(["", " "]) + t + rng.choice(["", " "]) for t in tags) + rng.choice(["", ",", ", ,"])
            if NORM
            else ",".join(tags)
        )
        rows.append(f"{path}\t{date}\t{listed}")
        if GHOSTS and number % 6 == 5:
            continue
        before["items/" + path] = "file", body()
        if date >= SINCE:
            shown = path.replace("/", "--") if CLASH else base(path)
            places = [f"by-tag/{t.lower() if NORM else t}" for t in tags] + [f"by-date/{date[:4]}/{date[5:7]}"] * YEARS
            after |= {f"views/{place}/{shown}": link(f"views/{place}/{shown}", "items/" + path) for place in places}
    before["catalog.tsv"] = "file", "".join(row + "\n" for row in rows).encode()
    return before, before | after

~% elif kind == "dedupe" %~
KEEP, MIN, SKIP, LOG = "~{ keep }~", ~{ min }~, "~{ skip }~", ~{ log }~
times = {}


def worlds():
    before = {}
    contents = [rng.randbytes(size) for size in (4, 9, 30, 50, 80, 120, 150)]
    for folder in ("", "a/", "b/", "b/long name/", "c/"):
        for name in rng.sample(
            ["1.txt", "10.txt", "2.txt", "copy of 1.txt", ".h", "Z.txt", "keep.cfg", "verylongname.txt"], 6
        ):
            path = "data/" + folder + name
            before[path] = "file", rng.choice(contents)
            times[path] = 1_600_000_000 + 1000 * rng.randint(0, 9)
    before["data/c/there"] = "link", "../a"
    rank = {
        "first": lambda p: p.encode(),
        "oldest": lambda p: (times[p], p.encode()),
        "shortest": lambda p: (len(p), p.encode()),
    }[KEEP]
    kept, after, saved = {}, dict(before), 0
    for path in sorted(
        (
            p
            for p, n in before.items()
            if n[0] == "file" and len(n[1]) >= MIN and not (SKIP and fnmatch.fnmatchcase(base(p), SKIP))
        ),
        key=rank,
    ):
        first = kept.setdefault(before[path][1], path)
        if first != path:
            after[path] = link(path, first)
            saved += len(before[path][1])
    if LOG:
        after["saved.txt"] = "file", f"{saved}\n".encode()
    return before, after

~% else %~
WITHIN, COPY = ~{ within }~, "~{ copy }~"


def worlds():
    before = {
        f"store/{folder}/{name}": ("file", body())
        for folder in ("a", "a/b", "c")
        for name in ("one.txt", "two.cfg", "three 3.txt")
    }
    before |= {
        "store/alias": ("link", "a/b"),
        "store/c/up": ("link", "../alias"),
        "elsewhere/far.cfg": ("file", body()),
        "elsewhere/near": ("link", "../store/c"),
    }
    ends = [(p, p) for p in sorted(before) if p.startswith("store/") and before[p][0] == "file"] + [
        ("store/alias", "store/a/b"),
        ("store/c/up", "store/a/b"),
        ("elsewhere/far.cfg", "elsewhere/far.cfg"),
    ]
    ends += [(f"store/c/up/{n}", f"store/a/b/{n}") for n in ("one.txt", "two.cfg")] + [
        ("elsewhere/near/one.txt", "store/c/one.txt"),
        ("store/gone", None),
        ("store/alias/gone.txt", None),
    ]
    after, made = {}, []
    for number in range(26):
        at = f"links/{rng.choice(['x', 'x/y', 'z z'])}/{number}{rng.choice(['.txt', '.cfg', ''])}"
        target, end = (
            rng.choice(made)
            if made and number % 2
            else ends[number // 2 % len(ends)]
            if number < 26
            else rng.choice(ends)
        )
        before[at] = "link", rng.choice(["/app/" + target, posixpath.relpath(target, posixpath.dirname(at))])
        made.append((at, end))
        if end is None or (WITHIN and not end.startswith("store/")):
            after[at] = before[at]
        elif COPY and fnmatch.fnmatchcase(base(at), COPY) and end in before:
            after[at] = before[end]
        else:
            after[at] = link(at, end)
    return before, before | after

~% endif %~

if __name__ == "__main__":
    for path, (kind, content) in worlds()[0].items():
        place = "/app/" + path
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if kind == "link":
            os.symlink(content, place)
        else:
            with open(place, "wb") as file:
                file.write(content)
            if "times" in globals():
                os.utime(place, (times[path], times[path]))
