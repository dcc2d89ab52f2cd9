"""CPU seconds (user and system) of the import and of small commands, beside their goals.

``python -m benchmarks.startup`` prints the least of several runs each: caches are warm, and other work on the
machine counts as little as possible.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

REPEATED = 3

CAMPAIGN = """\
name: startup
application: lulesh
parameters: {p: [1, 8, 27, 64, 125], s: [10, 15, 20, 25, 30]}
evaluation_point: {p: 216, s: 35}
strategy: {name: cpf, batch_size: 2}
stop: {budget: 5 core-hours, patience: 2}
executor: {name: simulated, noise: 2, truth: {main: "1e-5 * s**3 + 0.2 * log2(p)"}}
"""

# What is timed -> arguments of Python, and the goal in CPU seconds.
COMMANDS: dict[str, tuple[tuple[str, ...], float]] = {
    "python (for comparison)": (("-c", "pass"), 0.0),
    "import orchestrator": (("-c", "import orchestrator"), 0.2),
    "orchestrator --help": (("-m", "orchestrator", "--help"), 0.2),
    "orchestrator model, 30 rows": (("-m", "orchestrator", "model", "measured.csv"), 1.0),
    "orchestrator status": (("-m", "orchestrator", "status", "campaign"), 0.4),
    "orchestrator log": (("-m", "orchestrator", "log", "campaign"), 0.4),
}


def prepare(folder: Path) -> None:
    """Write a table of 30 rows and a finished campaign."""
    rows = [
        f"{p},{n},main,time,{(0.3 + 2e-3 * p**0.5 * n) * (1 + 0.01 * k)}"
        for p in (4, 8, 16, 32, 64)
        for n in (10, 20, 30)
        for k in (0, 1)
    ]
    (folder / "measured.csv").write_text("p,n,callpath,metric,value\n" + "\n".join(rows) + "\n")
    (folder / "campaign.yaml").write_text(CAMPAIGN)
    seconds(folder, "-m", "orchestrator", "simulate", "campaign.yaml", "--directory", "campaign")


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


def main() -> int:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        print(f"{'CPU seconds, least of ' + str(REPEATED):<32} {'found':>8} {'goal':>8}")
        for text, (arguments, goal) in COMMANDS.items():
            least = min(seconds(folder, *arguments) for _ in range(REPEATED))
            print(f"{text:<32} {least:>8.2f} {goal or '':>8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
