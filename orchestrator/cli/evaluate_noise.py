"""``orchestrator evaluate noise``: how noisy measurements are, and what models make of noise.

Without inputs: modelers on times of known complexity (simulated, or of generated programs). With inputs: the
noise of the measurements and, with a stated theory, modelers on their repetitions and under artificial noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.api.inputs import of_metrics
from orchestrator.cli import common, inputs
from orchestrator.errors import CampaignError
from orchestrator.evaluation.artificial_noise import PATTERNS
from orchestrator.evaluation.models.fit import Contender
from orchestrator.evaluation.noise import cases as noise_cases
from orchestrator.evaluation.noise import figures as noise_figures
from orchestrator.evaluation.noise import measured as noise_measured
from orchestrator.evaluation.noise import runs as noise_runs
from orchestrator.evaluation.noise import study as noise_study
from orchestrator.evaluation.noise import theory as noise_theory
from orchestrator.evaluation.noise.cases import REPETITIONS, Study
from orchestrator.evaluation.noise.rows import Row, rows, table
from orchestrator.evaluation.parallel import Advance
from orchestrator.generate import manifest
from orchestrator.models.effort import EFFORT
from orchestrator.report import figures, noise_report
from orchestrator.report.callpath_names import shortened
from orchestrator.report.tables import console
from orchestrator.types import Measurements

_TIMES = ("time", "cpu_time")  # of programs' runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-command's arguments."""
    add, positive = parser.add_argument, common.whole(1)
    inputs.add_inputs(parser, optional=True)
    _add_measured(add)
    _add_times(add)
    add("--pattern", action="append", choices=PATTERNS, help="repeatable; default: all")
    add(
        "--repetitions",
        action="append",
        type=positive,
        metavar="N",
        help=f"runs per point that modelers get, repeatable; default 1 and {REPETITIONS} (the most), of "
        "inputs all subsets of any size",
    )
    add(
        "--injections",
        type=positive,
        default=5,
        metavar="N",
        help="of each noise (default 5; the paper has 100)",
    )
    common.add_seed(add)
    common.add_workers(add)
    common.add_figures(add)
    common.add_json(parser)


def _add_measured(add: Callable[..., object]) -> None:
    """Add what is for measured applications."""
    add(
        "--against-theory",
        metavar="CALLPATH=EXPRESSION",
        action="append",
        default=[],
        help="compare models of the inputs with this, up to coefficients: 'main=p + n*log2(n*p)' "
        "(repeatable)",
    )
    add(
        "--modeler",
        metavar="NAME",
        action="append",
        help="of the inputs, with options as pmnf:members=50 (repeatable); default "
        f"{', '.join(noise_measured.WITHOUT_EFFORT)}, where effort was counted also both kinds of swc",
    )
    add(
        "--train-where", metavar="EXPRESSION", action="append", default=[], help="of points to fit: 'p < 512'"
    )
    add(
        "--test-where",
        metavar="EXPRESSION",
        action="append",
        default=[],
        help="of points to predict: 'p == 512' (default: the largest value of every parameter; all points "
        "below these values are fitted)",
    )


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
    add(
        "--metric",
        default="time",
        metavar="NAME",
        help=f"of the inputs; or of the programs' runs, {' or '.join(_TIMES)} (default time)",
    )
    add(
        "--level",
        action="append",
        type=level,
        metavar="PERCENT",
        help=f"artificial noise, repeatable; default {', '.join(f'{x:g}' for x in noise_study.LEVELS)}",
    )


def run(arguments: argparse.Namespace, advance: Advance) -> int:
    """Run the sub-command."""
    if arguments.inputs:
        if not arguments.against_theory and (
            arguments.modeler or arguments.train_where or arguments.test_where
        ):
            raise CampaignError(
                "--modeler, --train-where and --test-where are for models, which are compared with a law: "
                "state it by --against-theory CALLPATH=EXPRESSION"
            )
        return _measured(arguments, advance)
    if arguments.against_theory or arguments.modeler or arguments.train_where or arguments.test_where:
        raise CampaignError(
            "--against-theory, --modeler, --train-where and --test-where are for measurements: name their "
            "files"
        )
    _check_repetitions(arguments.repetitions or (), REPETITIONS)
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


def _check_repetitions(wanted: Any, most: int) -> None:
    if too_many := [count for count in wanted if count > most]:
        raise CampaignError(f"--repetitions {too_many[0]}: there are at most {most}")


def _study(arguments: argparse.Namespace, advance: Advance) -> Study:
    if arguments.programs is None:
        return noise_cases.synthetic(arguments.functions, arguments.natural, arguments.seed)
    if arguments.metric not in _TIMES:
        raise CampaignError(f"--metric {arguments.metric}: runs of programs have {' and '.join(_TIMES)}")
    known = manifest.read(arguments.programs / manifest.NAME)
    return noise_cases.measured(
        known, noise_runs.measurements(arguments.programs, known, advance), arguments.metric
    )


def _measured(arguments: argparse.Namespace, advance: Advance) -> int:
    """Report the noise of measurements; with a theory, compare models with it."""
    known = inputs.read(arguments)
    metric = _metric(known, arguments.metric)
    report = noise_report.noise_report(of_metrics(known, [metric]))
    results = _against_theory(arguments, known, metric, advance) if arguments.against_theory else []
    if arguments.figures is not None:
        arguments.figures.mkdir(parents=True, exist_ok=True)
        (arguments.figures / "violins.png").write_bytes(figures.png(noise_report.violins(report)))
        if results:
            noise_figures.write(results, arguments.figures)
    if arguments.json:
        common.print_json({"noise": noise_report.document(report), "rows": results})
        return 0
    screen = console()
    screen.print(noise_report.table(report))
    for text in report.notes:
        screen.print(f"note: {text}", style="dim")
    if results:
        print(f"\n{table(results)}")
    return 0


def _metric(known: Measurements, wanted: str) -> str:
    """Return the metric: the only one, whatever it is called, or the wanted one."""
    there = known.metrics()
    return there[0] if len(there) == 1 else wanted


def _against_theory(
    arguments: argparse.Namespace, known: Measurements, metric: str, advance: Advance
) -> list[Row]:
    theories = noise_theory.stated(arguments.against_theory, known)
    counted = any(item.metric in EFFORT for item in known.items)
    texts = arguments.modeler or (noise_measured.WITH_EFFORT if counted else noise_measured.WITHOUT_EFFORT)
    studied = noise_measured.application(
        replace(known, items=tuple(i for i in known.items if i.metric == metric or i.metric in EFFORT)),
        metric,
        theories,
        names=shortened(item.callpath for item in known.items),
        train_where=arguments.train_where,
        test_where=arguments.test_where,
    )
    _check_repetitions(arguments.repetitions or (), studied.repetitions)
    chosen = noise_measured.settings(
        arguments.level or noise_study.LEVELS,
        arguments.repetitions or (),
        arguments.injections,
        arguments.pattern or tuple(PATTERNS),
        studied.repetitions,
    )
    errors = noise_measured.run(
        studied,
        [Contender.of(text) for text in dict.fromkeys(texts)],
        chosen,
        seed=arguments.seed,
        workers=arguments.workers,
        advance=advance,
    )
    numeric = [name for name in known.parameters if not known.is_categorical(name)]
    return rows(errors, numeric)
