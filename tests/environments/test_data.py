"""Databases in folders of the user's, and their versions."""

from __future__ import annotations

import gzip
import json
import os
import runpy
from pathlib import Path
from typing import Any

import pytest

from harness.environments import registry
from harness.environments.airline.v1 import AirlineV1
from harness.environments.folder import VARIABLE
from harness.environments.variants import apply
from harness.records.environment import EnvironmentFault, Opening
from harness.records.errors import ConfigError
from tests.environments import tiny
from tests.environments.conftest import BUNDLED

BASE = {"users": {"a": {"home": {"province": "X", "zip": "1"}, "n": 1}, "b": {"home": {"province": "Y"}, "n": 2}}}


def test_a_renamed_key_keeps_its_place_and_the_base_stays(tmp_path: Path) -> None:
    kept = json.dumps(BASE)
    changed = apply(BASE, [{"op": "rename", "in": "users/*/home", "key": "province", "to": "state"}])
    assert json.dumps(changed["users"]["a"]["home"]) == '{"state": "X", "zip": "1"}'
    assert json.dumps(BASE) == kept


def test_records_that_no_change_touches_are_shared() -> None:
    changed = apply(BASE, [{"op": "set", "in": "users/a", "key": "n", "value": [3]}])
    assert changed["users"]["a"]["n"] == [3]
    assert changed["users"]["b"] is BASE["users"]["b"]


def test_each_gets_its_own_name_first() -> None:
    changed = apply(BASE, [{"op": "name", "in": "users/*", "key": "id"}])
    assert [next(iter(record.items())) for record in changed["users"].values()] == [("id", "a"), ("id", "b")]


@pytest.mark.parametrize(
    "change",
    [
        {"op": "drop", "in": "users/a", "key": "n"},
        {"op": "set", "in": "users/z", "key": "n", "value": 1},
        {"op": "set", "in": "people/a", "key": "n", "value": 1},
        {"op": "rename", "in": "users/a", "key": "zzz", "to": "n"},
        {"op": "set", "in": "users/a/n", "key": "n", "value": 1},
        {"in": "users/a"},
        {"op": "set", "in": "users/a", "key": "n"},
    ],
)
def test_a_change_that_cannot_be_made_is_named(change: dict[str, Any]) -> None:
    with pytest.raises(EnvironmentFault, match="change 0") as caught:
        apply(BASE, [change], place="db.json")
    assert caught.value.place == "db.json"


def test_gzipped_and_in_a_folder_below(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed" / "v1"
    plain.mkdir()
    packed.mkdir(parents=True)
    (plain / "db.json").write_text(json.dumps(tiny.database()))
    (packed / "db.json.gz").write_bytes(gzip.compress(json.dumps(tiny.database()).encode()))
    states = []
    for folder in (plain, tmp_path / "packed"):
        environment = AirlineV1(folder)
        assert environment.capabilities.data == ("A",)  # not tau-bench's database: only as it is
        with environment.open(Opening("normal")) as session:
            states.append(session.digest())
    assert states[0] == states[1]


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    def state() -> str:
        with AirlineV1(tmp_path).open(Opening("normal")) as session:
            return session.digest()

    tiny.write(tmp_path)
    first = state()
    assert state() == first
    changed = tiny.database()
    changed["users"]["ada_abend_1"]["membership"] = "silver"
    (tmp_path / "db.json").write_text(json.dumps(changed))
    os.utime(tmp_path / "db.json", (1, 1))
    assert state() != first


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"{", "cannot be read"),
        (b"[]", "is not an object of flights, reservations, users"),
        (b'{"flights": {}, "users": {}}', "is not an object of"),
        (b'{"flights": [], "reservations": {}, "users": {}}', "flights is not an object of records"),
    ],
)
def test_a_file_that_is_no_database_is_named(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "db.json").write_bytes(content)
    with pytest.raises(EnvironmentFault, match=what) as caught:
        AirlineV1(tmp_path)
    assert caught.value.place.endswith("db.json")
    assert caught.value.remedy


def test_a_cut_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "db.json.gz").write_bytes(gzip.compress(b"{}" * 1000)[:-20])
    with pytest.raises(EnvironmentFault, match="cannot be read"):
        AirlineV1(tmp_path)


@pytest.mark.parametrize("variants", ["[]", "{}", '{"A": 3}'])
def test_versions_of_another_shape_are_refused(tmp_path: Path, variants: str) -> None:
    tiny.write(tmp_path)
    (tmp_path / "variants.json").write_text(variants)
    with pytest.raises(EnvironmentFault, match="is not an object of lists of changes"):
        _ = AirlineV1(tmp_path).capabilities


def test_no_folder_and_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    for name in ("airline@v1", "airline@tau2", "mock@tau2", "telecom@tau2"):
        with pytest.raises(EnvironmentFault, match="no folder is named") as caught:
            registry.environment(name)
        assert VARIABLE in caught.value.remedy
        with pytest.raises(EnvironmentFault, match="there is none of"):
            registry.environment(name, tmp_path)


def test_the_folder_may_stand_in_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tiny.write(tmp_path)))
    assert registry.environment("airline@v1").capabilities.data == ("A", "C")


def test_environments_are_found_by_name() -> None:
    assert {"airline@v1", "airline@tau2", "mock@tau2", "telecom@tau2"} <= set(registry.names())
    with pytest.raises(ConfigError) as caught:
        registry.environment("airline@v2", BUNDLED)
    assert "airline@v1" in caught.value.remedy


def test_the_bundled_database_is_what_its_program_makes() -> None:
    made = runpy.run_path(str(BUNDLED.parent / "make_db.py"))
    database = made["make"]()
    assert (BUNDLED / "db.json").read_text() == made["text_of"](database)
    assert json.loads((BUNDLED / "variants.json").read_text()) == made["make_variants"](database)
    assert {table: len(records) for table, records in database.items()} == {
        "flights": 84,
        "reservations": 96,
        "users": 48,
    }


def test_the_bundled_database_holds_together() -> None:
    database = json.loads((BUNDLED / "db.json").read_text())
    for key, reservation in database["reservations"].items():
        user = database["users"][reservation["user_id"]]
        assert key in user["reservations"]
        assert all(payment["payment_id"] in user["payment_methods"] for payment in reservation["payment_history"])
        for segment in reservation["flights"]:
            flight = database["flights"][segment["flight_number"]]
            assert (flight["origin"], flight["destination"]) == (segment["origin"], segment["destination"])
            assert segment["date"] in flight["dates"]
    held = [key for user in database["users"].values() for key in user["reservations"]]
    assert sorted(held) == sorted(database["reservations"])
    assert all(user["reservations"] for user in database["users"].values())
    assert any("+1" in flight["scheduled_arrival_time_est"] for flight in database["flights"].values())
