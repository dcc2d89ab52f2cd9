"""Everything that `docs/reliability.md` gives figures of: ``python -m tests.slurm.reliability``.

Faults in virtual time, SIGKILLs on every executor, dispatch and polling. Exit code 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from orchestrator.journal import events
from tests.slurm import dispatch, kills
from tests.slurm.cluster import SlurmCluster, missing
from tests.slurm.faulty.campaigns import Scenario, play
from tests.slurm.faulty.generate import scenarios
from tests.slurm.faulty.promises import violations


def sequences(number: int, first: int) -> dict[str, Any]:
    """Play campaigns with random faults; count them, their faults and kills, and broken promises."""
    count: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    examples: list[str] = []

    @seed(first)
    @given(scenarios())
    @settings(
        max_examples=number,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def one(scenario: Scenario) -> None:
        directory = Path(tempfile.mkdtemp(prefix="faulty-", dir=_memory()))
        try:
            outcome = play(scenario, directory)
            wrong = violations(outcome)
        finally:
            shutil.rmtree(directory)
        count.update(campaigns=1, kills=outcome.kills, jobs=len(outcome.world.jobs), broken=bool(wrong))
        count[f"stopped: {outcome.state.stopped.rule if outcome.state.stopped else 'never'}"] += 1
        statuses = Counter(item.status for item in outcome.state.runs.values())
        count.update(pauses=outcome.pauses, **{f"runs {status}": n for status, n in statuses.items()})
        count["outages reported"] += sum(_is_new_outage(entry.event) for entry in outcome.entries)
        faults.update(f"{fault.command or 'job'}: {fault.what}" for fault in scenario.faults)
        examples.extend(f"{text} in {scenario}" for text in wrong[:1])

    one()
    return {**count, "injected faults": faults.total(), "kinds": len(faults), "examples": examples[:3]}


def _is_new_outage(event: events.Event) -> bool:
    return isinstance(event, events.OutageBegan) and not event.repeated


def _memory() -> Path | None:
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else None


def _packs(folder: Path, cluster: SlurmCluster, runs: int) -> dict[str, Any]:
    """Return what runs cost that share jobs, and its ratio to what they cost alone."""
    found: dict[str, Any] = {
        pack: dispatch.economy(folder, cluster, runs, pack) for pack in ("off", "auto", "8")
    }
    alone = found["off"]
    ratios = {pack: {key: found[pack][key] / alone[key] for key in alone} for pack in ("auto", "8")}
    return {**found, "ratio": ratios}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one JSON document of figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.slurm.reliability", description=__doc__)
    parser.add_argument("--sequences", type=int, default=2000, help="campaigns with random faults")
    parser.add_argument("--kills", type=int, default=300, help="SIGKILLs, a third on each executor")
    parser.add_argument("--jobs", type=int, default=500, help="one-second jobs, ours and submitit's")
    parser.add_argument("--packs", type=int, default=60, help="one-second runs, alone and sharing jobs")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    begun = time.time()
    figures: dict[str, Any] = {"seed": options.seed}
    folder = Path(tempfile.mkdtemp(prefix="reliability-"))
    if options.sequences:
        figures["sequences"] = sequences(options.sequences, options.seed)
        print(json.dumps(figures), file=sys.stderr)
    if options.kills:
        third = -(-options.kills // 3)
        (folder / "simulated").mkdir()
        (folder / "local").mkdir()
        figures["kills"] = {"simulated": vars(kills.simulated(folder / "simulated", third, options.seed))}
        figures["kills"]["local"] = vars(kills.local(folder / "local", third, options.seed))
        print(json.dumps(figures), file=sys.stderr)
    if (options.kills or options.jobs or options.packs) and not missing(accounting=True):
        with SlurmCluster() as cluster:
            if options.jobs:
                ours = dispatch.ours(folder, cluster, options.jobs)
                theirs = dispatch.theirs(folder, cluster, options.jobs)
                ratio = {key: ours[key] / theirs[key] for key in ours}
                figures["dispatch"] = {"ours": ours, "submitit": theirs, "ratio": ratio}
                print(json.dumps(figures), file=sys.stderr)
            if options.packs:
                figures["packs"] = _packs(folder, cluster, options.packs)
                print(json.dumps(figures), file=sys.stderr)
            if options.kills:
                (folder / "slurm").mkdir()
                figures["kills"]["slurm"] = vars(
                    kills.on_slurm(folder / "slurm", third, options.seed, cluster)
                )
    figures["seconds"] = round(time.time() - begun)
    print(json.dumps(figures, indent=1))
    shutil.rmtree(folder, ignore_errors=True)
    counts = [figures.get("sequences", {}), *figures.get("kills", {}).values()]
    return 1 if any(item.get("broken") for item in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
