"""Tasks of an archive as ours: to be shown and compared, not run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from harness.records.archive import ArchiveTask
from harness.records.base import canonical_json, digest_of
from harness.records.task import FileTree, Grading, ImagePin, Limits, Task, TreeFile
from harness.records.vocabulary import Network
from harness.store.encoding import storable

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")
_NOT_ID = re.compile(r"[^A-Za-z0-9._/-]+")
_UNSUPPORTED = ("imported from an archive, which holds no environment to run it in",)


def legal_task_id(id_: str) -> str:
    """An id as ours may be: the source's own where that is one, else made from it with a digest to tell it apart."""
    if _ID.fullmatch(id_):
        return id_
    plain = _NOT_ID.sub("-", id_).strip("-./_")[:180]
    return f"{plain or 'task'}-{hashlib.sha256(id_.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def task_of(task: ArchiveTask, suite: str) -> Task:
    """A task to be shown and compared, not run. Its version covers the instruction and the embedded definition."""
    files: tuple[TreeFile, ...] = ()
    if task.definition is not None:
        files = (TreeFile(path="task.json", content=canonical_json(storable(task.definition))),)
    return Task(
        id=legal_task_id(task.id),
        family=legal_task_id(suite),
        instruction=task.instruction,
        image=ImagePin(reference=""),
        limits=Limits(network=Network.NONE),
        grading=Grading(grader="imported@1", tests=FileTree(files=files)),
        metadata={"imported_id": task.id},
        unsupported=_UNSUPPORTED,
    )


def suite_version(tasks: Mapping[str, str]) -> str:
    """As a suite's own: over the ids and versions of its tasks."""
    return digest_of(sorted(tasks.items()))
