from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import ReadError
from orchestrator.readers.select import NEAREST, select
from orchestrator.types import Sample

RANKS = [
    Sample("main", "time", 2.0, "mean"),
    Sample("main", "time", 3.0, "max"),
    Sample("main", "time", 1.0, "min"),
    Sample("main", "time", 8.0, "sum"),
    Sample("main->f", "time", 0.5),
    Sample("main", "visits", 4.0, "sum"),
]


def test_the_asked_aggregate_is_taken() -> None:
    for name, value in (("mean", 2.0), ("max", 3.0), ("min", 1.0), ("sum", 8.0)):
        assert select(RANKS, ["time"], name)["main", "time"] == value


def test_a_single_value_serves_every_aggregate() -> None:
    for name in NEAREST:
        assert select(RANKS, None, name)["main->f", "time"] == 0.5


def test_the_nearest_aggregate_replaces_a_missing_one() -> None:
    assert select(RANKS, ["visits"], "mean") == {("main", "visits"): 4.0}
    assert select(RANKS[1:], ["time"], "mean")["main", "time"] == 3.0
    assert select(RANKS, ["time"], "value")["main", "time"] == 2.0


def test_an_aggregate_of_another_name_is_better_than_none() -> None:
    assert select([Sample("main", "time", 7.0, "median")], None, "mean") == {("main", "time"): 7.0}


def test_only_wanted_metrics_are_kept() -> None:
    assert set(select(RANKS, ["visits"], "mean")) == {("main", "visits")}
    assert set(select(RANKS, None, "mean")) == {("main", "time"), ("main->f", "time"), ("main", "visits")}


def test_a_missing_metric_is_refused_naming_those_that_are_there() -> None:
    with pytest.raises(ReadError, match=r"metric bytes_sent, energy; this run has time, visits"):
        select(RANKS, ["time", "bytes_sent", "energy"], "mean")
    with pytest.raises(ReadError, match="none at all"):
        select([], ["time"], "mean")


def test_an_unknown_aggregate_is_refused() -> None:
    with pytest.raises(ReadError, match=r"'avg': known are value, mean"):
        select(RANKS, None, "avg")


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            Sample,
            st.sampled_from("ab"),
            st.sampled_from("tv"),
            st.floats(0, 9),
            st.sampled_from(list(NEAREST)),
        )
    ),
    st.sampled_from(list(NEAREST)),
)
def test_every_call_path_and_metric_gets_one_of_its_own_values(samples: list[Sample], aggregate: str) -> None:
    selected = select(samples, None, aggregate)
    assert set(selected) == {(s.callpath, s.metric) for s in samples}
    for (callpath, metric), value in selected.items():
        own = [s for s in samples if (s.callpath, s.metric) == (callpath, metric)]
        exact = [s.value for s in own if s.aggregate == aggregate]
        assert value in (exact or [s.value for s in own])
