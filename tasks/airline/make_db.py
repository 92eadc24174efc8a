"""Writes `data/db.json` and `data/variants.json`: a small airline of our own making, in the shape that the airline
environments read, and the versions its data has had.

    python tasks/airline/make_db.py

Everything is invented from one seed: the same file each time, on every version of Python (only `random()` is drawn).
"Now" is 2024-05-15 15:00 in the tools, so earlier flights have landed and later ones can be booked.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

SEED = 20240515
USERS, RESERVATIONS = 48, 96
DAYS = [f"2024-05-{day:02d}" for day in range(8, 29)]
TODAY = "2024-05-15"
CABINS = {"basic_economy": (45, 95), "economy": (100, 190), "business": (220, 480)}  # price from, to

# Minutes between airports that have flights to each other, both ways; every other pair needs a stop.
LEGS = {
    ("SEA", "DEN"): 160, ("SEA", "MSP"): 195, ("SFO", "DEN"): 150, ("SFO", "PHX"): 110, ("LAX", "PHX"): 80,
    ("LAX", "DFW"): 180, ("DEN", "ORD"): 150, ("DEN", "DFW"): 115, ("PHX", "DFW"): 140, ("MSP", "ORD"): 90,
    ("DFW", "ATL"): 130, ("ORD", "JFK"): 135, ("ORD", "BOS"): 140, ("ATL", "JFK"): 130, ("ATL", "MIA"): 115,
    ("JFK", "BOS"): 70, ("SEA", "SFO"): 125, ("MIA", "JFK"): 175,
}  # fmt: skip
DEPARTURES = ((6, 30), (17, 15))
NIGHT_LEGS, NIGHT = 6, (22, 10)  # the first legs also fly at night, and arrive the next day

FIRST = (
    "Ada Bela Caius Dalia Edda Florin Gesa Hamid Ines Jorun Kaito Lena Malik Nora Oskar Petra Quirin Rosa "
    "Selma Tariq Uma Vito Wanda Xenia Yusuf Zora"
).split()
LAST = (
    "Abend Birke Corvin Dahl Eklund Fabre Gruber Holm Ivanko Janda Keller Lorca Moser Nyberg Okafor Palme "
    "Quint Rahimi Sorel Tamm Ueda Vogt Weiss Yilmaz"
).split()
STREETS = "Alder Lane;Beacon Road;Cedar Court;Dune Street;Elm Terrace;Fern Close".split(";")
TOWNS = (("Seattle", "WA", "98101"), ("Denver", "CO", "80202"), ("Dallas", "TX", "75201"), ("Boston", "MA", "02108"))


class Draw:
    """Choices made of `random()` alone, whose sequence Python guarantees."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, limit: int) -> int:
        return int(self._random.random() * limit)

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def one(self, options: Any) -> Any:
        return options[self.below(len(options))]

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def digits(self, count: int) -> str:
        return "".join(str(self.below(10)) for _ in range(count))

    def code(self) -> str:
        return "".join(self.one("ABCDEFGHJKLMNPQRSTUVWXYZ23456789") for _ in range(6))


def make(seed: int = SEED) -> dict[str, Any]:
    """The whole database."""
    draw = Draw(seed)
    flights = make_flights(draw)
    users = make_users(draw)
    return {"flights": flights, "reservations": make_reservations(draw, flights, users), "users": users}


def make_flights(draw: Draw) -> dict[str, Any]:
    flights: dict[str, Any] = {}
    for leg, ((one, other), minutes) in enumerate(LEGS.items()):
        for origin, destination in ((one, other), (other, one)):
            for hour, minute in (*DEPARTURES, NIGHT) if leg < NIGHT_LEGS else DEPARTURES:
                number = f"ASY{len(flights) + 1:03d}"
                start = hour * 60 + minute + 5 * draw.below(24)
                flights[number] = {
                    "flight_number": number,
                    "origin": origin,
                    "destination": destination,
                    "scheduled_departure_time_est": clock(start),
                    "scheduled_arrival_time_est": clock(start + minutes),
                    "dates": {day: make_day(draw, day, start, minutes) for day in DAYS},
                }
    return flights


def make_day(draw: Draw, day: str, start: int, minutes: int) -> dict[str, Any]:
    if draw.chance(0.04):
        return {"status": "cancelled"}
    if day < TODAY or (day == TODAY and start + minutes < 15 * 60):
        left, took = start + draw.between(0, 25), minutes + draw.between(-8, 12)
        return {
            "status": "landed",
            "actual_departure_time_est": f"{day}T{clock(left)}",
            "actual_arrival_time_est": f"{day}T{clock(left + took)}",
        }
    if day == TODAY:
        late = draw.chance(0.3)
        return {
            "status": "delayed" if late else "on time",
            "estimated_departure_time_est": f"{day}T{clock(start + (75 if late else 0))}",
            "estimated_arrival_time_est": f"{day}T{clock(start + minutes + (75 if late else 0))}",
        }
    return {
        "status": "available",
        "available_seats": {cabin: draw.below(18) for cabin in CABINS},
        "prices": {cabin: draw.between(*prices) for cabin, prices in CABINS.items()},
    }


def make_users(draw: Draw) -> dict[str, Any]:
    users: dict[str, Any] = {}
    while len(users) < USERS:
        first, last = draw.one(FIRST), draw.one(LAST)
        key = f"{first}_{last}_{draw.digits(4)}".lower()
        city, province, code = draw.one(TOWNS)
        users[key] = {
            "name": {"first_name": first, "last_name": last},
            "address": {
                "address1": f"{draw.between(1, 199)} {draw.one(STREETS)}",
                "address2": f"Flat {draw.between(1, 40)}",
                "city": city,
                "country": "USA",
                "province": province,
                "zip": code,
            },
            "email": f"{first}.{last}{draw.digits(2)}@example.com".lower(),
            "dob": birthday(draw),
            "payment_methods": make_methods(draw),
            "saved_passengers": [passenger(draw, last=last) for _ in range(draw.below(3))],
            "membership": draw.one(("regular", "regular", "silver", "gold")),
            "reservations": [],
        }
    return users


def make_methods(draw: Draw) -> dict[str, Any]:
    methods: dict[str, Any] = {}

    def add(source: str, **more: Any) -> None:
        key = f"{source}_{draw.digits(7)}"
        methods[key] = {"source": source, **more, "id": key}

    for _ in range(draw.between(1, 2)):
        add("credit_card", brand=draw.one(("visa", "mastercard")), last_four=draw.digits(4))
    if draw.chance(0.6):
        add("gift_card", amount=draw.between(20, 400))
    for _ in range(draw.below(3)):
        add("certificate", amount=draw.one((100, 150, 250)))
    return methods


def make_reservations(draw: Draw, flights: dict[str, Any], users: dict[str, Any]) -> dict[str, Any]:
    reservations: dict[str, Any] = {}
    names = list(users)
    while len(reservations) < RESERVATIONS:
        user_id = names[len(reservations)] if len(reservations) < len(names) else draw.one(names)
        user = users[user_id]
        key = draw.code()
        out = journey(draw, flights, DAYS[draw.below(len(DAYS) - 6)])
        if out is None or key in reservations:
            continue
        back = way_back(draw, flights, out) if draw.chance(0.5) else None
        cabin = draw.one(tuple(CABINS))
        segments = [segment(draw, flights, number, day, cabin) for number, day in out + (back or [])]
        travellers = [{**user["name"], "dob": user["dob"]}, *user["saved_passengers"]][: draw.between(1, 3)]
        insurance = draw.one(("yes", "no"))
        bags = draw.below(3)
        price = sum(part["price"] for part in segments) * len(travellers)
        price += 30 * len(travellers) if insurance == "yes" else 0
        card = next(iter(user["payment_methods"]))  # a credit card comes first
        reservations[key] = {
            "reservation_id": key,
            "user_id": user_id,
            "origin": segments[0]["origin"],
            "destination": segments[len(out) - 1]["destination"],
            "flight_type": "round_trip" if back else "one_way",
            "cabin": cabin,
            "flights": segments,
            "passengers": travellers,
            "payment_history": [{"payment_id": card, "amount": price}],
            "created_at": f"2024-05-{draw.between(1, 14):02d}T{clock(draw.below(24 * 60))}",
            "total_baggages": bags,
            "nonfree_baggages": 0,
            "insurance": insurance,
        }
        user["reservations"].append(key)
    return reservations


def journey(draw: Draw, flights: dict[str, Any], day: str) -> list[tuple[str, str]] | None:
    """One flight, or two with a change on the same day."""
    first = draw.one(tuple(flights))
    if draw.chance(0.5):
        return [(first, day)]
    onward = [
        number
        for number, flight in flights.items()
        if flight["origin"] == flights[first]["destination"]
        and flight["destination"] != flights[first]["origin"]
        and flight["scheduled_departure_time_est"] > flights[first]["scheduled_arrival_time_est"]
    ]
    return [(first, day), (draw.one(onward), day)] if onward else None


def way_back(draw: Draw, flights: dict[str, Any], out: list[tuple[str, str]]) -> list[tuple[str, str]] | None:
    """A direct flight home some days later, where there is one."""
    start, end = flights[out[0][0]]["origin"], flights[out[-1][0]]["destination"]
    direct = [n for n, flight in flights.items() if (flight["origin"], flight["destination"]) == (end, start)]
    return [(draw.one(direct), DAYS[DAYS.index(out[0][1]) + draw.between(2, 5)])] if direct else None


def segment(draw: Draw, flights: dict[str, Any], number: str, day: str, cabin: str) -> dict[str, Any]:
    return {
        "origin": flights[number]["origin"],
        "destination": flights[number]["destination"],
        "flight_number": number,
        "date": day,
        "price": draw.between(*CABINS[cabin]),
    }


def passenger(draw: Draw, *, last: str) -> dict[str, str]:
    return {"first_name": draw.one(FIRST), "last_name": last, "dob": birthday(draw)}


def birthday(draw: Draw) -> str:
    return f"{draw.between(1950, 2004)}-{draw.between(1, 12):02d}-{draw.between(1, 28):02d}"


def clock(minutes: int) -> str:
    """Minutes after midnight as HH:MM:SS, with the "+1" of the next day."""
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}:00" + ("+1" if minutes >= 24 * 60 else "")


def make_variants(database: dict[str, Any]) -> dict[str, Any]:
    """What changed between versions: B renames a field, C also names users and moves two rows (an instrument drifts)."""
    number = next(iter(database["flights"]))
    reservation_id = next(iter(database["reservations"]))
    renamed = {"op": "rename", "in": "users/*/address", "key": "province", "to": "state"}
    return {
        "A": [],
        "B": [renamed],
        "C": [
            renamed,
            {"op": "name", "in": "users/*", "key": "user_id"},
            {"op": "set", "in": f"flights/{number}/dates", "key": DAYS[-1], "value": {"status": "cancelled"}},
            {"op": "set", "in": f"reservations/{reservation_id}", "key": "insurance", "value": "no"},
        ],
    }


def text_of(database: dict[str, Any]) -> str:
    """One record a line, so that a change shows as one line."""
    tables = []
    for table, records in database.items():
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(record)}" for key, record in records.items())
        tables.append(f" {json.dumps(table)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(tables) + "\n}\n"


if __name__ == "__main__":
    made = make()
    folder = Path(__file__).parent / "data"
    (folder / "db.json").write_text(text_of(made), encoding="ascii")
    (folder / "variants.json").write_text(json.dumps(make_variants(made), indent=1) + "\n", encoding="ascii")
