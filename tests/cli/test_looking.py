"""The benchmark of looks at a large campaign, on a small one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "looking.py"


def test_every_command_shows_the_campaign_that_is_looked_at() -> None:
    """Its published models lacked what tables had begun to ask for, so status failed."""
    command = [sys.executable, str(BENCHMARK), "--points", "10", "--repeated", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, *rows = done.stdout.splitlines()
    assert first.startswith("1000 runs")
    assert [row.split("  ")[0] for row in rows[1:]] == [
        "python -c pass",
        "orchestrator status",
        "orchestrator log",
        "orchestrator status --run",
        "orchestrator runs --csv",
        "orchestrator watch",
    ]
