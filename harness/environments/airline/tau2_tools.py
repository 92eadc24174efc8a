"""The airline's tools as tau2-bench has them: validated records, named errors, seats that are taken.

Facts: `tau2/airline_tools_vs_v1.json` of the airline data (tau2-bench a2c0247, MIT, © 2025 Sierra Research).
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from harness.environments import arithmetic
from harness.environments.airline.database import DataVersion
from harness.environments.airline.tau2_models import (
    Certificate,
    FlightInfo,
    Passenger,
    Payment,
    Reservation,
    ReservationFlight,
)
from harness.environments.airline.v1_rules import AIRPORTS, BAGGAGE_PRICE, INSURANCE_PRICE, NOW
from harness.environments.overlay import Overlay


class AirlineTools:
    """The tools by name. What a method raises is what the agent is told; what it changed before stays changed."""

    def __init__(self, version: DataVersion, records: Overlay) -> None:
        self._version = version
        self._records = records

    def book_reservation(
        self,
        user_id: Any,
        origin: Any,
        destination: Any,
        flight_type: Any,
        cabin: Any,
        flights: Any,
        passengers: Any,
        payment_methods: Any,
        total_baggages: Any,
        nonfree_baggages: Any,
        insurance: Any,
    ) -> Any:
        """Books flights, takes the payments and the seats."""
        flights = _modelled(FlightInfo, flights)
        passengers = _modelled(Passenger, passengers)
        payment_methods = _modelled(Payment, payment_methods)
        methods = self._user(user_id)["payment_methods"]
        reservation = Reservation(
            reservation_id=self._new_reservation_id(),
            user_id=user_id,
            origin=origin,
            destination=destination,
            flight_type=flight_type,
            cabin=cabin,
            flights=[],
            passengers=passengers,
            payment_history=payment_methods,
            created_at=NOW,
            total_baggages=total_baggages,
            nonfree_baggages=nonfree_baggages,
            insurance=insurance,
        )
        total = 0
        for flight in flights:
            segment = self._segment(flight, cabin, len(passengers))
            reservation.flights.append(segment)
            total += segment.price * len(passengers)
        if insurance == "yes":
            total += INSURANCE_PRICE * len(passengers)
        total += BAGGAGE_PRICE * nonfree_baggages
        _check_payments(methods, payment_methods, total)
        self._pay(user_id, payment_methods)
        for segment in reservation.flights:
            day = self._records.change("flights", segment.flight_number)["dates"][segment.date]
            day["available_seats"][cabin] -= len(passengers)
        stored = reservation.model_dump()
        self._records.put("reservations", reservation.reservation_id, stored)
        self._records.change("users", user_id)["reservations"].append(reservation.reservation_id)
        return stored

    def calculate(self, expression: Any) -> Any:
        """The value of an arithmetic expression."""
        if not all(character in arithmetic.ALLOWED for character in expression):
            raise ValueError("Invalid characters in expression")
        return arithmetic.calculate(expression)

    def cancel_reservation(self, reservation_id: Any) -> Any:
        """Cancels a reservation, and books the refunds behind its payments."""
        self._reservation(reservation_id)
        reservation = self._records.change("reservations", reservation_id)
        reservation["payment_history"] += [
            Payment(payment_id=payment["payment_id"], amount=-payment["amount"]).model_dump()
            for payment in reservation["payment_history"]
        ]
        reservation["status"] = "cancelled"
        return reservation

    def get_flight_status(self, flight_number: Any, date: Any) -> Any:
        """The status of a flight on a date."""
        return self._day(flight_number, date)["status"]

    def get_reservation_details(self, reservation_id: Any) -> Any:
        """A reservation's record."""
        return self._reservation(reservation_id)

    def get_user_details(self, user_id: Any) -> Any:
        """A user's record."""
        return self._user(user_id)

    def list_all_airports(self) -> Any:
        """The airports, which are a constant."""
        return [{"iata": code, "city": city} for code, city in AIRPORTS.items()]

    def search_direct_flight(self, origin: Any, destination: Any, date: Any) -> Any:
        """The flights that are available between two airports on a date."""
        return self._direct(date, origin, destination)

    def search_onestop_flight(self, origin: Any, destination: Any, date: Any) -> Any:
        """Pairs of flights with one stop."""
        found = []
        for first in self._direct(date, origin, None):
            arrival = first["scheduled_arrival_time_est"]
            next_date = f"2024-05-{int(date[-2:]) + 1}" if "+1" in arrival else date
            for second in self._direct(next_date, first["destination"], destination, leaves_from=arrival):
                found.append([{**first, "date": date}, {**second, "date": next_date}])
        return found

    def send_certificate(self, user_id: Any, amount: Any) -> Any:
        """Gives a user a certificate of an amount."""
        methods = self._user(user_id)["payment_methods"]
        for number in (3221322, 3221323, 3221324):
            payment_id = f"certificate_{number}"
            if payment_id not in methods:
                certificate = Certificate(source="certificate", id=payment_id, amount=amount)
                self._records.change("users", user_id)["payment_methods"][payment_id] = certificate.model_dump()
                return f"Certificate {payment_id} added to user {user_id} with amount {amount}."
        raise ValueError("Too many certificates")

    def transfer_to_human_agents(self, summary: Any) -> Any:
        """Hands the user over; the episode goes on."""
        return "Transfer successful"

    def update_reservation_baggages(
        self, reservation_id: Any, total_baggages: Any, nonfree_baggages: Any, payment_id: Any
    ) -> Any:
        """Changes the numbers of bags, and charges for more."""
        reservation = self._reservation(reservation_id)
        price = BAGGAGE_PRICE * max(0, nonfree_baggages - reservation["nonfree_baggages"])
        payments = self._pay_update(reservation["user_id"], payment_id, price)
        reservation = self._records.change("reservations", reservation_id)
        reservation["payment_history"] += payments
        reservation["total_baggages"] = total_baggages
        reservation["nonfree_baggages"] = nonfree_baggages
        return reservation

    def update_reservation_flights(self, reservation_id: Any, cabin: Any, flights: Any, payment_id: Any) -> Any:
        """Puts other flights into a reservation; kept ones keep their price."""
        flights = _modelled(FlightInfo, flights)
        reservation = self._reservation(reservation_id)
        passengers = len(reservation["passengers"])
        segments = []
        for flight in flights:
            held = self._held(reservation, flight, cabin)
            segments.append(held or self._segment(flight, cabin, passengers).model_dump())
        before, after = (sum(segment["price"] for segment in group) for group in (reservation["flights"], segments))
        payments = self._pay_update(reservation["user_id"], payment_id, (after - before) * passengers)
        reservation = self._records.change("reservations", reservation_id)
        reservation["payment_history"] += payments
        reservation["flights"] = segments
        reservation["cabin"] = cabin
        return reservation

    def update_reservation_passengers(self, reservation_id: Any, passengers: Any) -> Any:
        """Puts other passengers into a reservation, as many as there were."""
        passengers = _modelled(Passenger, passengers)
        if len(passengers) != len(self._reservation(reservation_id)["passengers"]):
            raise ValueError("Number of passengers does not match")
        reservation = self._records.change("reservations", reservation_id)
        reservation["passengers"] = [
            passenger.model_dump() if isinstance(passenger, BaseModel) else passenger for passenger in passengers
        ]
        return reservation

    def _user(self, user_id: Any) -> Any:
        if not self._records.has("users", user_id):
            raise ValueError(f"User {user_id} not found")
        return self._records.read("users", user_id)

    def _reservation(self, reservation_id: Any) -> Any:
        if not self._records.has("reservations", reservation_id):
            raise ValueError(f"Reservation {reservation_id} not found")
        return self._records.read("reservations", reservation_id)

    def _flight(self, number: Any) -> Any:
        if not self._records.has("flights", number):
            raise ValueError(f"Flight {number} not found")
        return self._records.read("flights", number)

    def _day(self, number: Any, date: Any) -> Any:
        flight = self._flight(number)
        if date not in flight["dates"]:
            raise ValueError(f"Flight {number} not found on date {date}")
        return flight["dates"][date]

    def _segment(self, wanted: Any, cabin: Any, passengers: int) -> ReservationFlight:
        """A seat that can be had, as a segment with its price. Raises ValueError."""
        flight = self._flight(wanted.flight_number)
        day = self._day(wanted.flight_number, wanted.date)
        if day["status"] != "available":
            raise ValueError(f"Flight {wanted.flight_number} not available on date {wanted.date}")
        if day["available_seats"][cabin] < passengers:
            raise ValueError(f"Not enough seats on flight {wanted.flight_number}")
        return ReservationFlight(
            flight_number=wanted.flight_number,
            origin=flight["origin"],
            destination=flight["destination"],
            date=wanted.date,
            price=day["prices"][cabin],
        )

    def _held(self, reservation: Any, wanted: Any, cabin: Any) -> Any:
        self._flight(wanted.flight_number)
        for segment in reservation["flights"]:
            same = (segment["flight_number"], segment["date"]) == (wanted.flight_number, wanted.date)
            if same and cabin == reservation["cabin"]:
                return segment
        return None

    def _direct(self, date: Any, origin: Any, destination: Any, leaves_from: str | None = None) -> list[dict[str, Any]]:
        """Available flights of a date; None is any origin, destination or time."""
        found = []
        for number in self._version.flights_from(origin) if origin is not None else self._version.tables["flights"]:
            flight = self._records.read("flights", number)
            if destination not in (None, flight["destination"]) or date not in flight["dates"]:
                continue
            day = flight["dates"][date]
            if day["status"] != "available":
                continue
            if leaves_from is not None and flight["scheduled_departure_time_est"] < leaves_from:
                continue
            found.append(
                {
                    "flight_number": flight["flight_number"],
                    "origin": flight["origin"],
                    "destination": flight["destination"],
                    "status": "available",
                    "scheduled_departure_time_est": flight["scheduled_departure_time_est"],
                    "scheduled_arrival_time_est": flight["scheduled_arrival_time_est"],
                    "date": None,
                    "available_seats": day["available_seats"],
                    "prices": day["prices"],
                }
            )
        return found

    def _new_reservation_id(self) -> str:
        for reservation_id in ("HATHAT", "HATHAU", "HATHAV"):
            if not self._records.has("reservations", reservation_id):
                return reservation_id
        raise ValueError("Too many reservations")

    def _pay(self, user_id: Any, payments: list[Payment]) -> None:
        methods = self._records.change("users", user_id)["payment_methods"]
        for payment in payments:
            method = methods[payment.payment_id]
            if method["source"] == "gift_card":
                method["amount"] -= payment.amount
            elif method["source"] == "certificate":
                methods.pop(payment.payment_id)

    def _pay_update(self, user_id: Any, payment_id: Any, due: Any) -> list[dict[str, Any]]:
        """Take what is due for a change, and return the entry for the history, if there is one. Raises ValueError."""
        methods = self._user(user_id)["payment_methods"]
        if payment_id not in methods:
            raise ValueError("Payment method not found")
        method = methods[payment_id]
        if method["source"] == "certificate":
            raise ValueError("Certificate cannot be used to update reservation")
        if method["source"] == "gift_card":
            if method["amount"] < due:
                raise ValueError("Gift card balance is not enough")
            self._records.change("users", user_id)["payment_methods"][payment_id]["amount"] -= due
        return [Payment(payment_id=payment_id, amount=due).model_dump()] if due != 0 else []


def _modelled(model: type[BaseModel], values: Any) -> Any:
    """The values as records of a model when all of them are objects, else as they are. Raises ValidationError."""
    return [model(**value) for value in values] if all(isinstance(value, dict) for value in values) else values


def _check_payments(methods: Any, payments: list[Payment], total: Any) -> None:
    """Raise ValueError unless the payments can be made and add up."""
    for payment in payments:
        if payment.payment_id not in methods:
            raise ValueError(f"Payment method {payment.payment_id} not found")
        method = methods[payment.payment_id]
        if method["source"] in ("gift_card", "certificate") and method["amount"] < payment.amount:
            raise ValueError(f"Not enough balance in payment method {payment.payment_id}")
    paid = sum(payment.amount for payment in payments)
    if paid != total:
        raise ValueError(f"Payment amount does not add up, total price is {total}, but paid {paid}")
