"""The airline's tools as tau-bench has them: no check of types, texts in lower case, quirks included.

Facts: `v1/tools.json` of the airline data, read from tau-bench 59a200c (MIT, © 2024 Sierra). Classes and methods bear
the names they have there, because Python's message about a missing argument is what the agent reads.
"""

from __future__ import annotations

import json
from typing import Any

from harness.environments import arithmetic
from harness.environments.airline.v1_rules import (
    AIRPORTS,
    BAGGAGE_PRICE,
    INSURANCE_PRICE,
    NOW,
    Data,
    change_method,
    check_payments,
    connections,
    is_available,
    kept_segment,
    method_for_update,
    new_reservation_id,
    price_segment,
    require,
    take_payments,
    without_dates,
)
from harness.environments.overlay import copy_of


class BookReservation:
    """Books flights and takes the payments; seats are never taken, and an id may be one that is there."""

    @staticmethod
    def invoke(
        data: Data,
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
    ) -> str:
        records = data.records
        require(records.has("users", user_id), "user not found")
        reservation_id = new_reservation_id(records)
        reservation = {
            "reservation_id": reservation_id,
            "user_id": user_id,
            "origin": origin,
            "destination": destination,
            "flight_type": flight_type,
            "cabin": cabin,
            "flights": copy_of(flights),
            "passengers": passengers,  # by reference, like the payments: what is added later shows in the call's log
            "payment_history": payment_methods,
            "created_at": NOW,
            "total_baggages": total_baggages,
            "nonfree_baggages": nonfree_baggages,
            "insurance": insurance,
        }
        total = 0
        for segment in reservation["flights"]:
            total += price_segment(records, segment, cabin, len(passengers)) * len(passengers)
        if insurance == "yes":
            total += INSURANCE_PRICE * len(passengers)
        total += BAGGAGE_PRICE * nonfree_baggages
        check_payments(records.read("users", user_id)["payment_methods"], payment_methods, total)
        user = records.change("users", user_id)
        take_payments(user["payment_methods"], payment_methods)
        records.put("reservations", reservation_id, reservation)
        user["reservations"].append(reservation_id)
        return json.dumps(reservation)


class CancelReservation:
    """Cancels a reservation, and books the refunds behind its payments; a second time too."""

    @staticmethod
    def invoke(data: Data, reservation_id: Any) -> str:
        require(data.records.has("reservations", reservation_id), "reservation not found")
        reservation = data.records.change("reservations", reservation_id)
        refunds = [
            {"payment_id": payment["payment_id"], "amount": -payment["amount"]}
            for payment in reservation["payment_history"]
        ]
        reservation["payment_history"].extend(refunds)
        reservation["status"] = "cancelled"
        return json.dumps(reservation)


class UpdateReservationFlights:
    """Puts other flights into a reservation; kept segments keep their price, and the cabin its name."""

    @staticmethod
    def invoke(data: Data, reservation_id: Any, cabin: Any, flights: Any, payment_id: Any) -> str:
        records = data.records
        require(records.has("reservations", reservation_id), "reservation not found")
        reservation = records.read("reservations", reservation_id)
        passengers = len(reservation["passengers"])
        segments = copy_of(flights)
        difference = 0
        for segment in segments:
            kept = kept_segment(reservation, segment, cabin)
            if kept is not None:
                segment.update({name: kept[name] for name in ("price", "origin", "destination")})
                difference += kept["price"] * passengers
            else:
                difference += price_segment(records, segment, cabin, passengers) * passengers
        difference -= sum(segment["price"] for segment in reservation["flights"]) * passengers
        method = method_for_update(records, reservation, payment_id, difference)
        if method["source"] == "gift_card":
            change_method(records, reservation["user_id"], payment_id, difference)
        reservation = records.change("reservations", reservation_id)
        reservation["flights"] = segments  # the cabin stays as it was
        if difference != 0:
            reservation["payment_history"].append({"payment_id": payment_id, "amount": difference})
        return json.dumps(reservation)


class UpdateReservationBaggages:
    """Changes the numbers of bags; those to be paid for beyond the earlier ones are charged."""

    @staticmethod
    def invoke(data: Data, reservation_id: Any, total_baggages: Any, nonfree_baggages: Any, payment_id: Any) -> str:
        records = data.records
        require(records.has("reservations", reservation_id), "reservation not found")
        reservation = records.read("reservations", reservation_id)
        price = BAGGAGE_PRICE * max(0, nonfree_baggages - reservation["nonfree_baggages"])
        method = method_for_update(records, reservation, payment_id, price)
        if method["source"] == "gift_card":
            change_method(records, reservation["user_id"], payment_id, price)
        reservation = records.change("reservations", reservation_id)
        reservation["total_baggages"] = total_baggages
        reservation["nonfree_baggages"] = nonfree_baggages
        if price != 0:
            reservation["payment_history"].append({"payment_id": payment_id, "amount": price})
        return json.dumps(reservation)


class UpdateReservationPassengers:
    """Puts other passengers into a reservation, as many as there were."""

    @staticmethod
    def invoke(data: Data, reservation_id: Any, passengers: Any) -> str:
        require(data.records.has("reservations", reservation_id), "reservation not found")
        reservation = data.records.read("reservations", reservation_id)
        require(len(passengers) == len(reservation["passengers"]), "number of passengers does not match")
        reservation = data.records.change("reservations", reservation_id)
        reservation["passengers"] = passengers
        return json.dumps(reservation)


class SendCertificate:
    """Gives a user a certificate; a fourth overwrites the third."""

    @staticmethod
    def invoke(data: Data, user_id: Any, amount: Any) -> str | None:
        require(data.records.has("users", user_id), "user not found")
        methods = data.records.read("users", user_id)["payment_methods"]
        for payment_id in (f"certificate_{number}" for number in (3221322, 3221323, 3221324)):
            if payment_id not in methods:
                user = data.records.change("users", user_id)
                user["payment_methods"][payment_id] = {"source": "certificate", "amount": amount, "id": payment_id}
                return f"Certificate {payment_id} added to user {user_id} with amount {amount}."
        return None


class GetUserDetails:
    """A user's record, as it is kept."""

    @staticmethod
    def invoke(data: Data, user_id: Any) -> str:
        require(data.records.has("users", user_id), "user not found")
        return json.dumps(data.records.read("users", user_id))


class GetReservationDetails:
    """A reservation's record, as it is kept."""

    @staticmethod
    def invoke(data: Data, reservation_id: Any) -> str:
        require(data.records.has("reservations", reservation_id), "user not found")  # this text, there too
        return json.dumps(data.records.read("reservations", reservation_id))


class ListAllAirports:
    """The airports, which are a constant."""

    @staticmethod
    def invoke(data: Data) -> str:
        return json.dumps(AIRPORTS)


class SearchDirectFlight:
    """The flights that are available between two airports on a date."""

    @staticmethod
    def invoke(data: Data, origin: Any, destination: Any, date: Any) -> str:
        found = []
        for number in data.version.flights_from(origin):
            flight = data.records.read("flights", number)
            if flight["destination"] == destination and is_available(flight, date):
                found.append({**without_dates(flight), **flight["dates"][date]})
        return json.dumps(found)


class SearchOnestopFlight:
    """Pairs of flights with one stop; the second is priced by the date of the first."""

    @staticmethod
    def invoke(data: Data, origin: Any, destination: Any, date: Any) -> str:
        found = []
        for first, second, second_date in connections(data, origin, destination, date):
            if is_available(first, date) and is_available(second, second_date):
                found.append(
                    [
                        {**without_dates(first), **first["dates"][date], "date": date},
                        # Status, seats and prices of the first date, also where the second flight leaves a day later.
                        {**without_dates(second), **second["dates"][date], "date": second_date},
                    ]
                )
        return json.dumps(found)


class Calculate:
    """The value of an arithmetic expression."""

    @staticmethod
    def invoke(data: Data, expression: Any) -> str:
        require(all(character in arithmetic.ALLOWED for character in expression), "invalid characters in expression")
        return arithmetic.calculate(expression)


class Think:
    """Takes a thought, and says nothing."""

    @staticmethod
    def invoke(data: Data, thought: Any) -> str:
        return ""


class TransferToHumanAgents:
    """Hands the user over, which ends the episode."""

    @staticmethod
    def invoke(data: Data, summary: Any) -> str:
        return "Transfer successful"


TOOLS: dict[str, Any] = {
    "book_reservation": BookReservation,
    "calculate": Calculate,
    "cancel_reservation": CancelReservation,
    "get_reservation_details": GetReservationDetails,
    "get_user_details": GetUserDetails,
    "list_all_airports": ListAllAirports,
    "search_direct_flight": SearchDirectFlight,
    "search_onestop_flight": SearchOnestopFlight,
    "send_certificate": SendCertificate,
    "think": Think,
    "transfer_to_human_agents": TransferToHumanAgents,
    "update_reservation_baggages": UpdateReservationBaggages,
    "update_reservation_flights": UpdateReservationFlights,
    "update_reservation_passengers": UpdateReservationPassengers,
}
