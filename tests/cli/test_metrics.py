"""Metrics with units and directions; figures of merit as such, and as their inverse."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.errors import CampaignError
from tests.cli.running import LOCAL, run, write_campaign

# A time of 2 n s, and n of work: half a unit per second, whatever n is.
PROGRAM = """\
#!/bin/sh
echo "time: $((2 * $1)) s"
echo "rate: 0.$((5 * $1))"
"""
RATE = "{name: rate, unit: cells/s, better: higher}"
TEXT = (
    LOCAL.replace(
        r"'time: (\S+) s'}]", r"'time: (\S+) s'}, {callpath: main, metric: rate, pattern: 'rate: (\S+)'}]"
    )
    .replace("measure: {", f"measure: {{metrics: [time, {RATE}], repetitions: {{initial: 1, maximum: 1}}, ")
    .replace("cpf, batch_size: 2", "full")
    .replace("[1, 2, 3, 4, 5]", "[1, 2, 4, 5, 6, 8]")
    .replace("{n: 8}", "{n: 16}")
)


def models(text: str) -> dict[tuple[str, str], str]:
    write_campaign(Path.cwd(), text, PROGRAM)
    status = run("run", "campaign.yaml", "--json").document
    assert status["runs"]["measured"] == 6, status["given_up"]
    return {(item["callpath"], item["metric"]): item["expression"] for item in status["models"]}


def test_a_figure_of_merit_is_modelled_as_such() -> None:
    assert {("main", "time"), ("main", "rate")} <= set(models(TEXT))
    assert run("status", "tiny", "--json").document["metrics"] == [
        {"metric": "time", "unit": "s", "better": "lower", "inverse_of": None},
        {"metric": "rate", "unit": "cells/s", "better": "higher", "inverse_of": None},
    ]
    assert "metrics: rate in cells/s (higher is better)" in run("status", "tiny").out
    facts = run("report", "tiny", "--json").document["head"]["facts"]
    assert "rate in cells/s (higher is better)" in [item["value"] for item in facts]


def test_or_as_its_inverse() -> None:
    found = models(TEXT.replace(RATE, RATE.replace("}", ", model: inverse}")))
    assert {("main", "time"), ("main", "1/rate")} <= set(found) and ("main", "rate") not in found
    assert "metrics: 1/rate in s/cells (lower is better)" in run("status", "tiny").out
    exported = run("export", "tiny", "--format", "csv").out
    rows = [line.split(",") for line in exported.splitlines() if ",1/rate," in line]
    assert {row[0]: float(row[-1]) for row in rows}["4"] == 1 / 0.20


def test_the_saved_campaign_has_the_same_metrics() -> None:
    path = write_campaign(Path.cwd(), TEXT, PROGRAM)
    chosen = loader.load(path)
    assert chosen.measure.measured == ("time", "rate")
    saved = path.with_name("saved.yaml")
    saved.write_text(loader.dump(chosen))
    assert loader.load(saved) == chosen
    assert "- time\n" in saved.read_text()  # the short form stays short


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[time, {name: rate", "[time, {name: time", "name at least one, and none twice"),
        ("better: higher", "better: larger", "better"),
        ("{name: rate", "{name: speed", "no run produces metric speed"),
        ("better: higher", "direction: higher", "unknown key"),
    ],
)
def test_mistakes_are_named(old: str, new: str, message: str) -> None:
    assert old in TEXT
    write_campaign(Path.cwd(), TEXT, PROGRAM)
    with pytest.raises(CampaignError, match=message):
        loader.loads(TEXT.replace(old, new), base_directory=Path.cwd())


def test_a_value_of_zero_fails_its_run_by_name() -> None:
    text = TEXT.replace(RATE, RATE.replace("}", ", model: inverse}"))
    write_campaign(Path.cwd(), text, PROGRAM.replace("0.$((5 * $1))", "0"))
    [first, *_] = run("run", "campaign.yaml", "--json").document["given_up"]
    assert "rate is 0, which has no inverse" in first["reason"]


def test_a_printed_figure_of_merit_stands_beside_another_profiler() -> None:
    found = models(TEXT.replace("measure: {", "measure: {profiler: time, ").replace("[time, ", "[time, "))
    assert {("main", "time"), ("main", "rate")} <= set(found)


def test_files_are_inverted_on_request() -> None:
    rows = "".join(f"{p},main,fom,{p / 2}\n" for p in (1, 2, 4, 8, 16))
    Path("a.csv").write_text(f"p,callpath,metric,value\n{rows}")
    [model] = run("model", "a.csv", "--inverse", "fom", "--predict", "p=32", "--json").document["models"]
    assert model["metric"] == "1/fom"
    assert model["predictions"][0]["value"] == pytest.approx(2 / 32, rel=0.01)
    assert (
        "no measurements of rate to invert; there are fom" in run("model", "a.csv", "--inverse", "rate").err
    )
