"""A changed copy of a record derives its digests anew."""

from __future__ import annotations

from harness.records.task import ImagePin, Task


def test_a_changed_copy_has_a_version_of_its_own() -> None:
    task = Task(id="a", family="a", instruction="do", image=ImagePin(reference="one:1"))
    before = task.version
    changed = task.model_copy(update={"image": ImagePin(reference="two:1")})
    assert changed.version != before
    assert changed.version == Task(id="a", family="a", instruction="do", image=ImagePin(reference="two:1")).version
    assert task.version == before
    assert task.model_copy().version == before
