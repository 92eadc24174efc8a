"""`airline@tau2`: the airline of tau2-bench, over a database in the form that its models give it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.environments.airline.database import AirlineData, DataVersion, airline_data
from harness.environments.airline.schema import TAU2
from harness.environments.airline.tau2_models import has_shape, valid_record, validated
from harness.environments.airline.tau2_tools import AirlineTools
from harness.environments.folder import needed
from harness.environments.session import AGENT, code_of
from harness.environments.tau2_session import DIGEST, Domain, Side, Tau2Session, reference_access
from harness.records.environment import Capabilities, EnvironmentFault, Opening

NAME = "airline@tau2"
_MODULES = (
    "airline.database",
    "airline.schema",
    "airline.tau2",
    "airline.tau2_models",
    "airline.tau2_tools",
    "airline.v1_rules",
    "arithmetic",
    "digests",
    "overlay",
    "tau2_session",
    "variants",
)


@dataclass(frozen=True)
class _Valid:
    """A data version in the models' form."""

    version: DataVersion
    side: Side


class AirlineTau2:
    """An :class:`harness.protocols.Environment`. The agent has all tools, in the one mode "normal"; there is no solo.

    It offers the data versions whose users have an id and a state. Raises EnvironmentFault when the folder has none.
    """

    def __init__(self, data_folder: Path | None) -> None:
        self._data: AirlineData = airline_data(needed(data_folder, NAME))
        self._valid: dict[str, _Valid] = {}

    @cached_property
    def capabilities(self) -> Capabilities:
        data = tuple(name for name in self._data.variants if has_shape(self._data.version(name).tables))
        if not data:
            raise EnvironmentFault(
                "no version of the database has users with user_id and address.state",
                place=str(self._data.path),
                remedy="describe such a version in variants.json",
            )
        return Capabilities(
            environment=NAME,
            code=code_of(f"harness.environments.{name}" for name in _MODULES),
            modes={"normal": {AGENT: (AGENT,), **reference_access(AGENT)}},
            tools=TAU2,
            data=data,
            digest=DIGEST,
            snapshots=True,
        )

    @contextmanager
    def open(self, opening: Opening) -> Iterator[Tau2Session]:
        """A fresh database. Raises EnvironmentFault, also for a record that the models refuse."""
        data = self.capabilities.data_of(opening)
        if data not in self._valid:
            tables = validated(self._data.version(data).tables, place=f"{self._data.path} ({data})")
            self._valid[data] = _Valid(DataVersion(tables), Side(tables, valid_record))
        valid = self._valid[data]
        yield Tau2Session(
            Domain(
                self.capabilities,
                data,
                {AGENT: valid.side},
                lambda records: {AGENT: AirlineTools(valid.version, records[AGENT])},
            ),
            opening,
        )
