"""CPU seconds of a look at a campaign of 10 000 runs: status, log, status --run, runs.

    python benchmarks/looking.py [--repeated 5]

Prints the least of several runs each, without and with snapshots, and the ratio to ``python -c pass``. Other
work on the machine counts as little as CPU time lets it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from startup import seconds

from orchestrator.journal import events
from orchestrator.journal.file import Entry, encode
from orchestrator.types import Attempt, Point, Run

POINTS, REPETITIONS, ROUND = 100, 100, 10  # points of a round
CALLPATHS = ("compute", "exchange", "compute->a", "compute->b", "compute->c")
CAMPAIGN = {
    "name": "large",
    "parameters": {"p": {"values": [*range(1, 21)]}, "n": {"values": [*range(1, 6)]}},
    "evaluation_point": {"p": 64, "n": 100},
    "measure": {},
    "stop": {"budget": "9000 core-hours", "rule": "uncertainty", "patience": 3, "without_gain": 0.2},
    "executor": {"name": "slurm"},
}
COMMANDS = {
    "python -c pass": ("-c", "pass"),
    "orchestrator status": ("-m", "orchestrator", "status", "large"),
    "orchestrator log": ("-m", "orchestrator", "log", "large"),
    "orchestrator status --run": ("-m", "orchestrator", "status", "large", "--run", "p=1,n=1/time-1"),
    "orchestrator runs --csv": ("-m", "orchestrator", "runs", "large", "--csv"),
}


def journal() -> list[events.Event]:
    """Return the events of a campaign of 10 000 runs: four for each."""
    points = [Point.of(p=p, n=n) for p in range(1, 21) for n in range(1, 6)][:POINTS]
    found: list[events.Event] = [
        events.CampaignStarted("large", CAMPAIGN, "0"),
        events.ControllerStarted("host", 1, "0"),
    ]
    for number in range(1, POINTS // ROUND + 1):
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


def models() -> dict[str, object]:
    """Return published models of the campaign."""
    described = [
        {"callpath": callpath, "metric": "time", "expression": "1 + p", "normal_form": "1 + p", "smape": 1.0}
        | {"predictions": [{"point": {"p": 64, "n": 100}, "value": 65.0, "low": 60.0, "high": 70.0}]}
        for callpath in CALLPATHS
    ]
    return {"id": "large", "round": POINTS // ROUND, "measured": POINTS * REPETITIONS, "models": described}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeated", type=int, default=5, help="runs of which the least counts")
    repeated = parser.parse_args().repeated
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        directory = folder / "large"
        directory.mkdir()
        lines = (encode(Entry(k, float(k), event)) for k, event in enumerate(journal(), 1))
        (directory / "journal.jsonl").write_bytes(b"".join(lines))
        (directory / "models.json").write_text(json.dumps(models()))
        size = (directory / "journal.jsonl").stat().st_size / 1e6
        print(f"{POINTS * REPETITIONS} runs, journal of {size:.0f} MB; CPU seconds, least of {repeated}")
        print(f"{'':<28} {'first look':>10} {'later':>8} {'ratio':>8}")
        base = 0.0
        for text, arguments in COMMANDS.items():
            for snapshot in directory.glob("snapshot.*"):
                snapshot.unlink()
            first = seconds(folder, *arguments)
            later = min(seconds(folder, *arguments) for _ in range(repeated))
            base = base or later or 0.01
            print(f"{text:<28} {first:>10.2f} {later:>8.2f} {later / base:>8.1f}")


if __name__ == "__main__":
    main()
