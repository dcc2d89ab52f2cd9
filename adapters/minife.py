"""miniFE: implicit finite elements, assembly and conjugate gradients."""

from __future__ import annotations

from collections.abc import Mapping

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Sample, Value

_TIMERS = {
    "main": "Total Program Time",
    "main->structure": "Mat-struc-gen Time",
    "main->assembly": "FE assembly Time",
    "main->cg": "Total CG Time",
    "main->cg->waxpy": "WAXPY Time",
    "main->cg->dot": "DOT Time",
    "main->cg->matvec": "MATVEC Time",
    "main->cg->iteration": "Time per iteration",
}


def _values(settings: Settings) -> dict[str, Value]:
    count = common.ranks(settings)
    size = common.cells(settings, common.most_cubic(count), "elements")
    if size[0] * size[1] * size[2] < count:
        raise ValueError(f"{common.joined(size)} elements are fewer than p = {count} ranks")
    return {
        "t": common.threads(settings),
        **dict(zip(("nx", "ny", "nz"), size, strict=True)),
        "load_imbalance": common.at_least_zero(settings, "load_imbalance", 0),
        "mv_overlap_comm_comp": common.one_of(settings, "mv_overlap_comm_comp", ("0", "1"), "0"),
    }


def _output(texts: Mapping[str, str]) -> list[Sample]:
    """Read the YAML report; its name carries the second, and only it has the CG and total times.

    The number of CG iterations grows with the size of the problem and is capped at 200, so the time of one
    iteration is a call path of its own, and ``iterations`` a metric.
    """
    stdout = common.output_text(texts, r"exceptional|^ERROR|terminate called")
    common.only(r"^Starting CG solver", stdout, "'Starting CG solver'")
    reports = [text for name, text in texts.items() if name.endswith(".yaml")]
    if len(reports) != 1:
        raise ValueError(f"the attempt has {len(reports)} reports miniFE*.yaml instead of one")
    samples = [
        common.seconds(callpath, common.only(rf"^ *{timer}: (\S+)$", reports[0], f"'{timer}'")[1])
        for callpath, timer in _TIMERS.items()
    ]
    iterations = float(common.only(r"^ *Iterations: (\d+)$", reports[0], "'Iterations'")[1])
    return [*samples, Sample("main->cg", "iterations", iterations)]


APPLICATION = Application(
    name="minife",
    description="miniFE, assembly and conjugate-gradient solution of a finite-element problem",
    parameters={
        "p": common.RANKS,
        "t": common.THREADS,
        "s": "elements along each edge per rank, times the most cubic grid of p ranks (weak scaling)",
        "n": "elements along each edge of the whole domain (strong scaling)",
        "elements": "elements of the whole domain 'x,y,z' (-nx -ny -nz)",
        "load_imbalance": "imbalance of rows in percent (-load_imbalance, default 0)",
        "mv_overlap_comm_comp": "1: communication overlaps computation (-mv_overlap_comm_comp, default 0)",
    },
    required=("p",),
    ranks=common.ranks,
    threads=common.threads,
    values=_values,
    check=common.refusal(_values),
    output=_output,
    output_files=("miniFE*.yaml",),
    start={"p": (1, 2, 4, 8, 16, 32), "n": (20, 30, 40, 50, 60, 70)},
)
