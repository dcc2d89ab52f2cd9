"""``orchestrator.compare``: the figures of the command, as a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import orchestrator as mo
from orchestrator.api.frames import to_frame
from tests.cli.running import run
from tests.models.comparison.campaigns import measured


def table(seed: int, factor: float = 1.0, callpaths: int = 2) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return to_frame(measured(rng, factor=lambda p, n: factor, noise=0.02, callpaths=callpaths))


def test_it_says_what_the_command_says(tmp_path: Path) -> None:
    first, second = table(1), table(2, 1.3)
    paths = [tmp_path / name for name in ("a.csv", "b.csv")]
    for side, path in zip((first, second), paths, strict=True):
        side.to_csv(path, index=False)
    found = mo.compare(first, second, at={"p": 128, "n": 40})
    options = ("--parameters", "p,n", "--predict", "p=128,n=40")
    rows = run("compare", *paths, *options, "--json").document["rows"]
    assert list(found["callpath"]) == [row["callpath"] for row in rows] == ["main->f0", "main->f1"]
    for name in ("ratio", "low", "high", "probability"):
        assert list(found[name]) == pytest.approx([row[name] for row in rows], rel=1e-9)
    assert list(found["false_alarms"]) == pytest.approx([row["false_discovery_rate"] for row in rows])
    assert list(found["what_changed"]) == [row["sentence"] for row in rows]
    assert (found["low"] < 1.3).all() and (found["high"] > 1.3).all()
    assert found[["p", "n"]].drop_duplicates().to_numpy().tolist() == [[128, 40]]


def test_a_row_per_call_path_and_point_and_none_is_lost() -> None:
    first, second = table(1), table(2, 1.3)
    only = second["callpath"] == "main->f0"
    places = pd.DataFrame({"p": [4, 8], "n": [10, 10]})
    found = mo.compare(first, second[only], at=places, modeler=None)
    assert found[["p", "callpath"]].to_numpy().tolist() == [
        [4, "main->f0"],
        [8, "main->f0"],
        [4, "main->f1"],
    ]
    assert found["ratio"].notna().tolist() == [True, True, False]
    assert found["what_changed"].iloc[2] == "only in first"
    assert set(found["basis"].dropna()) == {"pairs"}


def test_categories_are_compared_one_by_one() -> None:
    first, second = (
        pd.concat([table(seed, factor).assign(solver=name) for seed, name, factor in rows])
        for rows in ([(1, "cg", 1.0), (2, "amg", 1.0)], [(3, "cg", 1.0), (4, "amg", 2.0)])
    )
    found = mo.compare(first, second, modeler=None)
    ratios = found[found["callpath"] == "main->f0"].set_index("solver")["ratio"]
    assert ratios["cg"] == pytest.approx(1.0, abs=0.1) and ratios["amg"] == pytest.approx(2.0, rel=0.1)


def test_one_factor_of_all_call_paths_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="the same factor .1.3"):
        mo.compare(table(1, callpaths=12), table(2, 1.3, callpaths=12), modeler=None)


def test_what_cannot_be_compared_is_an_error() -> None:
    with pytest.raises(mo.CampaignError, match="only measurements with the same parameters"):
        mo.compare(table(1), table(2).rename(columns={"n": "m"}))
    with pytest.raises(mo.MeasurementError, match="n"):
        mo.compare(table(1), table(2), at={"p": 4})
    with pytest.raises(mo.MeasurementError, match="DataFrame"):
        mo.compare(table(1), {"p": [1]})  # type: ignore[arg-type]
