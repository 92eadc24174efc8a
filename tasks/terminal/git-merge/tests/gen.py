"""The diverged branches, from the seed alone. The same file stands in environment/ and in tests/."""

import random
import subprocess
import sys

RNG = random.Random(int("~{ seed }~"))
TOPICS = "~{ topics | join(' ') }~".split()
KINDS = [kind.split(":")[0] for kind in "~{ files | join(' ') }~".split()]
WORDS = "amber basin cedar delta ember fjord grove heron inlet jetty knoll ledge marsh north ochre pier quay ridge".split()
INDEX = "for f in parts/*.txt; do printf '%s %s\\n' \"${f#parts/}\" $(($(wc -l < \"$f\"))); done | LC_ALL=C sort > index.txt\n"


def lines(title: str) -> str:
    return title + "\n" + "".join(" ".join(RNG.choices(WORDS, k=5)) + "\n" for _ in range(RNG.randint(3, 7)))


def settings(sides: list) -> dict:
    keys = [f"{a}_{b}" for a in ("cache", "net", "pool", "queue") for b in ("limit", "size", "wait")]
    RNG.shuffle(keys)
    base = {key: RNG.randrange(20, 90) for key in keys}
    result = {"": base}
    for number, side in enumerate(sides):
        mine = dict(base)
        for place in range(4):  # changed by all, upwards by one side and downwards by the next
            mine[keys[place]] += (3 + RNG.randrange(9) + 10 * number) * (1 if (place + number) % 2 else -1)
        mine[keys[4 + number]] += 7
        mine[f"extra_{side.replace('-', '_')}"] = RNG.randrange(10, 99)
        del mine[keys[7 + number]]
        if number:
            mine[keys[7]] += 2 + number  # removed by main
        result[side] = mine
    return {s: {"settings.ini": "".join(f"{k} = {v}\n" for k, v in sorted(d.items()))} for s, d in result.items()}


def words(sides: list) -> dict:
    base = set(RNG.sample([a + b for a in WORDS for b in ("", "s", "er")], 20))
    result = {"": base}
    pool = RNG.sample(sorted(base), 8)
    for number, side in enumerate(sides):
        result[side] = base - set(pool[number : number + 2]) | {f"new{n}{side[-1]}" for n in range(3)} | {"newcommon"}
    return {side: {"words.txt": "".join(w + "\n" for w in sorted(found))} for side, found in result.items()}


def changelog(sides: list) -> dict:
    head, old = "# Changes\n\n", [f"- {' '.join(RNG.choices(WORDS, k=4))}" for _ in range(6)]
    result = {"": old}
    for side in sides:
        new = [f"- {side}: {' '.join(RNG.choices(WORDS, k=4))}" for _ in range(3)]
        new.insert(RNG.randrange(3), "- the same repair")
        result[side] = new + old
    return {side: {"CHANGES.md": head + "".join(e + "\n" for e in entries)} for side, entries in result.items()}


def requires(sides: list) -> dict:
    names = RNG.sample(WORDS, 8)
    base = {name: f"1.{RNG.randrange(5)}.{RNG.randrange(9)}" for name in names}
    result = {"": base}
    for number, side in enumerate(sides):
        mine = {**base, names[0]: f"2.{9 + number}.0", names[1]: f"1.{10 - number}.{2 + number}", names[2]: f"3.0.{RNG.randrange(9)}"}
        mine[f"lib-{side}"] = f"0.{RNG.randrange(9)}.1"
        result[side] = mine
    return {s: {"requires.txt": "".join(f"{n}=={v}\n" for n, v in sorted(d.items()))} for s, d in result.items()}


def gone(sides: list) -> dict:
    result = {side: {} for side in ["", *sides]}
    for topic in sides[1:]:
        for name, deleting in ((f"legacy/{topic}-a.txt", sides[0]), (f"legacy/{topic}-b.txt", topic)):
            body = lines(name)
            for side in ["", *sides]:
                result[side][name] = body
            del result[deleting][name]
            modifying = topic if deleting == sides[0] else sides[0]
            result[modifying][name] = body + "and one line more\n"
    return result


def whole(sides: list) -> dict:
    return {side: {"data/layout.txt": lines(f"layout {side}")} for side in ["", *sides]}


def index(sides: list) -> dict:
    base = {f"parts/{name}.txt": lines(name) for name in RNG.sample(WORDS, 4)}
    result = {"": base, **{side: {**base, f"parts/{side}.txt": lines(side)} for side in sides}}
    for files in result.values():
        rows = sorted(f"{name[6:]} {body.count(chr(10))}\n" for name, body in files.items())
        files |= {"make-index.sh": INDEX, "index.txt": "".join(rows)}
    return result


def table(sides: list) -> dict:
    base = {n: (RNG.choice(WORDS), RNG.randrange(99), f"2024-01-{n:02d}") for n in RNG.sample(range(1, 21), 12)}
    ids, result = sorted(base), {"": base}
    for number, side in enumerate(sides):
        mine, step = dict(base), 3 * number
        for place in range(4):  # changed by all, later by one side and then by the next
            day = 10 + (step if place % 2 else 9 - step)
            mine[ids[place]] = (base[ids[place]][0], RNG.randrange(100, 199), f"2024-02-{day:02d}")
        mine[ids[5 + number]] = (base[ids[5 + number]][0], RNG.randrange(200, 299), "2024-02-20")
        for n in (21, 22, 23 + number):
            mine[n] = (f"{side}-{n}", RNG.randrange(99), f"2024-03-{10 + number:02d}")
        result[side] = mine
    head = "id,name,count,updated\n"
    return {s: {"stock.csv": head + "".join(f"{n},{a},{b},{c}\n" for n, (a, b, c) in sorted(d.items()))} for s, d in result.items()}


def contents() -> dict:
    """Files by side: "" is the common ancestor, then `main` and the topics."""
    sides = ["main", *TOPICS]
    shared = {f"src/{name}.txt": lines(name) for name in RNG.sample(WORDS, 6)}
    result = {side: dict(shared) for side in ["", *sides]}
    for number, side in enumerate(sides):
        result[side][sorted(shared)[number]] += f"a line of {side}\n"
        result[side][f"src/of-{side}.txt"] = lines(side)
    for kind in KINDS:
        for side, files in globals()[kind](sides).items():
            result[side] |= files
    return result


def write(path: str) -> tuple[dict, dict]:
    """Create the repository; return the contents and the tips by branch."""
    found, stream, mark = contents(), [], 0
    for side, files in found.items():
        for part in range(2):
            mark += 1
            who = f"Ada Abel <ada@example.org> {1700000000 + 9000 * mark} +0000"
            stream.append(f"commit refs/heads/{side or 'main'}\nmark :{mark}\nauthor {who}\ncommitter {who}")
            stream.append(f"data {len('Work')}\nWork")
            stream += [f"from :{mark - 1 if part else 2}"] if mark > 1 else []
            if part or not side:
                stream += ["deleteall"] + [f"M 100644 inline {n}\ndata {len(b)}\n{b}" for n, b in files.items()]
            else:
                stream += [f"M 100644 inline notes/{side}.txt\ndata 5\nnote\n"]
    git = ["git", "-C", path]
    subprocess.run(["git", "init", "-q", "-b", "main", path], check=True)
    subprocess.run([*git, "fast-import", "--quiet", "--force"], input="\n".join(stream).encode() + b"\n", check=True)
    subprocess.run([*git, "reset", "-q", "--hard", "main"], check=True)
    with open(f"{path}/.git/config", "a") as config:
        config.write("[user]\n\tname = Solver\n\temail = solver@example.org\n[gc]\n\tauto = 0\n")
    shown = subprocess.run([*git, "rev-parse", "main", *TOPICS], check=True, capture_output=True, text=True).stdout.split()
    return found, dict(zip(["main", *TOPICS], shown, strict=True))


if __name__ == "__main__":
    write(sys.argv[1])
