"""Single kernels, by the program that `orchestrator generate kernels` writes: GEMM, GEQRF, MPI broadcast."""

from __future__ import annotations

from collections.abc import Mapping

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Sample, Value

_SIZES = {"gemm": ("m", "n", "k"), "geqrf": ("m", "n"), "bcast": ("bytes",)}


def _values(settings: Settings) -> dict[str, Value]:
    common.ranks(settings)
    if "kernel" not in settings:
        raise ValueError("kernel is not set: gemm, geqrf or bcast")
    kernel = common.one_of(settings, "kernel", tuple(_SIZES), "")
    missing = [name for name in _SIZES[kernel] if name not in settings]
    if missing:
        raise ValueError(f"{kernel} needs {', '.join(missing)}: vary it, or fix it under settings")
    sizes = {name: common.positive(settings, name, 1) for name in ("m", "n", "k", "bytes")}
    if kernel == "geqrf" and sizes["m"] < sizes["n"]:
        raise ValueError(f"geqrf needs at least as many rows as columns, but m {sizes['m']} < n {sizes['n']}")
    most = common.positive(settings, "most", 50)
    return {"t": common.threads(settings), "kernel": kernel, **sizes, "most": most}


def _output(texts: Mapping[str, str]) -> list[Sample]:
    text = common.output_text(texts, r"^kernels: ")
    number = r"(\d\S*)"
    found = common.only(
        rf"^(gemm|geqrf|bcast): +min {number} +mean {number} +max {number} +s over ranks$",
        text,
        "line 'KERNEL: min ... mean ... max ... s over ranks'",
    )
    return [
        common.seconds(f"main->{found[1]}", found[column], aggregate)
        for column, aggregate in ((2, "min"), (3, "mean"), (4, "max"))
    ]


APPLICATION = Application(
    name="mpi-kernel",
    description="single kernels: matrix multiplication, QR factorisation, MPI broadcast",
    parameters={
        "p": common.RANKS,
        "t": "threads of the BLAS per rank (default 1)",
        "kernel": "gemm, geqrf or bcast",
        "m": "rows of C (gemm) and of A (gemm, geqrf)",
        "n": "columns of C (gemm) or of A (geqrf, at most m)",
        "k": "columns of A (gemm)",
        "bytes": "size of the message (bcast)",
        "most": "executions, at most, of which the mean is taken (default 50)",
    },
    required=("p", "kernel"),
    ranks=common.ranks,
    threads=common.threads,
    values=_values,
    check=common.refusal(_values),
    output=_output,
    start={
        "p": (1,),
        "kernel": ("gemm",),
        "m": (128, 192, 256, 384, 512, 768),
        "n": (128, 192, 256, 384, 512, 768),
        "k": (128, 192, 256, 384, 512, 768),
    },
)
