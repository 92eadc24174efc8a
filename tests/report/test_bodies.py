"""Bodies of events: found by name, read from the event or the blob folder, shown without steering a terminal."""

from __future__ import annotations

import json

import pytest

from harness.protocols import Episode
from harness.records.errors import StoreError
from harness.records.event import Event
from harness.report.bodies import Body, digest_named, is_binary, named, readable
from harness.report.trial_page import SHOWN_CHARACTERS, all_bodies, cut, full_text, plain_bodies, result_text
from harness.runner.journal import Journal
from harness.runner.trial import Trial
from harness.store.memory import MemoryStore
from tests.runner.scenes import FakeModel, make_plan, make_row, make_services, make_task, reply

LONG = "x" * 20_000
on_a_loop = pytest.mark.anyio


async def acted(episode: Episode) -> None:
    """One of everything that leaves a body."""
    assert episode.model is not None
    await episode.model.chat([{"role": "user", "content": "what is it?"}])
    await episode.sandbox.exec("echo 42 > /app/answer")
    await episode.sandbox.exec(f"echo {LONG}")
    episode.note("plan", {"steps": 2})
    raise KeyError("at last")


async def acted_trial() -> tuple[MemoryStore, list[Event]]:
    """The store and the events of a trial of :func:`acted`."""
    store, task = MemoryStore(), make_task()
    services = make_services(acted, store=store, model=FakeModel([reply()]))
    plan = make_plan(task, model="fake-1")
    store.create_run(make_row([task]))
    store.plan([plan])
    Journal(store, plan.trial).note("trial.state", {"to": "planned"})
    await Trial(plan, services).run()
    return store, list(store.events(plan.trial))


def kinds(bodies: tuple[Body, ...]) -> set[str]:
    return {f"{body.kind}.{body.part}" for body in bodies}


@on_a_loop
async def test_everything_said_and_printed_has_a_name() -> None:
    _, events = await acted_trial()
    bodies = all_bodies(events)
    assert kinds(bodies) >= {
        *("model.request.new_messages", "model.call.message", "exec.started.command", "exec.stdout"),
        *("solver.note.body", "interaction.ended.error", "grade.reward.txt"),
    }
    assert len({body.name for body in bodies}) == len(bodies)
    carried = {digest for event in events for digest in event.blobs.values()}
    assert {body.digest for body in bodies} - {None} == carried


@on_a_loop
async def test_a_body_is_found_by_event_kind_or_part_and_read_whole() -> None:
    store, events = await acted_trial()
    bodies = all_bodies(events)
    (printed,) = named(bodies, "exec.stdout")
    assert printed.read(store) == f"{LONG}\n".encode()
    assert named(bodies, printed.name) == (printed,)
    assert printed in named(bodies, str(printed.seq))
    assert printed in named(bodies, "stdout")
    commands = named(bodies, "command")
    assert [body.read(store).decode() for body in commands] == ["echo 42 > /app/answer", f"echo {LONG}"]
    (error,) = named(bodies, "error")
    assert error.read(store).rstrip().endswith(b"KeyError: 'at last'")
    with pytest.raises(StoreError, match=r"near: .*exec\.stdout") as caught:
        named(bodies, "exec.stdot")
    assert printed.name in caught.value.remedy


def test_a_stream_that_was_cut_is_found_as_one() -> None:
    parts = (Body(7, "exec", "stdout.head", text="a"), Body(7, "exec", "stdout.tail", text="b"))
    for asked in ("7.stdout", "exec.stdout", "stdout", "7", "exec"):
        assert named(parts, asked) == parts
    assert named(parts, "7.stdout.tail") == parts[1:]
    with pytest.raises(StoreError):
        named(parts, "7.std")


@on_a_loop
async def test_blobs_are_found_by_the_beginning_of_their_digest() -> None:
    store, events = await acted_trial()
    bodies = all_bodies(events)
    (printed,) = named(bodies, "exec.stdout")
    assert printed.digest is not None
    assert digest_named(bodies, printed.digest) == printed.digest
    assert digest_named(bodies, printed.digest.removeprefix("sha256:")[:16].upper()) == printed.digest
    other = store.put_blob(b"of no event of this trial")
    with pytest.raises(StoreError, match="no blob of this trial"):
        digest_named(bodies, other)
    two = (Body(1, "exec", "a", digest="sha256:ab1"), Body(2, "exec", "a", digest="sha256:ab2"))
    with pytest.raises(StoreError, match="begins 2 blobs"):
        digest_named(two, "ab")
    with pytest.raises(StoreError):
        digest_named(two, "")


@on_a_loop
async def test_a_page_shows_bodies_cut_with_a_note() -> None:
    store, events = await acted_trial()
    page = "\n".join(full_text(event, store) for event in events)
    (printed,) = named(all_bodies(events), "exec.stdout")
    assert f"{len(LONG) + 1 - SHOWN_CHARACTERS:,} characters left out here: --log {printed.name} prints all" in page
    assert LONG not in page
    assert "[user] what is it?" in page
    assert "[assistant] ok" in page
    assert "│ KeyError: 'at last'" in page
    assert printed.digest is not None
    assert printed.digest in page
    row = store.trial(events[0].stream)
    assert "passed, stop solver_error: KeyError: 'at last'" in result_text(row)


@on_a_loop
async def test_json_has_the_same_cut_or_whole() -> None:
    store, events = await acted_trial()
    found = named(all_bodies(events), "exec.stdout")
    (short,) = plain_bodies(found, store, whole=False)
    (whole,) = plain_bodies(found, store, whole=True)
    assert (len(short["text"]), short["left_out"]) == (SHOWN_CHARACTERS, len(LONG) + 1 - SHOWN_CHARACTERS)
    assert (whole["text"], whole["left_out"], whole["bytes"]) == (f"{LONG}\n", 0, len(LONG) + 1)
    assert short["sha256"] == whole["sha256"] == found[0].digest
    json.dumps(plain_bodies(all_bodies(events), store, whole=False), allow_nan=False)


def test_a_blob_that_is_gone_is_said_in_its_place() -> None:
    store = MemoryStore()
    gone = "sha256:" + "0" * 64
    event = Journal(store, "t").note("exec", {}, blobs={"stdout": gone})
    assert f"0.stdout  CANNOT BE READ: the blob {gone} is missing" in full_text(event, store)
    (plain,) = plain_bodies(all_bodies([event]), store, whole=False)
    assert (plain["text"], plain["problem"]) == (None, f"the blob {gone} is missing")
    with pytest.raises(StoreError):
        plain_bodies(all_bodies([event]), store, whole=True)


def test_what_is_no_text_is_not_shown_as_text() -> None:
    store = MemoryStore()
    event = Journal(store, "t").note("seal", {}, blobs={"artifact:/app": store.put_blob(b"ab\0cd")})
    page = full_text(event, store)
    assert "0.artifact:/app  5 bytes, binary" in page
    assert "cd" not in page.replace("sha256:", "").split("binary")[0]
    assert not is_binary("übung\n".encode())
    assert readable(Body(1, "exec", "stdout"), b"\xff\x1b[2J") == "\ufffd\\x1b[2J"


@pytest.mark.parametrize("message", ['"text"', "[1]", "{", '{"tool_calls": [3]}', "null"])
def test_a_message_of_any_shape_is_shown(message: str) -> None:
    assert readable(Body(1, "model.call", "message"), message.encode())


def test_calls_of_tools_are_shown() -> None:
    call = {"function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    said = json.dumps({"role": "assistant", "content": None, "tool_calls": [call]})
    shown = readable(Body(1, "model.call", "message"), said.encode())
    assert shown == '[assistant]\n  calls bash({"command": "ls"})'


def test_a_cut_keeps_beginning_and_end() -> None:
    assert cut("abc", 3) == (("abc", ""), 0)
    assert cut("abcdefgh", 4) == (("abc", "h"), 4)
    assert cut("abcdefgh", 0) == (("", ""), 8)
