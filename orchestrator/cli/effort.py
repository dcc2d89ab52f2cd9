"""Build programs that count basic blocks and MPI bytes per call path, and look at their counts.

CXX="$(orchestrator effort compiler mpicxx)" make      # a compiler that adds the counters
LD_PRELOAD="$(orchestrator effort preload mpicc)"      # MPI operations of a program as it is
LD_PRELOAD="$(orchestrator effort timer mpicc)"        # the same, timed: measure.profiler: mpi
orchestrator effort show DIRECTORY                     # what a run has counted
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.text import Text

from orchestrator.cli.common import add_json, print_json
from orchestrator.errors import MissingInput
from orchestrator.instrumentation import build
from orchestrator.readers import effort
from orchestrator.report.callpath_names import named
from orchestrator.report.tables import console, titled
from orchestrator.units import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command's arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    compiler = actions.add_parser("compiler", help="print a compiler that adds the counters")
    compiler.add_argument(
        "--scorep", action="store_true", help="run it under Score-P, for counts in .cubex files"
    )
    preload = actions.add_parser("preload", help="print what to preload to count MPI operations only")
    timer = actions.add_parser("timer", help="print what to preload to time MPI operations")
    plugin = actions.add_parser("plugin", help="build the Score-P metric plugin; print its path")
    plugin.add_argument(
        "--include", type=Path, help="folder of Score-P's headers, if scorep-config is not there"
    )
    for part in (compiler, preload, timer, plugin):
        part.add_argument("compiler", help="such as mpicxx, gcc or a path; gcc and clang and what wraps them")
        part.add_argument("--cache", type=Path, help="where to keep builds (default: ~/.cache)")
    show = actions.add_parser("show", help="print the counts of a run per call path")
    show.add_argument("directory", type=Path, help="an attempt's directory, or where the program ran")
    show.add_argument(
        "--top", type=int, default=30, help="call paths to show, the largest first (default 30)"
    )
    add_json(show)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; print paths alone on standard output, for use in shells."""
    if arguments.action == "show":
        return _show(arguments)
    built = build.build(arguments.compiler, arguments.cache)
    if arguments.action == "compiler":
        if not built.mpi:
            print(f"note: {built.compiler} knows no mpi.h; MPI is not counted", file=sys.stderr)
        print(build.wrapper(built, arguments.scorep))
    elif arguments.action == "preload":
        print(":".join(str(path) for path in build.preload(built)))
    elif arguments.action == "timer":
        print(build.timer(built))
    else:
        print(build.plugin(built, arguments.include))
    return 0


def _show(arguments: argparse.Namespace) -> int:
    if not arguments.directory.exists():
        raise MissingInput(f"{arguments.directory}: there is no such file or directory")
    profile = effort.profile(arguments.directory)
    rows = _rows(profile)
    if arguments.json:
        print_json({"ranks": profile.values.shape[1], "callpaths": rows})
        return 0
    ranks, paths = count(profile.values.shape[1], "rank"), count(len(rows), "call path")
    table = titled(f"{ranks}, {paths}; counts are sums over ranks", ["call path"], profile.metrics)
    for row in named(rows)[: arguments.top]:
        cells = (row[metric] for metric in profile.metrics)
        table.add_row(Text(row["callpath"]), *("-" if cell is None else f"{cell:.16g}" for cell in cells))
    console().print(table)
    if arguments.top < len(rows):
        console().print(f"{arguments.top} of {paths} shown: --top {len(rows)} shows all")
    return 0


def _rows(profile: effort.Profile) -> list[dict[str, Any]]:
    """Return one row per call path, those with the largest share of all blocks or bytes first."""
    sums = effort.samples(profile)
    wanted = {metric: "mean" if metric == effort.SIZE else "sum" for metric in profile.metrics}
    rows: dict[str, dict[str, Any]] = {
        path: {"callpath": path, **dict.fromkeys(profile.metrics)} for path in profile.callpaths
    }
    for sample in sums:
        if sample.aggregate == wanted[sample.metric]:
            rows[sample.callpath][sample.metric] = sample.value
    totals = {
        metric: sum(row[metric] or 0 for row in rows.values())
        for metric in (effort.BLOCKS, effort.SENT, effort.RECEIVED)
        if metric in profile.metrics
    }
    # MPI operations have no blocks, and functions no bytes: only shares compare both.
    shares = {
        path: max(((row[metric] or 0) / total for metric, total in totals.items() if total), default=0.0)
        for path, row in rows.items()
    }
    return sorted(rows.values(), key=lambda row: -shares[row["callpath"]])
