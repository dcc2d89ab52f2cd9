"""Experiments for Ramble from points that were chosen."""

from __future__ import annotations

import yaml

from orchestrator.report.ramble import experiments
from orchestrator.strategies.base import Choice
from orchestrator.types import Point


def choice(repetitions: int = 1, **values: int | float | str) -> Choice:
    return Choice(Point.of(**values), repetitions, "new point")


def test_points_are_variables_that_a_zip_iterates_over_together() -> None:
    text = experiments([choice(p=8, s=0.5), choice(p=64, s=2.0)])
    assert yaml.safe_load(text) == {
        "experiments": {
            "next_x1_{p}_{s}": {
                "variables": {"p": ["8", "64"], "s": ["0.5", "2"]},
                "zips": {"points": ["p", "s"]},
            }
        }
    }
    assert "# p=8,s=0.5 (1): new point" in text


def test_every_number_of_repetitions_is_an_experiment_of_its_own() -> None:
    found = yaml.safe_load(experiments([choice(2, p=8), choice(1, p=16), choice(2, p=32)]))["experiments"]
    assert found["next_x2_{p}"] == {
        "n_repeats": "2",
        "variables": {"p": ["8", "32"]},
        "zips": {"points": ["p"]},
    }
    assert found["next_x1_{p}"]["variables"] == {"p": ["16"]}


def test_texts_that_look_like_other_things_stay_texts() -> None:
    text = experiments([choice(layout="no", n=1)])
    [found] = yaml.safe_load(text)["experiments"].values()
    assert found["variables"] == {"layout": ["no"], "n": ["1"]}
