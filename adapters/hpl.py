"""HPL: High-Performance Linpack."""

from __future__ import annotations

from collections.abc import Mapping

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Sample

_ROUNDING = 0.006  # s: the time is printed with two decimals


def _grid(settings: Settings) -> tuple[int, int]:
    count = common.ranks(settings)
    rows = common.positive(settings, "rows", common.most_square(count)[0])
    if count % rows:
        raise ValueError(f"{rows} rows do not divide p = {count} ranks, so P x Q cannot be p")
    return rows, count // rows


def _values(settings: Settings) -> dict[str, int]:
    rows, columns = _grid(settings)
    ranges = {"pfact": (2, 2), "rfact": (1, 2), "bcast": (0, 5), "depth": (1, 9)}
    options = {name: common.integer(settings, name, default) for name, (default, _) in ranges.items()}
    for name, value in options.items():
        if not 0 <= value <= ranges[name][1]:
            raise ValueError(f"{name} must be within 0 and {ranges[name][1]}, not {value}")
    ndiv = common.positive(settings, "ndiv", 2)
    if ndiv < 2:
        raise ValueError(f"ndiv must be at least 2, not {ndiv}")
    return {
        "t": common.threads(settings),
        "n": common.positive(settings, "n"),
        "nb": common.positive(settings, "nb", 128),
        "nbmin": common.positive(settings, "nbmin", 4),
        "ndiv": ndiv,
        "rows": rows,
        "columns": columns,
        **options,
    }


def _output(texts: Mapping[str, str]) -> list[Sample]:
    """Recover the time from Gflop/s, which have five digits where the time has two decimals.

    HPL counts ``2/3 N^3 + 3/2 N^2`` operations (HPL_pdtest.c).
    """
    text = common.output_text(texts, r"^HPL ERROR|Illegal input|FAILED$")
    row = common.only(
        r"^W[RC]\S+ +(\d+) +\d+ +\d+ +\d+ +(\S+) +(\S+) *$", text, "result line (T/V N NB P Q Time Gflops)"
    )
    common.only(r" PASSED *$", text, "residual check that PASSED")
    order, printed, rate = int(row[1]), float(row[2]), float(row[3])
    exact = (2 / 3 * order**3 + 3 / 2 * order**2) / (rate * 1e9) if rate > 0 else printed
    return [common.seconds("main", exact if abs(exact - printed) <= _ROUNDING + 1e-3 * printed else printed)]


APPLICATION = Application(
    name="hpl",
    description="HPL, dense linear equations by LU factorisation (High-Performance Linpack)",
    parameters={
        "p": common.RANKS,
        "t": "threads of the BLAS per rank (default 1)",
        "n": "order of the matrix (N)",
        "nb": "block size (NB, default 128)",
        "rows": "rows of the process grid (P, default the most square grid; Q is p / P)",
        "pfact": "panel factorisation: 0 left, 1 Crout, 2 right (PFACT, default 2)",
        "rfact": "recursive factorisation: 0 left, 1 Crout, 2 right (RFACT, default 1)",
        "nbmin": "columns at which recursion stops (NBMIN, default 4)",
        "ndiv": "panels into which recursion divides (NDIV, from 2, default 2)",
        "bcast": "panel broadcast: 0 1rg, 1 1rM, 2 2rg, 3 2rM, 4 Lng, 5 LnM (BCAST, default 0)",
        "depth": "lookahead (DEPTH, default 1)",
    },
    required=("p", "n"),
    ranks=common.ranks,
    threads=common.threads,
    values=_values,
    check=common.refusal(_values),
    output=_output,
    start={"p": (1, 2, 4, 8, 16, 32), "n": (1000, 1500, 2000, 2500, 3000, 3500)},
)
