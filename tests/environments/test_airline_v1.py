"""tau-bench's airline: prices, checks in order, texts, and the mistakes that move scores."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.environments.airline.v1 import AirlineV1, AirlineV1Session
from harness.environments.airline.v1_rules import AIRPORTS
from harness.records.environment import Call, EnvironmentFault, Opening
from harness.records.vocabulary import Actor
from tests.environments import tiny


@pytest.fixture
def session(tmp_path: Path) -> Iterator[AirlineV1Session]:
    with AirlineV1(tiny.write(tmp_path)).open(Opening("normal")) as opened:
        yield opened


def say(session: AirlineV1Session, name: str, /, **arguments: Any) -> str:
    return session.call(Call(Actor.AGENT, name, arguments)).content


def book(session: AirlineV1Session, **changes: Any) -> str:
    return say(session, "book_reservation", **tiny.booking(**changes))


def user(session: AirlineV1Session) -> Any:
    return json.loads(say(session, "get_user_details", user_id="ada_abend_1"))


def test_a_booking_is_stored_as_it_was_passed_and_takes_no_seat(session: AirlineV1Session) -> None:
    stored = json.loads(book(session, passengers=[{**tiny.ADA, "shoe size": 38}]))
    assert list(stored) == [
        *("reservation_id", "user_id", "origin", "destination", "flight_type", "cabin", "flights", "passengers"),
        *("payment_history", "created_at", "total_baggages", "nonfree_baggages", "insurance"),
    ]
    assert stored["reservation_id"] == "HATHAT"
    assert stored["flights"] == [
        {"flight_number": "T1", "date": "2024-05-20", "price": 100, "origin": "SFO", "destination": "DEN"}
    ]
    assert stored["passengers"][0]["shoe size"] == 38
    assert user(session)["reservations"] == ["RES001", "HATHAT"]
    found = json.loads(say(session, "search_direct_flight", origin="SFO", destination="DEN", date="2024-05-20"))
    assert found[0]["available_seats"]["economy"] == 5


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"user_id": "nobody"}, "user not found"),
        ({"flights": [{"flight_number": "T9", "date": "2024-05-20"}]}, "flight T9 not found"),
        ({"flights": [{"flight_number": "T1", "date": "2024-06-20"}]}, "flight T1 not found on date 2024-06-20"),
        ({"flights": [{"flight_number": "T1", "date": "2024-05-10"}]}, "flight T1 not available on date 2024-05-10"),
        ({"cabin": "business"}, "not enough seats on flight T1"),
        ({"cabin": "first"}, "'first'"),
        ({"payment_methods": [{"payment_id": "card", "amount": 100}]}, "payment method card not found"),
        (
            {"payment_methods": [{"payment_id": "gift_card_1", "amount": 100}]},
            "not enough balance in payment method gift_card_1",
        ),
        ({"insurance": "yes"}, "payment amount does not add up, total price is 130, but paid 100"),
        ({"nonfree_baggages": 2}, "payment amount does not add up, total price is 200, but paid 100"),
        ({"flights": [{"date": "2024-05-20"}]}, "'flight_number'"),
        ({"colour": "red"}, "BookReservation.invoke() got an unexpected keyword argument 'colour'"),
    ],
)
def test_what_a_booking_is_refused_for(session: AirlineV1Session, changes: dict[str, Any], text: str) -> None:
    before = session.digest()
    assert book(session, **changes) == f"Error: {text}"
    assert session.digest() == before


def test_the_first_thing_wrong_is_what_is_said(session: AirlineV1Session) -> None:
    wrong = {"flights": [{"flight_number": "T1", "date": "2024-05-20"}, {"flight_number": "T9", "date": "x"}]}
    assert book(session, **wrong, payment_methods=[]) == "Error: flight T9 not found"
    assert book(session, payment_methods=[]) == (
        "Error: payment amount does not add up, total price is 100, but paid 0"
    )


def test_python_names_the_method_when_an_argument_is_missing(session: AirlineV1Session) -> None:
    assert say(session, "get_user_details") == (
        "Error: GetUserDetails.invoke() missing 1 required positional argument: 'user_id'"
    )


def test_how_each_means_pays(session: AirlineV1Session) -> None:
    payments = [{"payment_id": "gift_card_1", "amount": 60}, {"payment_id": "certificate_1", "amount": 40}]
    book(session, payment_methods=payments)
    methods = user(session)["payment_methods"]
    assert methods["gift_card_1"]["amount"] == 30
    assert "certificate_1" not in methods  # the rest of it is lost
    assert "credit_card_1" in methods


def test_a_certificate_named_twice_is_an_error_that_has_changed_the_state(session: AirlineV1Session) -> None:
    before = session.digest()
    twice = [{"payment_id": "certificate_1", "amount": 50}] * 2
    assert book(session, payment_methods=twice) == "Error: 'certificate_1'"
    assert session.digest() != before
    assert "certificate_1" not in user(session)["payment_methods"]
    assert user(session)["reservations"] == ["RES001"]


def test_a_fourth_booking_overwrites_the_third(session: AirlineV1Session) -> None:
    ids = [json.loads(book(session, total_baggages=number))["reservation_id"] for number in range(4)]
    assert ids == ["HATHAT", "HATHAU", "HATHAV", "HATHAV"]
    assert user(session)["reservations"] == ["RES001", *ids]
    assert json.loads(say(session, "get_reservation_details", reservation_id="HATHAV"))["total_baggages"] == 3


def test_cancelling_again_appends_the_negation_of_everything_once_more(session: AirlineV1Session) -> None:
    say(session, "cancel_reservation", reservation_id="RES001")
    twice = json.loads(say(session, "cancel_reservation", reservation_id="RES001"))
    assert [entry["amount"] for entry in twice["payment_history"]] == [90, -90, -90, 90]
    assert twice["status"] == "cancelled"
    assert user(session)["reservations"] == ["RES001"]


def test_the_log_is_aliased_by_the_database_and_the_caller_is_not(session: AirlineV1Session) -> None:
    call = Call(Actor.AGENT, "book_reservation", tiny.booking())
    session.call(call)
    say(session, "cancel_reservation", reservation_id="HATHAT")
    paid = {"payment_id": "credit_card_1", "amount": 100}
    assert session.log[0]["kwargs"]["payment_methods"] == [paid, {**paid, "amount": -100}]
    assert call.arguments == tiny.booking()
    assert [entry["name"] for entry in session.log] == ["book_reservation", "cancel_reservation"]


def test_the_alias_survives_a_snapshot(session: AirlineV1Session) -> None:
    book(session)
    session.restore(session.snapshot())
    say(session, "cancel_reservation", reservation_id="HATHAT")
    assert len(session.log[0]["kwargs"]["payment_methods"]) == 2


def test_unknown_and_failing_calls_are_logged_too(session: AirlineV1Session) -> None:
    answer = session.call(Call(Actor.AGENT, "make_coffee", {"cups": 2}))
    assert (answer.content, answer.missing) == ("Unknown action make_coffee", True)
    say(session, "get_user_details", user_id="nobody")
    assert session.log == [
        {"name": "make_coffee", "kwargs": {"cups": 2}},
        {"name": "get_user_details", "kwargs": {"user_id": "nobody"}},
    ]


def update(session: AirlineV1Session, **changes: Any) -> str:
    arguments = {
        "reservation_id": "RES001",
        "cabin": "economy",
        "flights": [{"flight_number": "T1", "date": "2024-05-20"}],
        "payment_id": "credit_card_1",
        **changes,
    }
    return say(session, "update_reservation_flights", **arguments)


def test_a_kept_segment_keeps_its_price_and_needs_no_seat(session: AirlineV1Session) -> None:
    kept = json.loads(update(session))
    assert kept["flights"][0]["price"] == 90
    assert len(kept["payment_history"]) == 1  # nothing due, nothing entered


def test_another_cabin_is_priced_and_the_reservation_keeps_the_old_one(session: AirlineV1Session) -> None:
    changed = json.loads(update(session, cabin="basic_economy"))
    assert changed["flights"][0]["price"] == 50
    assert changed["cabin"] == "economy"
    assert changed["payment_history"][-1] == {"payment_id": "credit_card_1", "amount": -40}


def test_a_refund_raises_a_gift_card(session: AirlineV1Session) -> None:
    update(session, cabin="basic_economy", payment_id="gift_card_1")
    assert user(session)["payment_methods"]["gift_card_1"]["amount"] == 130


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"reservation_id": "RES999"}, "reservation not found"),
        ({"payment_id": "card"}, "payment method not found"),
        ({"payment_id": "certificate_1"}, "certificate cannot be used to update reservation"),
        (
            {
                "payment_id": "gift_card_1",
                "flights": [{"flight_number": n, "date": "2024-05-21"} for n in ("T1", "T2")],
            },
            "gift card balance is not enough",
        ),
        ({"flights": [{"flight_number": "T1", "date": "2024-05-10"}]}, "flight T1 not available on date 2024-05-10"),
    ],
)
def test_what_an_update_is_refused_for(session: AirlineV1Session, changes: dict[str, Any], text: str) -> None:
    before = session.digest()
    assert update(session, **changes) == f"Error: {text}"
    assert session.digest() == before


def bags(session: AirlineV1Session, total: int, paid: int, payment_id: str = "gift_card_1") -> Any:
    arguments = {"reservation_id": "RES001", "total_baggages": total, "nonfree_baggages": paid}
    return json.loads(say(session, "update_reservation_baggages", **arguments, payment_id=payment_id))


def test_bags_are_paid_by_the_difference_and_fewer_cost_nothing(session: AirlineV1Session) -> None:
    assert bags(session, 3, 1)["payment_history"][-1] == {"payment_id": "gift_card_1", "amount": 50}
    fewer = bags(session, 0, 0)
    assert (fewer["total_baggages"], fewer["nonfree_baggages"], len(fewer["payment_history"])) == (0, 0, 2)
    assert user(session)["payment_methods"]["gift_card_1"]["amount"] == 40


def test_passengers_are_replaced_by_as_many(session: AirlineV1Session) -> None:
    name = "update_reservation_passengers"
    assert json.loads(say(session, name, reservation_id="RES001", passengers=[tiny.BEN]))["passengers"] == [tiny.BEN]
    assert say(session, name, reservation_id="RES001", passengers=[]) == "Error: number of passengers does not match"


def test_a_reservation_that_is_not_there_is_said_to_be_a_user(session: AirlineV1Session) -> None:
    assert say(session, "get_reservation_details", reservation_id="x") == "Error: user not found"


def test_certificates_until_the_benchmark_crashes(session: AirlineV1Session) -> None:
    said = [say(session, "send_certificate", user_id="ada_abend_1", amount=amount) for amount in (50, 2.5, "x")]
    assert said == [
        "Certificate certificate_3221322 added to user ada_abend_1 with amount 50.",
        "Certificate certificate_3221323 added to user ada_abend_1 with amount 2.5.",
        "Certificate certificate_3221324 added to user ada_abend_1 with amount x.",
    ]
    with pytest.raises(EnvironmentFault, match="tau-bench crashes here"):
        say(session, "send_certificate", user_id="ada_abend_1", amount=1)


def test_one_stop_takes_the_second_flights_price_from_the_first_date(session: AirlineV1Session) -> None:
    found = json.loads(say(session, "search_onestop_flight", origin="SFO", destination="JFK", date="2024-05-20"))
    assert [(one["flight_number"], two["flight_number"]) for one, two in found] == [
        ("T1", "T2"),
        ("T3", "T2"),
        ("T3", "T4"),
    ]
    for one, two in found[1:]:  # T3 arrives the next day, and "01:00:00+1" is compared as text
        assert (one["date"], two["date"]) == ("2024-05-20", "2024-05-21")
    assert [two["prices"]["economy"] for _, two in found] == [70, 70, 60]


def test_searches_find_nothing_for_what_is_nowhere(session: AirlineV1Session) -> None:
    for origin in ("XXX", None, ["SFO"], 3):
        for name in ("search_direct_flight", "search_onestop_flight"):
            assert say(session, name, origin=origin, destination="DEN", date="2024-05-20") == "[]"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("2**3 + 1.005", "9.0"),
        (" 7 // 2", "3.0"),
        ("-(1 + 2) * +4", "-12.0"),
        ("1/3", "0.33"),
        ("1/0", "Error: division by zero"),
        ("2+", "Error: invalid syntax (<string>, line 1)"),
        ("2 ** 3; 1", "Error: invalid characters in expression"),
        ("()", "Error: float() argument must be a string or a real number, not 'tuple'"),
        ("2(3)", "Error: 'int' object is not callable"),
        ("9**9**9**9", "Error: the power is too large to calculate"),
        ("(-8)**0.5", "Error: float() argument must be a string or a real number, not 'complex'"),
    ],
)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # Python's own about 2(3)
def test_the_calculator(session: AirlineV1Session, expression: str, text: str) -> None:
    assert say(session, "calculate", expression=expression) == text


def test_the_rest(session: AirlineV1Session) -> None:
    before = session.digest()
    assert say(session, "think", thought="hm") == ""
    assert say(session, "transfer_to_human_agents", summary="s") == "Transfer successful"
    assert json.loads(say(session, "list_all_airports")) == AIRPORTS
    assert list(AIRPORTS)[:3] == ["SFO", "JFK", "LAX"]
    assert len(AIRPORTS) == 20
    assert session.digest() == before


def test_only_the_transfer_ends_an_episode(tmp_path: Path) -> None:
    tools = AirlineV1(tiny.write(tmp_path)).capabilities.tools
    assert [tool.name for tool in tools if tool.ends] == ["transfer_to_human_agents"]
    assert len(tools) == 14


def test_what_is_nested_beyond_reason_is_refused_or_a_fault(session: AirlineV1Session) -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    assert book(session, passengers=[deep]).startswith("Error: maximum recursion depth exceeded")
    assert say(session, "think", thought="still here") == ""
    session.records.put("users", "deep", deep)
    with pytest.raises(EnvironmentFault, match="nested too deeply"):
        session.digest()


@pytest.mark.parametrize("part", ["own", "log", "shared"])
def test_a_snapshot_with_a_part_of_another_shape_changes_nothing(session: AirlineV1Session, part: str) -> None:
    book(session)
    state = session.digest()
    for wrong in (None, 3, {"x": 1}, [[1]]):
        parts = json.loads(session.snapshot())
        parts["state"][part] = wrong
        with pytest.raises(EnvironmentFault):
            session.restore(json.dumps(parts).encode())
        assert session.digest() == state
        assert len(session.log) == 1


def test_a_task_of_tau_bench_has_no_initial_state(tmp_path: Path) -> None:
    opening = Opening("normal", initial={"initialization_data": {}})
    with pytest.raises(EnvironmentFault, match="no initial state"), AirlineV1(tiny.write(tmp_path)).open(opening):
        pass
