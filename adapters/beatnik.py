"""Beatnik: a fluid interface as a benchmark of global communication (its program `rocketrig`)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Sample, Value

_TIME = re.compile(r"^measured_time: (\S+)$", re.MULTILINE)
_STEP = re.compile(r"^Step \d+ / \d+ at time = ", re.MULTILINE)
_DRIVERS = ("serial", "openmp", "threads", "cuda", "hip")


def _values(settings: Settings) -> dict[str, Value]:
    count, threads = common.ranks(settings), common.threads(settings)
    order = common.one_of(settings, "order", ("low", "medium", "high"), "low")
    solver = common.one_of(settings, "solver", ("exact", "cutoff"), "exact")
    if order != "low" and solver == "cutoff" and math.isqrt(count) ** 2 != count:
        raise ValueError(f"the cutoff solver needs a square number of ranks (1, 4, 9, ...), p is {count}")
    configuration = common.integer(settings, "heffte", 6)
    if not 0 <= configuration <= 7:
        raise ValueError(f"heffte must be within 0 and 7, not {configuration}")
    n = common.positive(settings, "n")
    if n * n < count:
        raise ValueError(f"a mesh of {n} x {n} points has fewer points than p = {count} ranks")
    return {
        "t": threads,
        "n": n,
        "steps": common.positive(settings, "steps", 50),
        "w": common.positive(settings, "w", 1),
        "order": order,
        "solver": solver,
        "cutoff": common.at_least_zero(settings, "cutoff", 0.5) or 0.5,
        "heffte": configuration,
        "initial": common.one_of(settings, "initial", ("cos", "sech2", "gaussian", "random"), "cos"),
        "boundary": common.one_of(settings, "boundary", ("periodic", "free"), "periodic"),
        "driver": common.one_of(settings, "driver", _DRIVERS, "serial" if threads == 1 else "openmp"),
    }


def _output(texts: Mapping[str, str]) -> list[Sample]:
    """Read the wall time from before MPI_Init to after MPI_Finalize, which all ranks leave together.

    Every rank prints it; the first line is taken.
    """
    text = common.output_text(texts, r"^Invalid |^ERROR|terminate called|what\(\):")
    common.only(r"^RocketRig$", text, "banner 'RocketRig'")
    time = _TIME.search(text)
    if time is None:
        raise ValueError(
            "the output has no 'measured_time:': build rocketrig with MEASURETIME=1, or set measure.profiler"
        )
    common.all_of(text, "step")
    steps = float(len(_STEP.findall(text)))
    return [common.seconds("main", time[1]), Sample("main", "steps", steps)]


APPLICATION = Application(
    name="beatnik",
    description="Beatnik, a fluid interface model that needs global communication (rocketrig)",
    parameters={
        "p": common.RANKS,
        "t": common.THREADS,
        "n": "points of the interface in each of its two dimensions (-n)",
        "steps": "time steps (-t, default 50)",
        "w": "weak scaling: the number of points and the area are w times as large (-w, default 1)",
        "order": "low (Fourier transforms), medium or high (-O, default low)",
        "solver": "far forces of order medium and high: exact or cutoff (-S, default exact)",
        "cutoff": "distance of the cutoff solver (-c, default 0.5)",
        "heffte": "configuration of HeFFTe's Fourier transforms, 0..7 (-H, default 6)",
        "initial": "initial interface: cos, sech2, gaussian or random (-I, default cos)",
        "boundary": "periodic or free (-b, default periodic)",
        "driver": "serial, openmp, threads, cuda or hip (-x, default serial, openmp where t > 1)",
    },
    required=("p", "n"),
    ranks=common.ranks,
    threads=common.threads,
    values=_values,
    check=common.refusal(_values),
    output=_output,
    start={"p": (1, 2, 4, 8, 16, 32), "n": (64, 96, 128, 160, 192, 224), "steps": (20,)},
)
