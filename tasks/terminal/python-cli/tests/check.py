"""Run /app/tool.py on cases of each feature and compare with this file's own reading of the specification.

The tool runs as nobody and can read neither what is expected nor these tests.
"""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

RNG = random.Random(int("~{ seed }~"))
TOOL = "~{ tool }~"
HAS = "~{ has | join(' ') }~".split()


class Refused(Exception):
    """(exit code, what standard error begins with)."""


# --- tally


def tally_cases():
    words = ["pear", "Pear", "apple", "fig", "Fig", "kiwi", "plum", "", "date"]
    for number in range(18):
        rows = []
        for _ in range(RNG.randint(5, 30)):
            row = [RNG.choice(words) for _ in range(RNG.randint(1, 3))]
            rows.append(RNG.choice([" ", ",", "  ", "\t"]).join(row) if "field" in HAS and number % 3 else row[0])
        text = "\n".join(rows) + "\n"
        options = []
        for feature, choice in {"field": ["-k", "2"], "fold": ["-i"], "min": ["-m", "2"], "percent": ["-p"]}.items():
            if feature in HAS and RNG.random() < 0.6:
                options.append(choice)
        if ["-k", "2"] in options and RNG.random() < 0.5:
            options.append(["-t", ","])
        RNG.shuffle(options)
        flat = [word for option in options for word in option]
        cut = text.index("\n", len(text) // 2) + 1
        case = (flat, text, {}) if number % 2 else ([*flat, "one.txt", "two.txt"], "", {"one.txt": text[:cut], "two.txt": text[cut:]})
        yield case
    if "errors" in HAS:
        for bad in (["-q"], ["-m", "0"], ["-m", "two"], ["-m"], ["-m", "-1"], ["missing.txt"], ["--verbose", "one.txt"]):
            yield [*bad], "fig\n", {"one.txt": "fig\n"}
        yield ["one.txt", "-m", "2"], "", {"one.txt": "fig\nfig\nkiwi\n"}


def tally(args, feed, files):
    args, named, options = list(args), [], {}
    while args:
        word = args.pop(0)
        if word in ("-k", "-t", "-m"):
            if not args:
                raise Refused(2, "error:")
            options[word] = args.pop(0)
            if word != "-t" and not re.fullmatch("0*[1-9][0-9]*", options[word]):
                raise Refused(2, "error:")
        elif word in ("-i", "-p"):
            options[word] = True
        elif word.startswith("-") or word not in files:
            raise Refused(2, "error:")
        else:
            named.append(word)
    values = []
    for line in "".join(files[name] for name in named).split("\n") if named else feed.split("\n"):
        line = line.lower() if "-i" in options else line
        if "-k" in options:
            parts = line.split(options["-t"]) if "-t" in options else line.split()
            line = dict(enumerate(parts, 1)).get(int(options["-k"]), "")
        values += [line] if line else []
    rows = sorted((-values.count(value), value) for value in set(values))
    share = [f"\t{100 * -n / len(values):.1f}" if "-p" in options else "" for n, _ in rows]
    return "".join(f"{-n}\t{v}{s}\n" for (n, v), s in zip(rows, share, strict=True) if -n >= int(options.get("-m", 1)))


# --- dur


def some_duration():
    if "colon" in HAS and RNG.random() < 0.4:
        return RNG.choice([f"{RNG.randrange(30)}:{RNG.randrange(60):02d}:{RNG.randrange(60):02d}", f"{RNG.randrange(90)}:{RNG.randrange(60):02d}"])
    units = sorted(RNG.sample(range(4), RNG.randint(1, 4)))
    point = "fraction" in HAS
    return "".join(f"{RNG.randrange(100)}{RNG.choice(['', '.5', '.25', '.001']) if point else ''}{'dhms'[u]}" for u in units)


def dur_cases():
    commands = ["add", *(c for c in ("sub", "mean") if c in HAS)]
    for number in range(22):
        command = commands[number % len(commands)]
        count = 2 if command == "sub" else RNG.randint(1, 4)
        flags = ["-s"] if "seconds" in HAS and RNG.random() < 0.4 else []
        yield [*flags, command, *(some_duration() for _ in range(count))], "", {}
    for fixed in (["add", "0s"], ["add", "0d0h"], ["add", "86400s"], ["add", "1s", "x"], ["add", "h1"], ["add", "1m1h"], ["add", "1h 1m"]):
        yield fixed, "", {}
    yield ["add", "1h", "", "q"], "", {}
    yield ["add", "1.5h"], "", {}
    for text in ("1:60", "1:2:3", "1:02:03", "0:07", "1:02:3", ":05") if "colon" in HAS else ():
        yield ["add", text], "", {}
    if "sub" in HAS:
        yield ["sub", "1m", "1h6m"], "", {}
        yield ["sub", "1m", "60s"], "", {}
    if "mean" in HAS:
        yield ["mean", "1s", "2s"], "", {}
        yield ["mean", "1s", "1s", "2s"], "", {}


def dur(args, _feed, _files):
    plain, (command, *texts) = args[0] == "-s", args[1:] if args[0] == "-s" else args
    number = r"\d+(?:\.\d+)?" if "fraction" in HAS else r"\d+"
    values = []
    for text in texts:
        value, rest = Fraction(0), text
        for unit, size in {"d": 86400, "h": 3600, "m": 60, "s": 1}.items():
            if found := re.match(f"({number}){unit}", rest):
                value, rest = value + Fraction(found[1]) * size, rest[found.end() :]
        clock = re.fullmatch(r"\d+(:\d\d)?:\d\d", text) if "colon" in HAS else None
        parts = [int(part) for part in text.split(":")] if clock else []
        if clock and max(parts[1:]) < 60:
            value, rest = Fraction(sum(part * 60**place for place, part in enumerate(reversed(parts)))), ""
        if rest or not text:
            raise Refused(2, f"error: bad duration: {text}".rstrip())
        values.append(value)
    total = sum(values) // 1
    if command == "sub":
        total = (values[0] - values[1]) // 1
    if command == "mean":
        total = (sum(values) / len(values) + Fraction(1, 2)) // 1
    if plain:
        return f"{total}\n"
    minutes, s = divmod(abs(total), 60)
    hours, m = divmod(minutes, 60)
    d, h = divmod(hours, 24)
    shown = "".join(f"{n}{unit}" for n, unit in ((d, "d"), (h, "h"), (m, "m"), (s, "s")) if n)
    return ("-" if total < 0 else "") + (shown or "0s") + "\n"


# --- store: a case is a sequence of commands on one file


def store_cases():
    keys = ["a", "b", "ab", "long key", "z"] + (["a.b", "a.c", "n.o.p", "n.o.q", "b.x", "n.o", "a.b.c"] if "nested" in HAS else ["a.b"])
    commands = ["set", "set", "set", "get", "del", "list"] + ["incr", "incr"] * ("incr" in HAS) + ["mv", "mv"] * ("move" in HAS)
    for _ in range(4):
        script = []
        for _ in range(9):
            command, key = RNG.choice(commands), RNG.choice(keys)
            rest = {"set": [key, RNG.choice(["7", "x=y", "", "-3", "q w"])], "mv": [key, RNG.choice(keys)]}.get(command, [key])
            rest += RNG.choice([[], ["5"], ["-2"], ["1.5"]]) if command == "incr" else []
            if command == "list":
                rest = RNG.choice([[], ["a"], ["n.o"], ["b"]]) if "prefix" in HAS else []
            script.append([command, *rest])
        yield script
    yield [["get", "a"], ["del", "a"], ["list"], ["set", "a", "1"], ["get", "a"], ["get"], ["frobnicate"], ["list", "b", "c"]]
    if "incr" in HAS:
        yield [["incr", "n"], ["incr", "n", "-5"], ["set", "t", "x"], ["incr", "t"], ["incr", "n", "y"], ["get", "n"]]
    if "prefix" in HAS:
        yield [["set", "ba", "1"], ["set", "ab", "2"], ["set", "b", "3"], ["list", "b"], ["list", "x"]]
    if "nested" in HAS:
        yield [["set", "a.b", "1"], ["set", "a.c.d", "2"], ["get", "a"], ["set", "a.b.x", "3"], ["set", "a.c", "4"], ["del", "a.c.d"], ["list"], ["del", "a"]]
    if "move" in HAS:
        yield [["set", "a", "1"], ["set", "b", "2"], ["mv", "a", "b"], ["mv", "a", "c"], ["mv", "a", "d"], ["get", "c"], ["get", "b"]]


class Store:
    """Texts by path; a path is a tuple of keys."""

    def __init__(self) -> None:
        self.texts, self.written = {}, False

    def below(self, path):
        return {p: v for p, v in self.texts.items() if p[: len(path)] == path}

    def tree(self, path=()):
        result = {}
        for p, v in self.below(path).items():
            node = result
            for part in p[len(path) : -1]:
                node = node.setdefault(part, {})
            node[p[-1]] = v
        return result

    def put(self, path, text) -> None:
        if any(path[:n] in self.texts for n in range(1, len(path))) or self.below(path).keys() - {path}:
            raise Refused(2, None)
        self.texts[path], self.written = text, True

    def run(self, command, *rest):
        path = (tuple(rest[0].split(".")) if "nested" in HAS else (rest[0],)) if rest else ()
        low, high = {"get": (1, 1), "set": (2, 2), "del": (1, 1), "list": (0, "prefix" in HAS)}.get(command, (9, 0))
        low, high = {"incr": (1, 2), "mv": (2, 2)}.get(command, (low, high)) if {"incr": "incr", "mv": "move"}.get(command) in HAS else (low, high)
        if not low <= len(rest) <= high:
            raise Refused(2, None)
        if command == "list":
            rows = {".".join(p): v for p, v in self.texts.items()}
            return "".join(f"{k}={rows[k]}\n" for k in sorted(rows) if k.startswith(rest[0] if rest else ""))
        if command == "set":
            self.put(path, rest[1])
        elif command == "incr":
            old, more = self.texts.get(path, "0"), rest[1] if len(rest) == 2 else "1"
            if not re.fullmatch(r"-?\d+", old) or not re.fullmatch(r"-?\d+", more):
                raise Refused(2, None)
            self.put(path, str(int(old) + int(more)))
            return self.texts[path] + "\n"
        elif command == "mv":
            if path not in self.texts:
                raise Refused(1, None)
            target = tuple(rest[1].split(".")) if "nested" in HAS else (rest[1],)
            if self.below(target):
                raise Refused(2, None)
            self.put(target, self.texts[path])
            del self.texts[path]
        elif not self.below(path):
            raise Refused(1, None)
        elif command == "get":
            return (self.texts[path] if path in self.texts else json.dumps(self.tree(path), sort_keys=True, separators=(",", ":"))) + "\n"
        else:
            self.texts = {p: v for p, v in self.texts.items() if p not in self.below(path)}
            self.written = True
        return ""


# --- fill


def fill_cases():
    forms = ["${A}", "${B_2}", "${_c}", "$A", "${A", "${}", "${2A}", "text", "$", "${NONE}", "{A}"]
    forms += ["${NONE:-else}", "${EMPTY:-not empty}", "${A:-x y}", "${EMPTY:-}"] if "default" in HAS else []
    forms += ["$$", "$${A}", "$$$$"] if "escape" in HAS else []
    forms += ["${A^^}", "${B_2^^}"] if "upper" in HAS else []
    values = "# a comment\nA=first\n A = second=third\n\nB_2=mixed Case ${A}\nno sign here\n_c= lead\nEMPTY=\n#A=no\nÜ=1\n"
    for number in range(15):
        pool = [form for form in forms if "NONE}" not in form or number % 3 == 0]
        text = "".join(RNG.choice([" ", "\n", "-"]) + RNG.choice(pool) for _ in range(9)) + "\n"
        yield ["t.txt", "v.txt"], "", {"t.txt": text, "v.txt": values}
    yield ["t.txt", "v.txt"], "", {"t.txt": "${A} ${A}", "v.txt": "A=1\nA=2"}
    if "missing" in HAS:
        yield ["t.txt", "v.txt"], "", {"t.txt": "${X} ${B} ${A} ${X}\n", "v.txt": "A=1\n"}
    if "include" in HAS:
        files = {"sub/t.txt": "one\n@include deep/x.txt\n @include no\n@included\ntwo\n", "sub/deep/x.txt": "${A}\n@include ../y.txt\n", "sub/y.txt": "y ${A}\n"}
        yield ["sub/t.txt", "v.txt"], "", {**files, "v.txt": "A=1\n"}
        yield ["sub/t.txt", "v.txt"], "", {**files, "sub/y.txt": "@include gone.txt\n", "v.txt": "A=1\n"}


def fill(args, _feed, files):
    values = {}
    for line in files[args[1]].split("\n"):
        if "=" in line and line[0] != "#":
            values[line[: line.index("=")].strip()] = line[line.index("=") + 1 :]
    lacking = set()

    def text_of(name, folder):
        path = str(Path(folder, name))
        while re.search(r"[^/]+/\.\./", path):
            path = re.sub(r"[^/]+/\.\./", "", path, count=1)
        if path not in files:
            raise Refused(2, f"error: {name}")
        rows = files[path].split("\n")
        for place, row in enumerate(rows):
            if "include" in HAS and row.startswith("@include "):
                rows[place] = text_of(row[9:], Path(path).parent).removesuffix("\n")
        return "\n".join(rows)

    text, result = text_of(args[0], "."), ""
    while text:
        found = re.match(r"\$\{([A-Za-z_]\w*)(\^\^|:-[^}]*)?\}", text, re.ASCII)
        extra = found[2] or "" if found else ""
        if text.startswith("$$") and "escape" in HAS:
            result, text = result + "$", text[2:]
        elif found and (not extra or (extra == "^^" and "upper" in HAS) or (extra[0] == ":" and "default" in HAS)):
            value = values.get(found[1])
            if value is None and not extra.startswith(":"):
                lacking.add(found[1])
            value = value or (extra[2:] if extra.startswith(":") else "")
            result, text = result + (value.upper() if extra == "^^" else value), text[found.end() :]
        else:
            result, text = result + text[0], text[1:]
    if lacking and "missing" in HAS:
        raise Refused(3, "missing: " + ", ".join(sorted(lacking)))
    return result


# --- cols


def cols_cases():
    head = ["name", "size", "Kind", "note"]
    for _ in range(20):
        rows = [[RNG.choice("pqrs"), RNG.choice(["9", "10", "-2", "3.5", "10"]), RNG.choice(["a", "B", "c", "10"]), str(n)] for n in range(RNG.randint(1, 9))]
        options = [["-c", ",".join(RNG.sample(head, RNG.randint(1, 4)))]] if not HAS or RNG.random() < 0.6 else []
        if "drop" in HAS and RNG.random() < 0.5:
            options.append(["-x", ",".join(RNG.sample(head, RNG.randint(1, 2)) if RNG.random() < 0.9 else ["no"])])
        if "where" in HAS:
            options += [["-w", RNG.choice(["size>3", "size<10", "Kind=B", "name!=p", "Kind>2", "no=1"])] for _ in range(RNG.randrange(3))]
        if "sort" in HAS and RNG.random() < 0.7:
            options.append(["-s", RNG.choice(["size", "-size", "Kind", "-Kind", "name", "-nix"])])
        if "rename" in HAS:
            options += [["-r", RNG.choice(["size=Grösse", "note=size", "Kind=k=v", "nil=x"])] for _ in range(RNG.randrange(2))]
        RNG.shuffle(options)
        feed = "".join("\t".join(row) + "\n" for row in [head, *rows])
        kept = set(options[0][1].split(",")) if options and options[0][0] == "-c" else set(head)
        dropped = {n for o, v in options if o == "-x" for n in v.split(",")}
        chosen = {n for o, v in options if o == "-c" for n in v.split(",")} or kept
        if chosen - dropped:
            yield [word for option in options for word in option], feed, {}
    yield ["-c", "size,none,nix"], "name\tsize\nx\t1\n", {}
    yield ["-c", "size,size,name"], "name\tsize\nx\t1\n", {}


def cols(args, feed, _files):
    table = [line.split("\t") for line in feed.splitlines()]
    pairs = list(zip(args[::2], args[1::2], strict=True))
    head, rows = table[0], [dict(zip(table[0], row, strict=True)) for row in table[1:]]

    def check(names):
        for name in names:
            if name not in head:
                raise Refused(2, f"error: no column {name}")
        return names

    def figure(text):
        return float(text) if re.fullmatch(r"-?\d+(\.\d+)?", text) else None

    shown = [n for o, v in pairs if o == "-c" for n in check(v.split(","))] or head
    gone = [n for o, v in pairs if o == "-x" for n in check(v.split(","))]
    everything = rows
    for name, sign, text in [re.split("(!=|[=<>])", v, maxsplit=1) for o, v in pairs if o == "-w"]:
        check([name])
        if sign in ("=", "!="):
            rows = [row for row in rows if (row[name] == text) is (sign == "=")]
        else:
            known = [(row, figure(row[name])) for row in rows]
            rows = [row for row, n in known if n is not None and (n > float(text) if sign == ">" else n < float(text))]
    for name in [v for o, v in pairs if o == "-s"]:
        down, name = name.startswith("-"), name.lstrip("-")
        check([name])
        numeric = all(figure(row[name]) is not None for row in everything)
        rows = sorted(rows, key=lambda row: figure(row[name]) if numeric else row[name], reverse=down)
    new = dict(v.split("=", 1) for o, v in pairs if o == "-r")
    check(list(new))
    shown = [name for name in shown if name not in gone]
    lines = [[new.get(name, name) for name in shown], *([row[name] for name in shown] for row in rows)]
    return "".join("\t".join(line) + "\n" for line in lines)


# --- running


def as_nobody(command: list, feed: str, folder: str, limit_s: float) -> tuple[int, str, str]:
    """(exit code, output, error output) of the command run as nobody; it and its children are dead afterwards.

    Files instead of pipes: nobody may open /dev/stdin again, and no surviving child can keep the reading waiting.
    """
    stdin = Path(HOME, "stdin")
    stdin.write_text(feed)
    stdin.chmod(0o644)
    nobody = {"user": 65534, "group": 65534, "extra_groups": [], "start_new_session": True}
    with stdin.open("rb") as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdin=source, stdout=out, stderr=err, cwd=folder, **nobody)
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            sys.exit(f"{command[-3:]} did not come to an end within {limit_s} s")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(1_000_000).decode(errors="replace"))
    return code, *texts


def call(args, feed, folder):
    return as_nobody([sys.executable, "-I", "-S", "-B", "-X", "utf8", f"{HOME}/tool.py", *args], feed, folder, 5)


def judge(args, want, have) -> int:
    """0 if (code, output, beginning of the error output or None) is as wanted."""
    code, out, err = want
    if have[:2] == (code, out) and (err is None or have[2].strip() == err or (err == "error:" and have[2].startswith(err))):
        return 0
    print(f"{args}: expected {want}, found {have}")
    return 1


def expected(function, *case):
    try:
        return 0, function(*case), None
    except Refused as refused:
        return refused.args[0], "", refused.args[1]


HOME = tempfile.mkdtemp()
try:
    shutil.copyfile("/app/tool.py", f"{HOME}/tool.py", follow_symlinks=False)
except OSError as error:
    sys.exit(str(error))
for private, mode in (("/tests", 0o700), ("/logs/verifier", 0o700), (HOME, 0o755)):
    os.chmod(private, mode)
wrong = 0
for number, case in enumerate(globals()[TOOL + "_cases"]()):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        if TOOL == "store":
            model, file = Store(), Path(folder, "s.json")
            for step in case:
                wrong += judge(step, expected(model.run, *step), call([str(file), *step], "", folder))
            text = json.dumps(model.tree(), indent=2, sort_keys=True) + "\n" if model.written else None
            found = file.read_text(errors="replace") if file.exists() else None
            if found != text:
                print(f"{case}: expected the file {text!r}, found {found!r}")
                wrong += 1
            continue
        for name, text in case[2].items():
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, name).write_text(text)
        wrong += judge(case[0], expected(globals()[TOOL], *case), call(case[0], case[1], folder))
    if wrong > 4:
        break
print(f"{wrong} differences in {number + 1} cases")
sys.exit(bool(wrong))
