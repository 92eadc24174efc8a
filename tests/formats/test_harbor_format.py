"""Harbor's directory: its defaults, its faults with file and line, and what cannot be run but is not lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.formats import source
from harness.formats.build import last_workdir
from harness.formats.harbor import HarborFormat
from harness.records.errors import LoadErrors, TaskError
from harness.records.task import Task
from harness.records.vocabulary import GradingEnvironment, Network

MakeFolder = Callable[..., Path]
MINIMAL = '[environment]\ndocker_image = "x:1"\n'
DIGEST = "sha256:" + "ab" * 32


def load(folder: Path) -> Task:
    (task,) = HarborFormat().load(folder)
    return task


def fault(folder: Path) -> TaskError:
    with pytest.raises(TaskError) as caught:
        HarborFormat().load(folder)
    return caught.value


def test_a_task_with_everything_assay_adds(make_task: MakeFolder, task_toml: str) -> None:
    text = (
        task_toml.replace(
            "[assay]", '[assay]\ndifficulty = "hard"\nsetup_sec = 5\ncapabilities = ["CAP_KILL", "CHOWN"]'
        )
        + "[assay.limits]\npids = 9\noutput_bytes = 10\ncommand_sec = 3\n"
        + "[assay.grading]\nkeep_services = true\nartifact_bytes = 7\npass_at = 0.5\n"
    )
    task = load(
        make_task(files={"task.toml": text, "environment/setup.sh": "sh gen.sh\n", "environment/gen.sh": "ls\n"})
    )
    assert (task.id, task.family, task.difficulty, task.tags) == ("sort-words", "sort-words", "hard", ("text",))
    assert (task.budget.wall_s, task.budget.tokens, task.budget.steps) == (60.0, 1000, None)
    assert (task.limits.pids, task.limits.output_bytes, task.limits.command_s) == (9, 10, 3.0)
    assert task.environment.capabilities == ("CHOWN", "KILL")
    assert (task.environment.setup, task.environment.setup_s) == ("setup.sh", 5.0)
    assert [file.path for file in task.environment.setup_files.files] == ["gen.sh", "setup.sh"]
    assert [file.path for file in task.environment.files.files] == ["words.txt"]
    assert [file.path for file in task.grading.tests.files] == ["test.sh", "want"]
    assert (task.grading.keep_services, task.grading.artifact_bytes, task.grading.pass_at) == (True, 7, 0.5)
    assert [mutation.name for mutation in task.mutations] == ["keeps duplicates"]
    assert task.metadata == {"author": "A. Tester"}
    assert task.unsupported == ()


def test_harbors_defaults_stand(make_task: MakeFolder) -> None:
    task = load(make_task(files={"task.toml": MINIMAL}))
    assert task.budget.wall_s is None
    assert task.grading.timeout_s == 600.0
    assert task.grading.environment is GradingEnvironment.SAME
    assert task.limits.network is Network.INTERNET
    assert (task.limits.cpus, task.limits.memory_mb, task.limits.disk_mb) == (1.0, 2048, 10240)
    assert task.environment.capabilities is None
    assert task.environment.workdir == "/app"


def test_older_spellings_are_read(make_task: MakeFolder) -> None:
    text = 'version = "1.0"\n' + MINIMAL + 'memory = "1.5G"\nstorage = "512M"\nallow_internet = false\n'
    task = load(make_task(files={"task.toml": text}))
    assert (task.limits.memory_mb, task.limits.disk_mb, task.limits.network) == (1536, 512, Network.NONE)


@pytest.mark.parametrize(
    ("tables", "environment", "artifacts"),
    [
        ('[verifier]\nenvironment_mode = "separate"\n', GradingEnvironment.FRESH, ()),
        ('artifacts = ["/app/a", "b/c", { source = "/app/a" }]\n', GradingEnvironment.SAME, ("/app/a", "/app/b/c")),
        ("[verifier.environment]\ncpus = 1\n", GradingEnvironment.FRESH, ()),
    ],
)
def test_verifier_modes_and_artifacts(
    make_task: MakeFolder, tables: str, environment: GradingEnvironment, artifacts: tuple[str, ...]
) -> None:
    text = tables + MINIMAL if tables.startswith("art") else MINIMAL + tables
    task = load(make_task(files={"task.toml": text}))
    assert task.grading.environment is environment
    assert task.grading.artifacts == artifacts


@pytest.mark.parametrize(
    ("old", "new", "place", "message", "remedy"),
    [
        (
            "timeout_sec = 60.0",
            "timeout_secs = 60.0",
            "task.toml:7",
            "unknown key 'timeout_secs' in [agent]",
            "'timeout_sec'?",
        ),
        ("timeout_sec = 60.0", "timeout_sec = -5", "task.toml:7", "agent.timeout_sec = -5", ""),
        ("timeout_sec = 60.0", 'timeout_sec = "60"', "task.toml:7", "must be a valid number", ""),
        ("timeout_sec = 60.0", "timeout_sec = true", "task.toml:7", "must be a valid number", ""),
        ("timeout_sec = 60.0", "timeout_sec = inf", "task.toml:7", "finite", ""),
        ("tokens = 1000", "tokens = 1000.0", "task.toml:17", "must be a valid integer", ""),
        ("tags = [", "token = 3\ntags = [", "task.toml:14", "unknown key 'token' in [assay]", ""),
        ("tags = [", "tokens = 3\ntags = [", "task.toml:14", "unknown key 'tokens'", "it belongs in [assay.budget]"),
        ('tags = ["text"]', 'tags = ["text", 3]', "task.toml:14", "assay.tags[1] = 3", ""),
        ('"no-network"', '"none"', "task.toml:11", "'public', 'no-network' or 'allowlist'", ""),
        ('"1.4"', '"2.0"', "task.toml:1", "'2.0' is not a known schema version", "1.0 to 1.4"),
        ("[agent]", "[agent", "task.toml:6", "bad TOML", ""),
        (
            "[metadata]",
            "[environments]",
            "task.toml:3",
            "unknown key 'environments' in the root table",
            "'environment'?",
        ),
        ('name = "keeps duplicates"\n', "", "task.toml:19", "assay.mutations[0].name is missing", "add it"),
        ('find = "sort -u"', 'find = "tac"', "task.toml:21", "'tac' does not stand in solution/solve.sh", ""),
        ('find = "sort -u"', 'file = "solv.sh"\nfind = "x"', "task.toml:21", "no file 'solv.sh'", "'solve.sh'?"),
        ('replace = "sort"', 'replace = "sort -u"', "task.toml:22", "changes nothing", ""),
        ("tags = [", 'capabilities = ["KIL"]\ntags = [', "task.toml:14", "no Linux capability", "'KILL'?"),
        ("tags = [", 'setup = "setup.sh"\ntags = [', "task.toml:14", "is not in environment/", ""),
        ("tags = [", 'setup = "environment/stup.sh"\ntags = [', "task.toml:14", "no such file", ""),
        ('docker_image = "assay-base:1"', "", "task.toml:9", "the task has no image", "docker_image"),
        ('"assay-base:1"', '"x@sha256:12"', "task.toml:10", "no digest", "64 hexadecimal"),
        ('"assay-base:1"', '"x:1"\nworkdir = "app"', "task.toml:11", "absolute path", ""),
        ("author = ", "score = nan\nauthor = ", "task.toml:4", "nan cannot be kept as JSON", ""),
        ("[agent]", '[agent]\nallowed_hosts = ["a"]', "task.toml:7", "needs agent.network_mode", ""),
        ('"no-network"', '"public"\nmemory = "1G"\nmemory_mb = 5', "task.toml:12", "disagree", "memory_mb"),
    ],
)
def test_a_fault_has_file_line_and_remedy(
    make_task: MakeFolder, task_toml: str, old: str, new: str, place: str, message: str, remedy: str
) -> None:
    assert old in task_toml
    folder = make_task(files={"task.toml": task_toml.replace(old, new, 1)})
    error = fault(folder)
    assert error.place == f"{folder}/{place}"
    assert message in error.message
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("task.toml", "task.toml is missing"),
        ("instruction.md", "instruction.md is missing"),
        ("tests/test.sh", "tests/test.sh is missing"),
    ],
)
def test_a_missing_file_is_named(make_task: MakeFolder, missing: str, message: str) -> None:
    folder = make_task(files={missing: None})
    error = fault(folder)
    assert (error.message, error.place) == (message, str(folder))


def test_everything_wrong_is_told_at_once(make_task: MakeFolder, task_toml: str) -> None:
    text = task_toml.replace("timeout_sec", "timeout_secs").replace("tokens = 1000", "tokens = -1")
    error = fault(make_task(files={"task.toml": text}))
    assert isinstance(error, LoadErrors)
    assert [single.place.rpartition(":")[2] for single in error.errors] == ["7", "17"]
    error = fault(make_task("other", files={"instruction.md": None, "tests/test.sh": None, "solution/solve.sh": None}))
    assert isinstance(error, LoadErrors)
    assert [single.message for single in error.errors] == [
        "instruction.md is missing",
        "tests/test.sh is missing",
        "mutation 'keeps duplicates' has no solution to change",
    ]


def test_not_utf8_settings_have_a_line(make_task: MakeFolder) -> None:
    error = fault(make_task(files={"task.toml": b"[agent]\nx = 'caf\xe9'\n"}))
    assert error.place.endswith("task.toml:2")


@pytest.mark.parametrize(
    ("tables", "feature"),
    [
        ("gpus = 1\n", "environment.gpus"),
        ('os = "Windows"\n', "environment.os"),
        ('network_mode = "allowlist"\nallowed_hosts = ["a.org"]\n', "allowlist"),
        ('[[environment.mcp_servers]]\nname = "m"\nurl = "http://m"\n', "mcp_servers"),
        ('[environment.healthcheck]\ncommand = "true"\n', "healthcheck"),
        ('[verifier.environment]\ndocker_image = "y:1"\n', "verifier.environment"),
        ('[[verifier.collect]]\ncommand = "dump"\n', "verifier.collect"),
        ('[agent]\nnetwork_mode = "no-network"\n', "network_mode differs"),
        ('[[steps]]\nname = "one"\n', "steps"),
    ],
)
def test_what_assay_lacks_is_listed_and_the_task_kept(make_task: MakeFolder, tables: str, feature: str) -> None:
    task = load(make_task(files={"task.toml": MINIMAL + tables}))
    assert len(task.unsupported) == 1
    assert feature in task.unsupported[0]


def test_steps_bring_their_own_instructions_and_tests(make_task: MakeFolder) -> None:
    files = {"task.toml": MINIMAL + '[[steps]]\nname = "one"\n', "instruction.md": None, "tests/test.sh": None}
    task = load(make_task(files={**files, "tests/want": None}))
    assert task.instruction == ""
    assert task.unsupported


def test_an_image_by_digest_is_pinned(make_task: MakeFolder) -> None:
    task = load(make_task(files={"task.toml": f'[environment]\ndocker_image = "h.org:5/a/b:2@{DIGEST}"\n'}))
    assert (task.image.repository, task.image.digest) == ("h.org:5/a/b", DIGEST)
    assert task.image.locator == f"h.org:5/a/b@{DIGEST}"


def test_a_dockerfile_is_known_by_the_digest_of_its_context(make_task: MakeFolder) -> None:
    files = {
        "task.toml": "",
        "environment/Dockerfile": "FROM x\nWORKDIR /srv\nCOPY files /f\n",
        "environment/setup.sh": "ls\n",
    }
    task = load(make_task("one", files=files))
    assert task.context_digest is not None
    assert task.image.reference == f"build:{task.context_digest}"
    assert task.build_context is not None
    assert task.build_context.endswith("one/environment")
    # The folder is Docker's alone: nothing in it is copied or run by Assay, unless the task asks for it.
    assert (task.environment.setup, task.environment.files.files) == (None, ())
    assert task.environment.workdir == "/srv"
    same = load(make_task("two", files=files))
    assert same.context_digest == task.context_digest
    other = load(make_task("three", files={**files, "environment/extra": "x"}))
    assert other.context_digest != task.context_digest
    asks = load(make_task("four", files={**files, "task.toml": '[assay]\nsetup = "environment/setup.sh"\n'}))
    assert asks.environment.setup == "setup.sh"
    assert asks.environment.files


@pytest.mark.parametrize(
    ("dockerfile", "workdir"),
    [
        ("FROM x\nWORKDIR /a\nworkdir b\n", "/a/b"),
        ("FROM x\nWORKDIR /a\nFROM y\n", None),
        ("FROM x\nWORKDIR $HOME\n", None),
        ('FROM x\nWORKDIR "/w"\n', "/w"),
        ("FROM x\n", None),
    ],
)
def test_the_folder_a_dockerfile_ends_in(dockerfile: str, workdir: str | None) -> None:
    assert last_workdir(dockerfile) == workdir


def test_bytes_are_kept(make_task: MakeFolder) -> None:
    folder = make_task(
        files={"instruction.md": b"caf\xe9\r\n", "solution/solve.sh": b"sort -u\r\n", "tests/bin": bytes(range(256))}
    )
    (folder / "solution/solve.sh").chmod(0o755)
    task = load(folder)
    assert task.instruction.encode("utf-8", "surrogateescape") == b"caf\xe9\r\n"
    script, binary = task.solution.files.get("solve.sh"), task.grading.tests.get("bin")
    assert script is not None
    assert binary is not None
    assert (script.content, script.mode) == (b"sort -u\r\n", 0o755)
    assert (binary.content, binary.mode) == (bytes(range(256)), 0o644)
    assert task.version


def test_a_file_name_that_is_no_utf8_is_kept(make_task: MakeFolder) -> None:
    folder = make_task()
    (folder / "tests" / os.fsdecode(b"caf\xe9")).write_bytes(b"x")
    task = load(folder)
    assert os.fsdecode(b"caf\xe9") in task.grading.tests.digests()
    assert task.version


def test_templates_of_host_variables_are_kept(make_task: MakeFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    text = (
        MINIMAL
        + '[environment.env]\nKEY = "${SECRET}"\n[verifier.env]\nKEY = "${SECRET:-none}"\n[solution.env]\nA = "b"\n'
    )
    task = load(make_task(files={"task.toml": text + '[agent]\nuser = 1000\n[verifier]\nuser = "root"\n'}))
    assert task.environment.env == {"KEY": "${SECRET}"}
    assert task.grading.env == {"KEY": "${SECRET:-none}"}
    assert task.solution.env == {"A": "b"}
    assert (task.environment.user, task.grading.user) == ("1000", "root")


def test_dates_in_metadata_become_text(make_task: MakeFolder) -> None:
    task = load(make_task(files={"task.toml": MINIMAL + "[metadata]\nday = 2024-02-29\nlist = [{ at = 07:00:00 }]\n"}))
    assert task.metadata == {"day": "2024-02-29", "list": [{"at": "07:00:00"}]}


def test_a_link_out_of_the_task_is_refused(make_task: MakeFolder, tmp_path: Path) -> None:
    folder = make_task()
    (tmp_path / "secret").write_text("x")
    (folder / "tests/link").symlink_to(tmp_path / "secret")
    assert "leads out of the task" in fault(folder).message
    (folder / "tests/link").unlink()
    (folder / "tests/link").symlink_to("want")
    file = load(folder).grading.tests.get("link")
    assert file is not None
    assert file.content == b"a\nb\n"
    (folder / "tests/link").unlink()
    for target in ("gone", "link"):
        (folder / "tests/link").symlink_to(target)
        assert fault(folder).place.endswith("tests/link")
        (folder / "tests/link").unlink()


def test_links_to_folders_are_refused_and_not_followed(make_task: MakeFolder, tmp_path: Path) -> None:
    folder = make_task()
    (folder / "tests/up").symlink_to("..")
    error = fault(folder)
    assert error.place.endswith("tests/up")
    assert "a link to a folder" in error.message
    (folder / "tests/up").unlink()
    shutil.move(folder / "tests", tmp_path / "others")
    for target in ("../others", "/"):
        (folder / "tests").symlink_to(target)
        error = fault(folder)
        assert (error.place, error.message) == (f"{folder}/tests", "the link leads out of the task")
        (folder / "tests").unlink()


def test_what_is_no_file_is_refused_and_not_waited_for(make_task: MakeFolder) -> None:
    folder = make_task()
    os.mkfifo(folder / "tests/pipe")
    assert "not a regular file" in fault(folder).message
    folder = make_task("built", files={"task.toml": "", "environment/Dockerfile": "FROM x\n"})
    os.mkfifo(folder / "environment/pipe")
    assert "not a regular file" in fault(folder).message


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    assert "cannot be read" in fault(tmp_path / "gone").message


def test_too_many_bytes_are_refused_before_they_are_read(
    make_task: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "LOADED_BYTES_MAX", 100)
    folder = make_task(files={"task.toml": MINIMAL, "environment/files/big": "x" * 101})
    assert fault(folder).place.endswith("environment/files/big")
    folder = make_task(
        "two", files={"task.toml": MINIMAL, "environment/files/a": "x" * 60, "environment/files/b": "x" * 60}
    )
    assert "bake large files into the image" in fault(folder).remedy


def test_caches_are_no_part_of_a_task(make_task: MakeFolder) -> None:
    folder = make_task()
    before = load(folder).version
    (folder / "tests/__pycache__").mkdir()
    (folder / "tests/__pycache__/x.pyc").write_bytes(b"x")
    assert load(folder).version == before


def test_a_folder_that_cannot_be_an_id_is_told(make_task: MakeFolder) -> None:
    error = fault(make_task("bad name"))
    assert "'bad name'" in error.message
    assert "rename the folder" in error.remedy
