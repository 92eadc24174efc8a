"""What any sandbox must do: the in-memory twin and the real thing run every test here.

Commands are shell lines that both bash and the twin's tiny shell understand.
"""

from __future__ import annotations

import io
import tarfile
from abc import ABC, abstractmethod

import anyio
import pytest

from harness.protocols import Sandbox, SandboxFileError, SandboxProvider
from harness.records.errors import SandboxFault
from harness.records.execution import Command, ExecResult, SandboxSpec
from harness.records.task import FileTree, ImagePin, Limits, TreeFile
from harness.records.vocabulary import Reason
from harness.sandbox.ownership import this_process

RUN = "contract"


def tree(**files: bytes) -> FileTree:
    """Files by name; `__` in a name stands for a slash."""
    return FileTree(files=tuple(TreeFile(path=name.replace("__", "/"), content=data) for name, data in files.items()))


async def sh(sandbox: Sandbox, line: str, timeout_s: float = 60.0, **settings: object) -> ExecResult:
    command = Command.model_validate({"argv": ("bash", "-c", line), "timeout_s": timeout_s, **settings})
    return await sandbox.exec(command)


async def size_of(sandbox: Sandbox, path: str) -> int:
    return len(await sandbox.read(path, max_bytes=1_000_000))


class SandboxContract(ABC):
    """Subclasses give `provider` and `pin` fixtures, and say how to leave a process behind."""

    pytestmark = pytest.mark.anyio

    @abstractmethod
    def writer(self, path: str, hold_s: float) -> tuple[str, ...]:
        """A command that lasts `hold_s` and leaves a process, outside its session, that appends to `path` for ever."""

    def spec(self, pin: ImagePin, trial: str = "contract/1", **changes: object) -> SandboxSpec:
        limits = Limits(memory_mb=256, pids=256, cpus=2)
        values = {"run": RUN, "trial": trial, "image": pin, "limits": limits, "workdir": "/app", **changes}
        return SandboxSpec.model_validate(values)

    async def start_writer(self, sandbox: Sandbox, path: str) -> None:
        await sandbox.exec(Command(argv=self.writer(path, 0.0), timeout_s=60))
        await self.await_growth(sandbox, path, 0)

    async def await_growth(self, sandbox: Sandbox, path: str, size: int) -> None:
        with anyio.fail_after(30):
            while not await sandbox.list(path.rsplit("/", 1)[0]) or await size_of(sandbox, path) <= size:  # noqa: ASYNC110
                await anyio.sleep(0.05)

    async def assert_still(self, sandbox: Sandbox, path: str) -> None:
        """Nothing appends to `path` any more."""
        before = await size_of(sandbox, path)
        await anyio.sleep(0.4)
        assert await size_of(sandbox, path) == before

    # --- commands ---

    async def test_output_and_exit_code_come_back_apart(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            result = await sh(sandbox, "echo out; cat /nowhere; exit 3")
            assert result.exit_code == 3
            assert result.stdout.text == "out\n"
            assert "/nowhere" in result.stderr.text
            assert not result.timed_out
            assert not result.memory_killed
            assert not result.stdio_held_open
            assert not result.output_ended_early

    @pytest.mark.parametrize("code", [1, 124, 125, 137, 143])
    async def test_no_exit_code_is_a_timeout(self, provider: SandboxProvider, pin: ImagePin, code: int) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            result = await sh(sandbox, f"exit {code}")
            assert (result.exit_code, result.timed_out, result.memory_killed) == (code, False, False)

    async def test_a_command_that_is_not_there_is_the_callers_affair(
        self, provider: SandboxProvider, pin: ImagePin
    ) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            result = await sandbox.exec(Command(argv=("frobnicate",), timeout_s=60))
            assert result.exit_code in (126, 127)
            assert "frobnicate" in result.stderr.text
            assert result.stdout.seen_bytes == 0
            assert (await sh(sandbox, "echo on")).stdout.text == "on\n"

    async def test_environment_and_folder(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin, env={"A": "spec", "B": "spec"})) as sandbox:
            await sandbox.put(tree(here=b"found\n"), "/else/where")
            result = await sh(sandbox, 'echo "$A $B"; cat here', env={"B": "own"}, workdir="/else/where")
            assert result.stdout.text == "spec own\nfound\n"
            await sh(sandbox, "echo 1 > relative")
            assert await sandbox.read("/app/relative", max_bytes=9) == b"1\n"

    async def test_stdin_is_empty_unless_given(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            assert (await sh(sandbox, "cat; echo end", timeout_s=30)).stdout.text == "end\n"
            given = bytes(range(256)) * 2000  # more than a pipe holds
            result = await sh(sandbox, "cat", stdin=given, timeout_s=30)
            assert result.stdout.head + result.stdout.tail == given
            assert (await sh(sandbox, "cat", stdin=b"", timeout_s=30)).exit_code == 0

    async def test_output_that_is_no_text_is_kept(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            raw = bytes(range(256)) + b"\xff\xfe\xc3"
            await sandbox.put(tree(raw=raw), "/data")
            result = await sh(sandbox, "cat /data/raw")
            assert result.stdout.head == raw
            assert "\ufffd" in result.stdout.text

    @pytest.mark.parametrize(("size", "truncated"), [(999, False), (1000, False), (1001, True), (2000, True)])
    async def test_truncation_is_declared_exactly(
        self, provider: SandboxProvider, pin: ImagePin, size: int, truncated: bool
    ) -> None:
        data = bytes(index % 251 for index in range(size))
        async with provider.open(self.spec(pin)) as sandbox:
            await sandbox.put(tree(f=data), "/data")
            output = (await sh(sandbox, "cat /data/f", output_bytes=1000)).stdout
            assert (output.seen_bytes, output.truncated) == (size, truncated)
            assert output.kept_bytes == min(size, 1000)
            assert output.head == data[:500]
            assert output.tail == data[500:][-500:]

    async def test_one_byte_of_output_may_be_all_that_is_wanted(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            output = (await sh(sandbox, "echo abc", output_bytes=1)).stdout
            assert (output.head, output.tail, output.seen_bytes) == (b"a", b"", 4)

    # --- ends ---

    async def test_a_timeout_keeps_what_was_printed(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            result = await sh(sandbox, "echo before; sleep 60; echo after > /late", timeout_s=1.0)
            assert (result.exit_code, result.timed_out) == (None, True)
            assert result.stdout.text == "before\n"
            assert 1.0 <= result.duration_s < 5
            assert result.processes_ended >= 1
            assert "late" not in await sandbox.list("/app")
            assert (await sh(sandbox, "echo on")).stdout.text == "on\n"

    async def test_a_timeout_ends_what_the_command_started(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            result = await sandbox.exec(Command(argv=self.writer("/grow/f", 60.0), timeout_s=1.5))
            assert result.timed_out
            assert result.processes_ended >= 2
            await self.assert_still(sandbox, "/grow/f")
            assert (await sandbox.end_processes()).found == 0

    async def test_a_timeout_spares_what_an_earlier_command_started(
        self, provider: SandboxProvider, pin: ImagePin
    ) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            await self.start_writer(sandbox, "/grow/f")
            assert (await sh(sandbox, "sleep 60", timeout_s=0.5)).timed_out
            await self.await_growth(sandbox, "/grow/f", await size_of(sandbox, "/grow/f"))

    async def test_cancelling_a_command_ends_what_it_started(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            with anyio.move_on_after(1.5) as scope:
                await sandbox.exec(Command(argv=self.writer("/grow/f", 60.0), timeout_s=60))
            assert scope.cancelled_caught
            await self.assert_still(sandbox, "/grow/f")
            assert (await sandbox.end_processes()).found == 0

    async def test_ending_all_processes_keeps_the_files(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            assert (await sandbox.end_processes()).method == "none"
            await self.start_writer(sandbox, "/grow/f")
            report = await sandbox.end_processes()
            assert report.found >= 1
            await self.assert_still(sandbox, "/grow/f")
            assert (await sandbox.end_processes()).found == 0
            assert (await sh(sandbox, "echo on")).stdout.text == "on\n"

    # --- files ---

    async def test_what_is_put_is_read_byte_by_byte(self, provider: SandboxProvider, pin: ImagePin) -> None:
        content = bytes(range(256)) * 300
        script = TreeFile(path="bin/run", content=b"#!/bin/bash\necho ran\n", mode=0o755)
        async with provider.open(self.spec(pin)) as sandbox:
            await sandbox.put(FileTree(files=(script, TreeFile(path="a/b c/ü", content=content))), "/deep/er")
            assert await sandbox.read("/deep/er/a/b c/ü", max_bytes=len(content)) == content
            result = await sandbox.exec(Command(argv=("/deep/er/bin/run",), timeout_s=60))
            assert result.stdout.text == "ran\n"

    async def test_putting_adds_and_replacing_clears(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            await sandbox.put(tree(one=b"1", sub__two=b"2"), "/d")
            await sandbox.put(tree(sub__three=b"3"), "/d")
            assert await sandbox.list("/d") == ("one", "sub", "sub/three", "sub/two")
            await sandbox.put(tree(sub=b"now a file"), "/d", replace=True)
            assert await sandbox.list("/d") == ("sub",)
            await sandbox.put(FileTree(), "/d", replace=True)
            assert await sandbox.list("/d") == ()
            await sandbox.put(FileTree(), "/new/empty")
            assert await sandbox.list("/new") == ("empty",)

    async def test_planted_links_are_replaced_not_followed(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            await sh(sandbox, "mkdir -p /trap/verifier /tests/sub; echo bait > /trap/verifier/reward.txt")
            await sh(sandbox, "ln -s /trap /logs; rm -rf /tests; ln -s /app /tests")
            await sandbox.put(tree(nonce=b"n"), "/logs/verifier", replace=True)
            await sandbox.put(tree(test=b"t"), "/tests", replace=True)
            assert await sandbox.list("/logs/verifier") == ("nonce",)
            assert await sandbox.list("/trap/verifier") == ("reward.txt",)
            assert await sandbox.list("/tests") == ("test",)
            assert await sandbox.list("/app") == ()

    async def test_a_planted_file_in_the_way_is_replaced(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            await sh(sandbox, "echo x > /logs; mkdir -p /odd/verifier/reward.txt; ln -s nowhere /odd/dangling")
            await sandbox.put(tree(a=b"a"), "/logs/verifier", replace=True)
            await sandbox.put(tree(reward__txt=b"a"), "/odd/verifier", replace=True)
            await sandbox.put(tree(a=b"a"), "/odd/dangling/x", replace=True)
            assert await sandbox.list("/logs") == ("verifier", "verifier/a")
            assert await sandbox.list("/odd/verifier") == ("reward", "reward/txt")
            assert await sandbox.list("/odd/dangling") == ("x", "x/a")

    async def test_the_root_is_not_replaced(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            with pytest.raises(ValueError, match="root folder"):
                await sandbox.put(FileTree(), "/", replace=True)

    async def test_reading_refuses_what_is_no_file_or_too_large(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            await sandbox.put(tree(f=b"12345"), "/d")
            await sh(sandbox, "ln -s /d/f /d/link")
            for path, max_bytes, problem in [
                ("/d/none", 9, "missing"),
                ("/none/at/all", 9, "missing"),
                ("/d", 9, "not a file"),
                ("/d/link", 9, "not a file"),
                ("/d/f", 4, "too large"),
            ]:
                with pytest.raises(SandboxFileError) as caught:
                    await sandbox.read(path, max_bytes=max_bytes)
                assert (caught.value.path, caught.value.problem) == (path, problem)
            assert await sandbox.read("/d/f", max_bytes=5) == b"12345"

    async def test_listing_gives_all_below_or_nothing(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            await sandbox.put(tree(b__x=b"", a=b"1"), "/d")
            await sh(sandbox, "ln -s / /d/link; ln -s /d /other")
            assert await sandbox.list("/d") == ("a", "b", "b/x", "link")
            assert await sandbox.list("/d/") == ("a", "b", "b/x", "link")
            assert await sandbox.list("/none") == ()
            assert await sandbox.list("/d/a") == ()
            assert await sandbox.list("/other") == ()

    async def test_a_fetched_folder_is_the_same_elsewhere(self, provider: SandboxProvider, pin: ImagePin) -> None:
        raw = bytes(range(256)) * 50
        async with provider.open(self.spec(pin)) as one, provider.open(self.spec(pin, "contract/2")) as other:
            files = FileTree(
                files=(TreeFile(path="s/run", content=b"#!/bin/sh\n", mode=0o750), TreeFile(path="raw", content=raw))
            )
            await one.put(files, "/work/out")
            await sh(one, "ln -s raw /work/out/link")
            archive = await one.fetch("/work/out", max_bytes=1_000_000)
            with tarfile.open(fileobj=io.BytesIO(archive)) as members:
                assert {member.name.rstrip("/") for member in members} == {
                    "out",
                    "out/s",
                    "out/s/run",
                    "out/raw",
                    "out/link",
                }
            await other.restore(archive, "/not/there/yet")
            assert await other.list("/not/there/yet/out") == ("link", "raw", "s", "s/run")
            assert await other.read("/not/there/yet/out/raw", max_bytes=len(raw)) == raw
            again = await other.fetch("/not/there/yet/out", max_bytes=1_000_000)
            with tarfile.open(fileobj=io.BytesIO(again)) as members:
                assert members.getmember("out/s/run").mode & 0o7777 == 0o750
                assert members.getmember("out/link").linkname == "raw"

    async def test_fetching_one_file_and_what_cannot_be_fetched(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            await sandbox.put(tree(f=b"1" * 5000), "/d")
            with tarfile.open(fileobj=io.BytesIO(await sandbox.fetch("/d/f", max_bytes=100_000))) as members:
                assert members.getnames() == ["f"]
            with pytest.raises(SandboxFileError, match="too large"):
                await sandbox.fetch("/d/f", max_bytes=4000)
            with pytest.raises(SandboxFileError, match="missing"):
                await sandbox.fetch("/d/none", max_bytes=4000)

    async def test_what_was_written_makes_another_sandbox_the_same(
        self, provider: SandboxProvider, pin: ImagePin
    ) -> None:
        async with provider.open(self.spec(pin)) as one, provider.open(self.spec(pin, "contract/2")) as other:
            await one.put(tree(answer=b"42"), "/app")
            whole = await one.written(max_bytes=1_000_000)
            if whole is None:
                return  # to be fetched path by path
            await other.restore(whole, "/")
            assert await other.read("/app/answer", max_bytes=10) == b"42"
            assert await other.changes() == await one.changes()
            with pytest.raises(SandboxFileError, match="too large"):
                await one.written(max_bytes=1)

    async def test_changes_name_what_was_written(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            await sh(sandbox, "echo 1 > /app/answer")
            assert "A /app/answer" in await sandbox.changes()

    # --- life ---

    async def test_facts_are_those_of_what_was_started(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            facts = sandbox.facts
            assert facts.image_digest == pin.digest
            assert facts.platform.startswith("linux/")
            assert set(facts.enforced) >= {"cpus", "memory", "pids", "disk", "network", "capabilities"}
            health = await sandbox.health()
            assert health.running
            assert not health.memory_killed

    async def test_an_image_that_is_not_there_is_not_sought(self, provider: SandboxProvider, pin: ImagePin) -> None:
        unknown = pin.model_copy(update={"digest": "sha256:" + "0" * 63 + "1"})
        assert await provider.image(unknown) is None
        held = await provider.image(pin)
        assert held is not None
        assert held.digest == pin.digest
        for missing in (unknown, pin.model_copy(update={"digest": None})):
            with pytest.raises(SandboxFault) as caught:
                async with provider.open(self.spec(missing)):
                    raise AssertionError("must not open")
            assert caught.value.reason == Reason.IMAGE_MISSING

    async def test_nothing_is_left_whatever_happens(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async def own() -> list[str]:
            return [left.name for left in await provider.leftovers() if left.trial == "contract/leak"]

        spec = self.spec(pin, "contract/leak", run="contract-leak")
        async with provider.open(spec):
            assert len(await own()) == 1
        with pytest.raises(ZeroDivisionError):
            async with provider.open(spec):
                raise ZeroDivisionError
        with anyio.move_on_after(1.0) as scope:
            async with provider.open(spec) as sandbox:
                await sh(sandbox, "sleep 60")
        assert scope.cancelled_caught
        with anyio.CancelScope() as scope:
            scope.cancel()
            async with provider.open(spec):
                raise AssertionError("must not open")
        assert await own() == []

    async def test_what_a_dead_run_left_is_found_and_removed(self, provider: SandboxProvider, pin: ImagePin) -> None:
        async with provider.open(self.spec(pin, "contract/dead", run="dead-run")) as sandbox:
            left = [item for item in await provider.leftovers() if item.run == "dead-run"]
            assert [(item.kind, item.id, item.trial, item.owner) for item in left] == [
                ("container", sandbox.facts.id, "contract/dead", this_process())
            ]
            await provider.remove(left[0])
            assert not [item for item in await provider.leftovers() if item.run == "dead-run"]
            await provider.remove(left[0])  # gone already: no fault

    async def test_a_command_that_cannot_be_started_ends_and_harms_nothing(
        self, provider: SandboxProvider, pin: ImagePin
    ) -> None:
        longest = "x" * 131_071
        async with provider.open(self.spec(pin)) as sandbox:
            for argv, env, words in (
                (("true", longest + "x"), {}, "131072 bytes"),
                (("true", *[longest] * 12), {}, "at most 1500000"),
                (("true", *["y"] * 200_000), {}, "at most 1500000"),
                (("echo", "a\0b"), {}, "NUL"),
                (("true",), {"A": "\0"}, "NUL"),
                (("true",), {"A=B": "x"}, "variable's name"),
                (("true",), {"": "x"}, "variable's name"),
            ):
                with anyio.fail_after(30):
                    result = await sandbox.exec(Command(argv=argv, env=env, timeout_s=20))
                assert (result.exit_code, result.timed_out) == (126, False)
                assert words in result.stderr.text
            assert (await sh(sandbox, f"echo {longest[:100_000]}")).exit_code == 0

    async def test_the_same_trial_may_be_open_twice(self, provider: SandboxProvider, pin: ImagePin) -> None:
        names = set()

        async def one(text: str) -> None:
            async with provider.open(self.spec(pin)) as sandbox:
                names.add(sandbox.facts.name)
                await sh(sandbox, f"echo {text} > /app/mine")
                assert await sandbox.read("/app/mine", max_bytes=99) == f"{text}\n".encode()

        async with anyio.create_task_group() as group:
            for text in ("one", "two", "three"):
                group.start_soon(one, text)
        assert len(names) == 3
