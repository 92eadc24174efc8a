"""The texts or files of one variant, from its name alone."""

import pathlib
import random

WORDS = "amber valve Élan seven trucks left yard nine before dawn crew four checked brake lines twice".split()


def spelled(rng, text):
    """The same text, spelled otherwise as far as the rules for comparing allow."""
    norm = ~{ norm }~
    if "case" in norm:
        text = rng.choice([str.lower, str.upper, str.capitalize, str])(text)
    if "punct" in norm:
        text = rng.choice(["{}.", "{}!", "{},;", "{}"]).format(text.replace(" ", rng.choice([" ", ", ", ": "]), 1))
    if "digits" in norm:
        text = "".join(str(rng.randrange(1000)) if part.isdigit() else part for part in text.replace("7", " 7 ").split(" ") for part in (part, " ")).strip()
    if "space" in norm:
        text = rng.choice(["{}", " {}", "{}  "]).format(text.replace(" ", rng.choice([" ", "   "]), 2))
    return text


def tree(rng):
    names = ["a.txt", "b/c d.txt", "b/e.txt", "b/f/g.txt", "b-2/h.txt", "i j/k.txt", "i j/l m.txt", "n.txt", "o/p/q/r.txt", "o/s.txt", "t.txt", "z/y.txt", "z/x w.txt", "B.txt"]
    rng.shuffle(names)
    contents = [" ".join(rng.choices(WORDS, k=5)) for _ in range(5)]
    contents.append(contents[0][::-1])  # as long as another one, and not the same
    files = {f"tree/{name}": contents[number % 6] for number, name in enumerate(names)}
    return {**files, "tree/empty": "", "tree/o/empty too": "", "tree/lone.txt": "alone", "tree/b/alone.txt": "enola"}


def build():
    rng = random.Random("~{ family }~/~{ variant }~")
    unit = "~{ unit }~"
    if unit == "files":
        return tree(rng)
    base = [" ".join(rng.sample(WORDS, rng.randrange(3, 6))) + rng.choice(["", " 7", " 7 of 7"]) for _ in range(14)]
    picked = [base[number] if number < 14 else rng.choice(base[:10]) for number in range(42)]
    picked += [base[0]] * 3
    if unit == "runs":
        rng.shuffle(picked)
        lines = []
        for number, text in enumerate(picked):
            for turn in range(rng.choice([1, 1, 2, 3, 5])):
                stamp = f"10:{number:02d}:{turn:02d} " if ~{ stamp }~ else ""
                lines.append(stamp + spelled(rng, text))
        return {"notes.txt": "".join(line + "\n" for line in lines)}
    if unit == "fields":
        cells = [[spelled(rng, text.split(" ")[0]), spelled(rng, rng.choice(["red", "blue oak"])), spelled(rng, text.split(" ")[1]), str(rng.choice([8, 9, 10, 70, 100]))] for text in picked]
        units = [";".join(row) for row in cells]
    elif unit == "records":
        units = [spelled(rng, text) + "\n" + spelled(rng, text[::-1]) + ("\nend" if len(text) % 2 else "") for text in picked]
    else:
        units = [spelled(rng, text) for text in picked]
    rng.shuffle(units)
    parts = [units[:15], units[15:30], units[30:]] if ~{ many }~ else [units]
    gap = lambda: "\n" * rng.randrange(2, 4) if unit == "records" else "\n"
    texts = ["".join(text + gap() for text in part) for part in parts]
    return {f"in/{number}.txt": text.rstrip("\n") + "\n" for number, text in enumerate(texts, 1)}


if __name__ == "__main__":
    for name, text in build().items():
        pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(name).write_text(text, encoding="utf-8")
