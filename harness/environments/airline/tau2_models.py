"""The airline's records as tau2-bench validates them. Class and field names are what its error texts show an agent.

Facts: `tau2/airline_tools_vs_v1.json` and the recorded answers of the airline data (tau2-bench, MIT, © 2025 Sierra
Research). Numbers take the model's form: a payment of 250.0 becomes 250, a gift card of 88 becomes 88.0.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from harness.environments.overlay import Database
from harness.records.environment import EnvironmentFault

Cabin = Literal["business", "economy", "basic_economy"]
Trip = Literal["round_trip", "one_way"]


class Name(BaseModel):
    """What somebody is called."""

    first_name: str
    last_name: str


class Address(BaseModel):
    """Where a user lives."""

    address1: str
    address2: str | None = None
    city: str
    country: str
    state: str
    zip: str


class CreditCard(BaseModel):
    """A card: no amount is kept of it."""

    source: Literal["credit_card"]
    id: str
    brand: str
    last_four: str


class GiftCard(BaseModel):
    """A card with an amount, from which payments are taken."""

    source: Literal["gift_card"]
    id: str
    amount: float


class Certificate(BaseModel):
    """An amount that is used up by one payment."""

    source: Literal["certificate"]
    id: str
    amount: float


class Passenger(BaseModel):
    """Who flies."""

    first_name: str
    last_name: str
    dob: str


class Payment(BaseModel):
    """What was paid, by which method; refunds are below zero."""

    payment_id: str
    amount: int


class FlightInfo(BaseModel):
    """A flight by number and date, as tools are given it."""

    flight_number: str
    date: str


class ReservationFlight(BaseModel):
    """A flight of a reservation, with its price."""

    flight_number: str
    origin: str
    destination: str
    date: str
    price: int


class Reservation(BaseModel):
    """A booking: flights, passengers, bags, payments."""

    reservation_id: str
    user_id: str
    origin: str
    destination: str
    flight_type: Trip
    cabin: Cabin
    flights: list[ReservationFlight]
    passengers: list[Passenger]
    payment_history: list[Payment]
    created_at: str
    total_baggages: int
    nonfree_baggages: int
    insurance: Literal["yes", "no"]
    status: Literal["cancelled"] | None = None


class User(BaseModel):
    """A user with payment methods, saved passengers and reservations."""

    user_id: str
    name: Name
    address: Address
    email: str
    dob: str
    payment_methods: dict[str, Annotated[CreditCard | GiftCard | Certificate, Field(discriminator="source")]]
    saved_passengers: list[Passenger]
    membership: Literal["gold", "silver", "regular"]
    reservations: list[str]


class FlightDay(BaseModel):
    """A flight on a date. Which of the fields are there depends on the status."""

    status: Literal["available", "on time", "delayed", "flying", "landed", "cancelled"]
    available_seats: dict[Cabin, int] | None = None
    prices: dict[Cabin, int] | None = None
    estimated_departure_time_est: str | None = None
    estimated_arrival_time_est: str | None = None
    actual_departure_time_est: str | None = None
    actual_arrival_time_est: str | None = None


class Flight(BaseModel):
    """A flight with what holds on each date."""

    flight_number: str
    origin: str
    destination: str
    scheduled_departure_time_est: str
    scheduled_arrival_time_est: str
    dates: dict[str, FlightDay]


_MODELS: dict[str, type[BaseModel]] = {"flights": Flight, "reservations": Reservation, "users": User}
_TABLES: dict[str, TypeAdapter[Any]] = {
    "flights": TypeAdapter(dict[str, Flight]),
    "reservations": TypeAdapter(dict[str, Reservation]),
    "users": TypeAdapter(dict[str, User]),
}


def has_shape(database: Database) -> bool:
    """Whether the users are as tau2-bench has them: they know their ids, and live in a state."""
    user = next(iter(database["users"].values()), None)
    return user is None or ("user_id" in user and "state" in user.get("address", {}))


def validated(database: Database, *, place: str) -> Database:
    """The database in the models' form, as plain values. Raises EnvironmentFault for a record that does not fit."""
    tables = {}
    for table, records in database.items():
        adapter = _TABLES[table]
        try:
            valid = adapter.validate_python(records)
        except ValidationError as error:
            first = error.errors()[0]
            at = "/".join(str(part) for part in (table, *first["loc"]))
            raise EnvironmentFault(f"{at}: {first['msg']}", place=place, remedy="mend the record") from error
        # Of a flight's day, the fields that its status has; of all else, every field of the model.
        tables[table] = adapter.dump_python(valid, exclude_unset=table == "flights")
    return tables


def valid_record(table: str, record: Any) -> Any:
    """One record in its model's form. Raises ValidationError."""
    return _MODELS[table].model_validate(record).model_dump(exclude_unset=table == "flights")
