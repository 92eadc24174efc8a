"""The two or three tables of one variant, from its name alone."""

import csv
import io
import pathlib
import random

NAMES = ["Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Ginkgo", "Hazel", "Ivy", "Juniper", "Katsura", "Larch"]
QUOTED = ['Oak, Sons', 'The "Old" Mill', "Ångström, Lund & Co", 'Fig; "Date" | Nut', "Maple, Ltd."]


def table(header, rows):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def careless(rng, key):
    return rng.choice([key, key.lower(), key.capitalize(), f" {key}", f"{key.lower()} ", f"  {key.capitalize()} "])


def build():
    rng = random.Random("~{ family }~/~{ variant }~")
    spell = careless if ~{ norm }~ else (lambda rng, key: key)
    keys = [f"K{number:03d}X" for number in rng.sample(range(1, 999), 24)]
    known, lost, unused = keys[:14], keys[14:19], keys[19:]
    codes = ["NO", "SO", "WE", "EA", "ZZ"]
    left = []
    for number in range(44):
        key = known[number] if number < 14 else lost[number - 14] if number < 19 else rng.choice(known + lost)
        amount = [7, 70, 700][number % 3] if number < 9 else rng.randrange(5, 2000)
        left.append([f"~{ lid[0] | upper }~{rng.randrange(10, 99)}{number:02d}", spell(rng, key), amount])
    right = []
    for number, key in enumerate(known + unused):
        times = 1 if "~{ dup }~" == "none" else 3 if number % 3 == 0 else 2 if number % 3 == 1 else 1
        days = rng.sample(range(1, 29), times)
        name = rng.choice(NAMES + (QUOTED if ~{ quoted }~ else [])) + f" {number}"
        for turn in range(times):
            value = codes[(number + turn) % 5] if "~{ third }~" else str(rng.randrange(1, 90))
            own = name if "~{ dup }~" == "sum" else f"{name}{'abc'[turn]}"
            day = [f"2024-{rng.randrange(1, 10):02d}-{days[turn]:02d}"] if "~{ dup }~" == "latest" else []
            right.append([spell(rng, key), own, value, *day])
    rng.shuffle(left)
    rng.shuffle(right)
    dated = ["updated"] if "~{ dup }~" == "latest" else []
    files = {
        "~{ left }~.csv": table(["~{ lid }~", "~{ key }~", "~{ lval }~"], left),
        "~{ right }~.csv": table(["~{ key }~", "~{ rname }~", "~{ rval }~", *dated], right),
    }
    if "~{ third }~":
        files["~{ third }~.csv"] = table(["code", "label"], [[c, f"{c} district"] for c in codes[:4]])
    return files


if __name__ == "__main__":
    for name, text in build().items():
        pathlib.Path(name).write_text(text, encoding="utf-8", newline="")
