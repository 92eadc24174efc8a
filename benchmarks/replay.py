"""How fast recorded episodes are replayed, compared and graded, and in how much memory.

    python -m benchmarks.replay [--data FOLDER] [--steps 1000000] [--folder DIR]

Two figures, each in a process of its own. `airline`: tau-bench's 200 episodes under --data (`v1/`, as for
ASSAY_ENVIRONMENT_DATA), left out when there is none. `steps`: a made-up archive of the asked number of steps over the
airline that the bundled suite brings. Prints seconds of the clock and of the processor, steps per processor second, and
peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BUNDLED = Path(__file__).resolve().parents[1] / "tasks" / "airline" / "data"
ARCHIVE = "v1/gpt-4o-airline.json.gz"
CALLS = 60  # in an episode; each is three steps: the model's turn, the call, its answer
LIMITS = {"airline": "under 5 s", "steps": "under 300 MB"}


def write_archive(path: Path, steps: int) -> int:
    """An archive like tau-bench's own, of episodes that look at reservations again and again; returns its steps."""
    from harness.environments.registry import environment
    from harness.records.environment import Call, Opening
    from harness.records.vocabulary import Actor

    database = json.loads((BUNDLED / "db.json").read_text())
    reservations = sorted(database["reservations"])
    world = environment("airline@v1", BUNDLED)
    written = 0
    with world.open(Opening("normal")) as session, path.open("w") as file:
        file.write("[")
        episode = 0
        while written < steps:
            asked = [reservations[(episode + call) % len(reservations)] for call in range(CALLS)]
            traj: list[dict[str, Any]] = [{"role": "user", "content": f"Look at {', '.join(asked)}."}]
            for call, reservation in enumerate(asked):
                arguments = {"reservation_id": reservation}
                answer = session.call(Call(Actor.AGENT, "get_reservation_details", arguments))
                function = {"name": "get_reservation_details", "arguments": json.dumps(arguments)}
                call_id = f"call_{call}"
                traj.append(
                    {"role": "assistant", "content": None, "tool_calls": [{"id": call_id, "function": function}]}
                )
                traj.append({"role": "tool", "tool_call_id": call_id, "content": answer.content})
            traj += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "###STOP###"}]
            task = {"user_id": "u", "instruction": "Look.", "actions": [], "outputs": []}
            value = {"task_id": episode % 50, "trial": episode // 50, "reward": 1.0, "traj": traj}
            value["info"] = {"task": task, "source": "user", "reward_info": {"reward": 1.0, "info": {}}}
            file.write((", " if episode else "") + json.dumps(value))
            written, episode = written + 3 * CALLS + 4, episode + 1
        file.write("]")
    return written


def measure(part: str, path: Path, data: Path) -> None:
    """Replay, compare and grade; run in a process of its own."""
    from harness.api.replays import ReplayRequest, replay_archive

    request = ReplayRequest(str(path), "airline@v1", "normal", grader="tau-bench@718ffa1", environment_data=data)
    begun, used = time.perf_counter(), time.process_time()
    report = replay_archive(request)
    seconds, busy = time.perf_counter() - begun, time.process_time() - used
    if report.invalid or report.unread:
        raise SystemExit(f"{part}: not all replays are valid: {report.invalid}")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    calls = report.counts["steps"]
    print(
        f"{part:8} {report.read:6} episodes  {calls:7} calls  {seconds:6.2f} s  {busy:6.2f} s of the processor"
        f"  {calls / busy:7.0f} calls/s  peak {peak_mb:4.0f} MB  (wanted: {LIMITS[part]})",
        flush=True,
    )


def main() -> int:
    """Measure both parts. Returns 1 when one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("ASSAY_ENVIRONMENT_DATA"))
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--folder", help="where to write; a temporary folder by default")
    parser.add_argument("--part", choices=LIMITS, help=argparse.SUPPRESS)
    parser.add_argument("--archive", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.part:
        measure(asked.part, asked.archive, asked.data)
        return 0
    failed = 0
    if asked.data is not None and (Path(asked.data) / ARCHIVE).exists():
        failed |= _apart("airline", Path(asked.data) / ARCHIVE, Path(asked.data))
    else:
        print("airline: no archive of tau-bench: name its folder with --data")
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        path = Path(folder) / "made-up.json"
        steps = write_archive(path, asked.steps)
        print(f"made up: {steps} steps, {path.stat().st_size / 1e6:.0f} MB of JSON", flush=True)
        failed |= _apart("steps", path, BUNDLED)
    return failed


def _apart(part: str, archive: Path, data: Path) -> int:
    command = [
        sys.executable,
        "-m",
        "benchmarks.replay",
        "--part",
        part,
        "--archive",
        str(archive),
        "--data",
        str(data),
    ]
    return int(subprocess.run(command, check=False).returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
