"""The files, as {path in bytes: content}, and what should become of them."""

import fnmatch
import os
import random
import re
import unicodedata

KIND = "~{ kind }~"
rng = random.Random(~{ seed }~)
WORDS = {
    "ascii": ["plain", "words", "in", "rows", "x = 1;"],
    "latin": ["façade", "naïve", "Übung", "señor", "à la", "Århus"],
    "western": ["10 €", "“so”", "œuvre", "Ž"],
    "iso-8859-15": ["10 €", "œuvre", "Ž"],
    "iso-8859-2": ["Łódź", "čaj", "ő"],
    "koi8-r": ["дом", "Ёж", "чай"],
    "shift_jis": ["日本", "カナ", "東京"],
    "any": ["Ωμέγα", "日本語", "дом", "😀 ok"],
}
FOLDERS = [b"", b"a/", b"a/deep/", b"b c/"]


def text(*kinds, ends=("\n",), final=True, rows=None):
    rows = [
        " ".join(rng.choice(WORDS[rng.choice([*kinds, "ascii"])]) for _ in range(rng.randint(1, 4)))
        for _ in range(rows or rng.randint(2, 6))
    ]
    rows[0] += " " + rng.choice(WORDS[kinds[0]])
    joined = "".join(row + rng.choice(ends) for row in rows)
    return joined if final else joined.rstrip("\r\n")


def name(number, end):
    return rng.choice(FOLDERS) + f"{rng.choice(['note', 'Letter', 'old text'])}{number}{end}".encode()


def by_path(rows):
    return b"".join(b"\t".join(row) + b"\n" for row in sorted(rows))

~% if kind == "table" %~
CR, PARTIAL, FINAL = ~{ cr }~, ~{ partial }~, ~{ final }~


def worlds():
    before, after, rows = {}, {}, []
    for number in range(14):
        encoding = (
            ["iso-8859-1", "utf-16", "windows-1252", "utf-8"]
            + (["utf-16be", "utf-8-bom", "koi8-r", "iso-8859-2"] if CR else [])
            + (["shift_jis", "iso-8859-15"] if PARTIAL else [])
        )[number % (4 + 4 * CR + 2 * PARTIAL)]
        kinds = {
            "iso-8859-1": ["latin"],
            "windows-1252": ["western", "latin"],
            "iso-8859-15": ["iso-8859-15", "latin"],
        }.get(encoding, [encoding] if encoding in WORDS else ["any", "latin"])
        plain = text(*kinds, ends=("\r\n", "\n") + (("\r",) if CR else ()), final=rng.random() < 0.6)
        if number < 4 and "\r\n" not in plain:
            plain = "first\r\n" + plain
        path = b"in/" + name(number, ".txt")
        mark = "\ufeff" if encoding in ("utf-16be", "utf-8-bom") else ""
        listed = {"utf-8-bom": "utf-8"}.get(encoding, encoding)
        before[path] = (mark + plain).encode(listed)
        clean = plain.replace("\r\n", "\n")
        clean = clean.replace("\r", "\n") if CR else clean
        after[b"out" + path[2:]] = (clean + ("\n" if FINAL and not clean.endswith("\n") else "")).encode()
        rows.append(f"{path[3:].decode()},{listed}\n")
    if PARTIAL:
        for extra, data in ((b"a/raw.bin", bytes(range(256))), (b"unlisted.txt", "Übung\r\n".encode("utf-16"))):
            before[b"in/" + extra] = after[b"out/" + extra] = data
    before[b"encodings.csv"] = ("path,encoding\n" + "".join(rows)).encode()
    return before, after | before

~% elif kind == "detect" %~
FALLBACK, LF, ODD, REPORT = "~{ fallback }~", ~{ lf }~, ~{ odd }~, ~{ report }~


def worlds():
    before, after, rows = {}, {}, []
    special = {
        "iso-8859-1": ["latin"],
        "windows-1252": ["western", "latin"],
        "iso-8859-15": ["iso-8859-15", "latin"],
        "koi8-r": ["koi8-r"],
    }[FALLBACK]
    for number in range(20):
        kind = ["utf-8", FALLBACK, "mark", "utf-16le", "utf-16be", "binary", FALLBACK, "ascii"][number % 8]
        plain = text(
            *{"ascii": ["ascii"], FALLBACK: special}.get(kind, ["any", "latin"]), ends=("\n", "\r\n") if LF else ("\n",)
        )
        if kind == "binary":
            data = clean = rng.choice(
                [b"\x7fELF\0\r\n\xff\xfe", b"GIF\0\0" + bytes(range(250, 256)), "two\r\nby".encode("utf-16le")]
            )
        else:
            data = {
                "mark": b"\xef\xbb\xbf" + plain.encode(),
                "utf-16le": b"\xff\xfe" + plain.encode("utf-16le"),
                "utf-16be": b"\xfe\xff" + plain.encode("utf-16be"),
                "ascii": plain.encode(),
                "utf-8": plain.encode(),
            }.get(kind) or plain.encode(FALLBACK)
            if kind == FALLBACK:  # a character that is no UTF-8 where it stands
                data = data.rstrip(b"\r\n") + (" ÿ\n" if FALLBACK != "koi8-r" else " Ъ\n").encode(FALLBACK)
                plain = data.decode(FALLBACK)
            clean = (plain.replace("\r\n", "\n") if LF else plain).encode()
        path = name(number, ".txt")
        if ODD and number % 3 == 0:
            path += b"\xe9\xff."
        before[b"in/" + path], after[b"out/" + path] = data, clean
        rows.append((path, {"mark": "utf-8", "ascii": "utf-8"}.get(kind, kind).encode()))
    before[b"in/empty.txt"] = after[b"out/empty.txt"] = b""
    rows.append((b"empty.txt", b"utf-8"))
    return before, before | after | ({b"report.tsv": by_path(rows)} if REPORT else {})

~% elif kind == "eol" %~
RULES, STRIP, FINAL, REPORT = ~{ rules | tojson }~, ~{ strip }~, ~{ final }~, ~{ report }~


def worlds():
    before, after = {}, {}
    ends = (("\n",), ("\r\n",), ("\r",), ("\n", "\r\n"), ("\n", "\r\n", "\r"))
    for number in range(24):
        plain = text(rng.choice(["ascii", "latin"]), ends=ends[number % 5], final=rng.random() < 0.6)
        if STRIP and number % 3:
            plain = plain.replace("x = 1;", "x = 1; \t").replace("plain", "plain ") + rng.choice(["", "  \n", " \t"])
        data = plain.encode(rng.choice(["utf-8", "iso-8859-1"]))
        end = rng.choice([".txt", ".bat", ".sh", ".csv", ".txt.orig", ".md"])
        if number % 6 == 5:
            data, end = b"a\r\nb\nc\rd\0\r\n \n", rng.choice([".txt", ".bat"])
        path = b"tree/" + name(number, end)
        before[path] = data
        want = next(
            (end for pattern, end in RULES.items() if fnmatch.fnmatchcase(os.path.basename(path).decode(), pattern)),
            "keep",
        )
        if want != "keep" and b"\0" not in data:
            data = re.sub(rb"\r\n|\r", b"\n", data)
            if STRIP:
                data = re.sub(rb"[ \t]+(?=\n|\Z)", b"", data)
            if FINAL and data and not data.endswith(b"\n"):
                data += b"\n"
            data = data.replace(b"\n", {"lf": b"\n", "crlf": b"\r\n", "cr": b"\r"}[want])
        after[path] = data
    before[b"tree/empty.txt"] = after[b"tree/empty.txt"] = b""
    changed = by_path([(path[5:],) for path in before if before[path] != after[path]])
    return before, after | ({b"changed.txt": changed} if REPORT else {})

~% elif kind == "encode" %~
TARGETS, BAD = ~{ targets | tojson }~, "~{ bad }~"


def worlds():
    before, after, rows = {}, {}, []
    for number in range(20):
        folder = list(TARGETS)[number % len(TARGETS)]
        encoding, end = TARGETS[folder]
        fit = {
            "iso-8859-1": ["latin"],
            "windows-1252": ["western", "latin"],
            "iso-8859-15": ["iso-8859-15", "latin"],
            "cp850": ["latin"],
            "koi8-r": ["koi8-r"],
            "iso-8859-2": ["iso-8859-2"],
        }.get(encoding, ["any"])
        plain = text(*fit, final=rng.random() < 0.7)
        if number % 5 < 3 and encoding[:3] != "utf":
            plain = text("any", "western", final=rng.random() < 0.5)
        path = f"{folder}/{rng.choice(['', 'sub/'])}t {number}.txt".encode()
        before[b"in/" + path] = plain.encode()
        shown = plain.replace("\n", "\r\n") if end == "crlf" else plain
        mark = {"utf-16le": b"\xff\xfe", "utf-16be": b"\xfe\xff"}.get(encoding, b"")
        try:
            after[b"out/" + path] = mark + shown.encode(encoding, "strict" if BAD == "skip" else BAD)
        except UnicodeEncodeError:
            missing = [c for c in sorted(set(plain)) if not c.encode(encoding, "ignore")]
            rows.append((path, "".join(missing).encode()))
    return before, before | after | ({b"skipped.txt": by_path(rows)} if BAD == "skip" else {})

~% elif kind == "mojibake" %~
TWICE, REPORT = ~{ twice }~, ~{ report }~


def mended(line):
    while True:
        try:
            better = line.encode("iso-8859-1").decode() if not line.isascii() else line
        except ValueError:
            return line
        if better == line or not TWICE:
            return better
        line = better


def worlds():
    before, after, rows = {}, {}, []
    for number in range(9):
        lines = text("latin", "any", ends=("\n", "\r\n"), rows=12).splitlines(keepends=True)
        lines = [line.encode().decode("iso-8859-1") if rng.random() < 0.5 else line for line in lines]
        if TWICE:
            lines = [line.encode().decode("iso-8859-1") if rng.random() < 0.3 else line for line in lines]
        lines = lines[:4] + ["Ã und Ωμ\n", "Ã\n", "Â£ 5\n"] + lines[4:]
        # C1 controls are characters like others here: only LF and CRLF end a line
        lines = re.findall("[^\n]*\n|[^\n]+", "".join(lines))
        path = name(number, ".txt")
        fixed = []
        for line in lines:
            body, end = re.fullmatch("(.*?)(\r?\n)?", line, re.S).groups()
            fixed.append(mended(body) + (end or ""))
        before[b"text/" + path], after[b"text/" + path] = "".join(lines).encode(), "".join(fixed).encode()
        count = sum(old != new for old, new in zip(lines, fixed))
        rows += [(path, str(count).encode())] if count else []
    whole = b"text/whole.txt"
    before[whole] = after[whole] = "naïve\nplain\n".encode()
    return before, after | ({b"mended.tsv": by_path(rows)} if REPORT else {})

~% else %~
FALLBACK, NFC, LOWER, REPORT = "~{ fallback }~", ~{ nfc }~, ~{ lower }~, ~{ report }~


def final_name(raw):
    try:
        shown = raw.decode()
    except UnicodeDecodeError:
        shown = raw.decode(FALLBACK)
    shown = unicodedata.normalize("NFC", shown) if NFC else shown
    return (re.sub("[A-Z]", lambda found: found[0].lower(), shown) if LOWER else shown).encode()


def worlds():
    before, after, rows = {}, {}, []
    folders = [
        b"",
        "Fotos été".encode(FALLBACK) + b"/",
        "Fotos été".encode(FALLBACK) + b"/" + "Über".encode(FALLBACK) + b"/",
        "schön".encode() + b"/",
        b"Plain/",
    ]
    for folder in folders:
        for stem in rng.sample(["Ärger", "café", "niño", "README", "x y", "Straße", "façade"], 5):
            for form in rng.sample(["old", "new", "nfd"] if NFC else ["old", "new"], rng.randint(1, 2)):
                raw = {
                    "old": stem.encode(FALLBACK),
                    "new": stem.encode(),
                    "nfd": unicodedata.normalize("NFD", stem).encode(),
                }[form]
                before[folder + raw + b".txt"] = rng.randbytes(8)
    for form in (FALLBACK, "utf-8"):
        before["Fotos été/clash é.txt".encode(FALLBACK).replace("clash é".encode(FALLBACK), "clash é".encode(form))] = (
            form.encode()
        )
    if LOWER:
        before |= {b"Plain/Same.txt": b"1", b"Plain/same.txt": b"2", b"Plain/SAME.txt": b"3"}

    def walk(old, new):
        inside = sorted({path[len(old) :].split(b"/")[0] for path in before if path.startswith(old)})
        taken = set(inside)
        for raw in inside:
            to = final_name(raw)
            if to != raw:
                while to in taken:
                    to += b"~"
                taken = taken - {raw} | {to}
                rows.append((old + raw, new + to))
            if old + raw in before:
                after[new + to] = before[old + raw]
            else:
                walk(old + raw + b"/", new + to + b"/")

    walk(b"", b"")
    return {b"files/" + p: c for p, c in before.items()}, {b"files/" + p: c for p, c in after.items()} | (
        {b"renamed.tsv": by_path(rows)} if REPORT else {}
    )

~% endif %~

if __name__ == "__main__":
    for path, data in worlds()[0].items():
        os.makedirs(os.path.dirname(b"/app/" + path), exist_ok=True)
        with open(b"/app/" + path, "wb") as file:
            file.write(data)
