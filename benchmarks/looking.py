"""Seconds of a look at a campaign of 10 000 runs: status, log, status --run, runs, first picture of watch.

    python benchmarks/looking.py [--repeated 5] [--points 100]

Prints the least of several runs each: CPU time without and with snapshots, its ratio to ``python -c pass``,
and the time by the clock with snapshots. Other work on the machine counts as little as that lets it.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import resource
import struct
import subprocess
import sys
import tempfile
import termios
import time
from functools import partial
from pathlib import Path

from command import options

from orchestrator.journal import events
from orchestrator.journal.codec import Entry, encode
from orchestrator.types import Attempt, Point, Run

POINTS, REPETITIONS, ROUND = 100, 100, 10  # most points, their repetitions, points of a round
CALLPATHS = ("compute", "exchange", "compute->a", "compute->b", "compute->c")
CAMPAIGN = {
    "name": "large",
    "parameters": {"p": {"values": [*range(1, 21)]}, "n": {"values": [*range(1, 6)]}},
    "evaluation_point": {"p": 64, "n": 100},
    "measure": {},
    "stop": {"budget": "9000 core-hours", "rule": "uncertainty", "patience": 3, "without_gain": 0.2},
    "executor": {"name": "slurm"},
}
FACTOR = {"parameter": "p", "exponent": 1.0, "log_exponent": 0.0}
COMMANDS = {
    "python -c pass": ("-c", "pass"),
    "orchestrator status": ("-m", "orchestrator", "status", "large"),
    "orchestrator log": ("-m", "orchestrator", "log", "large"),
    "orchestrator status --run": ("-m", "orchestrator", "status", "large", "--run", "p=1,n=1/time-1"),
    "orchestrator runs --csv": ("-m", "orchestrator", "runs", "large", "--csv"),
}


def journal(most: int) -> list[events.Event]:
    """Return the events of a campaign of so many points with 100 runs each: four for each run."""
    points = [Point.of(p=p, n=n) for p in range(1, 21) for n in range(1, 6)][:most]
    found: list[events.Event] = [
        events.CampaignStarted(id="large", campaign=CAMPAIGN, version="0"),
        events.ControllerStarted(host="host", pid=1, version="0"),
    ]
    for number in range(1, most // ROUND + 1):
        chosen = points[(number - 1) * ROUND : number * ROUND]
        runs = tuple(Run(point, "time", k) for point in chosen for k in range(1, REPETITIONS + 1))
        found.append(events.RoundProposed(number, runs, ("lowest cost first",) * len(runs)))
        for run in runs:
            found += _life(run)
        found.append(events.RoundCompleted(round=number, smape=1.0, width=1.0 / number, improved=True))
    return [*found, events.CampaignStopped("exhausted", "nothing left to measure")]


def _life(run: Run) -> list[events.Event]:
    attempt, value = Attempt(run), 1.0 + 0.01 * run.repetition
    samples = {"time": dict.fromkeys(CALLPATHS, value)}
    return [
        events.AttemptIntended(attempt=attempt, name=run.id, cores=8, limit=600.0, reserved=4800.0),
        events.AttemptSubmitted(attempt, "4711"),
        events.AttemptStarted(attempt, "4711"),
        events.AttemptFinished(
            attempt=attempt,
            elapsed=value,
            cost=8 * value,
            samples=samples,
            host="n1",
            started=1.0,
            finished=2.0,
        ),
    ]


def models(points: int) -> dict[str, object]:
    """Return published models of the campaign."""
    described = [
        {"callpath": callpath, "metric": "time", "expression": "1 + p", "normal_form": "1 + p", "smape": 1.0}
        | {"terms": [{"coefficient": 1.0, "factors": []}, {"coefficient": 1.0, "factors": [FACTOR]}]}
        | {"category": {}, "notes": []}
        | {"predictions": [{"point": {"p": 64, "n": 100}, "value": 65.0, "low": 60.0, "high": 70.0}]}
        for callpath in CALLPATHS
    ]
    return {"id": "large", "round": points // ROUND, "measured": points * REPETITIONS, "models": described}


def first_picture(folder: Path) -> tuple[float, float]:
    """Return the CPU seconds and those by the clock until ``watch`` has shown the state on a terminal."""
    began, before = time.perf_counter(), cpu_of_children()
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ |= {"TERM": "xterm-256color", "PYTHONPATH": str(Path(__file__).parents[1])}
        os.execv(sys.executable, [sys.executable, "-m", "orchestrator", "watch", "large"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    shown = b""
    while b"nothing left to measure" not in shown:
        shown += os.read(terminal, 1 << 16)
    wall = time.perf_counter() - began
    os.write(terminal, b"q")
    try:
        while os.read(terminal, 1 << 16):
            pass
    except OSError:  # nobody is at the other end any more
        pass
    os.close(terminal)
    os.waitpid(child, 0)
    return cpu_of_children() - before, wall


def seconds(folder: Path, *arguments: str) -> float:
    """Return the CPU seconds of one run of Python, and of what it started."""
    before = cpu_of_children()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, check=True, capture_output=True)
    return cpu_of_children() - before


def cpu_of_children() -> float:
    """Return the CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def by_command(folder: Path, arguments: tuple[str, ...]) -> tuple[float, float]:
    """Return the CPU seconds of a command, and those by the clock."""
    began = time.perf_counter()
    return seconds(folder, *arguments), time.perf_counter() - began


def main() -> None:
    """Print the table."""
    parser = options(__doc__)
    parser.add_argument("--repeated", type=int, default=5, help="runs of which the least counts")
    parser.add_argument("--points", type=int, default=POINTS, help=f"multiples of {ROUND} up to {POINTS}")
    arguments = parser.parse_args()
    repeated, points = arguments.repeated, arguments.points
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        directory = folder / "large"
        directory.mkdir()
        lines = (encode(Entry(k, float(k), event)) for k, event in enumerate(journal(points), 1))
        (directory / "journal.jsonl").write_bytes(b"".join(lines))
        (directory / "models.json").write_text(json.dumps(models(points)))
        size = (directory / "journal.jsonl").stat().st_size / 1e6
        print(f"{points * REPETITIONS} runs, journal of {size:.0f} MB; seconds, least of {repeated}")
        print(f"{'':<28} {'first look':>10} {'later':>8} {'ratio':>8} {'by the clock':>14}")
        looks = {text: partial(by_command, folder, parts) for text, parts in COMMANDS.items()}
        looks["orchestrator watch"] = partial(first_picture, folder)
        base = 0.0
        for text, look in looks.items():
            for snapshot in directory.glob("snapshot.*"):
                snapshot.unlink()
            first, _ = look()
            later, clock = map(min, zip(*(look() for _ in range(repeated)), strict=True))
            base = base or later or 0.01
            print(f"{text:<28} {first:>10.2f} {later:>8.2f} {later / base:>8.1f} {clock:>14.2f}")


if __name__ == "__main__":
    main()
