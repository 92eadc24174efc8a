"""Families: what is rendered, what is copied, and where a fault is."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.formats import bounded
from harness.formats.family import FamilyFormat, read_family, unused_keys
from harness.records.errors import LoadErrors, TaskError
from harness.records.task import FileTree, Task

MakeFolder = Callable[..., Path]
ONE = '[[variant]]\nid = "01"\nout = "o"\n'


def load(folder: Path) -> tuple[Task, ...]:
    return FamilyFormat().load(folder)


def fault(folder: Path) -> TaskError:
    with pytest.raises(TaskError) as caught:
        FamilyFormat().load(folder)
    return caught.value


def content(tree: FileTree, path: str) -> bytes:
    file = tree.get(path)
    assert file is not None
    return file.content


def test_each_variant_is_a_task(make_family: MakeFolder) -> None:
    first, second = load(make_family())
    assert (first.id, second.id, first.family) == ("sort-family/01", "sort-family/02", "sort-family")
    assert first.instruction == "Sort the words into a b.txt.\n"
    assert content(first.solution.files, "solve.sh") == b"sort -u words.txt > 'a b.txt'\n"
    assert content(second.solution.files, "solve.sh") == b"sort -u words.txt > c.txt\n"
    assert content(first.environment.files, "words.txt") == b"b\na\nb\n"
    assert first.version != second.version
    assert first.source.endswith("sort-family (variant 01)")


def test_blocks_comments_filters_and_names(make_family: MakeFolder) -> None:
    template = (
        "~# a note #~~{ family }~ ~{ variant }~ ~{ id }~\n"
        "~% for w in words %~~{ w }~,~% endfor %~\n"
        "~{ words | tojson }~ ~{ table | tojson }~ ~{ words | join(' ') | quote }~\n"
    )
    table = '[[variant]]\nid = "a-1"\nout = "o"\nwords = ["<x>", "it\'s", "é"]\ntable = { b = 1, a = true }\n'
    (task,) = load(make_family(files={"instruction.md": template, "variants.toml": table}))
    assert task.instruction == (
        'sort-family a-1 a-1\n<x>,it\'s,é,\n["<x>", "it\'s", "é"] {"b": 1, "a": true} \'<x> it\'"\'"\'s é\'\n'
    )


def test_other_peoples_syntax_is_left_alone(make_family: MakeFolder) -> None:
    script = "echo ${x} $(y) {{ z }} {% w %} {# v #} `u` # ~ {t}\nawk '{ print $1 }'\ncurl -d '{\"a\": 1}'\n"
    (task,) = load(make_family(files={"environment/setup.sh": script, "variants.toml": ONE}))
    assert content(task.environment.setup_files, "setup.sh") == script.encode()


def test_line_ends_and_last_newlines_stay(make_family: MakeFolder) -> None:
    template = b"a ~{ out }~\r\nb\nc\rd"
    files = {"tests/crlf.txt": template, "tests/plain.txt": b"x\r\ny", "variants.toml": ONE}
    (task,) = load(make_family(files=files))
    assert content(task.grading.tests, "crlf.txt") == b"a o\r\nb\nc\rd"
    assert content(task.grading.tests, "plain.txt") == b"x\r\ny"


def test_bytes_that_are_no_text_are_copied(make_family: MakeFolder) -> None:
    (task,) = load(make_family(files={"tests/blob": b"\xff~{ out }~\x00", "variants.toml": ONE}))
    assert content(task.grading.tests, "blob") == b"\xff~{ out }~\x00"


def test_settings_are_rendered_too(make_family: MakeFolder, task_toml: str) -> None:
    text = task_toml.replace("timeout_sec = 60.0", "timeout_sec = ~{ seconds }~")
    table = '[[variant]]\nid = "01"\nout = "o"\nseconds = 7\n'
    (task,) = load(make_family(files={"task.toml": text, "variants.toml": table}))
    assert task.budget.wall_s == 7.0


@pytest.mark.parametrize(
    ("path", "template", "line", "message", "remedy"),
    [
        ("instruction.md", "a\n~{ ot }~\n", 2, "'ot' is undefined", "'out'?"),
        ("instruction.md", "a\n\n~% if out %~\n", 3, "bad template", ""),
        ("instruction.md", "~{ out | nope }~\n", 1, "No filter named 'nope'", ""),
        ("tests/test.sh", "x\n~{ 1 // 0 }~\n", 2, "rendering failed", ""),
        ("tests/test.sh", "~{ out.__class__.__mro__ }~\n", 1, "rendering failed", ""),
        ("tests/test.sh", "a\r\nb\r\n~{ ot }~", 3, "'ot' is undefined", "'out'?"),
    ],
)
def test_a_bad_template_has_file_line_and_variant(
    make_family: MakeFolder, path: str, template: str, line: int, message: str, remedy: str
) -> None:
    folder = make_family(files={path: template, "variants.toml": ONE})
    error = fault(folder)
    variant = "" if "bad template" in error.message else " (variant 01)"
    assert error.place == f"{folder}/{path}:{line}{variant}"
    assert message in error.message
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ('~{ "x" * 10000000000 }~', "'*' would be too large"),
        ("~{ 10000000000 * [0] }~", "'*' would be too large"),
        ("~{ 999999 ** 999999 }~", "'**' would be too large"),
        ("~{ " + "(" * 3000 + "1" + ")" * 3000 + " }~", "recursion"),
        ("~% macro again() %~~{ again() }~~% endmacro %~~{ again() }~", "recursion"),
        ("~% for i in range(99999) %~~% for j in range(99999) %~~% endfor %~~% endfor %~", "not done after 0.2 s"),
        ("~% for i in range(99) %~~% for j in range(99) %~0123456789~% endfor %~~% endfor %~", "90000 characters"),
        ('~% include "/etc/passwd" %~', "no loader"),
    ],
)
def test_a_template_without_end_is_an_error(
    make_family: MakeFolder, monkeypatch: pytest.MonkeyPatch, template: str, message: str
) -> None:
    monkeypatch.setattr(bounded, "RENDER_S", 0.2)
    monkeypatch.setattr(bounded, "LARGEST_CHARS", 90_000)
    assert message in str(fault(make_family(files={"instruction.md": template})))


def test_arithmetic_of_templates_is_as_ever(make_family: MakeFolder) -> None:
    template = '~{ 3 * 4 }~ ~{ "-" * 5 }~ ~{ 2 ** 10 }~ ~{ 2.5 * 2 }~ ~{ 2 ** -1 }~ ~{ [1] * 2 }~ ~{ true * 3 }~'
    tasks = load(make_family(files={"instruction.md": template}))
    assert tasks[0].instruction == "12 ----- 1024 5.0 0.5 [1, 1] 3"


def test_a_fault_of_all_variants_is_told_once(make_family: MakeFolder) -> None:
    error = fault(make_family(files={"tests/test.sh": "~{ nothing }~\n", "instruction.md": None}))
    assert isinstance(error, TaskError)
    assert "(and 1 more variants)" in str(error)
    assert str(error).count("nothing") == 1


def test_a_fault_of_one_variant_names_it(make_family: MakeFolder, task_toml: str) -> None:
    text = task_toml.replace("timeout_sec = 60.0", "timeout_sec = ~{ 0 if variant == '02' else 5 }~")
    assert fault(make_family(files={"task.toml": text})).place.endswith("task.toml:7 (variant 02)")


@pytest.mark.parametrize(
    ("table", "line", "message"),
    [
        ('[[variant]]\nid = "01"\n\n[[variant]]\nid = "01"\n', 5, "variant id '01' stands at line 2 already"),
        ("[[variant]]\nout = 1\n", 1, "a variant without id"),
        ("[[variant]]\nid = 1\n", 2, "id = 1 is no variant id"),
        ('[[variant]]\nid = "a/b"\n', 2, "id = 'a/b' is no variant id"),
        ('[[variant]]\nid = "a"\nfamily = "f"\n', 2, "a variant cannot set 'family'"),
        ('[[variants]]\nid = "01"\n', 1, "unknown key 'variants'"),
        ("[[variant]\n", 1, "bad TOML"),
        ("", None, "no variants"),
    ],
)
def test_a_bad_table_of_variants(make_family: MakeFolder, table: str, line: int | None, message: str) -> None:
    folder = make_family(files={"variants.toml": table})
    error = fault(folder)
    first = error.errors[0] if isinstance(error, LoadErrors) else error
    assert first.place == f"{folder}/variants.toml" + (f":{line}" if line else "")
    assert message in first.message


def test_keys_that_no_template_uses_are_found(make_family: MakeFolder) -> None:
    table = '[[variant]]\nid = "01"\nout = "o"\nspare = 1\n'
    assert unused_keys(read_family(make_family(files={"variants.toml": table}))) == ("spare",)
    assert unused_keys(read_family(make_family("other"))) == ()


def test_a_dockerfile_that_is_no_template_can_be_built(make_family: MakeFolder, task_toml: str) -> None:
    files = {
        "task.toml": task_toml.replace('docker_image = "assay-base:1"\n', ""),
        "environment/Dockerfile": "FROM x\n",
    }
    first, second = load(make_family(files=files))
    assert first.image.reference == second.image.reference
    assert first.build_context is not None


def test_a_rendered_dockerfile_cannot_be_built(make_family: MakeFolder, task_toml: str) -> None:
    text = task_toml.replace('docker_image = "assay-base:1"\n', "")
    for path, template in (("environment/Dockerfile", "FROM ~{ out }~\n"), ("environment/data", "~{ out }~\n")):
        files = {"task.toml": text, "environment/Dockerfile": "FROM x\n", path: template}
        error = fault(make_family(f"family-{path[12:]}", files=files))
        assert "templates" in error.message
        assert "docker_image" in error.remedy


def test_a_large_suite_renders_in_good_time(make_family: MakeFolder) -> None:
    table = "".join(f'[[variant]]\nid = "{number:02}"\nout = "o{number}"\n' for number in range(20))
    folders = [make_family(f"family-{number}", files={"variants.toml": table}) for number in range(28)]
    began_s = time.process_time()
    tasks = [task for folder in folders for task in load(folder)]
    spent_s = time.process_time() - began_s
    assert len(tasks) == 560
    assert spent_s < 1.5
