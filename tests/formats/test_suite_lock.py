"""The lock: what it pins, how it is kept, and that nothing that differs goes unseen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.formats.lock import ImageNeed, files_digest, images_needed, lock_text, make_lock, read_lock, write_lock
from harness.formats.suite import load_suite
from harness.records.errors import LoadErrors, TaskError
from harness.records.suite import ImageLock, SuiteLock, TaskLock

MakeFolder = Callable[..., Path]
DIGEST = "sha256:" + "12" * 32
IMAGE = ImageLock(digest=DIGEST, platform="linux/amd64")
IMAGES = {"assay-base:1": IMAGE}


@pytest.fixture
def root(make_task: MakeFolder, make_family: MakeFolder, tmp_path: Path) -> Path:
    make_task("suite/words")
    make_family("suite/letters")
    return tmp_path / "suite"


def lock(root: Path) -> SuiteLock:
    made = make_lock(load_suite(root, ignore_lock=True), IMAGES)
    write_lock(root / "suite.lock", made)
    return made


def fault(root: Path) -> TaskError:
    with pytest.raises(TaskError) as caught:
        load_suite(root)
    return caught.value


def test_a_locked_suite_has_its_images_pinned(root: Path) -> None:
    made = lock(root)
    suite = load_suite(root)
    assert suite.locked
    for task in suite.tasks:
        assert (task.image.reference, task.image.digest, task.image.platform) == ("assay-base:1", DIGEST, "linux/amd64")
        assert task.version == made.tasks[task.id].version
        assert made.tasks[task.id].files == files_digest(task)
    assert not load_suite(root, ignore_lock=True).locked


def test_a_lone_task_is_pinned_by_the_lock_around_it(root: Path) -> None:
    lock(root)
    assert load_suite(root / "words").locked
    assert load_suite(root / "letters").locked
    (root / "words/tests/want").write_text("other")
    assert "words" in fault(root / "words").message


def test_a_lock_can_be_given(root: Path) -> None:
    made = make_lock(load_suite(root), IMAGES)
    assert load_suite(root, lock=made).locked
    assert not load_suite(root).locked


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("words/instruction.md", "Do it otherwise.\n"),
        ("words/solution/solve.sh", "sort -u words.txt | cat > out.txt\n"),
        ("words/tests/want", "c\n"),
        ("words/environment/files/words.txt", "c\n"),
        ("words/tests/new", ""),
    ],
)
def test_a_changed_file_makes_the_lock_stale(root: Path, path: str, content: str) -> None:
    lock(root)
    (root / path).write_text(content)
    error = fault(root)
    assert "stale lock" in error.message
    assert "words" in error.message
    assert error.place == str(root / "suite.lock")
    assert "assay suite lock" in error.remedy


def test_a_changed_mode_or_setting_makes_the_lock_stale(root: Path) -> None:
    lock(root)
    (root / "words/tests/test.sh").chmod(0o755)
    assert "words" in fault(root).message
    (root / "words/tests/test.sh").chmod(0o644)
    assert load_suite(root).locked
    settings = root / "words/task.toml"
    settings.write_text(settings.read_text().replace("timeout_sec = 60.0", "timeout_sec = 60.5"))
    assert "words" in fault(root).message
    settings.write_text(settings.read_text().replace("timeout_sec = 60.5", "timeout_sec = 60"))
    assert load_suite(root).locked


def test_another_image_or_grader_is_named(root: Path) -> None:
    lock(root)
    settings = root / "words/task.toml"
    original = settings.read_text()
    settings.write_text(original.replace("assay-base:1", "assay-base:2"))
    assert "'assay-base:1'" in fault(root).message
    assert "'assay-base:2'" in fault(root).message
    settings.write_text(original + '[assay.grading]\ngrader = "script@2"\n')
    assert "grader script@1" in fault(root).message


def test_tasks_too_many_and_too_few_are_told_at_once(root: Path, make_task: MakeFolder) -> None:
    lock(root)
    make_task("suite/new")
    (root / "words/task.toml").unlink()
    for path in sorted((root / "words").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    error = fault(root)
    assert isinstance(error, LoadErrors)
    assert [single.message for single in error.errors] == [
        "stale lock: not in the lock: new",
        "stale lock: locked and no longer there: words",
    ]


def test_an_image_named_by_digest_must_be_the_locked_one(root: Path, make_task: MakeFolder) -> None:
    other = "sha256:" + "34" * 32
    make_task("suite/pinned", files={"task.toml": f'[environment]\ndocker_image = "x@{other}"\n'})
    suite = load_suite(root)
    assert not suite.locked
    images = {**IMAGES, f"x@{other}": ImageLock(digest=other, repository="x", platform="linux/amd64")}
    write_lock(root / "suite.lock", make_lock(suite, images))
    assert load_suite(root).task("pinned").image.locator == f"x@{other}"
    images[f"x@{other}"] = ImageLock(digest=DIGEST, repository="x", platform="linux/amd64")
    write_lock(root / "suite.lock", make_lock(suite, images))
    assert "another image digest" in fault(root).message


def test_the_images_that_are_needed(root: Path, make_task: MakeFolder) -> None:
    files = {"task.toml": "", "environment/Dockerfile": "FROM x\n"}
    make_task("suite/built", files=files)
    make_task("suite/again", files=files)
    suite = load_suite(root)
    base, built = images_needed(suite)
    assert base == ImageNeed("assay-base:1", None, ("letters/01", "letters/02", "words"))
    assert built.reference == f"build:{suite.task('built').context_digest}"
    assert built.build_context == str(root / "again/environment")
    assert built.tasks == ("again", "built")
    with pytest.raises(TaskError, match="no digest for image 'build:"):
        make_lock(suite, IMAGES)


def test_a_lock_is_one_text_and_put_there_whole(root: Path) -> None:
    made = lock(root)
    first = (root / "suite.lock").read_bytes()
    assert json.loads(first)["schema"] == "assay-suite-lock/1"
    lock(root)
    assert (root / "suite.lock").read_bytes() == first
    assert read_lock(root / "suite.lock") == made
    assert sorted(path.name for path in root.iterdir()) == ["letters", "suite.lock", "words"]


def test_a_lock_that_cannot_be_written_leaves_nothing(root: Path) -> None:
    made = lock(root)
    (root / "taken").mkdir()
    with pytest.raises(TaskError, match="cannot be written"):
        write_lock(root / "taken", made)
    assert list((root / "taken").iterdir()) == []
    assert not [path for path in root.iterdir() if path.name.startswith(".lock-")]
    with pytest.raises(TaskError, match="cannot be written"):
        write_lock(root / "gone/suite.lock", made)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a suite lock"),
        ("[]", "not a suite lock"),
        ('{"schema": "assay-suite-lock/9", "suite": "s", "images": {}, "tasks": {}}', "assay-suite-lock/9"),
        ('{"schema": "assay-suite-lock/1", "suite": "s", "images": {}}', "tasks"),
    ],
)
def test_what_is_no_lock_is_refused(root: Path, text: str, message: str) -> None:
    (root / "suite.lock").write_text(text)
    error = fault(root)
    assert message in error.message
    assert error.place == str(root / "suite.lock")


def test_a_lock_with_a_task_of_an_unknown_image_is_refused(root: Path) -> None:
    made = lock(root)
    (root / "suite.lock").write_text(lock_text(made.model_copy(update={"images": {}})))
    assert "is not in the lock" in fault(root).message


DIGESTS = st.integers(0, 16**64 - 1).map(lambda number: f"sha256:{number:064x}")
LOCKS = st.dictionaries(st.text(max_size=8), DIGESTS, min_size=1, max_size=4)


@given(LOCKS, st.text(max_size=5))
def test_any_lock_is_read_back_as_it_was(digests: dict[str, str], name: str) -> None:
    made = SuiteLock(
        suite=name,
        images={key: ImageLock(digest=digest, platform="linux/amd64") for key, digest in digests.items()},
        tasks={
            key: TaskLock(image=key, grader="script@1", files=digest, version=digest) for key, digest in digests.items()
        },
    )
    assert SuiteLock.model_validate_json(lock_text(made)) == made
