"""HPL: High-Performance Linpack. Its whole input is the file HPL.dat in the working directory."""

from __future__ import annotations

from collections.abc import Mapping

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Sample

# What stands on each line of HPL.dat; HPL reads by position, and only the first words of a line.
_INPUT = """\
HPL.dat written by measurement-orchestrator
one problem, one process grid, one variant
HPL.out  output file
6        device out (6 = stdout)
1        number of problem sizes
{n}        N
1        number of block sizes
{nb}        NB
0        process mapping (0 = row-major)
1        number of process grids
{rows}        P
{columns}        Q
16.0     threshold of the residual
1        number of panel factorisations
{pfact}        PFACT (0 = left, 1 = Crout, 2 = right)
1        number of stopping criteria
{nbmin}        NBMIN
1        number of panels in recursion
2        NDIV
1        number of recursive factorisations
{rfact}        RFACT (0 = left, 1 = Crout, 2 = right)
1        number of broadcasts
{bcast}        BCAST (0 = 1rg, 1 = 1rM, 2 = 2rg, 3 = 2rM, 4 = Lng, 5 = LnM)
1        number of lookahead depths
{depth}        DEPTH
2        SWAP (0 = binary exchange, 1 = long, 2 = mix)
64       swapping threshold
0        L1 (0 = transposed)
0        U (0 = transposed)
1        equilibration (1 = yes)
8        memory alignment in doubles
"""
_ROUNDING = 0.006  # s: the time is printed with two decimals


def _grid(settings: Settings) -> tuple[int, int]:
    count = common.ranks(settings)
    rows = common.positive(settings, "rows", common.most_square(count)[0])
    if count % rows:
        raise ValueError(f"{rows} rows do not divide p = {count} ranks, so P x Q cannot be p")
    return rows, count // rows


def _plan(settings: Settings) -> str:
    common.threads(settings)
    rows, columns = _grid(settings)
    ranges = {"pfact": (2, 2), "rfact": (1, 2), "bcast": (0, 5), "depth": (1, 9)}
    options = {name: common.integer(settings, name, default) for name, (default, _) in ranges.items()}
    for name, value in options.items():
        if not 0 <= value <= ranges[name][1]:
            raise ValueError(f"{name} must be within 0 and {ranges[name][1]}, not {value}")
    return _INPUT.format(
        n=common.positive(settings, "n"),
        nb=common.positive(settings, "nb", 128),
        nbmin=common.positive(settings, "nbmin", 4),
        rows=rows,
        columns=columns,
        **options,
    )


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
        "bcast": "panel broadcast 0..5 (BCAST, default 0)",
        "depth": "lookahead (DEPTH, default 1)",
    },
    required=("p", "n"),
    ranks=common.ranks,
    threads=common.threads,
    arguments=lambda settings: [],
    check=common.refusal(_plan),
    output=_output,
    files=lambda settings: {"HPL.dat": _plan(settings)},
)
