"""Waiting time: what counts cannot explain, whatever a count costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator import registry
from orchestrator.models import explained
from orchestrator.models.swc.waiting import Explained
from orchestrator.types import Measurement, Measurements
from tests.models.swc.effort_data import FAR, POINTS, exact, together


def found(*items: Measurement) -> list[Explained]:
    known = together(*items)
    return explained(known, registry.load("model", "pmnf")()(known), [FAR])


def waits(entry: Explained) -> np.ndarray:
    return np.asarray(entry.seconds - entry.explained)


def test_time_that_follows_the_counts_is_explained_everywhere() -> None:
    blocks = exact("main", "basic_blocks", lambda p, n: 40 * n**2)
    [entry] = found(exact("main", "time", lambda p, n: 8e-5 * n**2), blocks)
    assert waits(entry) == pytest.approx(0.0, abs=1e-12)
    assert entry.beyond[FAR] == pytest.approx(8e-5 * 100**2, rel=1e-3)


def test_time_that_grows_without_more_work_is_waiting() -> None:
    blocks = exact("main", "basic_blocks", lambda p, n: 40 * n**2)
    [entry] = found(exact("main", "time", lambda p, n: 8e-5 * n**2 + 1e-3 * (p - 4)), blocks)
    expected = [1e-3 * (point.number("p") - 4) for point in entry.points]  # nothing on the fewest ranks
    assert waits(entry) == pytest.approx(expected, abs=1e-9)


def test_calls_and_bytes_of_mpi_are_work() -> None:
    path = "main->MPI_Allreduce"
    counted = (
        exact(path, "visits", lambda p, n: 10),
        exact(path, "bytes_sent", lambda p, n: 80 * n * p),  # the vector once per rank, as Score-P counts
    )
    [entry] = found(exact(path, "time", lambda p, n: 1e-4 * np.log2(p) + 1e-6 * n), *counted)
    assert set(entry.counts) == {"allreduce calls", "allreduce bytes_sent"}
    assert waits(entry) == pytest.approx(0.0, abs=1e-9)


def test_as_many_points_as_prices_tell_nothing() -> None:
    time, blocks = (exact("main", metric, lambda p, n: n) for metric in ("time", "basic_blocks"))
    few = [
        replace(item, values={point: item.values[point] for point in POINTS[:2]}) for item in (time, blocks)
    ]
    assert explained(Measurements(("p", "n"), tuple(few)), (), []) == []
    assert len(explained(together(time, blocks), (), [])) == 1
