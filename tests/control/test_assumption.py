"""The run time that is assumed where nothing is known: its form, and a scale that the campaign can afford."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.control import assumption, planning
from orchestrator.control.assembly import Assembly, assemble
from orchestrator.control.execution import executor
from orchestrator.types import Point

CAMPAIGN = """\
name: unknown
application: generic
program: {arguments: ["{n}"], ranks: px * py, threads: t, output: [{callpath: main, pattern: "t=(.*)"}]}
parameters: {px: [1, 2], py: [1, 2], t: [1, 2], n: [10, 20, 40], m: [1, 3, 5], k: {values: [a, b]}, z: [0, 1]}
evaluation_point: {px: 4, py: 4, t: 4, n: 80, m: 7, k: b, z: 0}
strategy: cpf
stop: {budget: 10 core-hours}
executor: {name: simulated, truth: {main: "1"}}
"""


def assembled(*overrides: str) -> Assembly:
    return assemble(loader.loads(CAMPAIGN, overrides=overrides))


def test_sizes_multiply_and_ranks_and_threads_divide() -> None:
    expression, words = assumption.run_time(assembled())
    assert expression.endswith(" * n * m / px / py / t")  # no category, and nothing that may be zero
    assert "in proportion to n * m / px / py / t" in words


def test_a_parameter_of_which_only_some_values_are_possible_is_no_obstacle() -> None:
    only = assembled("parameters={px: [1, 2, 4], n: [10, 20]}", "settings={py: 1, t: 1}",
                     "evaluation_point={px: 8, n: 40}", "constraints=[px < 4]")  # fmt: skip
    assert assumption.run_time(only)[0].endswith(" * n / px")


def test_without_numbers_it_is_constant() -> None:
    expression, words = assumption.run_time(
        assembled(
            "parameters={k: {values: [a, b]}}",
            "evaluation_point=null",
            "settings={px: 1, py: 1, t: 1, n: 1}",
            "strategy=full",
        )
    )
    assert expression.endswith(" * 1") and words.startswith("constant")


@pytest.mark.parametrize("limit", [None, "100 s", "n * 20"])
def test_the_first_round_is_affordable_and_the_longest_run_within_its_limit(limit: str | None) -> None:
    built = assembled(
        *([] if limit is None else [f"measure.time_limit={limit}"]), "stop.budget=60 core-hours"
    )
    campaign = built.campaign
    function = campaign.expression(assumption.run_time(built)[0])
    first = planning.first_round(built, executor(campaign, Path(campaign.name), 0.0))

    def seconds(point: Point) -> float:
        return function.number(campaign.values(point))

    cost = sum(cores * seconds(run.point) for run, cores in zip(first.runs, first.cores, strict=True))
    assert 0 < cost <= 0.1001 * campaign.stop.budget
    assert max(map(seconds, built.space)) <= 0.501 * min(first.limits)
