"""How fast an archive is read and brought in, and in how much memory.

    python -m benchmarks.importing [--megabytes 200] [--trials 100000] [--folder DIR]

Writes a made-up tau2-like results file of the asked size, then measures three things in processes of their own:
decoding its JSON with the standard library alone (all at once, for comparison), reading it as an importer does
(episodes with all their steps), and the whole `import_archive` into a fresh store. Then the import of another file, of
many small trials, each of a task of its own: there it is memory per trial that counts. Prints MB of JSON per second of
the clock and of processor time (a busy machine slows the first alone), and peak memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from itertools import count
from pathlib import Path

EPISODE_MESSAGES = 61
PARTS = ("decode", "read", "import", "trials")


def write_archive(path: Path, megabytes: int) -> None:
    """A results file like those of tau2: about 100 kB per episode, raw provider answers included."""
    write_results(path, 50, (_simulation(number) for number in count()), megabytes * 1_000_000)


def write_trials(path: Path, trials: int) -> None:
    """A results file of small trials, each of a task of its own."""
    write_results(path, trials, (_small(number) for number in range(trials)), sys.maxsize)


def write_results(path: Path, tasks: int, simulations: Iterable[dict[str, object]], most_bytes: int) -> None:
    """The embedded tasks and their simulations, until there are enough."""
    embedded = [
        {"id": str(n), "user_scenario": {"instructions": f"Task {n}."}, "evaluation_criteria": {"actions": []}}
        for n in range(tasks)
    ]
    info = {
        "num_trials": 1,
        "agent_info": {"implementation": "llm_agent", "llm": "made-up-1"},
        "user_info": {"implementation": "user_simulator", "llm": "made-up-1"},
        "environment_info": {"domain_name": "airline"},
    }
    with path.open("w") as file:
        head = {"timestamp": "2026-01-01T00:00:00", "info": info, "tasks": embedded}
        file.write(json.dumps(head)[:-1] + ', "simulations": [')
        written = 0
        for simulation in simulations:
            text = json.dumps(simulation)
            file.write((", " if written else "") + text)
            written += len(text)
            if written >= most_bytes:
                break
        file.write("]}")


def _small(number: int) -> dict[str, object]:
    messages = [
        {"role": "user", "content": f"Hello {number}.", "turn_idx": 0, "timestamp": "2026-01-01T00:00:01"},
        {"role": "assistant", "content": "Done.", "turn_idx": 1, "timestamp": "2026-01-01T00:00:02", "cost": 0.004}
        | {"usage": {"prompt_tokens": 300, "completion_tokens": 40}},
        {"role": "user", "content": "###STOP###", "turn_idx": 2, "timestamp": "2026-01-01T00:00:03"},
    ]
    second = f"{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.{number:06}"
    times = {"start_time": f"2026-01-01T{second}", "end_time": f"2026-01-02T{second}", "duration": 86400.0}
    ended = {"termination_reason": "user_stop", "reward_info": {"reward": float(number % 2)}, "agent_cost": 0.004}
    return {"id": f"sim-{number}", "task_id": str(number), "trial": 0, "messages": messages, **ended, **times}


def _simulation(number: int) -> dict[str, object]:
    messages: list[dict[str, object]] = []
    for turn in range(EPISODE_MESSAGES):
        wall = f"2026-01-01T{turn // 60:02}:{turn % 60:02}:00"
        said = f"Message {turn} of episode {number}. " + "The quick brown fox jumps over the lazy dog. " * 20
        if turn % 3 == 1:
            call = {"id": f"call_{turn}", "name": "get_user", "arguments": {"user_id": f"u{number}"}}
            answer = {"role": "assistant", "content": None, "tool_calls": [call], "turn_idx": turn, "timestamp": wall}
            usage = {"prompt_tokens": 3000 + turn, "completion_tokens": 40}
            messages.append(answer | {"usage": usage, "cost": 0.004, "raw_data": {"message": said, "index": 0}})
        elif turn % 3 == 2:
            messages.append(
                {"role": "tool", "id": f"call_{turn - 1}", "content": said, "turn_idx": turn, "timestamp": wall}
            )
        else:
            said += "###STOP###" if turn == EPISODE_MESSAGES - 1 else ""
            messages.append({"role": "user", "content": said, "turn_idx": turn, "timestamp": wall, "raw_data": said})
    times = {"start_time": "2026-01-01T00:00:00", "end_time": "2026-01-01T01:00:00", "duration": 3600.0}
    return {
        "id": f"sim-{number}",
        "task_id": str(number % 50),
        "trial": number // 50,
        "termination_reason": "user_stop",
        "reward_info": {"reward": float(number % 2)},
        "agent_cost": 0.08,
        "messages": messages,
        **times,
    }


def measure(part: str, path: Path) -> None:
    """Carry out one part and print what it took; run in a process of its own."""
    import harness.api.archives  # noqa: F401  # loading the code is no part of the figure

    work = {"decode": _decode, "read": _read, "import": _import, "trials": _import}[part]
    begun, used = time.perf_counter(), time.process_time()
    work(path)
    seconds, busy = time.perf_counter() - begun, time.process_time() - used
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = path.stat().st_size / 1e6
    print(
        f"{part:8} {size / seconds:7.1f} MB/s  {size / busy:7.1f} MB per processor second"
        f"  {seconds:7.1f} s  peak {peak_mb:6.0f} MB",
        flush=True,
    )


def _decode(path: Path) -> None:
    with path.open("rb") as file:
        json.load(file)


def _read(path: Path) -> None:
    from harness.importers.container import Archive
    from harness.importers.recognition import choose
    from harness.records.archive import ArchiveEpisode, ImportOptions

    archive = Archive(path)
    importer, _ = choose(archive)
    for item in importer.read(archive, ImportOptions()):
        if isinstance(item, ArchiveEpisode):
            item.steps()


def _import(path: Path) -> None:
    from harness.api.archives import import_archive
    from harness.store.sqlite import SqliteStore

    with SqliteStore(path.parent / "store") as store:
        import_archive(path, store)


def main() -> int:
    """Measure all parts. Returns 1 when one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--trials", type=int, default=100_000, help="of the last part; 0: leave it out")
    parser.add_argument("--folder", help="where to write; a temporary folder by default")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.part:
        measure(asked.part, Path(asked.folder) / "results.json")
        return 0
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        path = Path(folder) / "results.json"
        write_archive(path, asked.megabytes)
        print(f"{path.stat().st_size / 1e6:.0f} MB of JSON", flush=True)
        command = [sys.executable, "-m", "benchmarks.importing", "--folder", folder, "--part"]
        failed = max(subprocess.run([*command, part], check=False).returncode for part in PARTS[:-1])
        if asked.trials:
            shutil.rmtree(Path(folder) / "store", ignore_errors=True)
            write_trials(path, asked.trials)
            print(f"{asked.trials} trials, {path.stat().st_size / 1e6:.0f} MB", flush=True)
            failed = max(failed, subprocess.run([*command, PARTS[-1]], check=False).returncode)
        return failed


if __name__ == "__main__":
    sys.exit(main())
