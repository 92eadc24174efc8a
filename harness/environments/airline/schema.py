"""The airline's tools as a model is shown them: names, arguments, which of them write. Both versions have these."""

from __future__ import annotations

from typing import Any

from harness.records.environment import ToolSpec

_TEXT: dict[str, Any] = {"type": "string"}
_WHOLE: dict[str, Any] = {"type": "integer"}
_NUMBER: dict[str, Any] = {"type": "number"}
_CABIN: dict[str, Any] = {"type": "string", "enum": ["basic_economy", "economy", "business"]}


def _objects(**fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": _object(fields)}


def _object(fields: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields)}


_FLIGHTS = _objects(flight_number=_TEXT, date=_TEXT)
_PASSENGERS = _objects(first_name=_TEXT, last_name=_TEXT, dob=_TEXT)


def _tool(name: str, description: str, *, writes: bool = False, ends: bool = False, **fields: Any) -> ToolSpec:
    return ToolSpec(name=name, description=description, writes=writes, ends=ends, parameters=_object(fields))


_BOOK = _tool(
    "book_reservation",
    "Book flights for a user. The payments must add up to the price.",
    writes=True,
    user_id=_TEXT,
    origin=_TEXT,
    destination=_TEXT,
    flight_type={"type": "string", "enum": ["one_way", "round_trip"]},
    cabin=_CABIN,
    flights=_FLIGHTS,
    passengers=_PASSENGERS,
    payment_methods=_objects(payment_id=_TEXT, amount=_NUMBER),
    total_baggages=_WHOLE,
    nonfree_baggages=_WHOLE,
    insurance={"type": "string", "enum": ["yes", "no"]},
)

SHARED = (
    _BOOK,
    _tool("calculate", "Do a sum.", expression=_TEXT),
    _tool("cancel_reservation", "Cancel a whole reservation.", writes=True, reservation_id=_TEXT),
    _tool("get_reservation_details", "Show a reservation.", reservation_id=_TEXT),
    _tool("get_user_details", "Show a user with payment methods and reservations.", user_id=_TEXT),
    _tool("list_all_airports", "Show all airports with their cities."),
    _tool(
        "search_direct_flight",
        "Find flights between two airports on a date.",
        origin=_TEXT,
        destination=_TEXT,
        date=_TEXT,
    ),
    _tool(
        "search_onestop_flight",
        "Find flights with one stop between two airports on a date.",
        origin=_TEXT,
        destination=_TEXT,
        date=_TEXT,
    ),
    _tool("send_certificate", "Give a user a certificate.", writes=True, user_id=_TEXT, amount=_NUMBER),
    _tool(
        "update_reservation_baggages",
        "Change the number of bags of a reservation.",
        writes=True,
        reservation_id=_TEXT,
        total_baggages=_WHOLE,
        nonfree_baggages=_WHOLE,
        payment_id=_TEXT,
    ),
    _tool(
        "update_reservation_flights",
        "Change the flights of a reservation: all segments, kept ones included.",
        writes=True,
        reservation_id=_TEXT,
        cabin=_CABIN,
        flights=_FLIGHTS,
        payment_id=_TEXT,
    ),
    _tool(
        "update_reservation_passengers",
        "Change who travels; not how many.",
        writes=True,
        reservation_id=_TEXT,
        passengers=_PASSENGERS,
    ),
)
V1 = (
    *SHARED,
    _tool("think", "Write a thought down. Nothing else happens.", thought=_TEXT),
    _tool("transfer_to_human_agents", "Hand the user over to a person.", ends=True, summary=_TEXT),
)
TAU2 = (
    *SHARED,
    _tool("get_flight_status", "Show the status of a flight on a date.", flight_number=_TEXT, date=_TEXT),
    _tool("transfer_to_human_agents", "Hand the user over to a person.", summary=_TEXT),
)
