"""`orchestrator model --speedup`, `--efficiency`, `--option`."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tests.cli.running import run


def measured(metric: str = "time", name: str = "p") -> str:
    rows = [
        f"{p},{n},{callpath},{metric},{k},{factor * n * (0.05 + 0.95 / p) * (1 + 0.001 * k)}"
        for p, n in product((1, 2, 4, 8, 16), (10, 20, 40))
        for callpath, factor in (("main", 1.0), ("main->solve", 0.9))
        for k in (1, 2)
    ]
    Path("m.csv").write_text("\n".join([f"{name},n,callpath,metric,repetition,value", *rows]) + "\n")
    return "m.csv"


SPEEDUP = ("--modeler", "speedup", "--option", "overhead=none")


def test_curves_and_limits_as_json() -> None:
    result = run("model", measured(), *SPEEDUP, "--speedup", "p=64,n=40", "--efficiency", "0.25", "--json")
    assert result.code == 0, result.err
    for model in result.document["models"]:
        [found] = model["speedup"]
        assert (found["scaling"], found["reference"]) == ("strong", {"p": 1, "n": 40})
        assert [row["processes"] for row in found["curve"]] == [1, 2, 4, 8, 16, 32, 64]
        last = found["curve"][-1]
        assert last["speedup"]["value"] == pytest.approx(1 / (0.05 + 0.95 / 64), rel=0.02)
        assert last["efficiency"]["value"] == pytest.approx(last["speedup"]["value"] / 64)
        # 1 / (N (1 - p) + p) is a quarter at N = (4 - p) / (1 - p).
        assert found["limit"]["processes"] == pytest.approx(61, abs=2)


def test_the_same_as_text_of_another_family() -> None:
    result = run("model", measured(), "--modeler", "pmnf", "--efficiency", "0.5")
    assert result.code == 0, result.err
    assert "strong scaling: one problem on N = p, relative to p=1 (times fall with processes" in result.out
    assert "main: efficiency is below 50 % beyond N = 2" in result.out  # 20 or 21
    assert "core-hours" in result.out
    result = run("model", measured(), "--modeler", "pmnf", "--efficiency", "0.001")
    text = " ".join(result.out.split())
    assert "below 0.1 % nowhere up to N = 16384 by the model; measured was up to N = 16" in text


def test_parameters_that_count_processes_are_named_where_names_do_not_tell() -> None:
    file = measured(name="width")
    result = run("model", file, *SPEEDUP)
    assert result.code == 1 and "no name says which parameter counts processes" in result.err
    result = run("model", file, *SPEEDUP, "--processes", "width", "--efficiency", "0.5")
    assert result.code == 0 and "N = width" in result.out


def test_a_metric_without_seconds_has_no_speedup() -> None:
    result = run("model", measured("visits"), "--modeler", "pmnf", "--efficiency", "0.5")
    assert result.code == 1 and "speedup and efficiency are of times in seconds" in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--efficiency", "50"), "not a share between 0 and 1"),
        (("--option", "overhead"), "is not KEY=VALUE"),
        (("--option", "overhead=["), "is no value in YAML"),
        (("--speedup", "p=4"), "lacks n"),
        (("--option", "overhed=none"), "overhed"),
        (("--option", "overhead=fortran"), "overhead is 'fortran': use one of none, power"),
        (("--efficiency", "0.5", "--processes", "q"), "q is no numeric parameter; name some of p, n"),
    ],
)
def test_mistakes_are_named(arguments: tuple[str, ...], said: str) -> None:
    result = run("model", measured(), "--modeler", "speedup", *arguments)
    assert result.code in (1, 2) and said in " ".join(result.err.split())
