"""Compare strategies and models: on synthetic functions of known truth, or on replayed measured data.

Every strategy works under the same rules on the same noisy runs. 100 % of the budget is the cost of all
points with five repetitions, or with all that were measured if these are fewer; a starting set over budget
counts as a wrong model and is reported apart.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from orchestrator import registry
from orchestrator.cli import common, evaluate_models, evaluate_noise, evaluate_speedup, inputs
from orchestrator.errors import CampaignError
from orchestrator.evaluation.paper import study as paper
from orchestrator.evaluation.paper import table as paper_table
from orchestrator.evaluation.paper.draw import SERIES
from orchestrator.evaluation.strategies import contenders, figures
from orchestrator.evaluation.strategies.replay import replay_bench, replay_outcomes
from orchestrator.evaluation.strategies.rows import Row, rows, table
from orchestrator.evaluation.strategies.rules import Rules
from orchestrator.evaluation.strategies.synthetic import NEIGHBOURS, Setting, synthetic_outcomes
from orchestrator.evaluation.strategies.trial import Outcome

Value = TypeVar("Value")

_KINDS = {
    "synthetic": "draw functions and noise (the papers' section IV)",
    "replay": "choose among measured repetitions (the paper's section V)",
    "noise": "models of noisy times, with and without priors",
    "models": "modelers on measured samples, by the number of training points",
    "speedup": "speedups on more processes and larger problems than were fitted",
}
# With results of their own.
_OTHERS = {"noise": evaluate_noise.run, "models": evaluate_models.run, "speedup": evaluate_speedup.run}
_TOLERANCES = (5.0, 10.0, 15.0, 20.0)  # the error intervals of the paper's figures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands ``synthetic``, ``replay``, ``noise``, ``models`` and ``speedup``."""
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="synthetic|replay|noise|models|speedup")
    parsers = {
        kind: kinds.add_parser(kind, help=text, description=f"{text[0].upper()}{text[1:]}.")
        for kind, text in _KINDS.items()
    }
    synthetic, replay = parsers["synthetic"], parsers["replay"]
    _add_synthetic(synthetic.add_argument)
    inputs.add_inputs(replay)
    _add_replay(replay.add_argument)
    evaluate_noise.add_arguments(parsers["noise"])
    evaluate_models.add_arguments(parsers["models"])
    evaluate_speedup.add_arguments(parsers["speedup"])
    for kind, labels in ((synthetic, contenders.STANDARD), (replay, contenders.REPLAYED)):
        _add_common(kind, labels)


def _add_synthetic(add: Callable[..., object]) -> None:
    noise = common.number("a percentage from 0 to below 100", lambda x: 0 <= x < 100)
    share = common.number("a percentage from 0 to 100", lambda x: 0 <= x <= 100)
    add("--parameters", action="append", type=int, metavar="N", help="1 to 4 (default 2)")
    add(
        "--noise", action="append", type=noise, metavar="PERCENT", help="bound of the mixed noise (default 5)"
    )
    add("--outliers", type=share, default=0.0, metavar="PERCENT", help="runs slowed down 2 to 5 times")
    add(
        "--functions",
        type=_whole_or_each,
        default=100,
        metavar="N",
        help="how many (default 100; with --paper half of them with three and a fifth with four parameters, "
        "or a number for each: 2=100,3=50,4=20)",
    )
    add("--functions-file", type=Path, metavar="FILE", help="expressions in a, b, c, d")
    add(
        "--neighbour",
        choices=NEIGHBOURS,
        default="none",
        help="what another campaign with 10 %% of its cost found is a prior: of a function with the same "
        "exponents and other coefficients, or with other exponents (default none)",
    )
    add(
        "--paper",
        action="store_true",
        help="the protocol of the paper's evaluation: starting sets of 9, 13 and 17 points, known costs, "
        "an end at the first point over budget; --parameters, --noise and --modeler are repeatable (default: "
        "2, 3, 4; 1, 2, 5, 10; extra-p), --functions-file may be a folder with m2.json, m3.json and m4.json",
    )
    add(
        "--series",
        action="append",
        choices=tuple(SERIES),
        help="with --paper: value series that functions have in turn; repeatable; default: all",
    )
    add(
        "--published-noise",
        action="store_true",
        help="with --paper: noise as in the published evaluation, which adds up from run to run and is the "
        "same for all functions; four repetitions make 100 %%",
    )
    add(
        "--patience",
        type=common.whole(1),
        metavar="N",
        help="with --paper: rounds without a lower SMAPE that end it, too (default: only the budget does)",
    )


def _add_replay(add: Callable[..., object]) -> None:
    add(
        "--processes",
        required=True,
        metavar="EXPRESSION",
        help="cores of a run, in the parameters: 'p' or 'nodes * ppn'",
    )
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
    add(
        "--budget",
        action="append",
        type=budget,
        metavar="PERCENT",
        help="repeatable; default 10 (with --paper 1, 2, 5, 10, 20, 50)"
        if labels == contenders.STANDARD
        else "repeatable; default 10",
    )
    add(
        "--tolerance",
        type=tolerance,
        default=5.0,
        metavar="PERCENT",
        help="a model is accurate if its error at P+ is at most this many percent (default 5)",
    )
    add(
        "--modeler", action="append", choices=registry.names("model"), help="of all strategies (default auto)"
    )
    if labels == contenders.STANDARD:
        add(
            "--batch-size",
            type=_whole_or_each,
            metavar="N",
            help="points per round (default 1; with --paper 2=1,3=5,4=50, a number for each number of "
            "parameters)",
        )
    else:
        add("--batch-size", type=positive, metavar="N", help="points per round (default 1)")
    common.add_seed(add)
    common.add_workers(add)
    common.add_figures(add)
    common.add_json(parser)
    parser.set_defaults(labels=labels)


def _whole_or_each(text: str) -> int | dict[int, int]:
    """Read a whole number from 1, or one for each number of parameters: ``2=40,3=20``."""
    if "=" not in text:
        return common.whole(1)(text)
    pairs = [part.partition("=") for part in text.split(",")]
    try:
        numbers = {int(number): common.whole(1)(count) for number, _, count in pairs}
    except (ValueError, argparse.ArgumentTypeError):
        numbers = {}
    if len(numbers) < len(pairs):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number from 1 for each number of parameters, such as 2=40,3=20,4=10"
        )
    return numbers


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.kind in _OTHERS:
        with _progress() as advance:
            return _OTHERS[arguments.kind](arguments, advance)
    if getattr(arguments, "paper", False):
        return _paper(arguments)
    with _progress() as advance:
        outcomes = (_synthetic if arguments.kind == "synthetic" else _replay)(arguments, advance)
    results = rows(outcomes, arguments.tolerance)
    if arguments.figures is not None:
        _draw(arguments, outcomes, results)
    if arguments.json:
        common.print_json({"rows": [_finite(row) for row in results]})
    else:
        print(table(results))
    if not any(row["feasible_percent"] for row in results):
        largest = max(row["budget_percent"] for row in results)
        print(
            f"note: no starting set fits a budget of {largest:g} %, so there are no models: give a larger "
            "--budget",
            file=sys.stderr,
        )
    return 0


def _paper(arguments: argparse.Namespace) -> int:
    """Run the protocol of the paper."""
    for option, given in (("--outliers", arguments.outliers), ("--neighbour", arguments.neighbour != "none")):
        if given:
            raise CampaignError(f"{option} has no place in --paper: leave one of them out")
    protocol = paper.Protocol(
        functions=arguments.functions,
        functions_file=arguments.functions_file,
        published_noise=arguments.published_noise,
        batch_size=arguments.batch_size,
        patience=arguments.patience,
        seed=arguments.seed,
        **{
            name: tuple(dict.fromkeys(given))
            for name, given in (
                ("parameters", arguments.parameters),
                ("noise", arguments.noise),
                ("strategies", arguments.strategy),
                ("modelers", arguments.modeler),
                ("budgets", arguments.budget and sorted(arguments.budget)),
                ("series", arguments.series),
            )
            if given
        },
    )
    with _progress() as advance:
        cells = paper.paper_outcomes(protocol, workers=arguments.workers, advance=advance)
    results = paper_table.paper_rows(cells, arguments.tolerance)
    if arguments.figures is not None:
        path = arguments.figures / f"paper-seed{arguments.seed}.png"
        paper_table.figure(results, path, arguments.tolerance)
    if arguments.json:
        common.print_json({"rows": [_finite(row) for row in paper_table.document(results)]})
    else:
        print(paper_table.table(results, arguments.tolerance))
        print(f"\nfunctions: {paper_table.numbers(results)}")
    return 0


def _synthetic(arguments: argparse.Namespace, advance: Callable[[int, int], None]) -> list[Outcome]:
    for option, given in (
        ("--series", arguments.series),
        ("--published-noise", arguments.published_noise),
        ("--patience", arguments.patience),
    ):
        if given:
            raise CampaignError(f"{option} is part of the paper's protocol: add --paper, or leave it out")
    setting = Setting(
        parameters=_only("--parameters", arguments.parameters, 2),
        noise=_only("--noise", arguments.noise, 5.0),
        outliers=arguments.outliers,
        functions=_number("--functions", arguments.functions),
        functions_file=arguments.functions_file,
        neighbour=arguments.neighbour,
    )
    return synthetic_outcomes(setting, _rules(arguments), workers=arguments.workers, advance=advance)


def _replay(arguments: argparse.Namespace, advance: Callable[[int, int], None]) -> list[Outcome]:
    known = inputs.read(arguments)
    rules = _rules(arguments)
    holdout = common.parse_point(arguments.holdout, known).as_dict()
    return replay_outcomes(
        replay_bench(known, arguments.processes, holdout, inside=arguments.inside),
        rules,
        repetitions=arguments.repetitions,
        together=arguments.together,
        workers=arguments.workers,
        advance=advance,
    )


def _only(option: str, given: Sequence[Value] | None, default: Value) -> Value:
    """Return the one value of an option that only the paper's protocol repeats."""
    if given and len(given) > 1:
        raise CampaignError(
            f"{option} is given {len(given)} times: give it once; evaluate synthetic --paper has several"
        )
    return given[0] if given else default


def _number(option: str, given: int | dict[int, int]) -> int:
    """Return the value of an option that only the paper's protocol has for each number of parameters."""
    if isinstance(given, dict):
        text = ",".join(f"{number}={value}" for number, value in given.items())
        raise CampaignError(
            f"{option} {text}: a value for each number of parameters is part of the paper's protocol: add "
            "--paper, or give one number"
        )
    return given


def _rules(arguments: argparse.Namespace) -> Rules:
    return Rules(
        strategies=tuple(arguments.strategy or arguments.labels),
        budgets=tuple(arguments.budget or (10.0,)),
        batch_size=_number("--batch-size", arguments.batch_size or 1),
        seed=arguments.seed,
        model=_only("--modeler", arguments.modeler, "auto"),
    )


def _draw(arguments: argparse.Namespace, outcomes: list[Outcome], results: list[Row]) -> None:
    """Accuracy per error interval (figures 5 and 6), and the use of the budget (figure 7)."""
    panels = {f"tolerance ±{tolerance:g} %": rows(outcomes, tolerance) for tolerance in _TOLERANCES}
    name = f"{arguments.kind}-seed{arguments.seed}"
    figures.accuracy_figure(panels, arguments.figures / f"accuracy-{name}.png")
    panels = {f"tolerance ±{arguments.tolerance:g} %": results}
    figures.usage_figure(panels, arguments.figures / f"usage-{name}.png")


def _finite(row: Mapping[str, Any]) -> dict[str, Any]:
    unknown = [key for key, value in row.items() if isinstance(value, float) and not math.isfinite(value)]
    return {**row, **dict.fromkeys(unknown)}


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    with common.bar() as bar:
        task = bar.add_task("evaluating", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
