"""The loop's own cost: a simulated campaign of 100 000 runs, replay of its journal, overhead per local run.

    python benchmarks/loop.py [--runs 100000] [--local 60] [--rounds]

Prints figures; asserts nothing, as machines differ.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from command import options

from orchestrator.campaign import loader
from orchestrator.control import existing, session
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.file import FILE_NAME
from orchestrator.journal.state import State

SIMULATED = """
name: large
application: generic
program: {{arguments: ["{{p}}"], ranks: p, output: [{{callpath: main, pattern: "t=(.*)"}}]}}
parameters: {{p: {{from: 1, to: 20}}, n: {{from: 1, to: {n}}}}}
evaluation_point: {{p: 64, n: 1000}}
measure: {{time_limit: 1 h, expected_time: 1 s, repetitions: {{initial: 100, maximum: 100}}}}
strategy: {{name: full, batch_size: 100}}
stop: {{budget: 1e9 core-hours, patience: 1000000}}
executor:
  name: simulated
  max_pending: 256
  poll_interval: 1 s
  noise: 5
  truth: {{compute: "1 + 0.01*n*p**0.5", exchange: "0.5 + 0.1*log2(p)*n"}}
"""

LOCAL = """
name: overhead
application: generic
executable: /bin/true
program: {{arguments: ["{{n}}"]}}
parameters: {{n: {{from: 1, to: {n}}}}}
measure: {{profiler: time, time_limit: 60 s, expected_time: 1 s, repetitions: {{initial: 1, maximum: 1}}}}
strategy: {{name: full, batch_size: 1000}}
stop: {{budget: 10 core-hours}}
executor: {{name: local, slots: 1, max_pending: 1, launcher: none}}
"""


def simulated(runs: int, directory: Path) -> None:
    """A campaign of ``runs`` runs on the virtual clock, then the replay of its journal."""
    chosen = loader.loads(SIMULATED.format(n=max(1, runs // 2000)), "benchmark", Path.cwd())
    begin = time.perf_counter()
    state = session.run(chosen, directory)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = (directory / FILE_NAME).stat().st_size / 1e6
    print(f"simulated campaign: {len(state.runs)} runs in {state.round} rounds, {seconds:.1f} s, ", end="")
    print(
        f"{1e6 * seconds / len(state.runs):.0f} us per run, peak memory {peak:.0f} MB, journal {size:.0f} MB"
    )
    begin = time.perf_counter()
    again = existing.replayed(directory)
    print(f"replay of its journal: {time.perf_counter() - begin:.1f} s")
    assert again.spent == state.spent


def rounds(runs: int, directory: Path) -> None:
    """The same in rounds of 1000 runs (10 points): what a round and a run cost as the campaign grows."""
    text = SIMULATED.format(n=max(1, runs // 2000))
    text = text.replace("{name: full, batch_size: 100}", "{name: full, first_round: 10, batch_size: 10}")
    page = os.sysconf("SC_PAGE_SIZE") / 2**20
    last = settled = time.process_time()

    def listen(entry: Entry, state: State) -> None:
        nonlocal last, settled
        now = time.process_time()
        if isinstance(entry.event, events.AttemptFinished):
            settled = now
        elif isinstance(entry.event, events.RoundProposed):
            if state.round % 10 == 0:
                memory = int(Path("/proc/self/statm").read_text().split()[1]) * page
                print(
                    f"round {state.round}, {len(state.runs)} runs: {now - last:.2f} s of CPU time, ", end=""
                )
                print(f"{now - settled:.2f} s of it to fit and propose; memory {memory:.0f} MB")
            last = now

    session.run(loader.loads(text, "benchmark", Path.cwd()), directory, session.Hooks(listen=listen))


def local(runs: int, directory: Path) -> None:
    """Controller time per local run against starting the same process directly."""
    chosen = loader.loads(LOCAL.format(n=runs), "benchmark", Path.cwd())
    begin = time.perf_counter()
    state = session.run(chosen, directory)
    ours = (time.perf_counter() - begin) / len(state.runs)
    direct = []
    for number in range(runs):
        begin = time.perf_counter()
        subprocess.run(["/bin/true", str(number)], check=True)
        direct.append(time.perf_counter() - begin)
    plain = statistics.median(direct)
    print(
        f"local run of /bin/true: {1e3 * ours:.1f} ms through the controller, {1e3 * plain:.1f} ms directly: "
        f"{1e3 * (ours - plain):.1f} ms overhead per run ({len(state.runs)} runs, one at a time)"
    )


def main() -> None:
    """Run the benchmarks."""
    parser = options(__doc__)
    parser.add_argument("--runs", type=int, default=100_000, help="runs of the simulated campaign")
    parser.add_argument("--local", type=int, default=60, help="local runs")
    parser.add_argument("--rounds", action="store_true", help="also in rounds of 1000 runs")
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory(dir=".") as scratch:
        local(arguments.local, Path(scratch) / "local")
        simulated(arguments.runs, Path(scratch) / "simulated")
        if arguments.rounds:
            rounds(arguments.runs, Path(scratch) / "rounds")


if __name__ == "__main__":
    main()
