"""The fastest configuration of a campaign without an evaluation point, and the uncertainty of its models."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from orchestrator import space
from orchestrator.control import runtime
from orchestrator.models import uncertainty
from orchestrator.report import tables
from orchestrator.types import Point
from tests.cli.running import Result, run
from tests.strategies.views import TrueModel

CAMPAIGN = """\
name: tuning
application: generic
executable: /bin/true
program:
  arguments: ["{n}", "{k}", "{layout}"]
  output: [{callpath: main, pattern: 't=(.*)'}]
parameters:
  n: {from: 1, to: 100000}
  k: {from: 1, to: 10000}
  layout: [DGZ, ZGD]
constraints: ["n % 2 == 0"]
measure: {time_limit: 12 s, repetitions: {initial: 1, maximum: 1}}
strategy: {name: sample, batch_size: 15}
stop: {budget: 3.5 core-minutes, patience: 4}
executor: {name: simulated, noise: 0, truth: {main: "2 + 8 * (n > 1000) + k / 10000"}}
model: pmnf
seed: 1
"""

SMALL = (
    CAMPAIGN.replace("{from: 1, to: 100000}", "[2, 4, 6]")
    .replace("{from: 1, to: 10000}", "[1, 2]")
    .replace("batch_size: 15", "batch_size: 5")
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two billion combinations, hundreds are looked at where it would be some ten thousands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runtime, "_MOST_POINTS", 500)
    monkeypatch.setattr(space, "_MOST_VISITED", 10_000)


def rehearsed(text: str, *options: str) -> Result:
    Path("campaign.yaml").write_text(text)
    result = run("simulate", "campaign.yaml", "--directory", "rehearsal", *options)
    assert result.code == 0, result.err
    return result


def test_measured_points_are_counted_once_among_those_that_are_predicted() -> None:
    rehearsed(SMALL)
    shown = run("status", "rehearsal", "--json").document["fastest"]
    assert shown["points"] > 1 and shown["candidates"] == 12


def test_a_space_of_two_billion_combinations_is_planned_run_shown_and_reported() -> None:
    Path("campaign.yaml").write_text(CAMPAIGN)
    plan = run("plan", "campaign.yaml", "--no-rehearsal")
    assert "search space: about 9.9e+08 points of 2e+09 combinations" in plan.out, plan.err
    result = rehearsed(CAMPAIGN)
    assert "fastest measured configurations" in result.out
    assert "uncertainty over the search space" in result.out
    shown = run("status", "rehearsal", "--json").document
    best, *_ = shown["fastest"]["measured"]
    times = [row["seconds"] for row in shown["fastest"]["measured"]]
    assert times == sorted(times) and 2 < times[0] < 3.5
    assert shown["fastest"]["points"] == shown["points"] > 10
    assert shown["fastest"]["predicted"]["predicted"] > 0
    assert shown["uncertainty_targets"] == 100
    head = run("report", "rehearsal", "--json").document["head"]
    assert head["answer"]["is_fastest"]
    assert "That is the fastest measured configuration." in head["answer"]["sentence"]
    assert head["answer"]["point"] == best["point"]
    fastest = [item["value"] for item in head["facts"] if item["label"] == "Fastest measured configurations"]
    assert len(fastest) == len(times) and f"{times[0]:.4g} s" in fastest[0]


def test_configurations_that_may_be_as_fast_as_the_fastest_are_counted() -> None:
    """Of parameters that change nothing, one value is no better than another."""
    rehearsed(SMALL.replace("8 * (n > 1000) + k / 10000", "8 * (layout == 'ZGD')"))
    found = run("status", "rehearsal", "--json").document["fastest"]
    assert found["alike"] == {"points": 5, "common": {"layout": "DGZ"}}
    said = " ".join(run("status", "rehearsal").out.split())
    end = f"{found['predicted']['high']:.4g}"
    assert f"maybe as fast: 5 other points, with intervals that begin below {end} s; all" in said
    assert "all of these have layout=DGZ" in said
    facts = run("report", "rehearsal", "--json").document["head"]["facts"]
    values = {item["label"]: item["value"] for item in facts}
    assert values["Maybe as fast"].startswith("5 other points") and "layout=DGZ" in str(values)


def test_a_configuration_with_which_the_program_fails_is_not_the_fastest() -> None:
    text = SMALL.replace("8 * (n > 1000) + k / 10000", "12 / n").replace("[2, 4, 6]", "[2, 4, 6, 8]")
    text = text.replace("k: [1, 2]", "k: {from: 1, to: 5}").replace("3.5 core", "6 core")
    rehearsed(text.replace("noise: 0,", 'noise: 0, fails_where: "n == 8",'))
    shown = run("status", "rehearsal", "--json").document
    assert "n >= 8" in " ".join(shown["left_out"])
    assert shown["uncertainty_targets"] == 30
    assert shown["fastest"]["candidates"] == 30
    assert shown["fastest"]["predicted"]["point"]["n"] == 6


def test_a_configuration_that_is_faster_than_all_others_has_none_beside_it() -> None:
    rehearsed(SMALL.replace("8 * (n > 1000) + k / 10000", "n + 8 * (layout == 'ZGD') + k"))
    found = run("status", "rehearsal", "--json").document["fastest"]
    assert found["predicted"]["point"] == {"n": 2, "k": 1, "layout": "DGZ"}
    assert found["alike"]["points"] == 0
    assert "maybe as fast" not in run("status", "rehearsal").out


def test_models_that_an_earlier_version_published_do_not_say_what_is_as_fast() -> None:
    row = {"point": {"n": 2}, "seconds": 2.0, "runs": 1, "predicted": 2.0, "low": 1.9, "high": 2.1}
    (line,) = tables.fastest_lines({"predicted": row, "candidates": 3})
    assert line == "fastest by prediction, of 3 points: n=2: 2 [1.9, 2.1] s, measured 2 s"


def dataset(rows: list[tuple[int, int, str, float]]) -> None:
    lines = ["n,k,layout,callpath,time", *(",".join(map(str, (n, k, c, "main", t))) for n, k, c, t in rows)]
    Path("data.csv").write_text("\n".join(lines) + "\n")


def test_a_rehearsal_with_a_data_set_compares_with_the_fastest_of_it() -> None:
    """Its points are few among a billion: nothing else is looked at."""
    rng = np.random.default_rng(1)
    grid = itertools.product((10, 1000, 50_000, 100_000), (1, 7, 900), ("DGZ", "ZGD"))
    rows = [(n, k, c, round(1 + n / 1e6 + k / 1e3 + 0.1 * rng.random(), 4)) for n, k, c in grid]
    dataset([*rows, (10, 8, "DGZ", 0.5), (11, 8, "DGZ", 0.1)])  # the last one is no point
    result = rehearsed(CAMPAIGN, "--dataset", "data.csv", "--json")
    found = result.document["rehearsal"]["fastest"]
    assert found["points"] == 25
    assert found["best_point"] == {"n": 10, "k": 8, "layout": "DGZ"} and found["best_seconds"] == 0.5
    assert found["seconds"] == found["times_best"] * 0.5
    assert result.document["points"] == 25  # the budget holds all
    assert found["rank"] == 1
    lines = run("simulate", "campaign.yaml", "--dataset", "data.csv", "--set", "stop.budget=3.2 core-minutes")
    assert "the fastest of the 25 points compared" in lines.out


def test_a_rehearsal_with_a_known_truth_compares_with_the_fastest_of_the_space() -> None:
    text = SMALL.replace("8 * (n > 1000) + k / 10000", "n + 8 * (layout == 'ZGD') + k")
    text = text.replace("noise: 0,", 'noise: 0, fails_where: "n == 2",')
    found = rehearsed(text, "--json").document["rehearsal"]["fastest"]
    assert found["points"] == 8, "the program runs at so many"
    assert found["best_point"] == {"n": 4, "k": 1, "layout": "DGZ"} and found["best_seconds"] == 7
    assert found["seconds"] == found["times_best"] * 7 and found["rank"] >= 1
    lines = run(
        "simulate", "campaign.yaml", "--set", "strategy.start=2", "--set", "stop.budget=1.5 core-minutes"
    )
    assert "fastest measured configuration: P(n=" in lines.out
    assert "the fastest of the 8 points compared" in " ".join(lines.out.split())


def test_an_evaluation_point_is_what_counts_where_there_is_one() -> None:
    text = SMALL.replace("measure:", "evaluation_point: {n: 2000001, k: 1001, layout: DGZ}\nmeasure:")
    result = rehearsed(text, "--json")
    assert result.document["fastest"] is None
    assert result.document["uncertainty_targets"] == 0


def test_it_is_said_whose_times_are_compared() -> None:
    row = {"point": {"n": 2}, "seconds": 2.0, "runs": 1, "predicted": 2.0, "low": 1.9, "high": 2.1}
    found = {"predicted": row, "candidates": 3}
    assert tables.fastest_lines({**found, "callpaths": ["main"]})[1:] == ["compared: the time of main"]
    (said,) = tables.fastest_lines({**found, "callpaths": ["a", "b", "c", "d", "e"]})[1:]
    assert said.startswith("compared: the sum of the times of a, b, c, d and 1 more; if only one of them")
    rehearsed(SMALL)
    assert "compared: the time of main" in " ".join(run("status", "rehearsal").out.split())
    facts = run("report", "rehearsal", "--json").document["head"]["facts"]
    assert {item["label"]: item["value"] for item in facts}["Compared"] == "the time of main"


def test_the_fastest_is_the_time_of_the_whole_run() -> None:
    truth = '{main: "n / 100", "main->solve": "n / 200", "setup": "5"}'
    text = CAMPAIGN.replace('{main: "2 + 8 * (n > 1000) + k / 10000"}', truth).replace("100000", "20")
    found = rehearsed(text, "--json").document["fastest"]
    assert found["callpaths"] == ["main"]
    best = found["measured"][0]
    assert best["seconds"] == pytest.approx(best["point"]["n"] / 100)


def test_configurations_without_models_are_shown_without_predictions() -> None:
    row = {"point": {"n": 8}, "seconds": 0.5, "runs": 2, "predicted": None, "low": None, "high": None}
    found = {"measured": [row], "predicted": None, "points": 1, "candidates": 3, "callpaths": ["main"]}
    assert tables.fastest_lines(found) == []
    assert tables.fastest_table(found).row_count == 1


def test_the_uncertainty_over_points_is_their_median_and_unknown_where_most_have_no_model() -> None:
    points = [Point.of(n=n, layout=layout) for n in (1, 2, 3) for layout in ("DGZ", "ZGD")]
    everywhere = uncertainty.over([TrueModel("main"), TrueModel("main->f", 0.001)], points)
    assert everywhere.width == pytest.approx(0.2, rel=0.01)  # from 0.9 to 1.1 times the value
    assert everywhere.noise == pytest.approx(3.29 * 0.03, rel=0.01)
    assert (
        uncertainty.over([], points) == uncertainty.over([TrueModel("main")], []) == uncertainty.Uncertainty()
    )
