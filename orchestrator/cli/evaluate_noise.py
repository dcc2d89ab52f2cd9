"""``orchestrator evaluate noise``: modelers under artificial noise, with and without priors."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from orchestrator.cli import common
from orchestrator.evaluation import noise_cases, noise_figures, noise_runs, noise_study
from orchestrator.evaluation.noise import PATTERNS
from orchestrator.evaluation.noise_cases import REPETITIONS, Study
from orchestrator.evaluation.noise_rows import rows, table
from orchestrator.generate import manifest

Advance = Callable[[int, int], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-command's arguments."""
    add, positive = parser.add_argument, common.whole(1)
    _add_times(add)
    add("--pattern", action="append", choices=PATTERNS, help="repeatable; default: all")
    add(
        "--repetitions",
        action="append",
        type=int,
        choices=range(1, REPETITIONS + 1),
        help="runs per point that modelers get, repeatable; default 1 and 5",
    )
    add(
        "--injections",
        type=positive,
        default=5,
        metavar="N",
        help="of each noise (default 5; the paper has 100)",
    )
    add("--seed", type=common.whole(0), default=0)
    add("--workers", type=positive, metavar="N", help="processes (default: all cores)")
    add("--figures", type=Path, metavar="DIR", help="write figures as PNG")
    common.add_json(parser)


def _add_times(add: Callable[..., object]) -> None:
    """Add what says which times are disturbed, and by how much."""
    natural = common.number("a percentage from 0 to below 100", lambda x: 0 <= x < 100)
    level = common.number("a percentage from 0 to 1000", lambda x: 0 <= x <= 1000)
    of_functions = "simulated ones (default 50; the paper has 200)"
    add("--functions", type=common.whole(1), default=50, metavar="N", help=of_functions)
    add(
        "--natural",
        type=natural,
        default=2.0,
        metavar="PERCENT",
        help="noise that they have anyway (default 2)",
    )
    add(
        "--programs",
        type=Path,
        metavar="DIR",
        help="instead: built programs of `orchestrator generate`; run unless there is DIR/measurements.jsonl",
    )
    add("--metric", choices=("time", "cpu_time"), default="time", help="of the programs' runs (default time)")
    add(
        "--level",
        action="append",
        type=level,
        metavar="PERCENT",
        help=f"artificial noise, repeatable; default {', '.join(f'{x:g}' for x in noise_study.LEVELS)}",
    )


def run(arguments: argparse.Namespace, advance: Advance) -> int:
    """Run the sub-command."""
    study = _study(arguments, advance)
    chosen = noise_study.settings(
        arguments.level or noise_study.LEVELS,
        arguments.repetitions or (1, REPETITIONS),
        arguments.injections,
        arguments.pattern or tuple(PATTERNS),
    )
    errors = noise_study.run(study, chosen, seed=arguments.seed, workers=arguments.workers, advance=advance)
    results = rows(errors, study.parameters)
    if arguments.figures is not None:
        noise_figures.write(results, arguments.figures)
    if arguments.json:
        common.print_json({"rows": results})
    else:
        print(table(results))
    return 0


def _study(arguments: argparse.Namespace, advance: Advance) -> Study:
    if arguments.programs is None:
        return noise_cases.synthetic(arguments.functions, arguments.natural, arguments.seed)
    known = manifest.read(arguments.programs / manifest.NAME)
    return noise_cases.measured(
        known, noise_runs.measurements(arguments.programs, known, advance), arguments.metric
    )
