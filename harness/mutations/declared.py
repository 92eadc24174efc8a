"""Apply a mutation that a task's author declared."""

from __future__ import annotations

from harness.records.errors import TaskError
from harness.records.task import Mutation, Solution


def apply_mutation(solution: Solution, mutation: Mutation) -> Solution:
    """The solution with the first occurrence of `find` in the named file replaced.

    Raises TaskError when there is no such file or text, or when nothing changes.
    """
    file = solution.files.get(mutation.file)
    if file is None:
        paths = ", ".join(file.path for file in solution.files.files) or "no file"
        raise _fault(mutation, f"the solution has no {mutation.file!r}", f"it has {paths}")
    find, replace = (
        mutation.find.encode("utf-8", "surrogateescape"),
        mutation.replace.encode("utf-8", "surrogateescape"),
    )
    if find not in file.content:
        raise _fault(mutation, f"{mutation.find!r} does not stand in {mutation.file}", "copy it from the solution")
    changed = file.model_copy(update={"content": file.content.replace(find, replace, 1)})
    if changed.content == file.content:
        raise _fault(mutation, "it changes nothing", "make `replace` another text than `find`")
    return solution.model_copy(update={"files": solution.files.with_file(changed)})


def _fault(mutation: Mutation, message: str, remedy: str) -> TaskError:
    return TaskError(message, place=f"mutation {mutation.name!r}", remedy=remedy)
