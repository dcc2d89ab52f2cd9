"""miniFE: implicit finite elements, assembly and conjugate gradients."""

from __future__ import annotations

from collections.abc import Mapping

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Sample, format_value

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


def _plan(settings: Settings) -> list[str]:
    count = common.ranks(settings)
    common.threads(settings)
    size = common.cells(settings, common.most_cubic(count), "elements")
    if size[0] * size[1] * size[2] < count:
        raise ValueError(f"{common.joined(size)} elements are fewer than p = {count} ranks")
    arguments = [text for axis, n in zip("xyz", size, strict=True) for text in (f"-n{axis}", str(n))]
    for name in ("load_imbalance", "mv_overlap_comm_comp"):
        if name in settings:
            arguments += [f"-{name}", format_value(settings[name])]
    return arguments


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
        "load_imbalance": "imbalance of rows in percent (-load_imbalance)",
        "mv_overlap_comm_comp": "1 to overlap communication and computation (-mv_overlap_comm_comp)",
    },
    required=("p",),
    ranks=common.ranks,
    threads=common.threads,
    arguments=_plan,
    check=common.refusal(_plan),
    output=_output,
    output_files=("miniFE*.yaml",),
)
