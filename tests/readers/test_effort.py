"""Files of effort counters: merging of ranks and threads, and everything that can be wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.errors import ReadError
from orchestrator.readers import effort
from orchestrator.readers.select import select
from tests.applications import demo

APPLICATION = demo(2)

# thread, id, parent, visits, blocks, sent, received, sizes, name; newest first, as the runtime writes them
MAIN = ("0 3 2 6 0 48 24 12 MPI_Send", "0 2 1 3 60 0 0 0 solve(Mesh&, int)", "0 1 0 1 10 0 0 0 main")


def write(
    folder: Path,
    rank: int = 0,
    ranks: int = 1,
    nodes: Sequence[str] = MAIN,
    mpi: str = "counted",
    end: str = "exit",
) -> Path:
    path = folder / "effort" / f"rank-{rank}.{100 + rank}.effort"
    path.parent.mkdir(exist_ok=True)
    lines = ["orchestrator-effort 1", "host n1", f"rank {rank} {ranks} ", f"mpi {mpi}"]
    lines += [f"node {node}" for node in nodes] + [f"end {end}", ""]
    path.write_text("\n".join(lines))
    return path


def values(folder: Path, aggregate: str = "sum", inclusive: bool = False) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for (path, metric), value in select(effort.read(folder, APPLICATION, inclusive), None, aggregate).items():
        found.setdefault(metric, {})[path] = value
    return found


SOLVE = "main->solve(Mesh&, int)"
SEND = f"{SOLVE}->MPI_Send"


def test_call_paths_and_metrics_of_one_rank(tmp_path: Path) -> None:
    write(tmp_path)
    assert values(tmp_path) == {
        "visits": {"main": 1, SOLVE: 3, SEND: 6},
        "basic_blocks": {"main": 10, SOLVE: 60},  # an operation has none, a function no bytes
        "bytes_sent": {SEND: 48},
        "bytes_received": {SEND: 24},
        "communicator_size": {SEND: 2},  # mean over calls, and only where there is one
    }


def test_inclusive_counts_hold_those_of_what_is_called(tmp_path: Path) -> None:
    write(tmp_path)
    found = values(tmp_path, inclusive=True)
    assert found["basic_blocks"] == {"main": 70, SOLVE: 60, SEND: 0}
    assert found["bytes_sent"] == {"main": 48, SOLVE: 48, SEND: 48}
    assert found["communicator_size"] == {SEND: 2}


def test_a_callers_name_may_contain_an_arrow(tmp_path: Path) -> None:
    write(tmp_path, nodes=("0 2 1 1 5 0 0 0 Handle::operator->()", "0 1 0 1 10 0 0 0 main"))
    assert values(tmp_path, inclusive=True)["basic_blocks"]["main"] == 15


def test_ranks_are_aggregated_with_zero_where_one_never_was(tmp_path: Path) -> None:
    write(tmp_path, 0, 2)
    write(tmp_path, 1, 2, ("0 1 0 1 30 0 0 0 main",))
    assert values(tmp_path, "sum")["basic_blocks"] == {"main": 40, SOLVE: 60}
    assert values(tmp_path, "mean")["basic_blocks"] == {"main": 20, SOLVE: 30}
    assert values(tmp_path, "max")["basic_blocks"] == {"main": 30, SOLVE: 60}
    assert values(tmp_path, "min")["basic_blocks"] == {"main": 10, SOLVE: 0}
    assert values(tmp_path, "mean")["communicator_size"] == {SEND: 2}


def test_threads_add_up(tmp_path: Path) -> None:
    other = ("1 2 1 2 40 0 0 0 solve(Mesh&, int)", "1 1 0 0 0 0 0 0 main")
    write(tmp_path, nodes=(*other, *MAIN))
    found = values(tmp_path)
    assert found["basic_blocks"] == {"main": 10, SOLVE: 100}
    assert found["visits"][SOLVE] == 5


def test_what_was_not_counted_is_absent(tmp_path: Path) -> None:
    write(tmp_path, mpi="none")
    assert set(values(tmp_path)) == {"visits", "basic_blocks"}
    write(tmp_path, nodes=("0 1 0 6 0 48 24 12 MPI_Send",))
    assert set(values(tmp_path)) == {"visits", "bytes_sent", "bytes_received", "communicator_size"}


def test_a_missing_rank_is_named(tmp_path: Path) -> None:
    for rank in (0, 1, 3):
        write(tmp_path, rank, 4)
    with pytest.raises(ReadError, match=r"3 of 4 ranks have left counts; missing: rank 2\. Was it killed"):
        effort.profile(tmp_path)
    path = tmp_path / "effort" / "rank-2.17.effort.part"
    path.write_text("orchestrator-effort 1\n")
    with pytest.raises(ReadError, match=rf"missing: rank 2\. {path}: the process was killed"):
        effort.profile(tmp_path)


def test_two_programs_in_one_attempt_are_refused(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "rank-0.7.effort").write_text((tmp_path / "effort" / "rank-0.100.effort").read_text())
    with pytest.raises(ReadError, match="several programs ran in one attempt"):
        effort.profile(tmp_path)


def test_ranks_of_different_jobs_are_refused(tmp_path: Path) -> None:
    write(tmp_path, 0, 2)
    write(tmp_path, 1, 3)
    with pytest.raises(ReadError, match=r"one of 3 ranks, but .* is one of 2"):
        effort.profile(tmp_path)


@pytest.mark.parametrize("nodes", [(), ("0 1 0 1 0 0 0 0 main",)])
def test_counters_of_zero_are_refused(tmp_path: Path, nodes: tuple[str, ...]) -> None:
    write(tmp_path, nodes=nodes, mpi="none")
    with pytest.raises(ReadError, match="nothing was counted: no function was compiled with"):
        effort.profile(tmp_path)


@pytest.mark.parametrize("count", [2**63, 2**64 - 1])
def test_an_overflow_is_refused_with_its_call_path(tmp_path: Path, count: int) -> None:
    path = write(tmp_path, nodes=(f"0 2 1 1 {count} 0 0 0 solve", "0 1 0 1 1 0 0 0 main"))
    with pytest.raises(ReadError, match=rf"{path}: a counter has overflowed at main->solve: {count}"):
        effort.profile(tmp_path)


def test_the_sum_over_threads_can_overflow_too(tmp_path: Path) -> None:
    write(tmp_path, nodes=(f"0 1 0 1 {2**62} 0 0 0 main", f"1 1 0 1 {2**62} 0 0 0 main"))
    with pytest.raises(ReadError, match="overflowed at main"):
        effort.profile(tmp_path)


def test_a_rank_that_did_not_end_by_itself_is_refused(tmp_path: Path) -> None:
    write(tmp_path, 0, 2)
    path = write(tmp_path, 1, 2, end="signal 9")
    with pytest.raises(ReadError, match=rf"{path}: rank 1 was ended by signal 9"):
        effort.profile(tmp_path)


@pytest.mark.parametrize("keep", [1, 40, 90, 150, -3])
def test_a_cut_file_is_refused(tmp_path: Path, keep: int) -> None:
    path = write(tmp_path)
    path.write_text(path.read_text()[:keep])
    with pytest.raises(ReadError, match=str(path)):
        effort.profile(tmp_path)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("0 1 0 1 -5 0 0 0 main", ":5: not eight counts and a name"),
        ("0 1 0 1 x 0 0 0 main", ":5: not eight counts and a name"),
        ("0 1 0 1 5", ":5: not eight counts and a name"),
        ("0 4 3 1 5 0 0 0 lost", "node 4 of thread 0 has no caller"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, node: str, message: str) -> None:
    path = write(tmp_path, nodes=(node,))
    with pytest.raises(ReadError, match=f"{path}.*{message}|{path}{message}"):
        effort.profile(tmp_path)


def test_a_file_without_rank_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_text(path.read_text().replace("rank 0 1", "rank one"))
    with pytest.raises(ReadError, match="no line 'rank NUMBER RANKS'"):
        effort.profile(tmp_path)
