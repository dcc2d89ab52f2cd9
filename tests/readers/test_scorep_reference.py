"""Against what the Cube tools and an independent script read from the same profiles."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import pytest
from pycubexr import CubexParser

from orchestrator.readers.scorep import profile
from tests.requirements import measurement_data

EXTREME = ("min_time", "max_time")


def callpaths_by_id(path: Path) -> dict[int, str]:
    with CubexParser(path) as cube:
        names: dict[int, str] = {}
        for node in cube.all_cnodes():
            above = f"{names[node.parent.id]}->" if node.parent else ""
            names[node.id] = above + node.region.name
    return names


@pytest.mark.parametrize("inclusive", [False, True])
@pytest.mark.parametrize("name", ["call_tree_test", "time.p4.n2000.x1.r0", "blast.p64.r1"])
def test_values_are_those_of_the_cube_tools(name: str, inclusive: bool) -> None:
    folder = measurement_data() / "cubex" / "samples" / name
    path = next(folder.glob("*.cubex"))
    names = callpaths_by_id(path)
    ranks: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    with (folder / ("incl.csv" if inclusive else "excl.csv")).open() as stream:
        for row in csv.DictReader(stream, skipinitialspace=True):
            for metric in row.keys() - {"Cnode ID", "Thread ID"}:
                key = names[int(row["Cnode ID"])], metric
                ranks[key][row["Thread ID"]] += float(row[metric])
    got = {(s.callpath, s.metric, s.aggregate): s.value for s in profile(path, inclusive)}
    compared = 0
    for (callpath, metric), values in ranks.items():
        numbers = list(values.values())
        expected = {"max": max(numbers), "min": min(numbers), "mean": sum(numbers) / len(numbers)}
        if metric not in EXTREME:
            expected["sum"] = sum(numbers)
        elif len(set(names.values())) != len(names):
            continue  # siblings of one name combine by minimum or maximum, not by sum
        for aggregate, value in expected.items():
            # The reference has six digits.
            assert got[callpath, metric, aggregate] == pytest.approx(value, rel=2e-5, abs=1e-12)
            compared += 1
    assert compared > 100


def test_effort_counters_of_lulesh_are_exact() -> None:
    folder = measurement_data() / "cubex" / "lulesh-effort"
    with (folder / "lulesh_tidy.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    profiles = {
        run: {(s.callpath, s.metric, s.aggregate): s.value for s in profile(folder / run / "profile.cubex")}
        for run in {f"lulesh.p{row['p']}.s{row['s']}.r{row['rep']}" for row in rows}
    }
    counts = ("visits", "basic_blocks", "bytes_sent", "bytes_received")
    for row in rows:
        got = profiles[f"lulesh.p{row['p']}.s{row['s']}.r{row['rep']}"]
        for aggregate in ("sum", "max"):
            for metric in counts:
                assert got[row["callpath"], metric, aggregate] == float(row[f"{metric}_{aggregate}"])
            time = float(row[f"time_{aggregate}"])
            assert got[row["callpath"], "time", aggregate] == pytest.approx(time, rel=1e-9, abs=1e-12)
    assert len(rows) > 1000


def test_every_real_profile_is_read() -> None:
    for path in sorted(measurement_data().glob("cubex/**/*.cubex")):
        samples = profile(path)
        assert {"time", "visits"} <= {sample.metric for sample in samples}, path


def test_the_sample_with_wrong_checksums_is_read() -> None:
    path = measurement_data() / "cubex" / "samples" / "bt-mz_sum.p2.r1" / "cube4.8_with_checksum_bug.cubex"
    times = [s.value for s in profile(path, inclusive=True) if (s.metric, s.aggregate) == ("time", "max")]
    assert max(times) == pytest.approx(62.079984144507705)
