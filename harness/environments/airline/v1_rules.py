"""What the tools of tau-bench's airline have in common: prices, checks and their texts, which flights connect.

Facts: `v1/tools.json` of the airline data, read from tau-bench 59a200c (MIT, © 2024 Sierra).
"""

from __future__ import annotations

from typing import Any, Protocol

from harness.environments.airline.database import DataVersion
from harness.environments.overlay import Overlay

AIRPORTS = {
    "SFO": "San Francisco",
    "JFK": "New York",
    "LAX": "Los Angeles",
    "ORD": "Chicago",
    "DFW": "Dallas",
    "DEN": "Denver",
    "SEA": "Seattle",
    "ATL": "Atlanta",
    "MIA": "Miami",
    "BOS": "Boston",
    "PHX": "Phoenix",
    "IAH": "Houston",
    "LAS": "Las Vegas",
    "MCO": "Orlando",
    "EWR": "Newark",
    "CLT": "Charlotte",
    "MSP": "Minneapolis",
    "DTW": "Detroit",
    "PHL": "Philadelphia",
    "LGA": "LaGuardia",
}
NOW = "2024-05-15T15:00:00"
BAGGAGE_PRICE, INSURANCE_PRICE = 50, 30


class Refusal(Exception):
    """A tool declines. Its text follows "Error: " in the answer."""


class Data(Protocol):
    """What a tool is given: the session's records, and the flights of its data version by origin."""

    records: Overlay
    version: DataVersion


def require(found: bool, text: str) -> None:
    """Raise Refusal unless `found`."""
    if not found:
        raise Refusal(text)


def check_payments(methods: Any, payments: Any, total: Any) -> None:
    """Raise Refusal unless the payments can be made and add up."""
    for payment in payments:
        payment_id, amount = payment["payment_id"], payment["amount"]
        require(payment_id in methods, f"payment method {payment_id} not found")
        method = methods[payment_id]
        short = method["source"] in ("gift_card", "certificate") and method["amount"] < amount
        require(not short, f"not enough balance in payment method {payment_id}")
    paid = sum(payment["amount"] for payment in payments)
    require(paid == total, f"payment amount does not add up, total price is {total}, but paid {paid}")


def take_payments(methods: Any, payments: Any) -> None:
    """Take the payments from a user's own methods. A certificate is gone, whatever it was worth."""
    for payment in payments:
        method = methods[payment["payment_id"]]
        if method["source"] == "gift_card":
            method["amount"] -= payment["amount"]
        elif method["source"] == "certificate":
            del methods[payment["payment_id"]]


def new_reservation_id(records: Overlay) -> str:
    """The first that is free of two, else a third, which is not looked for."""
    free = (name for name in ("HATHAT", "HATHAU") if not records.has("reservations", name))
    return next(free, "HATHAV")


def price_segment(records: Overlay, segment: Any, cabin: Any, passengers: int) -> Any:
    """Fill in price and ends of a segment of a booking, and return its price for one. Raises Refusal."""
    number = segment["flight_number"]
    require(records.has("flights", number), f"flight {number} not found")
    flight = records.read("flights", number)
    date = segment["date"]
    require(date in flight["dates"], f"flight {number} not found on date {date}")
    day = flight["dates"][date]
    require(day["status"] == "available", f"flight {number} not available on date {date}")
    require(not day["available_seats"][cabin] < passengers, f"not enough seats on flight {number}")
    segment["price"] = day["prices"][cabin]
    segment["origin"] = flight["origin"]
    segment["destination"] = flight["destination"]
    return segment["price"]


def kept_segment(reservation: Any, segment: Any, cabin: Any) -> Any:
    """The segment that a reservation holds already in that cabin, or None."""
    for held in reservation["flights"]:
        same = (held["flight_number"], held["date"]) == (segment["flight_number"], segment["date"])
        if same and cabin == reservation["cabin"]:
            return held
    return None


def method_for_update(records: Overlay, reservation: Any, payment_id: Any, due: Any) -> Any:
    """The payment method that an update is paid with. Raises Refusal."""
    methods = records.read("users", reservation["user_id"])["payment_methods"]
    require(payment_id in methods, "payment method not found")
    method = methods[payment_id]
    require(method["source"] != "certificate", "certificate cannot be used to update reservation")
    require(not (method["source"] == "gift_card" and method["amount"] < due), "gift card balance is not enough")
    return method


def change_method(records: Overlay, user_id: str, payment_id: Any, spent: Any) -> None:
    """Take an amount from a gift card."""
    records.change("users", user_id)["payment_methods"][payment_id]["amount"] -= spent


def connections(data: Data, origin: Any, destination: Any, date: Any) -> Any:
    """Pairs of flights with the second one's date, in database order. Times are compared as text, "+1" included."""
    for first_number in data.version.flights_from(origin):
        first = data.records.read("flights", first_number)
        arrival = first["scheduled_arrival_time_est"]
        for second_number in data.version.flights_from(first["destination"]):
            second = data.records.read("flights", second_number)
            if second["destination"] != destination:
                continue
            second_date = f"2024-05-{int(date[-2:]) + 1}" if "+1" in arrival else date
            if not arrival > second["scheduled_departure_time_est"]:
                yield first, second, second_date


def is_available(flight: Any, date: Any) -> bool:
    """Whether a flight can be booked on a date."""
    return date in flight["dates"] and flight["dates"][date]["status"] == "available"


def without_dates(flight: Any) -> dict[str, Any]:
    """A flight without what holds on single dates."""
    return {name: value for name, value in flight.items() if name != "dates"}
