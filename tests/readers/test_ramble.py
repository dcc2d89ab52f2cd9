"""Results that Ramble 0.5.0 wrote, whole and changed (see `tests/data/ramble`)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import ReadError
from orchestrator.readers.load import load
from orchestrator.readers.ramble import read
from orchestrator.readers.reading import Reading
from orchestrator.types import Measurements, Point

FILE = Path(__file__).parents[1] / "data" / "ramble" / "results.latest.json"
PAIRS = ((10, 1), (40, 4), (80, 1), (80, 2))


def values(known: Measurements) -> dict[tuple[str, str], dict[Point, tuple[float, ...]]]:
    return {(item.callpath, item.metric): dict(item.values) for item in known.items}


def changed(**keys: Any) -> str:
    """Return the results with keys of all experiments replaced."""
    document = json.loads(FILE.read_text())
    for item in document["experiments"]:
        item.update(keys)
    return json.dumps(document)


def test_figures_of_merit_are_metrics_and_repeated_experiments_repetitions() -> None:
    found = load([FILE])
    assert found.parameters == ("problem_size", "n_ranks")
    points = {pair: Point.of(problem_size=pair[0], n_ranks=pair[1]) for pair in PAIRS}
    times = {points[pair]: (pair[1] + 0.5,) * (2 if pair[0] < 80 else 1) for pair in PAIRS}
    rates = {points[pair]: (float(pair[0]),) * (2 if pair[0] < 80 else 1) for pair in PAIRS}
    assert values(found) == {("halo.standard", "Total time"): times, ("halo.standard", "rate"): rates}


def test_the_folder_of_a_workspace_is_its_latest_results(tmp_path: Path) -> None:
    shutil.copy(FILE, tmp_path / "results.2026-11-23_07.20.09.json")
    (tmp_path / "results.2026-01-01_00.00.00.json").write_text("{}")
    (tmp_path / "configs").mkdir()
    assert values(load([tmp_path])) == values(load([FILE]))


def test_parameters_may_be_named() -> None:
    found = load([FILE], Reading(parameters=["n_ranks"]))
    assert found.points == (Point.of(n_ranks=1), Point.of(n_ranks=4), Point.of(n_ranks=2))
    with pytest.raises(ReadError, match=r"experiment halo.standard.next_1_10.1: no variable p; there are"):
        load([FILE], Reading(parameters=["p"]))


def test_failed_experiments_do_not_count() -> None:
    with pytest.raises(ReadError, match="no experiment with RAMBLE_STATUS SUCCESS"):
        read(changed(RAMBLE_STATUS="FAILED"), "results.json")


def test_units_of_time_become_seconds_and_texts_are_left_out() -> None:
    figures = [
        {"name": "wall [ms]", "value": "250", "units": "ms", "origin_type": "application"},
        {"name": "host", "value": "n17", "units": "", "origin_type": "application"},
        {"name": "energy", "value": "3", "units": "J", "origin_type": "modifier", "origin": "power"},
    ]
    contexts = [
        {"name": "null", "foms": figures},
        {"name": "s1", "display_name": "step 1", "foms": figures[:1]},
    ]
    found = values(read(changed(CONTEXTS=contexts), "results.json"))
    assert set(found) == {
        ("halo.standard", "wall"),
        ("halo.standard", "power::energy"),
        ("halo.standard->step 1", "wall"),
    }
    assert set(found["halo.standard", "wall"].values()) == {(0.25, 0.25), (0.25,)}


@pytest.mark.parametrize("text", ["[]", '{"experiments": 1}', '{"experiments": [1]}', "", "{"])
def test_what_is_no_such_file_is_refused(text: str) -> None:
    with pytest.raises(ReadError, match=r"results\.json: not (the results of a Ramble workspace|JSON)"):
        read(text, "results.json")
