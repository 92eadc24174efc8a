"""tau2-bench's airline where it differs from tau-bench's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.environments.airline.tau2 import AirlineTau2
from harness.environments.tau2_session import Tau2Session
from harness.protocols import EnvironmentSession
from harness.records.environment import Call, EnvironmentFault, Opening
from harness.records.vocabulary import Actor
from tests.environments import tiny


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Tau2Session]:
    with AirlineTau2(tiny.write(tmp_path)).open(Opening("normal")) as opened:
        yield opened


def say(session: EnvironmentSession, name: str, /, **arguments: Any) -> str:
    return session.call(Call(Actor.AGENT, name, arguments)).content


def book(session: EnvironmentSession, **changes: Any) -> str:
    return say(session, "book_reservation", **tiny.booking(**changes))


def user(session: EnvironmentSession) -> Any:
    return json.loads(say(session, "get_user_details", user_id="ada_abend_1"))


def seats(session: EnvironmentSession) -> int:
    found = json.loads(say(session, "search_direct_flight", origin="SFO", destination="DEN", date="2024-05-20"))
    assert found[0]["date"] is None
    return int(found[0]["available_seats"]["economy"])


def test_records_have_the_models_form(session: Tau2Session) -> None:
    reservation = json.loads(say(session, "get_reservation_details", reservation_id="RES001"))
    assert list(reservation)[-2:] == ["insurance", "status"]
    assert reservation["status"] is None
    methods = say(session, "get_user_details", user_id="ada_abend_1")
    assert '{"source": "gift_card", "id": "gift_card_1", "amount": 90.0}' in methods
    assert methods.startswith('{"user_id": "ada_abend_1", "name"')


def test_numbers_take_the_models_form_and_extra_keys_are_dropped(session: Tau2Session) -> None:
    paid = [{"payment_id": "credit_card_1", "amount": 100.0}]
    stored = json.loads(book(session, payment_methods=paid, passengers=[{**tiny.ADA, "shoe size": 38}]))
    assert '"amount": 100}' in json.dumps(stored["payment_history"])
    assert stored["passengers"] == [tiny.ADA]
    half = book(session, payment_methods=[{"payment_id": "credit_card_1", "amount": 100.5}])
    assert half.startswith("Error: 1 validation error for Payment\namount\n")


def test_a_booking_takes_seats_and_a_cancellation_gives_none_back(session: Tau2Session) -> None:
    assert seats(session) == 5
    book(session, passengers=[tiny.ADA, tiny.BEN], payment_methods=[{"payment_id": "credit_card_1", "amount": 200}])
    assert seats(session) == 3
    say(session, "cancel_reservation", reservation_id="HATHAT")
    assert seats(session) == 3


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"user_id": "nobody"}, "User nobody not found"),
        ({"flights": [{"flight_number": "T9", "date": "2024-05-20"}]}, "Flight T9 not found"),
        ({"flights": [{"flight_number": "T1", "date": "2024-06-20"}]}, "Flight T1 not found on date 2024-06-20"),
        ({"flights": [{"flight_number": "T1", "date": "2024-05-10"}]}, "Flight T1 not available on date 2024-05-10"),
        ({"cabin": "business"}, "Not enough seats on flight T1"),
        ({"payment_methods": [{"payment_id": "card", "amount": 100}]}, "Payment method card not found"),
        (
            {"payment_methods": [{"payment_id": "gift_card_1", "amount": 100}]},
            "Not enough balance in payment method gift_card_1",
        ),
        ({"insurance": "yes"}, "Payment amount does not add up, total price is 130, but paid 100"),
        ({"colour": "red"}, "AirlineTools.book_reservation() got an unexpected keyword argument 'colour'"),
    ],
)
def test_what_a_booking_is_refused_for(session: Tau2Session, changes: dict[str, Any], text: str) -> None:
    before = session.digest()
    assert book(session, **changes) == f"Error: {text}"
    assert session.digest() == before


@pytest.mark.parametrize("field", ["flight_type", "cabin", "insurance"])
def test_a_booking_refuses_unknown_words_as_the_validator_says(session: Tau2Session, field: str) -> None:
    said = book(session, **{field: "gold"})
    assert said.startswith(f"Error: 1 validation error for Reservation\n{field}\n  Input should be ")


def test_an_update_does_not_validate(session: Tau2Session) -> None:
    arguments = {"reservation_id": "RES001", "flights": [{"flight_number": "T2", "date": "2024-05-20"}]}
    assert say(session, "update_reservation_flights", cabin="first", payment_id="x", **arguments) == "Error: 'first'"


def test_a_fourth_booking_fails(session: Tau2Session) -> None:
    assert [book(session)[:9] for _ in range(3)] == ['{"reserva'] * 3
    assert book(session) == "Error: Too many reservations"


def test_too_many_certificates(session: Tau2Session) -> None:
    for _ in range(3):
        say(session, "send_certificate", user_id="ada_abend_1", amount=5)
    assert say(session, "send_certificate", user_id="ada_abend_1", amount=5) == "Error: Too many certificates"
    assert user(session)["payment_methods"]["certificate_3221322"]["amount"] == 5.0


def test_another_cabin_is_kept_by_the_reservation(session: Tau2Session) -> None:
    arguments = {"reservation_id": "RES001", "flights": [{"flight_number": "T1", "date": "2024-05-20"}]}
    said = say(session, "update_reservation_flights", cabin="basic_economy", payment_id="credit_card_1", **arguments)
    changed = json.loads(said)
    assert changed["cabin"] == "basic_economy"
    assert changed["payment_history"][-1] == {"payment_id": "credit_card_1", "amount": -40}


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("get_reservation_details", {"reservation_id": "x"}, "Reservation x not found"),
        ("cancel_reservation", {"reservation_id": "x"}, "Reservation x not found"),
        ("get_flight_status", {"flight_number": "T9", "date": "2024-05-20"}, "Flight T9 not found"),
        ("get_flight_status", {"flight_number": "T1", "date": "x"}, "Flight T1 not found on date x"),
        ("calculate", {"expression": "a"}, "Invalid characters in expression"),
        (
            "update_reservation_passengers",
            {"reservation_id": "RES001", "passengers": []},
            "Number of passengers does not match",
        ),
        (
            "update_reservation_baggages",
            {"reservation_id": "RES001", "total_baggages": 3, "nonfree_baggages": 2, "payment_id": "gift_card_1"},
            "Gift card balance is not enough",
        ),
        (
            "update_reservation_baggages",
            {"reservation_id": "RES001", "total_baggages": 0, "nonfree_baggages": 0, "payment_id": "certificate_1"},
            "Certificate cannot be used to update reservation",
        ),
        (
            "update_reservation_baggages",
            {"reservation_id": "RES001", "total_baggages": 0, "nonfree_baggages": 0, "payment_id": "card"},
            "Payment method not found",
        ),
        ("think", {"thought": "hm"}, "Tool 'think' not found."),
    ],
)
def test_texts_name_what_they_are_about(session: Tau2Session, name: str, arguments: dict[str, Any], text: str) -> None:
    answer = session.call(Call(Actor.AGENT, name, arguments))
    assert answer.content == f"Error: {text}"
    assert answer.error


def test_one_stop_takes_the_second_flights_price_from_its_own_date(session: Tau2Session) -> None:
    found = json.loads(say(session, "search_onestop_flight", origin="SFO", destination="JFK", date="2024-05-20"))
    pairs = [(one["flight_number"], two["flight_number"], two["prices"]["economy"]) for one, two in found]
    assert pairs == [("T1", "T2", 70), ("T3", "T2", 75), ("T3", "T4", 65)]


def test_answers_in_words_and_lists(session: Tau2Session) -> None:
    assert say(session, "get_flight_status", flight_number="T1", date="2024-05-10") == "landed"
    assert json.loads(say(session, "list_all_airports"))[0] == {"iata": "SFO", "city": "San Francisco"}


def test_the_transfer_does_not_end_an_episode(tmp_path: Path) -> None:
    tools = AirlineTau2(tiny.write(tmp_path)).capabilities.tools
    assert not [tool.name for tool in tools if tool.ends]
    assert len(tools) == 14


def test_the_caller_is_not_aliased(session: Tau2Session) -> None:
    call = Call(Actor.AGENT, "book_reservation", tiny.booking())
    session.call(call)
    say(session, "cancel_reservation", reservation_id="HATHAT")
    assert call.arguments == tiny.booking()


def test_only_versions_with_ids_and_states_are_offered(tmp_path: Path) -> None:
    assert AirlineTau2(tiny.write(tmp_path)).capabilities.data == ("C",)
    (tmp_path / "variants.json").write_text('{"A": []}')
    with pytest.raises(EnvironmentFault, match="no version of the database"):
        _ = AirlineTau2(tmp_path).capabilities


def test_a_record_that_does_not_fit_is_named(tmp_path: Path) -> None:
    tiny.write(tmp_path)
    broken = {"op": "set", "in": "reservations/RES001", "key": "total_baggages", "value": "many"}
    (tmp_path / "variants.json").write_text(json.dumps({"C": [*tiny.VARIANTS["C"], broken]}))
    environment = AirlineTau2(tmp_path)
    with (
        pytest.raises(EnvironmentFault, match="reservations/RES001/total_baggages: "),
        environment.open(Opening("normal")),
    ):
        pass


def test_initial_data_is_merged_record_by_record(tmp_path: Path) -> None:
    update = {"users": {"ada_abend_1": {"membership": "silver"}}, "reservations": {}}
    opening = Opening("normal", initial={"initialization_data": {"agent_data": update, "user_data": None}})
    with AirlineTau2(tiny.write(tmp_path)).open(opening) as session:
        found = user(session)
        assert found["membership"] == "silver"
        assert found["email"] == "ada@example.com"
