"""Controllers as child processes, without the long waits that are meant for busy sites."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from orchestrator import registry
from orchestrator.campaign import loader
from orchestrator.control import compiling, session
from orchestrator.executors.slurm import executor
from orchestrator.executors.slurm.options import SlurmSettings
from orchestrator.journal import nodes
from orchestrator.policy import decide


def begin(
    text: str, directory: Path, submission_grace: float, environment: Mapping[str, str] | None = None
) -> int:
    """Start a controller in a child process; return its pid. It exits with 0 when the campaign is over."""
    _load()
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        os.environ.update(environment or {})
        _shorten(submission_grace)
        output = os.open(directory.with_suffix(".out"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        state = session.run(loader.loads(text, "kills.yaml", Path.cwd()), directory)
        code = 0 if state.stopped is not None else 3
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        raise
    finally:
        os._exit(code)


@functools.cache
def _load() -> None:
    """Load once what else each child would: strategy, reader, and the modeler with its machine code."""
    registry.load("strategy", "full")
    registry.load("reader", "stdout")
    compiling.compile_now()


def _shorten(submission_grace: float) -> None:
    executor.SlurmSettings = functools.partial(  # type: ignore[assignment,attr-defined]
        SlurmSettings, submission_grace=submission_grace, file_grace=0.5, accounting_grace=5.0
    )
    nodes.SAME = 1.0
    decide.CONFIRMATION = 10.0
