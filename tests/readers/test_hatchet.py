"""HPCToolkit and TAU through llnl-hatchet, or a stand-in that returns what it does."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from orchestrator.errors import ReadError
from orchestrator.readers.hatchet import hpctoolkit, tau
from orchestrator.types import Sample
from tests.applications import demo
from tests.readers.hatchet_stand_in import MODULE, write_tau

APPLICATION = demo()
REAL = importlib.util.find_spec("hatchet") is not None


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hatchet", MODULE)


@pytest.fixture(params=["stand-in", *(["real"] if REAL else [])])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "stand-in":
        monkeypatch.setitem(sys.modules, "hatchet", MODULE)


def values(samples: list[Sample], aggregate: str = "mean", metric: str = "time") -> dict[str, float]:
    return {s.callpath: s.value for s in samples if (s.metric, s.aggregate) == (metric, aggregate)}


@pytest.mark.usefixtures("library")
def test_tau_profiles_have_exclusive_times_in_seconds_and_visits(tmp_path: Path) -> None:
    write_tau(tmp_path)
    found = tau(tmp_path, APPLICATION)
    root = ".TAU application"
    assert values(found) == pytest.approx({root: 0.1, f"{root}->main": 0.6, f"{root}->main->MPI_Send()": 0.3})
    assert values(found, metric="visits")[f"{root}->main->MPI_Send()"] == 8
    assert values(tau(tmp_path, APPLICATION, inclusive=True))[f"{root}->main"] == pytest.approx(0.9)


@pytest.mark.usefixtures("library")
def test_tau_ranks_are_aggregated_and_the_slowest_thread_is_the_time_of_a_rank(tmp_path: Path) -> None:
    write_tau(tmp_path, 0, 0, 1)
    write_tau(tmp_path, 0, 1, 3)
    write_tau(tmp_path, 1, 0, 5)
    write_tau(tmp_path, 1, 1, 1)
    found = tau(tmp_path, APPLICATION, inclusive=True)
    main = ".TAU application->main"
    by_aggregate = {name: values(found, name)[main] for name in ("mean", "max", "min", "sum")}
    assert by_aggregate == pytest.approx({"mean": 3.6, "max": 4.5, "min": 2.7, "sum": 7.2})
    assert values(found, "sum", "visits")[f"{main}->MPI_Send()"] == 32


def test_a_tau_profile_cut_at_any_byte_of_its_functions_is_refused_by_name(tmp_path: Path) -> None:
    path = write_tau(tmp_path)
    content = path.read_bytes()
    for length in range(content.index(b"0 aggregates") - 1):
        path.write_bytes(content[:length])
        with pytest.raises(ReadError, match=str(path)):
            tau(tmp_path, APPLICATION)


@pytest.mark.usefixtures("stand_in")
def test_hpctoolkit_statements_belong_to_functions_and_lines_of_calls_are_dropped(tmp_path: Path) -> None:
    folder = tmp_path / "hpctoolkit-database"
    folder.mkdir()
    (folder / "experiment.xml").write_text('<?xml version="1.0"?><HPCToolkitExperiment/>')
    found = hpctoolkit(tmp_path, APPLICATION)
    solve = "<program root>->main->solve"
    assert values(found) == {"<program root>->main": 4.0, solve: 4.0}
    assert values(hpctoolkit(tmp_path, APPLICATION, inclusive=True), "max")["<program root>->main"] == 9.0


@pytest.mark.usefixtures("stand_in")
def test_hpctoolkit_databases_of_version_4_are_in_seconds(tmp_path: Path) -> None:
    (tmp_path / "meta.db").write_bytes(b"HPCTOOLKITmeta\x04\x00")
    found = hpctoolkit(tmp_path, APPLICATION)
    assert values(found) == {"main": 2.0, "main->solve": 0.5}
    assert values(found, "min")["main->solve"] == 0.0


@pytest.mark.usefixtures("stand_in")
def test_several_databases_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.db").write_bytes(b"HPCTOOLKITmeta\x04\x00")
    with pytest.raises(ReadError, match=r"several HPCToolkit databases .* a/meta.db, b/meta.db"):
        hpctoolkit(tmp_path, APPLICATION)


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hatchet", None)
    write_tau(tmp_path)
    with pytest.raises(
        ReadError, match=r"needs llnl-hatchet: pip install 'measurement-orchestrator\[hatchet\]'"
    ):
        tau(tmp_path, APPLICATION)
