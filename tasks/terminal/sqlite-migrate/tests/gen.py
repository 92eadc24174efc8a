"""The database as it grew, from the seed alone. The same file stands in environment/ and in tests/."""

import random
import sqlite3
import sys
from datetime import date, timedelta

RNG = random.Random(int("~{ seed }~"))
OPS = "~{ ops | join(' ') }~".split()

FIRST = "Ada Bo Cleo Dan Eva Finn Gia Hugo Ida Jon Kim Leo Mia Nils Ola Pia".split()
MIDDLE = ["", "", "van", "de la", "Maria"]
LAST = "Abel Berg Corti Dahl Engel Faber Grau Holm Ito Jansen".split()
TAGS = ["new", "vip", "Local", "staff", "Press", "guest"]


def people() -> list[tuple]:
    rows = []
    days = RNG.sample(range(900), 40)
    for number, day in enumerate(days, 1):
        first, last = RNG.choice(FIRST), RNG.choice(LAST)
        name = " ".join(filter(None, [first, RNG.choice(MIDDLE), last])) if number % 13 else last
        joined = date(2021, 1, 1) + timedelta(days=day)
        if "dates" in OPS and number % 3:
            joined = f"{joined:%d.%m.%Y}" if number % 3 == 1 else f"{joined.year}/{joined.month}/{joined.day}"
        tags = [RNG.choice([t, t.upper(), f" {t}", f"{t} "]) for t in RNG.choices(TAGS, k=RNG.randint(0, 5))] + [""] * (number % 4 == 1)
        cents = RNG.randrange(100, 999999)
        balance = ["", f"{cents / 100:,.2f}", f"{cents / 100:.2f}", str(cents // 100)][RNG.choices(range(4), [1, 4, 3, 2])[0]]
        team = RNG.choice(["", "north", "south", "West", "east", "crew"])
        rows.append((number * 3, name, f"{first}.{last}{number}@example.org".lower(), str(joined), balance, ",".join(tags), team))
    for number in range(8):  # people entered twice or three times
        _, name, email, *_ = rows[number % 6]
        email = RNG.choice([email.upper(), f" {email}", f"{email} ", email])
        source = rows[30 + number]
        rows[30 + number] = (source[0], name, email, *source[3:6], RNG.choice(["", "only-here", source[6]]))
    return RNG.sample(rows, len(rows))


def orders(ids: list[int]) -> list[tuple]:
    owners = RNG.sample(ids, 30) + [max(ids), *ids[:2], 1, 2, 500]
    return [(n, RNG.choice(owners) if n > 36 else owners[n - 1], RNG.randrange(100, 9999)) for n in range(1, 91)]


def tables() -> tuple[list[tuple], list[tuple]]:
    rows = people()
    return rows, orders([row[0] for row in rows])


def write(path: str) -> None:
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE people (id INTEGER, name TEXT, email TEXT, joined TEXT, balance TEXT, tags TEXT, team TEXT)")
    base.execute("CREATE TABLE orders (id INTEGER, person_id INTEGER, cents INTEGER)")
    rows, bought = tables()
    base.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    base.executemany("INSERT INTO orders VALUES (?, ?, ?)", bought)
    base.commit()
    base.close()


if __name__ == "__main__":
    write(sys.argv[1])
