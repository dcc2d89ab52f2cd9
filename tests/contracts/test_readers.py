"""One suite over every registered reader. A new reader adds what a good directory of it looks like."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from orchestrator import registry
from orchestrator.errors import ReadError
from orchestrator.readers.base import Reader
from orchestrator.types import Sample
from tests.applications import demo
from tests.readers import hatchet_stand_in

DATA = Path(__file__).parents[1] / "data"


def output(texts: Mapping[str, str]) -> list[Sample]:
    match = re.search(r"Elapsed: (\S+) s", texts["stdout"])
    if match is None:
        raise ValueError("no line 'Elapsed: ... s'")
    return [Sample("main", "time", float(match[1]))]


APPLICATION = demo(output=output)


def _stdout(directory: Path) -> Path:
    (directory / "stdout").write_text("hello\nElapsed: 1.5 s\n")
    (directory / "stderr").write_text("")
    return directory / "stdout"


def _scorep(directory: Path) -> Path:
    path = directory / "scorep-run" / "profile.cubex"
    path.parent.mkdir()
    path.write_bytes((DATA / "cubex" / "matmul.cubex").read_bytes())
    return path


def _time(directory: Path) -> Path:
    path = directory / "attempt.json"
    path.write_text(
        '{"run": "p=1/time-1", "attempt": 1, "host": "n1", "pid": 7, "exit_code": 0,'
        ' "started": "2026-01-01T10:00:00.250000+00:00", "finished": "2026-01-01T10:01:00.750000+00:00"}'
    )
    return path


def _effort(directory: Path) -> Path:
    path = directory / "effort" / "rank-0.17.effort"
    path.parent.mkdir()
    path.write_text(
        "orchestrator-effort 1\nhost n1\nrank 0 1\nmpi counted\n"
        "node 0 2 1 3 0 96 64 12 MPI_Allreduce\nnode 0 1 0 1 40 0 0 0 main\nend exit\n"
    )
    return path


def _caliper(directory: Path) -> Path:
    path = directory / "caliper.cali"
    path.write_bytes((DATA / "caliper" / "halo-spot.cali").read_bytes())
    return path


def _mpi(directory: Path) -> Path:
    path = directory / "mpi-time" / "rank-0.17.mpitime"
    path.parent.mkdir()
    path.write_text(
        "orchestrator-mpi-time 1\nhost n1\nrank 0 1 \nmpi counted\nelapsed 9000 4000 \n"
        "node 0 1 0 3 4000 96 64 12 MPI_Allreduce\nend exit\n"
    )
    return path


def _tau(directory: Path) -> Path:
    return hatchet_stand_in.write_tau(directory)


def _hpctoolkit(directory: Path) -> Path:
    path = directory / "meta.db"
    path.write_bytes(b"HPCTOOLKITmeta\x04\x00")
    return path


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a stand-in in the place of the optional library, of which no small file can be made."""
    monkeypatch.setitem(sys.modules, "hatchet", hatchet_stand_in.MODULE)


# Reader -> writes what a good attempt leaves, returns the file that matters.
GOOD: dict[str, Callable[[Path], Path]] = {
    "caliper": _caliper,
    "effort": _effort,
    "hpctoolkit": _hpctoolkit,
    "mpi": _mpi,
    "tau": _tau,
    "scorep": _scorep,
    "stdout": _stdout,
    "time": _time,
}

every_reader = pytest.mark.parametrize("name", registry.names("reader"))


def reader(name: str) -> Reader:
    loaded: Reader = registry.load("reader", name)
    return loaded


@every_reader
def test_a_good_directory_gives_finite_samples(name: str, tmp_path: Path) -> None:
    GOOD[name](tmp_path)
    samples = reader(name)(tmp_path, APPLICATION)
    assert samples
    assert all(math.isfinite(sample.value) and sample.value >= 0 for sample in samples)
    assert all(sample.callpath and sample.metric for sample in samples)
    assert len({(s.callpath, s.metric, s.aggregate) for s in samples}) == len(samples)


@every_reader
def test_reading_twice_gives_the_same(name: str, tmp_path: Path) -> None:
    GOOD[name](tmp_path)
    assert reader(name)(tmp_path, APPLICATION) == reader(name)(tmp_path, APPLICATION)


@every_reader
def test_an_empty_directory_is_refused_by_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=re.escape(str(tmp_path))):
        reader(name)(tmp_path, APPLICATION)


@every_reader
def test_a_missing_directory_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="nowhere"):
        reader(name)(tmp_path / "nowhere", APPLICATION)


@every_reader
def test_an_unreadable_file_is_refused_by_name(name: str, tmp_path: Path) -> None:
    path = GOOD[name](tmp_path)
    path.unlink()
    path.mkdir()  # unreadable for root, too
    with pytest.raises(ReadError, match=re.escape(str(path))):
        reader(name)(tmp_path, APPLICATION)


@every_reader
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00garbage\n" * 99, b"{}", b"[1, 2]", b"null"])
def test_garbage_is_refused_by_name(name: str, content: bytes, tmp_path: Path) -> None:
    path = GOOD[name](tmp_path)
    path.write_bytes(content)
    with pytest.raises(ReadError, match=re.escape(str(path))):
        reader(name)(tmp_path, APPLICATION)
