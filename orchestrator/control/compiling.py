"""The modeler compiled beside the runs of the first round, where these are on other machines."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import SlurmOptions

_KERNELS = "orchestrator.models.pmnf.kernels"
_CODE = "import os; os.nice(19); from orchestrator.models.compiling import compile_now; compile_now()"


def begin(campaign: Campaign) -> subprocess.Popen[bytes] | None:
    """Start a process of low priority that compiles the modeler; None where that is not wanted.

    Beside local runs it would be measured: there the modeler is compiled between rounds, when it is first
    needed.
    """
    if not isinstance(campaign.executor, SlurmOptions) or _is_compiled():
        return None
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _CODE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None  # it is compiled when it is needed


def _is_compiled() -> bool:
    """Whether machine code lies beside the source, newer than it."""
    spec = find_spec(_KERNELS)
    if spec is None or spec.origin is None:
        return False
    source = Path(spec.origin)
    found = (source.parent / "__pycache__").glob(f"{source.stem}.*.nbi")
    return any(item.stat().st_mtime > source.stat().st_mtime for item in found)
