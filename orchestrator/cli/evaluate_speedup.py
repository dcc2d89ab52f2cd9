"""``orchestrator evaluate speedup``: predictions of speedups on more processes than were fitted."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from orchestrator.cli import common, inputs
from orchestrator.errors import CampaignError
from orchestrator.evaluation.parallel import Advance
from orchestrator.evaluation.speedup import cases as speedup_cases
from orchestrator.evaluation.speedup import contenders as speedup_contenders
from orchestrator.evaluation.speedup import rows as speedup_rows
from orchestrator.evaluation.speedup import study as speedup_study
from orchestrator.evaluation.speedup.study import Case

_SCALINGS = ("strong", "weak", "hybrid")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-command's arguments."""
    _add_runs(parser)
    inputs.add_columns(parser)
    _add_comparison(parser.add_argument)
    common.add_json(parser)


def _add_runs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "inputs",
        metavar="INPUT",
        nargs="*",
        type=Path,
        help="measured times: tables (CSV, Parquet), or all that `orchestrator model` reads; without any, "
        "runs on a simulated cluster",
    )
    add("--processes", metavar="EXPRESSION", help="of INPUT: the number of processes: 'nodes * ppn'")
    add(
        "--nodes",
        metavar="EXPRESSION",
        help="of INPUT: the number of nodes: 'ceil(p / ppn)' (default: one process per node)",
    )
    add(
        "--size",
        metavar="EXPRESSION",
        help="of INPUT: the problem size in units of work: 'n**3' (default: one size)",
    )
    for name, values, what in (
        ("machine", speedup_cases.NAMES, "of the simulated cluster"),
        ("program", speedup_cases.PROGRAMS, "simulated ones"),
    ):
        add(f"--{name}", action="append", choices=values, help=f"{what}, repeatable; default: all")
    add(
        "--levels",
        action="append",
        type=int,
        choices=speedup_cases.LEVELS,
        help="simulated: 1 for one process per node, 2 for several; repeatable; default: both",
    )


def _add_comparison(add: Callable[..., object]) -> None:
    share = common.number("a share above 0, up to 1", lambda x: 0 < x <= 1)
    add(
        "--scaling",
        action="append",
        choices=_SCALINGS,
        help="repeatable; default: strong, and hybrid of simulated runs",
    )
    add(
        "--contender",
        metavar="NAME",
        action="append",
        help="repeatable; default: "
        + ", ".join(speedup_contenders.SIMULATED)
        + " (of simulated runs); or any "
        "modeler with options as pmnf:members=50",
    )
    add(
        "--cutoff",
        metavar="N",
        action="append",
        type=common.whole(2),
        help="the largest number of processes that is fitted, c_f; several to compare them on the runs above "
        "the largest (default: the median, or the paper's)",
    )
    add(
        "--size-share",
        metavar="SHARE",
        action="append",
        type=share,
        help="the largest problem size that is fitted over the largest of all, w_f/w_max; of simulated runs "
        "edges of problems, as in the paper; repeatable (default: the median size)",
    )
    common.add_seed(add)
    common.add_workers(add)
    common.add_figures(add)


def run(arguments: argparse.Namespace, advance: Advance) -> int:
    """Run the sub-command."""
    cases = [
        varied
        for case in _cases(arguments)
        for varied in speedup_cases.sensitivity(case, arguments.cutoff or (), arguments.size_share or ())
    ]
    usual = speedup_contenders.STANDARD if arguments.inputs else speedup_contenders.SIMULATED
    names = tuple(dict.fromkeys(arguments.contender or usual))
    todo = speedup_study.tasks(cases, names, arguments.seed)
    rows = speedup_study.rows(todo, arguments.workers, advance)
    if arguments.figures is not None:
        from orchestrator.evaluation.speedup import figures as speedup_figures

        speedup_figures.write(rows, arguments.figures)
    if arguments.json:
        common.print_json({"rows": rows})
    else:
        print(speedup_rows.text(rows))
    return 0


def _cases(arguments: argparse.Namespace) -> list[Case]:
    if not arguments.inputs:
        _refuse(arguments, ("processes", "nodes", "size", "parameters", "names"), "give INPUT files with it")
        return speedup_cases.simulated(
            seed=arguments.seed,
            machines=arguments.machine or speedup_cases.NAMES,
            programs=arguments.program or speedup_cases.PROGRAMS,
            scalings=arguments.scaling or ("strong", "hybrid"),
            levels=arguments.levels or speedup_cases.LEVELS,
        )
    _refuse(arguments, ("machine", "program", "levels"), "it chooses among simulated runs, without INPUT")
    if arguments.processes is None:
        raise CampaignError("say how many processes runs had: --processes p, or --processes 'nodes * ppn'")
    return speedup_cases.in_files(
        inputs.read_files(arguments, arguments.inputs),
        machine=", ".join(path.stem for path in arguments.inputs),
        processes=arguments.processes,
        nodes=arguments.nodes,
        size=arguments.size,
        scalings=arguments.scaling or ("strong",),
    )


def _refuse(arguments: argparse.Namespace, names: tuple[str, ...], remedy: str) -> None:
    for name in names:
        if getattr(arguments, name):
            raise CampaignError(f"--{name}: {remedy}")
