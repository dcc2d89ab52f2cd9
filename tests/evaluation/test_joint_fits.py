"""The benchmark of call paths fitted together, on groups of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "joint_fits.py"


def test_few_groups_need_not_have_every_number_of_call_paths() -> None:
    """It failed at the first number of call paths that no drawn group has."""
    done = subprocess.run(
        [sys.executable, BENCHMARK, "--groups", "1", "--seed", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (row,) = done.stdout.splitlines()[2:]
    assert row.startswith("| drawn, 2 call paths | 1 | 2 |")
