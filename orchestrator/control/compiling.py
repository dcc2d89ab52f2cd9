"""The modeler compiled beside the runs of the first round, where these are on other machines."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path

from orchestrator import registry
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import SlurmOptions
from orchestrator.types import Measurement, Measurements, Point

_KERNELS = "orchestrator.models.pmnf.kernels"
_CODE = "import os; os.nice(19); from orchestrator.control.compiling import compile_now; compile_now()"


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


def compile_now() -> None:
    """Compile the loops that models of one and of two parameters need, and keep them on disk."""
    fit = registry.load("model", "auto")()
    for names in (("p",), ("p", "n")):
        times = [Measurement(path, "time", _times(names)) for path in ("main", "main->f")]
        counts = [Measurement("main", "visits", _counts(names))]
        fit(Measurements(names, (*times, *counts)))


def _grid(names: Sequence[str]) -> list[tuple[Point, float]]:
    """Return points with five values of every parameter, and the product of these."""
    found = product((2, 4, 8, 16, 32), repeat=len(names))
    return [(Point.of(dict(zip(names, values, strict=True))), math.prod(values)) for values in found]


def _times(names: Sequence[str]) -> dict[Point, tuple[float, ...]]:
    """Return two times at each point, with some noise."""
    return {
        point: tuple((1 + size) * (1 + 0.01 * math.sin(97 * repetition + number)) for repetition in range(2))
        for number, (point, size) in enumerate(_grid(names))
    }


def _counts(names: Sequence[str]) -> dict[Point, tuple[float, ...]]:
    """Return an exact count at each point: a sum of several terms."""
    return {point: (3 * size - 2 * size**0.5 + 7,) for point, size in _grid(names)}
