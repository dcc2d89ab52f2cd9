"""Compare strategies and models: on synthetic functions of known truth, or on replayed measured data.

Every strategy works under the same rules on the same noisy runs. 100 % of the budget is the cost of all
points with five repetitions, or with all that were measured if these are fewer; a starting set over budget
counts as a wrong model and is reported apart.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from orchestrator import registry
from orchestrator.cli import common, evaluate_models, evaluate_noise, inputs
from orchestrator.evaluation import contenders, figures
from orchestrator.evaluation.replay import replay_outcomes
from orchestrator.evaluation.rows import Row, rows, table
from orchestrator.evaluation.rules import Rules
from orchestrator.evaluation.synthetic import Setting, synthetic_outcomes
from orchestrator.evaluation.trial import Outcome

_OTHERS = {"noise": evaluate_noise.run, "models": evaluate_models.run}  # with results of their own
_TOLERANCES = (5.0, 10.0, 15.0, 20.0)  # the error intervals of the paper's figures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands ``synthetic``, ``replay``, ``noise`` and ``models``."""
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="synthetic|replay|noise|models")
    synthetic = kinds.add_parser("synthetic", help="draw functions and noise (the papers' section IV)")
    _add_synthetic(synthetic.add_argument)
    replay = kinds.add_parser("replay", help="choose among measured repetitions (the paper's section V)")
    inputs.add_inputs(replay)
    _add_replay(replay.add_argument)
    evaluate_noise.add_arguments(
        kinds.add_parser("noise", help="models of noisy times, with and without priors")
    )
    evaluate_models.add_arguments(
        kinds.add_parser("models", help="modelers on measured samples, by the number of training points")
    )
    for kind, labels in ((synthetic, contenders.STANDARD), (replay, contenders.REPLAYED)):
        _add_common(kind, labels)


def _add_synthetic(add: Callable[..., object]) -> None:
    noise = common.number("a percentage from 0 to below 100", lambda x: 0 <= x < 100)
    share = common.number("a percentage from 0 to 100", lambda x: 0 <= x <= 100)
    add("--parameters", type=int, default=2, metavar="N", help="1 to 4 (default 2)")
    add("--noise", type=noise, default=5.0, metavar="PERCENT", help="bound of the mixed noise (default 5)")
    add("--outliers", type=share, default=0.0, metavar="PERCENT", help="runs slowed down 2 to 5 times")
    add("--functions", type=common.whole(1), default=100, metavar="N", help="how many (default 100)")
    add("--functions-file", type=Path, metavar="FILE", help="expressions in a, b, c, d")


def _add_replay(add: Callable[..., object]) -> None:
    add("--processes", required=True, metavar="EXPRESSION", help="cores of a run")
    add("--holdout", required=True, metavar="POINT", help="P+: x1=256,x2=70; never offered")
    add(
        "--repetitions",
        type=common.whole(1),
        metavar="N",
        help="most repetitions of a point; at every point never more than the point with the fewest has, "
        "which is the default",
    )
    add("--together", action="store_true", help="one campaign for all call paths")
    add("--inside", action="store_true", help="offer only points below the holdout")


def _add_common(parser: argparse.ArgumentParser, labels: tuple[str, ...]) -> None:
    add, positive = parser.add_argument, common.whole(1)
    budget = common.number("a percentage greater than 0", lambda x: x > 0)
    tolerance = common.number("a percentage from 0", lambda x: x >= 0)
    add("--strategy", action="append", metavar="NAME", help=f"repeatable; default: {', '.join(labels)}")
    add("--budget", action="append", type=budget, metavar="PERCENT", help="repeatable; default 10")
    add("--tolerance", type=tolerance, default=5.0, metavar="PERCENT", help="of accurate (5)")
    add("--modeler", default="auto", choices=registry.names("model"), help="of all strategies")
    add("--batch-size", type=positive, default=1, metavar="N", help="points per round (default 1)")
    add("--seed", type=common.whole(0), default=0)
    add("--workers", type=positive, metavar="N", help="processes (default: all cores)")
    add("--figures", type=Path, metavar="DIR", help="write figures as PNG")
    common.add_json(parser)
    parser.set_defaults(labels=labels)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.kind in _OTHERS:
        with _progress() as advance:
            return _OTHERS[arguments.kind](arguments, advance)
    with _progress() as advance:
        outcomes = (_synthetic if arguments.kind == "synthetic" else _replay)(arguments, advance)
    results = rows(outcomes, arguments.tolerance)
    if arguments.figures is not None:
        _draw(arguments, outcomes, results)
    if arguments.json:
        common.print_json({"rows": [_finite(row) for row in results]})
    else:
        print(table(results))
    return 0


def _synthetic(arguments: argparse.Namespace, advance: Callable[[int, int], None]) -> list[Outcome]:
    setting = Setting(
        parameters=arguments.parameters,
        noise=arguments.noise,
        outliers=arguments.outliers,
        functions=arguments.functions,
        functions_file=arguments.functions_file,
    )
    return synthetic_outcomes(setting, _rules(arguments), workers=arguments.workers, advance=advance)


def _replay(arguments: argparse.Namespace, advance: Callable[[int, int], None]) -> list[Outcome]:
    known = inputs.read(arguments)
    return replay_outcomes(
        known,
        _rules(arguments),
        processes=arguments.processes,
        holdout=common.parse_point(arguments.holdout, known).as_dict(),
        repetitions=arguments.repetitions,
        together=arguments.together,
        inside=arguments.inside,
        workers=arguments.workers,
        advance=advance,
    )


def _rules(arguments: argparse.Namespace) -> Rules:
    return Rules(
        strategies=tuple(arguments.strategy or arguments.labels),
        budgets=tuple(arguments.budget or (10.0,)),
        batch_size=arguments.batch_size,
        seed=arguments.seed,
        model=arguments.modeler,
    )


def _draw(arguments: argparse.Namespace, outcomes: list[Outcome], results: list[Row]) -> None:
    """Accuracy per error interval (figures 5 and 6), and the use of the budget (figure 7)."""
    panels = {f"±{tolerance:g} %": rows(outcomes, tolerance) for tolerance in _TOLERANCES}
    name = f"{arguments.kind}-seed{arguments.seed}"
    figures.accuracy_figure(panels, arguments.figures / f"accuracy-{name}.png")
    figures.usage_figure({f"±{arguments.tolerance:g} %": results}, arguments.figures / f"usage-{name}.png")


def _finite(row: Row) -> dict[str, Any]:
    unknown = [key for key, value in row.items() if isinstance(value, float) and not math.isfinite(value)]
    return {**row, **dict.fromkeys(unknown)}


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("evaluating", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
