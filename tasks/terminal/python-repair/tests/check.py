"""Call the repaired package and the package as it should be with the same arguments, and compare what they return.

The repaired code runs as nobody, in a process of its own, and can read neither what is expected nor these tests.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, "/tests")
import gen

RNG = random.Random(int("~{ seed }~") + 1)
CALL = """
import importlib, json, os, sys
sys.path.insert(0, sys.argv[1])
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
package = importlib.import_module(sys.argv[2])
def value(name, arguments):
    try:
        return ["value", getattr(package, name)(*arguments)]
    except (ValueError, KeyError, ZeroDivisionError, IndexError, TypeError, AttributeError, RecursionError) as error:
        return ["error", type(error).__name__, repr(error.args) if name == "tokens" else ""]
out.write(json.dumps([value(*call) for call in json.load(sys.stdin)]))
out.flush()
"""


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
            texts.append(file.read(8_000_000).decode(errors="replace"))
    return code, *texts


def some_spans() -> list:
    starts = [RNG.randrange(-9, 30) for _ in range(RNG.randint(0, 6))]
    return [[a, a + RNG.choice([0, 1, 2, 3, 12])] for a in starts]


def spans_calls():
    for _ in range(120):
        yield "merge", [some_spans()]
        yield "total", [some_spans()]
        yield "overlap", [some_spans(), some_spans()]
        yield "subtract", [some_spans(), some_spans()]
        yield "show", [some_spans()]
        parts = [RNG.choice(["", f"{a}", f"{a}-{b}", f" {a}-{b} ", f"{a} "]) for a, b in some_spans()]
        yield "parse", [",".join(parts)]
    for text in ("", " ", "3-1", "a", "1-2-3", "1.5", "-5--2,-1", "--3", "5-", "7-7", "0,00", "1 2", "-2-1"):
        yield "parse", [text]


def expression(depth: int) -> str:
    if depth == 0 or RNG.random() < 0.15:
        return RNG.choice([str(RNG.randrange(12)), "1_0", "x", "y", f"{RNG.randrange(3)} "])
    a, b = expression(depth - 1), expression(depth - 1)
    forms = ["{a}+{b}", "{a} - {b}", "{a}*{b}", "{a} // {b}", "{a}%{b}", "-{a}", "({a})", "max({a}, {b})", "min({b},{a},3)"]
    return RNG.choice([*forms, "abs({a})", f"-{RNG.randrange(4)}**2", "2**{b}", "2**2**{c}"]).format(a=a, b=b, c=RNG.randrange(3))


def calc_calls():
    names = {"x": 7, "y": -3}
    fixed = ["2**-1", "2**3**2", "-2**2", "1-2-3", "7 // 2 * 2", "-7 // 2", "-7 % 3", "1 +", "(1", "1)", "max()", "abs(1, 2)", "abs(-3)", "z"]
    fixed += ["2**+3", "3**-0", "1__0", "1/2", "3 $ 4", "", "  ", "x y", "max(3)", "min(2,1,3)", "--3", "1 + $", "8 % 5 * 2", "2 * -3", "(2))", "100_000 + 1", " 7 ", "x_1"]
    for text in fixed + [expression(3) for _ in range(300)]:
        if text.count("**") < 3 and "**x" not in text.replace(" ", ""):
            yield "evaluate", [text, names]
        yield "tokens", [text]


def cell() -> str:
    return RNG.choice(["", "a", "bc", "x,y", 'say "hi"', '"', "two\nlines", "12", "-3", "+5", "7", "100", "long text"])


def grid_calls():
    for _ in range(150):
        rows = [[cell() for _ in range(RNG.randint(1, 4))] for _ in range(RNG.randint(0, 5))]
        yield "write", [rows]
        yield "align", [[[c for c in row if "\n" not in c] or ["z"] for row in rows]]
        yield "read", ["".join(",".join('"' + c.replace('"', '""') + '"' if set(c) & set(',"\n') else c for c in row) + RNG.choice(["\n", "\r\n"]) for row in rows)]
        numbers = RNG.random() < 0.5
        body = [[RNG.choice("abc"), str(RNG.randrange(-20, 120)) if numbers else RNG.choice(["9", "10", "x", "Y"]), str(n)] for n in range(8)]
        yield "order", [[["k", "v", "n"], *body], RNG.choice(["k", "v", "w"]), RNG.random() < 0.5]
        yield "group", [[["k", "v", "n"], *([k, "" if RNG.random() < 0.2 else n, v] for k, v, n in body)], "k", "v"]
    for text in ("", "\n", "a,b", "a,", ",", '"a', '"a""b",c', 'a\r\n\r\nb', '"x\n', '"",""', 'a"b,c', "a,\n", '"a"\n'):
        yield "read", [text]
    for rows in ([["n"], ["1"], ["-22"]], [["n", "m"], ["1"], ["2", "3"]], [["only"]], [], [["a", "b"], ["x", ""], ["", ""]], [["n"], ["1"], [""]]):
        yield "align", [rows]


def graph(cycles: bool) -> dict:
    nodes = RNG.sample("abcdefgh", 6)
    found = {}
    for place, node in enumerate(nodes):
        others = nodes if cycles else nodes[place + 1 :]
        if others and RNG.random() < 0.8:
            found[node] = {n: RNG.choice([0, 1, 1, 2, 3, 5]) for n in RNG.sample(others, min(len(others), RNG.randint(1, 3)))}
    return found


def route_calls():
    for _ in range(200):
        plain, wild = graph(False), graph(True)
        for name in ("sort", "levels", "layers"):
            yield name, [plain]
            yield name, [wild]
        for start, goal in (RNG.choices("abcdefgh", k=2) for _ in range(3)):
            yield "shortest", [wild, start, goal]
            yield "shortest", [plain, start, goal]
            yield "reachable", [wild, start, RNG.choice([None, 0, 1, 2])]
    yield "shortest", [{"a": {"b": 5, "c": -1}}, "a", "b"]
    yield "shortest", [{"a": {"a": 1}}, "a", "a"]
    yield "sort", [{}]
    yield "layers", [{}]


def answers(folder: str, calls: list) -> list:
    command = [sys.executable, "-I", "-S", "-B", "-c", CALL, folder, gen.PACKAGE]
    _, out, err = as_nobody(command, json.dumps(calls), "/", 10)
    try:
        return json.loads(out)
    except ValueError:
        sys.exit(f"the package gave no answers: {err[-2000:]}")


calls = [list(call) for call in globals()[gen.PACKAGE + "_calls"]()]
os.chmod("/tests", 0o700)
os.chmod("/logs/verifier", 0o700)
with tempfile.TemporaryDirectory() as HOME:
    os.chmod(HOME, 0o755)
    pristine, repaired = Path(HOME, "pristine", gen.PACKAGE), Path(HOME, "repaired", gen.PACKAGE)
    pristine.mkdir(parents=True)
    for name, text in gen.SOURCES[gen.PACKAGE].items():
        (pristine / name).write_text(text)
    try:
        shutil.copytree(f"/app/{gen.PACKAGE}", repaired, symlinks=True)
    except (OSError, shutil.Error) as error:
        sys.exit(f"cannot copy the package: {error}")
    for path in (repaired, *(p for p in repaired.rglob("*") if not p.is_symlink())):
        path.chmod(0o755)
    want = answers(str(pristine.parent), calls)
    have = answers(str(repaired.parent), calls)
if not isinstance(have, list) or len(have) != len(want):
    sys.exit("the package gave another number of answers")
wrong = [(call, w, h) for call, w, h in zip(calls, want, have, strict=True) if w != h]
for (name, arguments), w, h in wrong[:5]:
    print(f"{name}({', '.join(map(repr, arguments))}): expected {w[1:]}, found {h[1:] if isinstance(h, list) else h}")
print(f"{len(wrong)} of {len(calls)} calls differ")
sys.exit(bool(wrong))
