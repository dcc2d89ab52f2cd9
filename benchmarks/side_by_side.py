"""How much runs that are timed side by side on this machine disturb each other: alone, sharing cores, bound.

    python benchmarks/side_by_side.py [--blocks 6] [--runs 8] [--command "lmp -in /path/in.lj"] [--cores 1]

Two programs are compiled with gcc: one computes in registers, one streams through memory. A command of your
own, which starts one run on so many cores, is timed instead if it is given. The ways take turns, block by
block, so that other users of the machine disturb all of them alike. Printed are medians relative to the runs
that were alone, and the spread (quartile distance relative to the median), with the number of runs.
"""

from __future__ import annotations

import shlex
import statistics
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from command import options

from orchestrator.executors.local import cores
from orchestrator.executors.local.executor import LocalExecutor
from orchestrator.types import Attempt, AttemptRequest, AttemptState, Point, Resources, Run

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    long n = atol(argv[2]);
    double x = 1.0;
    if (!strcmp(argv[1], "compute")) {
        for (long i = 0; i < n; i++) x = x * 0.999999 + 1e-6 * (i & 3);
    } else {
        long size = 1L << 24;                       /* 128 MiB: larger than the caches */
        double *a = malloc(size * sizeof *a);
        for (long i = 0; i < size; i++) a[i] = 1.0;
        for (long k = 0; k < n; k++) for (long i = 0; i < size; i++) x += a[i] * 0.5, a[i] = x * 1e-9;
    }
    printf("%g\\n", x);
    return 0;
}
"""


@dataclass(frozen=True)
class Way:
    """How runs are executed: the executor's slots, and whether runs share cores."""

    slots: int
    share_cores: bool


@dataclass(frozen=True)
class Bench:
    """Where runs are executed, and how many cores each is charged."""

    folder: Path
    cores: int

    def seconds(self, way: Way, command: str, count: int, number: int) -> list[float]:
        """Execute so many runs in one way; return the seconds of each."""
        executor = LocalExecutor(way.slots, share_cores=way.share_cores)
        requests = [self._request(command, 1000 * number + k) for k in range(count)]
        executor.submit(requests)
        open_, found = list(requests), []
        while open_:
            executor.wait(5.0)
            for request, item in zip(list(open_), executor.poll(list(open_)), strict=True):
                if item.state in (AttemptState.FINISHED, AttemptState.LOST):
                    open_.remove(request)
                    record = item.record
                    assert record is not None and record.finished is not None, item
                    assert record.exit_code == 0, request.directory
                    found.append(record.finished - record.started)
        return found

    def _request(self, command: str, number: int) -> AttemptRequest:
        attempt = Attempt(Run(Point.of(n=number)))
        return AttemptRequest(
            attempt=attempt,
            name=f"side-by-side-{number}",
            directory=self.folder / attempt.id,
            resources=Resources(ranks=self.cores, ranks_per_node=self.cores, cores=self.cores),
            limit=600.0,
            script=f"#!/bin/sh\nexec {command} > /dev/null\n",
        )


def ways(size: int) -> Mapping[str, Way]:
    """Return the ways by name, for runs of so many cores."""
    there = len(cores.usable())
    return {
        "alone": Way(size, False),
        f"{there // size} at once, sharing cores": Way(there, True),
        f"{2 * there // size} at once, sharing cores": Way(2 * there, True),
        f"{there // size} at once, bound": Way(there, False),
    }


def compare(bench: Bench, name: str, command: str, blocks: int, runs: int, first: int) -> None:
    """Print one line for each way."""
    found: dict[str, list[float]] = {way: [] for way in ways(bench.cores)}
    for block in range(blocks):
        for k, (way, how) in enumerate(ways(bench.cores).items()):
            found[way] += bench.seconds(how, command, runs, first + 10 * block + k)
    alone = statistics.median(found["alone"])
    for way, seconds in found.items():
        middle = statistics.median(seconds)
        low, _, high = statistics.quantiles(seconds, n=4)
        print(
            f"{name:<8} {way:<26} {middle / alone:5.2f} times alone ({alone:.2f} s), "
            f"spread {100 * (high - low) / middle:5.1f} %, {len(seconds)} runs",
            flush=True,
        )


def main() -> None:
    """Compare the ways."""
    parser = options(__doc__)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--runs", type=int, default=8, help="runs of each way in a block")
    parser.add_argument("--command", help="what to time instead")
    parser.add_argument("--cores", type=int, default=1, help="of a run of --command")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        if chosen.command:
            compare(Bench(folder, chosen.cores), "command", chosen.command, chosen.blocks, chosen.runs, 0)
            return
        (folder / "work.c").write_text(SOURCE)
        subprocess.run(["gcc", "-O2", "-o", folder / "work", folder / "work.c"], check=True)
        for first, (kind, amount) in enumerate((("compute", 300_000_000), ("memory", 12))):
            command = f"{shlex.quote(str(folder / 'work'))} {kind} {amount}"
            compare(Bench(folder, 1), kind, command, chosen.blocks, chosen.runs, 1000 * first)


if __name__ == "__main__":
    main()
