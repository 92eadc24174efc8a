"""An airline small enough to calculate with: four flights, two users, two reservations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def flight(number: str, origin: str, destination: str, departs: str, arrives: str, **dates: Any) -> dict[str, Any]:
    return {
        "flight_number": number,
        "origin": origin,
        "destination": destination,
        "scheduled_departure_time_est": departs,
        "scheduled_arrival_time_est": arrives,
        "dates": {name.replace("d", "2024-05-"): day for name, day in dates.items()},
    }


def available(economy: int = 100, seats: int = 5) -> dict[str, Any]:
    return {
        "status": "available",
        "available_seats": {"basic_economy": 1, "economy": seats, "business": 0},
        "prices": {"basic_economy": 50, "economy": economy, "business": 400},
    }


LANDED = {
    "status": "landed",
    "actual_departure_time_est": "2024-05-10T08:01:00",
    "actual_arrival_time_est": "2024-05-10T10:02:00",
}
ADA = {"first_name": "Ada", "last_name": "Abend", "dob": "1980-01-02"}
BEN = {"first_name": "Ben", "last_name": "Birke", "dob": "1981-02-03"}


def database() -> dict[str, Any]:
    methods = {
        "credit_card_1": {"source": "credit_card", "brand": "visa", "last_four": "1111", "id": "credit_card_1"},
        "gift_card_1": {"source": "gift_card", "amount": 90, "id": "gift_card_1"},
        "certificate_1": {"source": "certificate", "amount": 150, "id": "certificate_1"},
    }
    return {
        "flights": {
            "T1": flight("T1", "SFO", "DEN", "08:00:00", "10:00:00", d10=LANDED, d20=available(), d21=available(130)),
            "T2": flight("T2", "DEN", "JFK", "11:00:00", "15:00:00", d20=available(70), d21=available(75)),
            "T3": flight("T3", "SFO", "DEN", "22:00:00", "01:00:00+1", d20=available(80)),
            "T4": flight("T4", "DEN", "JFK", "06:00:00", "10:00:00", d20=available(60), d21={**available(65)}),
        },
        "reservations": {
            "RES001": {
                "reservation_id": "RES001",
                "user_id": "ada_abend_1",
                "origin": "SFO",
                "destination": "DEN",
                "flight_type": "one_way",
                "cabin": "economy",
                "flights": [
                    {"origin": "SFO", "destination": "DEN", "flight_number": "T1", "date": "2024-05-20", "price": 90}
                ],
                "passengers": [ADA],
                "payment_history": [{"payment_id": "credit_card_1", "amount": 90}],
                "created_at": "2024-05-01T09:00:00",
                "total_baggages": 1,
                "nonfree_baggages": 0,
                "insurance": "no",
            },
        },
        "users": {
            "ada_abend_1": {
                "name": {"first_name": "Ada", "last_name": "Abend"},
                "address": {
                    "address1": "1 Elm",
                    "address2": "",
                    "city": "Denver",
                    "country": "USA",
                    "province": "CO",
                    "zip": "80202",
                },
                "email": "ada@example.com",
                "dob": "1980-01-02",
                "payment_methods": methods,
                "saved_passengers": [],
                "membership": "gold",
                "reservations": ["RES001"],
            },
        },
    }


VARIANTS = {
    "A": [],
    "C": [
        {"op": "rename", "in": "users/*/address", "key": "province", "to": "state"},
        {"op": "name", "in": "users/*", "key": "user_id"},
    ],
}


def write(folder: Path) -> Path:
    """The database and its versions in a folder."""
    (folder / "db.json").write_text(json.dumps(database()))
    (folder / "variants.json").write_text(json.dumps(VARIANTS))
    return folder


def booking(**changes: Any) -> dict[str, Any]:
    """Arguments of a booking for one on flight T1 that are right in every version: 100 by credit card."""
    return {
        "user_id": "ada_abend_1",
        "origin": "SFO",
        "destination": "DEN",
        "flight_type": "one_way",
        "cabin": "economy",
        "flights": [{"flight_number": "T1", "date": "2024-05-20"}],
        "passengers": [dict(ADA)],
        "payment_methods": [{"payment_id": "credit_card_1", "amount": 100}],
        "total_baggages": 0,
        "nonfree_baggages": 0,
        "insurance": "no",
        **changes,
    }
