"""Files of times in MPI operations, written by hand: every value is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.errors import ReadError
from orchestrator.readers.mpi_time import read
from tests.applications import demo

APPLICATION = demo()
SECOND = 10**9
# thread, id, parent, visits, nanoseconds, bytes sent, bytes received, sizes, name
NODES = (
    f"0 1 0 1 {SECOND} 0 0 0 MPI_Init",
    "0 2 0 0 0 0 0 0 exchange(double*, int)",
    f"0 3 2 10 {2 * SECOND} 80 0 20 MPI_Isend",
    f"0 4 2 10 {3 * SECOND} 0 80 0 MPI_Waitall",
)


def rank_file(
    directory: Path,
    rank: int = 0,
    ranks: int = 1,
    nodes: Sequence[str] = NODES,
    elapsed: str = f"{10 * SECOND} {6 * SECOND}",
    mpi: str = "counted",
    end: str = "exit",
) -> Path:
    path = directory / "mpi-time" / f"rank-{rank}.{100 + rank}.mpitime"
    path.parent.mkdir(exist_ok=True)
    lines = [
        "orchestrator-mpi-time 1",
        "host n1",
        f"rank {rank} {ranks} ",
        f"mpi {mpi}",
        f"elapsed {elapsed}",
    ]
    path.write_text("\n".join([*lines, *(f"node {node}" for node in nodes), f"end {end}\n"]))
    return path


def values(
    directory: Path, metric: str = "time", aggregate: str = "mean", inclusive: bool = False
) -> dict[str, float]:
    samples = read(directory, APPLICATION, inclusive)
    return {s.callpath: s.value for s in samples if (s.metric, s.aggregate) == (metric, aggregate)}


def test_each_operation_has_its_time_at_its_call_site(tmp_path: Path) -> None:
    rank_file(tmp_path)
    site = "main->exchange(double*, int)->"
    assert values(tmp_path) == {
        "main": 4,
        "main->MPI_Init": 1,
        f"{site}MPI_Isend": 2,
        f"{site}MPI_Waitall": 3,
    }
    assert values(tmp_path, "visits")[f"{site}MPI_Waitall"] == 10
    assert values(tmp_path, "bytes_sent")[f"{site}MPI_Isend"] == 80


def test_inclusive_times_are_those_of_the_whole_run_and_of_functions(tmp_path: Path) -> None:
    rank_file(tmp_path)
    found = values(tmp_path, inclusive=True)
    assert found["main"] == 10
    assert found["main->exchange(double*, int)"] == 5


def test_ranks_are_aggregated_and_absent_operations_are_zero(tmp_path: Path) -> None:
    rank_file(tmp_path, 0, 2)
    rank_file(tmp_path, 1, 2, [f"0 1 0 1 {3 * SECOND} 0 0 0 MPI_Init"], f"{10 * SECOND} {3 * SECOND}")
    wait = "main->exchange(double*, int)->MPI_Waitall"
    by_aggregate = {name: values(tmp_path, aggregate=name) for name in ("mean", "max", "min", "sum")}
    assert [by_aggregate[name]["main->MPI_Init"] for name in by_aggregate] == [2, 3, 1, 4]
    assert [by_aggregate[name][wait] for name in by_aggregate] == [1.5, 3, 0, 3]
    assert by_aggregate["min"]["main"] == 4


def test_threads_add_up_but_only_the_first_one_shortens_the_rest_of_the_run(tmp_path: Path) -> None:
    rank_file(
        tmp_path,
        nodes=[*NODES, "1 1 0 0 0 0 0 0 exchange(double*, int)", f"1 2 1 5 {SECOND} 0 0 0 MPI_Waitall"],
    )
    found = values(tmp_path)
    assert found["main->exchange(double*, int)->MPI_Waitall"] == 4
    assert found["main"] == 4


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"mpi": "uncounted"}, "no MPI operation was seen, although MPI was used"),
        ({"nodes": ()}, "no MPI operation was seen"),
        ({"end": "signal 11"}, "ended by signal 11: its times are not those of a whole run"),
        ({"elapsed": "5 6"}, "but only"),
        ({"elapsed": "ten 6"}, "no line 'elapsed"),
        ({"ranks": 2}, "1 of 2 ranks have left times; missing: rank 1"),
        ({"nodes": ["0 3 2 10 7 80 0 20 MPI_Isend"]}, "has no caller"),
    ],
)
def test_what_is_no_whole_measurement_is_refused(
    tmp_path: Path, change: dict[str, str | int | Sequence[str]], complaint: str
) -> None:
    rank_file(tmp_path, **change)  # type: ignore[arg-type]  # each of the type of its parameter
    with pytest.raises(ReadError, match=complaint):
        read(tmp_path, APPLICATION)


def test_a_file_cut_at_any_byte_is_refused_by_name(tmp_path: Path) -> None:
    path = rank_file(tmp_path)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(ReadError, match=str(path)):
            read(tmp_path, APPLICATION)


def test_without_files_the_possible_reasons_are_named(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="did not call MPI_Init"):
        read(tmp_path, APPLICATION)
    (tmp_path / "rank-0.7.mpitime.part").write_text("")
    with pytest.raises(ReadError, match="while it wrote its times"):
        read(tmp_path, APPLICATION)
