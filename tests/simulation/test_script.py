"""What the agents say: carried out by a real shell, their commands put the solution there byte for byte and run it."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.formats.suite import find_suite, load_suite
from harness.records.errors import ConfigError
from harness.records.task import FileTree, Solution, Task, TreeFile
from harness.simulation.population import Behaviour, SimulatedPopulation
from harness.simulation.script import (
    CHUNK_BYTES,
    WANDERS_AT_MOST,
    Recogniser,
    Script,
    Turn,
    carried_out,
    folder_for,
    text_of,
    written,
)
from tests.simulation.worlds import make_task, make_tasks

TASKS = make_tasks(60)
POPULATION = SimulatedPopulation(TASKS)
SCRIPT = Script(POPULATION, TASKS)
LONG = b"".join(b"line %d of a long script\n" % number for number in range(60))
FAMILIES = ("csv-join", "git-bisect", "checksum-audit")


def shell(line: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["bash", "-c", line], cwd=cwd, capture_output=True, check=False, timeout=30)


def conversation(agent: str, task: Task) -> list[Turn]:
    """All turns of an agent up to its final reply."""
    turns = [SCRIPT.next_turn(agent, task, 0)]
    while turns[-1].command is not None:
        turns.append(SCRIPT.next_turn(agent, task, len(turns)))
    return turns


def one_who(behaviour: Behaviour, number: int = 0) -> tuple[str, Task]:
    found = (
        (agent, task)
        for agent in POPULATION.agents
        for task in TASKS
        if POPULATION.behaviour(agent, task.id) is behaviour
    )
    return [next(found) for _ in range(number + 1)][-1]


@settings(max_examples=40, deadline=None)
@given(
    content=st.one_of(
        st.binary(max_size=200),
        st.text(alphabet="EOF1\n\r\t'\"\\$`é\u2028 ", max_size=80).map(str.encode),
        st.sampled_from([b"", b"\n", LONG, LONG[:-1], b"EOF\nEOF1\n", b"a\0b", b"x" * (2 * CHUNK_BYTES + 1) + b"\n"]),
    ),
    mode=st.sampled_from([0o644, 0o755, 0o600]),
    split=st.booleans(),
)
def test_a_file_is_written_byte_for_byte(content: bytes, mode: int, split: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = written(TreeFile(path="sub/it's a file", content=content, mode=mode), f"{folder}/work", split=split)
        assert max(len(line.encode()) for line in lines) < 128 * 1024
        for line in lines:
            told = shell(line, Path(folder))
            assert (told.returncode, told.stdout, told.stderr) == (0, b"", b"")
        path = Path(folder) / "work/sub/it's a file"
        assert path.read_bytes() == content
        assert path.stat().st_mode & 0o777 == mode


def test_a_long_script_is_written_in_two_goes() -> None:
    file = TreeFile(path="solve.sh", content=LONG)
    assert len(written(file, "/tmp/w", split=True)) == 2
    assert len(written(file, "/tmp/w", split=False)) == 1


@pytest.mark.parametrize("number", range(3))
def test_one_who_passes_does_what_the_reference_does_and_leaves_nothing_else(number: int, tmp_path: Path) -> None:
    agent, task = one_who(Behaviour.REFERENCE, number)
    turns = conversation(agent, task)
    assert 3 <= sum(turn.command is not None for turn in turns) <= 6
    for turn in turns[:-1]:
        assert turn.command is not None
        told = shell(turn.command, tmp_path)
        assert (told.returncode, told.stderr) == (0, b"")
    assert [path.name for path in tmp_path.iterdir()] == ["answer"]
    assert (tmp_path / "answer").read_text().strip() == str(int(task.id[-3:]))
    assert not Path(folder_for(agent, task)).exists()


def test_one_who_is_wrong_carries_out_a_declared_mutation(tmp_path: Path) -> None:
    agent, task = one_who(Behaviour.WRONG)
    for turn in conversation(agent, task)[:-1]:
        assert turn.command is not None
        shell(turn.command, tmp_path)
    assert (tmp_path / "answer").read_text().strip() == str(int(task.id[-3:]) + 1)


def test_where_no_mutation_is_declared_one_who_is_wrong_changes_nothing(tmp_path: Path) -> None:
    tasks = tuple(task.model_copy(update={"mutations": ()}) for task in TASKS)
    agent, task = one_who(Behaviour.WRONG)
    script = Script(SimulatedPopulation(tasks), tasks)
    turns = [script.next_turn(agent, task, number) for number in range(3)]
    for turn in turns[:2]:
        assert turn.command is not None
        assert shell(turn.command, tmp_path).returncode == 0
    assert turns[2].command is None
    assert list(tmp_path.iterdir()) == []


def test_one_who_wanders_changes_nothing_and_gives_up_at_last(tmp_path: Path) -> None:
    agent, task = one_who(Behaviour.WANDER)
    turns = conversation(agent, task)
    assert len(turns) == WANDERS_AT_MOST + 1
    assert len({turn.command for turn in turns}) > 5
    for name, content in (("a", b"x\n" * 99), ("b c", b"\0\xff"), ("-d", b"")):
        (tmp_path / name).write_bytes(content)
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.iterdir()}
    for command in {turn.command for turn in turns if turn.command is not None}:
        assert shell(command, tmp_path).returncode == 0, command
    assert {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.iterdir()} == before


def test_looking_around_does_not_wait_for_a_pipe(tmp_path: Path) -> None:
    assert shell("mkfifo a.fifo && mkdir d && mkfifo d/b.fifo && ln -s a.fifo link", tmp_path).returncode == 0
    agent, task = one_who(Behaviour.WANDER)
    for command in {turn.command for turn in conversation(agent, task) if turn.command is not None}:
        shell(command, tmp_path)  # raises when it takes 30 s


def test_the_solutions_environment_and_further_files_are_there(tmp_path: Path) -> None:
    script = b'cat "$(dirname "$0")/data/part.bin" > got; printf %s "$WORD" >> got; exit 3\n'
    solution = Solution(
        script="go.sh",
        files=FileTree(
            files=(TreeFile(path="go.sh", content=script), TreeFile(path="data/part.bin", content=b"\0\xff\n"))
        ),
        env={"WORD": "it's $HOME; ok", "OTHER": ""},
    )
    folder = tmp_path / "work"
    codes = [shell(turn.command or "", tmp_path).returncode for turn in carried_out(solution, str(folder))]
    assert codes == [0, 0, 3]  # the exit code of the script is told
    assert (tmp_path / "got").read_bytes() == b"\0\xff\nit's $HOME; ok"
    assert not folder.exists()


def test_a_solution_that_names_its_own_place_is_put_there() -> None:
    files = (TreeFile(path="solve.sh", content=b"bash /solution/part.sh\n"), TreeFile(path="part.sh", content=b":\n"))
    turns = carried_out(Solution(files=FileTree(files=files)), "/tmp/work")
    assert all("/tmp/work" not in (turn.command or "") for turn in turns)
    assert "bash /solution/solve.sh" in (turns[-1].command or "")


@pytest.mark.parametrize("family", FAMILIES)
def test_bundled_solutions_arrive_as_they_are(family: str, tmp_path: Path) -> None:
    tasks = load_suite(find_suite("terminal") / family, ignore_lock=True).tasks
    for number, task in enumerate(tasks[::4]):
        folder = tmp_path / f"{number}"
        *writes, run = carried_out(task.solution, str(folder))
        for turn in writes:
            assert shell(turn.command or "", tmp_path).returncode == 0
        there = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert there == {file.path: file.content for file in task.solution.files.files}
        assert (run.command or "").startswith(f"bash {folder}/solve.sh; ")


def test_asking_again_gives_the_same_answer_and_the_end_stays_the_end() -> None:
    for behaviour in Behaviour:
        agent, task = one_who(behaviour)
        other = Script(SimulatedPopulation(TASKS), TASKS)
        last = len(conversation(agent, task)) - 1
        for turn in range(last + 1):
            assert SCRIPT.next_turn(agent, task, turn) == other.next_turn(agent, task, turn)
        assert SCRIPT.next_turn(agent, task, last + 9).command is None


def wrapped(text: str) -> list[Any]:
    """Instructions as scaffolds hand them on."""
    return [
        text,
        text.strip(),
        f"<task>\n{text}\n</task>\nGo!",
        text.replace("\n", "\r\n"),
        "  " + text.replace("\n", "\n  "),
        [{"type": "text", "text": "Your task:"}, {"type": "text", "text": text}],
    ]


def test_a_task_is_recognised_in_whatever_is_around_it() -> None:
    recogniser = Recogniser(TASKS)
    system = {"role": "system", "content": "You are an agent."}
    for task in TASKS[::7]:
        for content in wrapped(task.instruction):
            assert recogniser.locate([system, {"role": "user", "content": content}]) == (task, 1)
        assert recogniser.locate([{"role": "system", "content": task.instruction}]) == (task, 0)
        # What a command printed is no task.
        assert recogniser.locate([system, {"role": "tool", "content": task.instruction}]) is None
    for other in ([], [system], [{"role": "user"}], [{"role": "user", "content": [None, {"text": 3}]}]):
        assert recogniser.locate(other) is None


def test_of_two_that_fit_the_longer_is_meant() -> None:
    short = make_task(1, instruction="Sort the file.")
    longer = make_task(2, instruction="Sort the file. Then count its lines.")
    for order in ((short, longer), (longer, short)):
        recogniser = Recogniser(order)
        assert recogniser.find(f"Do this: {longer.instruction}") == longer
        assert recogniser.find(f"Do this: {short.instruction}") == short


@pytest.mark.parametrize(
    ("tasks", "told"),
    [
        ((make_task(1, instruction="Do it."), make_task(2, instruction=" Do\nit. ")), "same instruction"),
        ((make_task(1, instruction=" \n"),), "no instruction"),
    ],
)
def test_what_could_not_be_told_apart_is_refused(tasks: Sequence[Task], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Recogniser(tasks)


def test_texts_of_messages() -> None:
    assert text_of({"content": None}) == ""
    assert text_of({"content": [{"type": "image_url"}, {"type": "text", "text": "a"}, {"text": "b"}]}) == "a\nb"
