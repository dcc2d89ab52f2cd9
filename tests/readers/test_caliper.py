"""Profiles that Caliper 2.14 wrote (see `tests/data/caliper`), whole, cut, damaged and changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.errors import ReadError
from orchestrator.readers.cali import read_cali
from orchestrator.readers.caliper import OUTSIDE, attribute, profile, read
from tests.applications import demo

DATA = Path(__file__).parents[1] / "data" / "caliper"
SPOT, RANKS = DATA / "halo-spot.cali", DATA / "halo-ranks.cali"
STEPS, P = 3, 2
APPLICATION = demo(2)
ODD = 'inner, "odd"=\\name'
every_file = pytest.mark.parametrize("path", [SPOT, RANKS], ids=["spot", "ranks"])

Values = dict[tuple[str, str], dict[str, float]]


def values(path: Path, inclusive: bool = False) -> Values:
    """Return (call path, metric) -> aggregate -> value."""
    found: Values = {}
    for sample in profile(path, inclusive):
        aggregates = found.setdefault((sample.callpath, sample.metric), {})
        assert sample.aggregate not in aggregates
        aggregates[sample.aggregate] = sample.value
    return found


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Path]:
    """Write a copy of a profile in which texts are replaced, each of which must be there."""

    def write(*pairs: tuple[str, str], path: Path = SPOT) -> Path:
        text = path.read_text()
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        copy = tmp_path / "changed.cali"
        copy.write_text(text)
        return copy

    return write


@every_file
def test_regions_nest_and_their_visits_are_counted(path: Path) -> None:
    found = values(path)
    visits = {callpath: item["sum"] for (callpath, metric), item in found.items() if metric == "visits"}
    regions = {name: count for name, count in visits.items() if "MPI_" not in name}
    assert regions == {
        "main": P,
        "main->compute": P * STEPS,
        f"main->compute->{ODD}": P * STEPS,
        "main->exchange": P * STEPS,
        "main->report": 1,
    }


def test_mpi_operations_are_call_paths() -> None:
    found = values(SPOT)
    assert found["main->exchange->MPI_Sendrecv", "visits"] == {"mean": 3, "max": 3, "min": 3, "sum": 6}
    assert found["main->MPI_Allreduce", "visits"]["sum"] == P * STEPS


@every_file
def test_a_rank_that_never_entered_a_region_has_zero_there(path: Path) -> None:
    found = values(path)
    assert found["main->report", "visits"] == {"mean": 0.5, "max": 1, "min": 0, "sum": 1}
    times = found["main->report", "time"]
    assert times["mean"] == times["sum"] / P == times["max"] / P > times["min"] == 0


@every_file
def test_aggregates_fit_together(path: Path) -> None:
    for item in values(path).values():
        assert item["min"] <= item["mean"] * (1 + 1e-5) <= item["max"] * (1 + 2e-5)
        assert item["mean"] * P == pytest.approx(item["sum"], rel=1e-5)


@every_file
def test_inclusive_times_are_those_of_the_region_and_all_below(path: Path) -> None:
    own, whole = values(path), values(path, inclusive=True)
    times = {callpath for callpath, metric in own if metric == "time"} - {OUTSIDE}
    for callpath in times:
        parts = [own[name, "time"]["sum"] for name in times if f"{name}->".startswith(f"{callpath}->")]
        assert whole[callpath, "time"]["sum"] == pytest.approx(sum(parts), rel=1e-4)


def test_values_of_single_ranks_are_aggregated() -> None:
    # Written by the two ranks at "compute", exclusive.
    assert values(RANKS)["main->compute", "time"] == pytest.approx(
        {"mean": (5.989e-06 + 1.0446e-05) / 2, "max": 1.0446e-05, "min": 5.989e-06, "sum": 1.6435e-05}
    )


def test_without_exclusive_times_they_come_from_inclusive_ones(changed: Callable[..., Path]) -> None:
    """As from a configuration without time.exclusive: what is linear can be found, extremes cannot."""
    copy = changed(
        *((f"{word}#scale#sum#time", f"{word}#other#sum#time") for word in ("min", "max", "avg", "sum"))
    )
    own, derived = values(SPOT), values(copy)
    for callpath in ("main", "main->exchange", f"main->compute->{ODD}"):
        assert set(derived[callpath, "time"]) == {"mean", "sum"}
        for aggregate, value in derived[callpath, "time"].items():
            assert value == pytest.approx(own[callpath, "time"][aggregate], abs=1e-9)


def test_time_series_are_left_out(changed: Callable[..., Path]) -> None:
    copy = changed(("attr=15,data=regionprofile", "attr=15,data=timeseries"))
    with pytest.raises(ReadError, match="no values of regions"):
        profile(copy)


@pytest.mark.parametrize(
    ("name", "unit", "by_rank", "expected"),
    [
        ("avg#inclusive#sum#time.duration", "sec", False, ("time", True, "mean", 1.0)),
        ("max#scale#sum#time.duration.ns", "sec", False, ("time", False, "max", 1.0)),
        ("min#sum#time.duration", "", False, ("time", False, "min", 1.0)),
        ("sum#time.duration.ns", "", False, ("time", False, "", 1e-9)),
        ("sum#sum#time.duration", "sec", True, ("time", False, "", 1.0)),
        ("inclusive#sum#time.duration.ns", "", True, ("time", True, "", 1e-9)),
        ("sum#sum#rc.count", "count", False, ("visits", False, "sum", 1.0)),
        ("count", "", True, ("visits", False, "", 1.0)),
        ("max#max#mem.highwater", "", False, ("mem.highwater", False, "max", 1.0)),
    ],
)
def test_the_names_of_attributes_say_what_they_hold(
    name: str, unit: str, by_rank: bool, expected: tuple[str, bool, str, float]
) -> None:
    found = attribute(name, unit, by_rank)
    assert found is not None
    assert (found.quantity.metric, found.quantity.inclusive, found.aggregate, found.scale) == expected


@pytest.mark.parametrize(
    "name",
    ["min#min#aggregate.slot", "variance#sum#time.duration", "region", "avg#time.duration", "problem_size"],
)
def test_other_attributes_are_no_measurements(name: str) -> None:
    assert attribute(name, "", by_rank=False) is None


@every_file
def test_a_file_cut_at_any_byte_is_refused_by_name(path: Path, tmp_path: Path) -> None:
    content = path.read_bytes()
    copy = tmp_path / "cut.cali"
    for length in range(len(content)):
        copy.write_bytes(content[:length])
        with pytest.raises(ReadError, match=str(copy)):
            read_cali(copy)
    copy.write_bytes(content)
    assert profile(copy)


@every_file
def test_a_line_lost_in_the_middle_never_crashes(path: Path, tmp_path: Path) -> None:
    """What is left may still be a profile, but nothing else than `ReadError` may come of it."""
    lines = path.read_text().splitlines(keepends=True)
    copy = tmp_path / "lossy.cali"
    refused = 0
    for place in range(len(lines) - 1):
        copy.write_text("".join(lines[:place] + lines[place + 1 :]))
        try:
            profile(copy)
        except ReadError as error:
            refused += str(copy) in str(error)
    assert refused > 10


def test_two_programs_in_one_file_are_refused(tmp_path: Path) -> None:
    copy = tmp_path / "both.cali"
    copy.write_text(SPOT.read_text() + RANKS.read_text())
    with pytest.raises(ReadError, match="several programs"):
        profile(copy)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("id=49,attr=40,data=compute,parent=41", "id=49,attr=40,data=compute,parent=49", "its own parent"),
        ("data=2e-07=2e-07", "data=nan=2e-07", "'nan' at main->report: not a finite number"),
        ("data=2e-07=2e-07", "data=x=2e-07", "'x' at main->report: not a finite number"),
        ("__rec=ctx,ref=41", "__rec=ctx,ref=9999", "damaged"),
        (r"\\name,parent=49", "\\", "damaged: StopIteration"),
    ],
)
def test_damage_is_named(changed: Callable[..., Path], old: str, new: str, complaint: str) -> None:
    if old not in SPOT.read_text():
        pytest.fail(f"the test's own text {old!r} is not in {SPOT}")
    with pytest.raises(ReadError, match=complaint) as caught:
        profile(changed((old, new)), inclusive=True)
    assert "changed.cali" in str(caught.value)


def test_without_a_profile_the_error_that_caliper_printed_is_quoted_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text(
        "srun: some note\n== CALIPER: CALI_CONFIG: error: Unknown option: profile.mpi\n"
    )
    said = (
        r"no \.cali file .*; stderr says: == CALIPER: .* Unknown option: profile\.mpi; executor\.environment"
    )
    with pytest.raises(ReadError, match=said):
        read(tmp_path, APPLICATION)


def test_a_profile_that_several_ranks_wrote_says_how_that_happens(tmp_path: Path) -> None:
    whole = SPOT.read_text()
    (tmp_path / "caliper.cali").write_text(whole + whole[: len(whole) // 2])
    with pytest.raises(ReadError, match=r"truncated: .*a Caliper built without MPI"):
        read(tmp_path, APPLICATION)
