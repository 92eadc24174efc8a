"""The table of one variant, from its name alone."""

import pathlib
import random

WORDS = ["north", "south", "east", "west", "centre", "coast", "alder", "birch", "cedar", "elm", "fir", "hazel", "larch"]


def build():
    rng = random.Random("~{ family }~/~{ variant }~")
    words = rng.sample(WORDS, 13)
    ones, twos = words[:6], words[6:]
    states = ~{ states }~
    rows = []
    for number in range(150):
        one = ones[number % 5] if number < 10 else rng.choice(ones[:5])
        two = twos[number % 6] if number < 12 else rng.choice(twos[:6])
        if number in (60, 61):  # a group with very few lines
            one, two = ones[5], twos[6]
        date = f"2024-{1 + number % 4:02d}-{rng.choice([1, 9, 10, 11, 19, 20, 21, 28]):02d}"
        amount = f"{rng.choice([5, 40, 300]) + rng.randrange(100)}.{rng.randrange(100):02d}"
        state = states[number // 5 % 3] if number < 15 else rng.choice(states)
        if ~{ dirty }~ and (number % 11 == 3):
            amount = rng.choice(["n/a", "", "1e3", "12.5", f"{amount}x", "7"])
        if ~{ fold }~ and number % 3:
            spell = rng.choice([str.upper, str.capitalize, " {}".format, "{} ".format])
            one, two = (one, spell(two)) if "~{ group[-1] }~" == "~{ g2 }~" else (spell(one), two)
        rows.append([date, one, two, str(rng.randrange(1, 30)), amount, state])
    rng.shuffle(rows)
    lines = [~{ ["date", g1, g2, n, amt, st] }~, *rows]
    return "".join(",".join(line) + "\n" for line in lines)


if __name__ == "__main__":
    pathlib.Path("~{ name }~.csv").write_text(build())
