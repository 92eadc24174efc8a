"""The pristine tables, from the variant's seed alone. The same file stands in environment/ and in tests/."""

import random
import sqlite3
import sys
from datetime import date, timedelta

SEED = int("~{ seed }~")
SCHEMA = "~{ schema }~"
HOURS = int("~{ hours | default(0) }~")

FIRST = "Ada Bo Cleo Dan Eva Finn Gia Hugo Ida Jon Kim Leo Mia Nils Ola Pia Quin Rosa Sven Tea".split()
LAST = "Abel Berg Corti Dahl Engel Faber Grau Holm Ito Jansen".split()
CITIES = ["Bergen", "Gent", "Lyon", "Porto", "Turku"]
CATEGORIES = ["garden", "kitchen", "office", "sport"]


def people(rng: random.Random, count: int) -> list[str]:
    return rng.sample([f"{a} {b}" for a in FIRST for b in LAST], count)


def day(rng: random.Random, first: date, span: int) -> str:
    return (first + timedelta(days=rng.randrange(span))).isoformat()


def shop(rng: random.Random) -> dict:
    customers = [(i, n, rng.choice(CITIES), day(rng, date(2022, 1, 1), 700)) for i, n in enumerate(people(rng, 30), 1)]
    customers += [(31, "Zoe Abel", "Lyon", "2023-01-01"), (32, "Zoe Berg", "Lyon", "2022-12-31")]
    products = [(1, "item-01", "garden", 950)]
    products += [(i, f"item-{i:02d}", rng.choice(CATEGORIES), rng.randrange(2, 40) * 50) for i in range(2, 16)]
    orders, items = [], []
    for i in range(1, 161):
        status = rng.choices(["paid", "open", "cancelled"], [6, 2, 2])[0]
        orders.append((i, rng.randrange(1, 27), day(rng, date(2024, 1, 1), 366), status))
        for product in rng.sample(range(1, 16), rng.randint(1, 4)):
            items.append((i, product, rng.randint(1, 5)))
    # Two customers who spent the same, two orders on one day, and a month without a sale.
    orders += [(161, 31, "2024-05-05", "paid"), (162, 32, "2024-05-06", "paid"), (163, 31, "2024-05-05", "open")]
    items += [(161, 1, 90), (162, 1, 90), (163, 2, 5)]
    orders = [(i, c, placed, "open" if placed[5:7] == "08" else status) for i, c, placed, status in orders]
    return {
        "customers(id INTEGER PRIMARY KEY, name TEXT, city TEXT, joined TEXT)": customers,
        "products(id INTEGER PRIMARY KEY, name TEXT, category TEXT, price_cents INTEGER)": products,
        "orders(id INTEGER PRIMARY KEY, customer_id INTEGER, placed TEXT, status TEXT)": orders,
        "items(order_id INTEGER, product_id INTEGER, qty INTEGER)": items,
    }


def library(rng: random.Random) -> dict:
    members = [(i, name, day(rng, date(2019, 1, 1), 1500)) for i, name in enumerate(people(rng, 25), 1)]
    authors = people(rng, 7)
    writer = [authors[0], *(rng.choice(authors) for _ in range(25)), *authors[1:5]]
    books = [(i, f"Volume {i:02d}", name, rng.randint(1950, 2020)) for i, name in enumerate(writer, 1)]
    loans = []
    for _ in range(170):
        lent = date(2024, 1, 1) + timedelta(days=rng.randrange(240))
        length = rng.randint(1, 45)
        back = None if rng.random() < 0.2 else (lent + timedelta(days=length)).isoformat()
        book, member = rng.randint(1, 24), rng.randint(1, 22)
        loans.append((len(loans) + 1, book, member, lent.isoformat(), (lent + timedelta(days=21)).isoformat(), back))
    # Two members who have read all of one author (one book twice over), a loan due on the very day, one given back
    # and lent again on one day.
    for member, author in ((23, authors[0]), (21, authors[4])):
        for book in (b[0] for b in books if b[2] == author):
            loans.append((len(loans) + 1, book, member, "2024-02-01", "2024-02-22", "2024-02-20"))
    loans.append((len(loans) + 1, 1, 23, "2024-03-01", "2024-03-22", "2024-03-20"))
    loans.append((len(loans) + 1, 25, 24, "2024-08-11", "2024-09-01", None))
    loans.append((len(loans) + 1, 26, 24, "2024-03-01", "2024-03-22", "2024-03-10"))
    loans.append((len(loans) + 1, 26, 25, "2024-03-10", "2024-03-31", "2024-03-15"))
    return {
        "members(id INTEGER PRIMARY KEY, name TEXT, since TEXT)": members,
        "books(id INTEGER PRIMARY KEY, title TEXT, author TEXT, year INTEGER)": books,
        "loans(id INTEGER PRIMARY KEY, book_id INTEGER, member_id INTEGER, lent TEXT, due TEXT, returned TEXT)": loans,
    }


def meters(rng: random.Random) -> dict:
    stations = [(i, f"S{i:02d}", rng.choice(["north", "south", "west"])) for i in range(1, 10)]
    readings = []
    for station, _, _ in stations:
        level, hour = rng.randint(40, 60), 0
        while hour < HOURS:
            if rng.random() < 0.08 and hour:
                hour += rng.randint(1, 4)
                continue
            level = max(5, min(95, level + rng.randint(-9, 9)))
            readings.append((station, hour, None if rng.random() < 0.07 else level))
            hour += 1
    rng.shuffle(readings)
    return {
        "stations(id INTEGER PRIMARY KEY, name TEXT, region TEXT)": stations,
        "readings(station_id INTEGER, hour INTEGER, value INTEGER)": readings,
    }


def tables() -> dict:
    """Rows by `name(columns)`."""
    return {"shop": shop, "library": library, "meters": meters}[SCHEMA](random.Random(SEED))


def write(path: str) -> None:
    base = sqlite3.connect(path)
    for head, rows in tables().items():
        base.execute(f"CREATE TABLE {head}")
        if rows:
            base.executemany(f"INSERT INTO {head.split('(')[0]} VALUES ({','.join('?' * len(rows[0]))})", rows)
    base.commit()
    base.close()


if __name__ == "__main__":
    write(sys.argv[1])
