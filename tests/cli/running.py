"""Commands run in this process, or in one of their own where signals and pipes matter; campaigns to run."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.cli.main import main

COMMAND = (sys.executable, "-m", "orchestrator")

# Prints n + 0.5 seconds, whatever it really takes. Whole-number times make the model exact.
PROGRAM = """\
#!/bin/sh
echo "time: $1.5 s"
"""

LOCAL = """\
name: tiny
application: generic
executable: ./program.sh
program:
  arguments: ["{n}"]
  output: [{callpath: main, pattern: 'time: (\\S+) s'}]
parameters: {n: [1, 2, 3, 4, 5]}
evaluation_point: {n: 8}
measure: {time_limit: 20 s}
model: pmnf  # many processes are started, and what other families need takes longest to load
strategy: {name: cpf, batch_size: 2}
stop: {budget: 1 core-hour, patience: 2}
retries: {application: 0, timeout: 0}
executor: {name: local, slots: 1, max_pending: 1, launcher: none}
"""

SIMULATED = """\
name: rehearsal
application: lulesh
parameters: {p: [1, 8, 27, 64, 125], s: [10, 15, 20, 25, 30]}
evaluation_point: {p: 216, s: 35}
strategy: {name: cpf, batch_size: 2}
stop: {budget: 5 core-hours, patience: 2}
executor:
  name: simulated
  queue_delay: 2 min
  failure_rate: 0.1
  noise: 2
  truth: {main: "1e-5 * s**3 + 0.2 * log2(p)"}
seed: 3
"""


@dataclass(frozen=True)
class Result:
    """Exit code and what was printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document on standard output, which must hold nothing else."""
        return json.loads(self.out)


def run(*arguments: str | Path) -> Result:
    """Run a command in this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:  # argparse
            code = end.code if isinstance(end.code, int) else 1
        out.flush()
    return Result(code, out.buffer.getvalue().decode(), err.getvalue())


def start(
    *arguments: str | Path, environment: Mapping[str, str] | None = None, **options: Any
) -> subprocess.Popen[str]:
    """Start a command in a process of its own, with pipes unless ``options`` say otherwise."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    variables = {**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})}
    command = [*COMMAND, *map(str, arguments)]
    process: subprocess.Popen[str] = subprocess.Popen(
        command, env=variables, text=True, **{**pipes, **options}
    )
    return process


def write_program(folder: Path, text: str = PROGRAM) -> Path:
    """Write an executable script ``program.sh``."""
    path = folder / "program.sh"
    path.write_text(text)
    path.chmod(0o755)
    return path


def write_campaign(folder: Path, text: str = LOCAL, program: str | None = PROGRAM) -> Path:
    """Write ``campaign.yaml`` and the program that it names."""
    if program is not None:
        write_program(folder, program)
    path = folder / "campaign.yaml"
    path.write_text(text)
    return path


def tree(folder: Path) -> Sequence[str]:
    """Return everything below a folder, to see that nothing was created."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
