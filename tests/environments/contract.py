"""What any environment must do, whatever it is and whatever carries it. Subclass it and give a `subject`."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, replace

import pytest

from harness.protocols import Environment
from harness.records.environment import Answer, Call, EnvironmentFault, Opening
from harness.records.vocabulary import Actor


@dataclass(frozen=True)
class Subject:
    """An environment, how to open it, and calls of it: one that changes the state each time, one that only looks, one
    that is refused."""

    environment: Environment
    opening: Opening
    write: Call
    read: Call
    refused: Call


class EnvironmentContract:
    def test_it_declares_what_it_is_before_anything_happens(self, subject: Subject) -> None:
        has = subject.environment.capabilities
        assert re.fullmatch(r"[^@\s]+@[^@\s]+", has.environment)
        assert has.code
        assert has.digest
        assert subject.opening.mode in has.modes
        assert len({(tool.name, tool.namespace) for tool in has.tools}) == len(has.tools)
        reachable = {space for mode in has.modes.values() for spaces in mode.values() for space in spaces}
        assert {tool.namespace for tool in has.tools} <= reachable
        assert subject.environment.capabilities == has

    def test_the_tools_of_these_calls_are_declared_as_they_are(self, subject: Subject) -> None:
        has = subject.environment.capabilities
        for call, writes in ((subject.write, True), (subject.read, False)):
            tool = has.tool(call.name, call.namespace)
            assert tool is not None
            assert tool.writes is writes
            assert tool in has.callable(subject.opening.mode, call.actor)

    def test_an_unknown_mode_is_an_error_before_the_first_step(self, subject: Subject) -> None:
        opening = replace(subject.opening, mode="upside down")
        with pytest.raises(EnvironmentFault) as caught, subject.environment.open(opening):
            pass
        assert subject.opening.mode in caught.value.remedy

    def test_an_unknown_data_version_is_an_error_before_the_first_step(self, subject: Subject) -> None:
        opening = replace(subject.opening, data="of tomorrow")
        with pytest.raises(EnvironmentFault, match="no data version 'of tomorrow'"), subject.environment.open(opening):
            pass

    def test_looking_changes_nothing_and_writing_does(self, subject: Subject) -> None:
        with subject.environment.open(subject.opening) as session:
            first = session.digest()
            assert not session.call(subject.read).error
            assert session.digest() == first
            assert not session.call(subject.write).error
            assert session.digest() != first

    def test_instances_share_nothing(self, subject: Subject) -> None:
        with subject.environment.open(subject.opening) as one, subject.environment.open(subject.opening) as other:
            first = other.digest()
            assert one.digest() == first
            said = other.call(subject.read)
            one.call(subject.write)
            assert other.digest() == first != one.digest()
            assert other.call(subject.read) == said
        with subject.environment.open(subject.opening) as later:
            assert later.digest() == first
            assert later.call(subject.read) == said

    def test_the_same_calls_give_the_same_answers_and_states(self, subject: Subject) -> None:
        def carry_out() -> list[tuple[Answer, str]]:
            calls = (subject.read, subject.write, subject.refused, subject.write, subject.read)
            with subject.environment.open(subject.opening) as session:
                return [(session.call(call), session.digest()) for call in calls]

        assert carry_out() == carry_out()

    def test_a_refused_call_is_an_answer_and_the_session_goes_on(self, subject: Subject) -> None:
        with subject.environment.open(subject.opening) as session:
            first = session.digest()
            answer = session.call(subject.refused)
            assert answer.error
            assert not answer.missing
            assert session.digest() == first
            assert not session.call(subject.write).error

    @pytest.mark.parametrize("arguments", [None, [], "text", 3, {"no such": 1}])
    def test_arguments_of_any_shape_are_refused_not_raised(self, subject: Subject, arguments: object) -> None:
        with subject.environment.open(subject.opening) as session:
            first = session.digest()
            answer = session.call(replace(subject.write, arguments=arguments))
            assert answer.error
            assert not answer.missing
            assert session.digest() == first

    def test_a_tool_that_is_not_there_is_missing(self, subject: Subject) -> None:
        with subject.environment.open(subject.opening) as session:
            first = session.digest()
            for call in (
                replace(subject.read, name="no_such_tool"),
                replace(subject.read, name="__init__"),
                replace(subject.read, namespace="nowhere"),
                replace(subject.write, actor=Actor.HARNESS),
            ):
                answer = session.call(call)
                assert answer.missing
                assert answer.error
                assert answer.content
            assert session.digest() == first

    def test_the_callers_arguments_are_never_touched(self, subject: Subject) -> None:
        write = replace(subject.write, arguments=copy.deepcopy(subject.write.arguments))
        with subject.environment.open(subject.opening) as session:
            session.call(write)
            state = session.digest()
            session.call(subject.write)
            assert write.arguments == subject.write.arguments
            assert session.digest() != state

    def test_a_snapshot_brings_a_state_back_here_and_elsewhere(self, subject: Subject) -> None:
        assert subject.environment.capabilities.snapshots
        with subject.environment.open(subject.opening) as session:
            first, fresh = session.digest(), session.snapshot()
            session.call(subject.write)
            middle, kept = session.digest(), session.snapshot()
            then = session.call(subject.write)
            last = session.digest()
            assert len({first, middle, last}) == 3
            session.restore(kept)
            assert session.digest() == middle
            assert session.call(subject.write) == then
            assert session.digest() == last
            session.restore(fresh)
            assert session.digest() == first
        with subject.environment.open(subject.opening) as other:
            other.restore(kept)
            assert other.digest() == middle
            assert other.call(subject.write) == then
            assert other.digest() == last

    @pytest.mark.parametrize(
        "garbage",
        [b"", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"environment": 1}', '"state": {', '"reservations"', "[]"],
    )
    def test_what_is_no_snapshot_is_not_restored(self, subject: Subject, garbage: bytes | str) -> None:
        with subject.environment.open(subject.opening) as session:
            session.call(subject.write)
            state = session.digest()
            if isinstance(garbage, str):  # put at the end of one that was good
                garbage = session.snapshot()[:-1] + garbage.encode()
            with pytest.raises(EnvironmentFault):
                session.restore(garbage)
            assert session.digest() == state
