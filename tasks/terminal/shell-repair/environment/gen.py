"""Inputs for the script, and what it should make of them."""

import os
import random
import re
from collections import Counter

KIND = "~{ kind }~"


def write(top, path, data):
    place = os.path.join(top, path)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def tree(top):
    """{path: content} of all files below `top`; links by where they lead."""
    found = {}
    for at, folders, files in os.walk(top):
        for name in files + [folder for folder in folders if os.path.islink(os.path.join(at, folder))]:
            place = os.path.join(at, name)
            found[os.path.relpath(place, top)] = (
                os.readlink(place) if os.path.islink(place) else open(place, "rb").read()
            )
    return found


def word(rng):
    return "".join(rng.choice("abcdefghiknoprstu") for _ in range(rng.randint(3, 6)))

~% if kind == "rotate" %~

def make(rng, top, number):
    keep, files, after = rng.randint(3, 4), {}, {}
    for name in ("app.log", f"{word(rng)} {word(rng)}.log", f"{word(rng)}.log", "empty.log"):
        files[name] = "" if name == "empty.log" else word(rng)
        for age in sorted(rng.sample(range(2, keep + 1), rng.randint(1, keep - 1)) + [1]):
            files[f"{name}.{age}"] = word(rng)
    files |= {".hidden.log": "h", "other.txt": "o", "app.log.old": "x"}
    for name, text in files.items():
        write(top, f"my logs/{name}", text)
        base, age = re.fullmatch(r"(.*\.log)(?:\.(\d+))?|.*", name).groups()
        if base and not base.startswith(".") and files[base]:
            if int(age or 0) < keep:
                after[f"{base}.{int(age or 0) + 1}"] = text
            if not age:
                after.setdefault(name, "")
        else:
            after[name] = text
    return {
        "args": [os.path.join(top, "my logs"), str(keep)],
        "tree": {f"my logs/{name}": text.encode() for name, text in after.items()},
    }

~% elif kind == "top" %~

def make(rng, top, number):
    users = [word(rng) + str(n) for n in range(5)]
    counts = [12, 9, rng.randint(3, 5), 2, 2]
    lines = [f"ERROR {user} failed" for user, count in zip(users, counts) for _ in range(count)]
    lines += [f"{rng.choice(['WARN', 'INFO', 'ERRORS'])} {rng.choice(users)} an ERROR came, a*b" for _ in range(20)]
    rng.shuffle(lines)
    write(top, "the log.txt", "".join(f"{n:04d} {line}\n" for n, line in enumerate(lines)))
    best = sorted(zip(users, counts), key=lambda pair: (-pair[1], pair[0].encode()))
    n = [None, 2, 4, 5][number % 4]
    return {
        "args": [os.path.join(top, "the log.txt")] + ([str(n)] if n else []),
        "stdout": "".join(f"{user}: {count}\n" for user, count in best[: n or 3]) + f"total {sum(counts)}\n",
    }

~% elif kind == "sync" %~

def make(rng, top, number):
    if number % 5 == 4:
        return {"args": [os.path.join(top, "nowhere"), os.path.join(top, "dest")], "status": 1, "tree": {}}
    files = {
        f"{folder}{name}": word(rng)
        for folder in ("", "a b/", "c/deep/")
        for name in ("one.txt", ".hidden", f"{word(rng)} x", f" lead{rng.randint(1, 9)}", "back\\slash")
    }
    dest, lines = {"c/kept": "kept", "more/own.txt": "own"}, []
    files["fresh/deep/only"] = word(rng)
    for at, path in enumerate(sorted(files, key=str.encode)):
        write(top, "src/" + path, files[path])
        if at % 3 and not path.startswith("fresh/"):
            dest[path] = files[path] if at % 3 == 1 else files[path][::-1] + "x"
        if dest.get(path) != files[path]:
            lines.append(f"{'~' if path in dest else '+'} {path}\n")
    for path, text in dest.items():
        write(top, "dest/" + path, text)
        os.utime(os.path.join(top, "dest", path), (2_000_000_000, 2_000_000_000))
    after = {f"dest/{path}": text.encode() for path, text in (dest | files).items()} | {
        f"src/{path}": text.encode() for path, text in files.items()
    }
    return {"args": [os.path.join(top, "src"), os.path.join(top, "dest")], "stdout": "".join(lines), "tree": after}

~% elif kind == "render" %~

def make(rng, top, number):
    values = {
        "NAME": f"{word(rng)} & {word(rng)} ",
        "PATH_TO": "C:\\new\\" + word(rng),
        "SUM": f"a={rng.randint(1, 99)}=b",
        "RATE": "50%s %d%%",
        "EMPTY": "",
        "LAST": word(rng) + "&",
    }
    if number % 2:
        values["NAME"], values["LAST"] = values["LAST"] + " ", values["NAME"]
    parts = [f"{{{{{name}}}}}" for name in values] * 2 + [
        "{{UNKNOWN}}",
        "{{#TITLE}}",
        "{{ NAME }}",
        "plain %s text\n",
        "back\\n ",
        "\n",
        "&",
        "#=x ",
    ]
    rng.shuffle(parts)
    text = "".join(parts) + rng.choice(["", "\n", "\n\n"])
    listed = [f"{name}={value}" for name, value in values.items()]
    write(top, "page.txt", text)
    write(top, "vars", "\n".join(["#TITLE=never", "# a note", "", *listed]))
    return {
        "args": [os.path.join(top, "page.txt"), os.path.join(top, "vars")],
        "stdout": re.sub(r"\{\{(\w+)\}\}", lambda found: values.get(found[1], found[0]), text),
    }

~% elif kind == "total" %~

def make(rng, top, number):
    sums, rows = Counter(), []
    for row in range(16):
        group, amount = (
            rng.choice(["north", "south east", "B-1"]) if row > 2 else ["north", "south east", "B-1"][row],
            rng.randint(-300, 300),
        )
        sums[group] += amount
        rows.append(f"2024-01-{row + 1:02d},{group},{'-' if amount < 0 else ''}{'0' if row % 2 else ''}{abs(amount)}")
    rows.append(f"2024-02-01,north,0{rng.choice([18, 19, 28, 90])}")
    sums["north"] += int(rows[-1][-2:])
    rows.insert(5, "")
    end = ["\n", "\r\n"][number % 2]
    write(top, "data.csv", end.join(["date,group,amount", *rows]))
    return {
        "args": [os.path.join(top, "data.csv")],
        "stdout": "".join(f"{group} {total}\n" for group, total in sorted(sums.items())),
    }

~% elif kind == "tidy" %~

def make(rng, top, number):
    names = [
        "Read Me Now.TXT",
        ".Hidden File",
        "-Dash It",
        "fine.txt",
        f"{word(rng).title()}.md",
        f"{word(rng)} {word(rng)} x",
        "Two.txt",
        "two.txt",
        "A b",
        "a_b",
        "TWO.txt",
    ]
    after, lines = {name: word(rng) for name in names}, []
    for name, text in after.items():
        write(top, f"my dir/{name}", text)
    write(top, "my dir/Sub Dir/Inner X", "in")
    os.symlink("fine.txt", os.path.join(top, "my dir/Link To"))
    for old in sorted(names, key=str.encode):
        new = re.sub("[A-Z]", lambda found: found[0].lower(), old).replace(" ", "_")
        if new != old and new in after:
            lines.append(f"skip {old}\n")
        elif new != old:
            after[new] = after.pop(old)
            lines.append(f"{old} -> {new}\n")
    wanted = {f"my dir/{name}": text.encode() for name, text in after.items()} | {
        "my dir/Sub Dir/Inner X": b"in",
        "my dir/Link To": "fine.txt",
    }
    return {"args": [os.path.join(top, "my dir")], "stdout": "".join(lines), "tree": wanted}

~% elif kind == "retry" %~

def make(rng, top, number):
    limit, given = rng.randint(2, 4), [f"{word(rng)} {word(rng)}", "", "*", word(rng)]
    codes = [[rng.randint(2, 9)] * 6, [0], [rng.randint(2, 9), 0], [3, 127, 0]][number % 4]
    ran = next(n for n, code in enumerate(codes, 1) if code in (0, 127) or n == limit)
    script = f'for a in "$@"; do printf "<%s>" "$a"; done\necho x >> "{top}/calls"\ncodes=({" ".join(map(str, codes))})\nexit ${{codes[$(wc -l < "{top}/calls") - 1]}}\n'
    write(top, "flaky.sh", script)
    return {
        "args": [str(limit), "bash", os.path.join(top, "flaky.sh"), *given],
        "stdout": "".join(f"<{a}>" for a in given) * ran,
        "status": codes[ran - 1],
        "stderr": f"tries: {ran}\n",
        "tree": {"calls": b"x\n" * ran, "flaky.sh": script.encode()},
    }

~% else %~

def make(rng, top, number):
    keys = [word(rng) + str(n) for n in range(6)] + ["long name"]
    rng.shuffle(keys)
    texts, order = [], {}
    for part in (keys[:5], keys[2:]):
        lines = ["# a comment = x", "  \t# another=1", "", " \t"]
        lines += [
            f"{rng.choice(['', ' '])}{key}{rng.choice(['', ' ', chr(9)])}={rng.choice(['', ' '])}{word(rng)}{rng.choice(['=', '#', ' # = '])}{word(rng)} "
            for key in part
        ]
        lines += [f"{part[0]} ={word(rng)}=again#"]
        rng.shuffle(lines)
        while not lines[-1].strip() or lines[-1].lstrip().startswith("#"):
            lines.insert(0, lines.pop())
        for line in lines:
            if line.strip() and not line.lstrip().startswith("#"):
                key, _, value = line.partition("=")
                order[key.strip()] = value
        texts.append("\n".join(lines))
    write(top, "base.conf", texts[0])
    write(top, "over.conf", texts[1] + rng.choice(["", "\n"]))
    return {
        "args": [os.path.join(top, "base.conf"), os.path.join(top, "over.conf")],
        "stdout": "".join(f"{key}={value}\n" for key, value in order.items()),
    }

~% endif %~

if __name__ == "__main__":
    make(random.Random(~{ seed }~), "/app/sample", 1)
