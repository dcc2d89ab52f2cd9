"""Compare two campaigns, or sets of measurements, call path by call path.

What is compared is B / A: the ratio with its interval, the probability that it is not simply 1, how both
grow, and, where effort was counted, whether the work or its speed changed. With --fail-if it is a test of
scaling for continuous integration: exit code 1 if a condition holds, 2 for one that cannot be read.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator import registry
from orchestrator.api.compare import compared_metrics, joint, models_of_both
from orchestrator.api.fit import chosen_modeler
from orchestrator.api.inputs import campaign_among
from orchestrator.cli import common, inputs, modeling
from orchestrator.cli.pipes import reader_may_leave
from orchestrator.errors import CampaignError, ModelError
from orchestrator.evaluation.noise import theory
from orchestrator.models.base import Modeler
from orchestrator.models.comparison.conditions import Condition
from orchestrator.models.comparison.pairs import Aligned, aligned
from orchestrator.models.effort import CALLS, has_effort
from orchestrator.report import comparison, comparison_facts, comparison_text, junit
from orchestrator.report.callpath_names import selected
from orchestrator.report.tables import console
from orchestrator.types import Measurements, Point, format_value
from orchestrator.units import count

_WITHOUT = "none"
_Between = tuple[str, str, str]
"""A parameter, and the two of its categories that are A and B."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="+",
        type=Path,
        help="A and B: campaign directories, or files or folders as `orchestrator model` takes them; with "
        "--between, or of a campaign with `compare`, one that has both",
    )
    parser.add_argument(
        "--between",
        metavar="NAME=A,B",
        help="compare two categories within one input: --between solver=cg,gmres",
    )
    parser.add_argument(
        "--predict",
        metavar="POINT",
        action="append",
        default=[],
        help="the ratio there, e.g. --predict p=1024,s=35 (repeatable; default: the evaluation point of the "
        "campaigns, or the largest point that both measured)",
    )
    parser.add_argument(
        "--fail-if",
        metavar="CONDITION",
        action="append",
        default=[],
        help="end with exit code 1 if this holds for a call path: 'ratio > 1.1 with 95 %%', 'growth > 0.1 "
        "with 90 %%' (the exponent by which B/A grows with a parameter), 'change with 95 %%', 'theory > 0.2' "
        "(the exponent of B beyond that of --against-theory) (repeatable)",
    )
    parser.add_argument(
        "--against-theory",
        metavar="CALLPATH=EXPRESSION",
        action="append",
        default=[],
        help="compare the models of both with this, up to coefficients: 'main=p + n*log2(n*p)' (repeatable)",
    )
    parser.add_argument("--metric", action="append", help="compare only this metric (repeatable)")
    parser.add_argument(
        "--callpath", action="append", help="compare only call paths with this text (repeatable)"
    )
    parser.add_argument(
        "--modeler",
        choices=(*registry.names("model"), _WITHOUT),
        help="of the expressions, and of ratios beyond common points (default: that of the campaigns, else "
        f"{modeling.DEFAULT}); {_WITHOUT}: common points alone, much faster",
    )
    inputs.add_reading(parser)
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write the results as JUnit XML, too")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write one self-contained page, too")
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    for option, output in (("--junit", arguments.junit), ("--html", arguments.html)):
        if output is not None:
            inputs.refuse_as_output(output, arguments.inputs, option)
    variants = _own_variants(arguments.inputs)
    conditions = [Condition.of(text) for text in arguments.fail_if]
    if any(item.subject == "theory" for item in conditions) and not arguments.against_theory:
        raise CampaignError(
            "--fail-if 'theory ...' needs a stated law: give --against-theory CALLPATH=EXPRESSION"
        )
    first, second, between = _sides(arguments, variants)
    both = aligned(first, second, together=_measured_together(between, variants))
    everything = joint(both)
    question = comparison.Question(
        points=[common.parse_point(text, everything) for text in arguments.predict]
        or _evaluation_point(arguments, everything),
        metrics=compared_metrics(both, arguments.metric),
        conditions=conditions,
        theories=theory.stated(arguments.against_theory, everything),
        callpaths=selected((item.callpath for item in everything.items), arguments.callpath),
        names=("A", "B") if between is None else between[1:],
    )
    with modeling.shown_progress():
        models = models_of_both(both, question.metrics, _modelers(arguments))
    compared = comparison.document(both, models, question)
    if not compared["rows"]:
        raise ModelError("nothing can be compared: no call path has usable values in both")
    sides = _facts(arguments.inputs, first, second, between, own=arguments.between is None)
    compared["facts"] = comparison_facts.side_by_side(*sides)
    compared["notes"] += comparison_facts.disturbances(*sides, question.names)
    compared["notes"] += _not_asked_for(both, question.metrics or ())
    if arguments.junit is not None:
        common.write(arguments.junit, junit.junit(compared))
    if arguments.html is not None:
        from orchestrator.report.page import comparison as page_of
        from orchestrator.report.page.render import page

        common.write(
            arguments.html, page(page_of.document(compared, _names(arguments.inputs, between), both, models))
        )
    code = 0 if comparison.passes(compared) else 1
    with reader_may_leave():
        if arguments.json:
            common.print_json(compared)
        else:
            _print(compared)
    return code


def _not_asked_for(both: Aligned, metrics: Sequence[str]) -> list[str]:
    """Say which counts of both are not compared; those of effort tell work from speed."""
    common = [name for name in both.first.metrics() if name in both.second.metrics()]
    counts = [name for name in common if name in CALLS and name not in metrics]
    if not counts or has_effort(both.first):
        return []
    return [f"counts are compared where they are asked for: --metric {' --metric '.join(counts)}"]


def _own_variants(paths: Sequence[Path]) -> _Between | None:
    """Return what a campaign compares within itself; None for anything else."""
    from orchestrator.campaign.schema import VARIANT
    from orchestrator.control import existing

    directory = campaign_among(paths) if len(paths) == 1 else None
    section = None if directory is None else existing.load(directory).compare
    return None if section is None else (VARIANT, *section.names)


def _measured_together(between: _Between | None, variants: _Between | None) -> bool:
    """Return whether A and B are the two executables of one campaign, whose runs are neighbours."""
    return between is not None and variants is not None and between[0] == variants[0]


def _sides(
    arguments: argparse.Namespace, variants: _Between | None
) -> tuple[Measurements, Measurements, _Between | None]:
    """Return the measurements of A and B, and which categories of one input they are."""
    paths: Sequence[Path] = arguments.inputs
    if arguments.between is None and variants is None:
        if len(paths) != 2:
            raise CampaignError(
                f"{count(len(paths), 'input')}: give two, A and B, or one with --between NAME=A,B; put "
                "several files of one side into a folder"
            )
        first, second = (inputs.read(arguments, [path]) for path in paths)
        return first, second, None
    if len(paths) != 1:
        raise CampaignError(f"--between compares categories within one input, but {len(paths)} were given")
    known = inputs.read(arguments, paths)
    text = arguments.between or "{}={},{}".format(*(variants or ()))
    name, one, other = between = _between(text, known)
    return _only(known, name, one), _only(known, name, other), between


def _between(text: str, known: Measurements) -> _Between:
    """Read ``NAME=A,B``; categories may contain commas themselves."""
    name, equals, values = (part.strip() for part in text.partition("="))
    pieces = values.split(",")
    pairs = [(",".join(pieces[:n]).strip(), ",".join(pieces[n:]).strip()) for n in range(1, len(pieces))]
    if not equals or not pairs:
        raise CampaignError(f"--between {text!r}: write NAME=A,B, such as solver=cg,gmres")
    if name not in known.parameters:
        raise CampaignError(f"--between {text!r}: the parameters are {', '.join(known.parameters)}")
    there = [format_value(value) for value in known.values_of(name)]
    found = [pair for pair in pairs if set(pair) <= set(there)]
    if len(found) == 1:
        return (name, *found[0])
    if len(pairs) > 1:
        raise CampaignError(
            f"--between {text!r}: write NAME=A,B with two of the values of {name}: {', '.join(there)}"
        )
    missing = next(value for value in pairs[0] if value not in there)
    raise CampaignError(f"--between {text!r}: {name} has the values {', '.join(there)}, not {missing}")


def _only(known: Measurements, name: str, value: str) -> Measurements:
    def chosen(points: Any) -> dict[Point, Any]:
        return {
            Point(tuple(item for item in point.items if item[0] != name)): values
            for point, values in points.items()
            if format_value(point[name]) == value
        }

    items = tuple(
        replace(item, values=chosen(item.values), origins=chosen(item.origins)) for item in known.items
    )
    return Measurements(
        tuple(other for other in known.parameters if other != name),
        tuple(item for item in items if item.values),
        known.categorical - {name},
    )


def _evaluation_point(arguments: argparse.Namespace, known: Measurements) -> list[Point]:
    """Return the evaluation point that the campaigns have in common, as far as they have one."""
    stated = (inputs.evaluation_point(path, known) for path in arguments.inputs)
    points = [point for point in stated if point is not None]
    return points[:1] if len(set(points)) == 1 else []


def _modelers(arguments: argparse.Namespace) -> tuple[Modeler, Modeler] | None:
    """Return what fits A and B; None for nothing. Campaigns with one kind of model keep it.

    Else their formulas would be others than those that ``status`` shows. A and B may be of one campaign.
    """
    from orchestrator.control import assembly, existing

    if arguments.modeler == _WITHOUT:
        return None
    directories = [campaign_among([path]) for path in arguments.inputs]
    campaigns = [existing.load(directory) for directory in directories if directory is not None]
    if arguments.modeler is None and len(campaigns) == len(directories):
        first, second = campaigns[0], campaigns[-1]
        if first.model.name == second.model.name:
            return assembly.modeler(first), assembly.modeler(second)
    chosen = chosen_modeler(arguments.modeler or modeling.DEFAULT, {})
    return chosen, chosen


def _facts(
    paths: Sequence[Path], first: Measurements, second: Measurements, between: _Between | None, own: bool
) -> tuple[comparison_facts.Facts, comparison_facts.Facts]:
    """Return where A and B come from; ``own``: categories are those that a campaign compares itself."""
    a = comparison_facts.facts(paths[0], first)
    b = comparison_facts.facts(paths[-1], second, other=between is not None and own)
    if between is not None:
        name, one, other = between
        return {name: one, **a}, {name: other, **b}
    return a, b


def _names(paths: Sequence[Path], between: _Between | None) -> tuple[str, str]:
    """Return what A and B are called: their files' names, or the categories."""
    first, second = (path.resolve().name for path in paths) if between is None else between[1:]
    return (first, second) if first != second else ("A", "B")


def _print(compared: dict[str, Any]) -> None:
    screen = console()
    names, rows = compared["names"], compared["rows"]
    screen.print(comparison_text.facts_table(compared["facts"], names))
    for table in (
        comparison_text.ratios_table(rows, compared["points"][0], names),
        comparison_text.growth_table(rows, names),
        comparison_text.work_table(rows, names),
    ):
        if table is not None:
            screen.print()
            screen.print(table)
    lines = [*comparison_text.further_points(rows), *comparison_text.theory_lines(rows, names)]
    for side in names:
        if only := compared[f"only_in_{side}"]:
            lines.append(f"only in {names[side]}: {', '.join(sorted({item['callpath'] for item in only}))}")
    lines += [f"note: {note}" for note in compared["notes"]]
    lines += [f"note: {comparison.label_of(row)}: {note}" for row in rows for note in row["notes"]]
    for line in [*lines, *comparison_text.verdict_lines(compared["conditions"])]:
        screen.print(line)
