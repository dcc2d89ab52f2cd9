from __future__ import annotations

import gzip
import io
import math
import struct
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from orchestrator.errors import ReadError
from orchestrator.readers.scorep import profile, read
from orchestrator.types import Sample
from tests.applications import demo
from tests.readers.cubex_files import Cubex, Node, Stored

REAL = Path(__file__).parents[1] / "data" / "cubex" / "matmul.cubex"
APPLICATION = demo()

TREE = Node("main", (Node("solve", (Node("MPI_Send"),)), Node("setup"), Node("solve", (Node("MPI_Send"),))))
# Preorder: main, solve, MPI_Send, setup, solve, MPI_Send. Two ranks.
TIME = Stored(
    "time",
    {0: (10, 12), 1: (4, 5), 2: (1, 2), 3: (2, 2), 4: (3, 3), 5: (0.5, 0.25)},
    "INCLUSIVE",
    "DOUBLE",
    "sec",
)
VISITS = Stored("visits", {0: (1, 1), 1: (7, 8), 2: (7, 8), 3: (1, 1), 4: (3, 3), 5: (30, 50)})
SENT = Stored("bytes_sent", {2: (100, 200), 5: (1000, 3000)}, unit="bytes")
LEAST = Stored("min_time", {i: (i + 1, i + 2) for i in range(6)}, "EXCLUSIVE", "MINDOUBLE", "sec")
MOST = Stored("max_time", {i: (i + 1, i + 2) for i in range(6)}, "EXCLUSIVE", "MAXDOUBLE", "sec")
DEMO = Cubex([TREE], [TIME, VISITS, SENT, LEAST, MOST], threads=(1, 1))


def values(samples: Sequence[Sample]) -> dict[tuple[str, str, str], float]:
    table = {(s.callpath, s.metric, s.aggregate): s.value for s in samples}
    assert len(table) == len(samples)
    return table


def write(tmp_path: Path, cube: Cubex | bytes) -> Path:
    path = tmp_path / "profile.cubex"
    path.write_bytes(cube if isinstance(cube, bytes) else cube.content())
    return path


def test_exclusive_values_leave_out_called_regions_and_equal_siblings_add_up(tmp_path: Path) -> None:
    got = values(profile(write(tmp_path, DEMO)))
    assert {path for path, _, _ in got} == {
        "main",
        "main->setup",
        "main->solve",
        "main->solve->MPI_Send",
    }
    assert got["main", "time", "mean"] == ((10 - 4 - 2 - 3) + (12 - 5 - 2 - 3)) / 2
    assert got["main->solve", "time", "max"] == (5 - 2) + (3 - 0.25)
    assert got["main->solve->MPI_Send", "time", "min"] == 1.5
    assert got["main->solve", "visits", "sum"] == 7 + 8 + 3 + 3
    assert got["main->solve->MPI_Send", "bytes_sent", "mean"] == 2150
    assert got["main", "bytes_sent", "sum"] == 0


def test_inclusive_values_contain_called_regions(tmp_path: Path) -> None:
    got = values(profile(write(tmp_path, DEMO), inclusive=True))
    assert got["main", "time", "mean"] == 11
    assert got["main->solve", "time", "sum"] == 4 + 5 + 3 + 3
    assert got["main", "bytes_sent", "max"] == 3200
    assert got["main", "visits", "sum"] == sum(sum(row) for row in (VISITS.values or {}).values())


def test_call_paths_keep_the_order_of_the_call_tree(tmp_path: Path) -> None:
    order = dict.fromkeys(sample.callpath for sample in profile(write(tmp_path, DEMO)))
    assert list(order) == ["main", "main->solve", "main->solve->MPI_Send", "main->setup"]


def test_extremes_combine_by_minimum_and_maximum_and_have_no_sum(tmp_path: Path) -> None:
    got = values(profile(write(tmp_path, DEMO)))
    assert got["main->solve", "min_time", "min"] == 2
    assert got["main->solve", "max_time", "max"] == 6
    assert ("main->solve", "min_time", "sum") not in got
    inclusive = values(profile(write(tmp_path, DEMO), inclusive=True))
    assert inclusive["main", "min_time", "min"] == 1
    assert inclusive["main", "max_time", "max"] == 7


def test_of_several_threads_times_take_the_slowest_and_counts_add_up(tmp_path: Path) -> None:
    time = Stored("time", {0: (5, 1, 3, 7)}, "INCLUSIVE", "DOUBLE", "sec")
    visits = Stored("visits", {0: (5, 1, 3, 7)})
    got = values(profile(write(tmp_path, Cubex([Node("main")], [time, visits], threads=(3, 1)))))
    assert [got["main", "time", name] for name in ("mean", "max", "min", "sum")] == [6, 7, 5, 16]
    assert [got["main", "visits", name] for name in ("mean", "max", "min", "sum")] == [8, 9, 7, 16]


def test_times_are_converted_to_seconds(tmp_path: Path) -> None:
    cube = Cubex([Node("main")], [Stored("ru_utime", {0: (2500,)}, "INCLUSIVE", "UINT64", "us")])
    assert values(profile(write(tmp_path, cube)))["main", "ru_utime", "mean"] == pytest.approx(2.5e-3)


@pytest.mark.parametrize(
    "variant",
    [
        replace(DEMO, compress=True),
        replace(DEMO, byte_order=">"),
        replace(DEMO, byte_order=">", compress=True),
        replace(DEMO, gzip_anchor=True),
    ],
    ids=["zlib", "big-endian", "big-endian zlib", "gzipped anchor"],
)
def test_every_encoding_gives_the_same_samples(tmp_path: Path, variant: Cubex) -> None:
    assert profile(write(tmp_path, variant)) == profile(write(tmp_path, DEMO))


def test_a_tar_that_is_compressed_as_a_whole_is_read(tmp_path: Path) -> None:
    assert profile(write(tmp_path, gzip.compress(DEMO.content()))) == profile(write(tmp_path, DEMO))


def test_a_declared_metric_without_data_is_zero_everywhere(tmp_path: Path) -> None:
    got = values(profile(write(tmp_path, replace(DEMO, metrics=[TIME, Stored("bytes_sent", None)]))))
    assert got["main->solve->MPI_Send", "bytes_sent", "max"] == 0
    assert got["main->setup", "bytes_sent", "sum"] == 0


def test_unsupported_and_derived_metrics_are_left_out(tmp_path: Path) -> None:
    others = [
        Stored("histogram", None, data_type="HISTOGRAM(8)"),
        Stored("rate", None, data_type="RATE"),
        Stored("derived", None, kind="POSTDERIVED", data_type="DOUBLE"),
    ]
    samples = profile(write(tmp_path, replace(DEMO, metrics=[TIME, *others])))
    assert {sample.metric for sample in samples} == {"time"}


def test_several_roots_are_several_call_trees(tmp_path: Path) -> None:
    roots = [Node("main", (Node("work"),)), Node("THREADS", (Node("work"), Node("idle")))]
    time = Stored("time", {0: (5,), 1: (2,), 2: (99,), 3: (8,), 4: (16,)}, "INCLUSIVE", "DOUBLE", "sec")
    got = values(
        profile(write(tmp_path, Cubex(roots, [time]))),
    )
    assert got["THREADS", "time", "mean"] == 99 - 8 - 16
    assert got["THREADS->idle", "time", "mean"] == 16


def test_rounding_below_zero_is_zero_but_a_negative_time_is_refused(tmp_path: Path) -> None:
    def cube(called: float) -> Cubex:
        time = Stored("time", {0: (10.0,), 1: (called,)}, "INCLUSIVE", "DOUBLE", "sec")
        return Cubex([Node("main", (Node("f"),))], [time])

    assert values(profile(write(tmp_path, cube(10 + 1e-12))))["main", "time", "mean"] == 0
    with pytest.raises(ReadError, match=r"profile\.cubex.*time is -0\.5 at main \(rank 0\)"):
        profile(write(tmp_path, cube(10.5)))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_not_finite_are_refused_with_their_call_path(tmp_path: Path, bad: float) -> None:
    time = Stored("time", {0: (10, 10), 1: (1, bad)}, "INCLUSIVE", "DOUBLE", "sec")
    cube = Cubex([Node("main", (Node("f"),))], [time], threads=(1, 1))
    with pytest.raises(ReadError, match=rf"profile\.cubex.*{bad} at main->f \(rank 1\)"):
        profile(write(tmp_path, cube), inclusive=True)


def trees() -> st.SearchStrategy[Node]:
    names = st.sampled_from("abc")
    leaves = st.builds(Node, names)
    return st.recursive(
        leaves, lambda below: st.builds(Node, names, st.lists(below, max_size=3).map(tuple)), max_leaves=12
    )


@given(st.lists(trees(), min_size=1, max_size=2), st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_whatever_the_tree_exclusive_values_add_up_to_the_inclusive_ones(
    tmp_path: Path, roots: list[Node], data: st.DataObject
) -> None:
    count = sum(len(root.preorder()) for root in roots)
    rows = st.tuples(st.integers(0, 100), st.integers(0, 100))
    counts = data.draw(st.dictionaries(st.integers(0, count - 1), rows, min_size=1))
    cube = Cubex(roots, [Stored("visits", counts)], threads=(1, 1))
    path = write(tmp_path, cube)
    exclusive, inclusive = values(profile(path)), values(profile(path, inclusive=True))
    for callpath in {key[0] for key in exclusive}:
        below = [key for key in exclusive if (key[0] + "->").startswith(callpath + "->")]
        total = sum(exclusive[key] for key in below if key[2] == "sum")
        assert inclusive[callpath, "visits", "sum"] == total
    assert sum(v for k, v in exclusive.items() if k[2] == "sum") == sum(map(sum, counts.values()))


def with_checksums(content: bytes, difference: int) -> bytes:
    """Change the checksum of every tar header, in the way of CubeWriter 4.8 where it is -32."""
    data = bytearray(content)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for entry in archive.getmembers():
            start = entry.offset
            header = data[start : start + 512]
            actual = sum(header[:148]) + sum(header[156:]) + 8 * 32
            data[start + 148 : start + 156] = b"%06o\0\0" % (actual + difference)
    return bytes(data)


def test_the_checksum_bug_of_cube_4_8_is_tolerated_but_no_other(tmp_path: Path) -> None:
    assert profile(write(tmp_path, with_checksums(DEMO.content(), -32))) == profile(write(tmp_path, DEMO))
    with pytest.raises(ReadError, match=r"profile\.cubex.*checksum"):
        profile(write(tmp_path, with_checksums(DEMO.content(), -31)))


def test_a_real_profile_has_the_values_of_its_measurement() -> None:
    got = values(profile(REAL))
    assert {path for path, _, _ in got} == {"main", "main->init_mat", "main->zero_mat", "main->mat_mul"}
    assert got["main->init_mat", "visits", "sum"] == 2
    operations = {
        path: value for (path, metric, how), value in got.items() if (metric, how) == ("PAPI_FP_OPS", "sum")
    }
    assert operations == {"main": 6, "main->init_mat": 14, "main->zero_mat": 0, "main->mat_mul": 2}
    assert values(profile(REAL, inclusive=True))["main", "time", "max"] == pytest.approx(3.8177e-5)


@pytest.mark.parametrize("source", [REAL, None], ids=["Score-P", "generated"])
def test_a_file_cut_anywhere_is_refused(tmp_path: Path, source: Path | None) -> None:
    content = source.read_bytes() if source else DEMO.content()
    with tarfile.open(source or write(tmp_path, DEMO)) as archive:
        boundaries = [entry.offset for entry in archive.getmembers()]
        last = archive.getmembers()[-1]
        end = last.offset_data + -(-last.size // 512) * 512
    for length in [*range(0, end, 1000), *boundaries, end, end + 100]:
        with pytest.raises(ReadError, match=r"profile\.cubex: "):
            profile(write(tmp_path, content[:length]))


@given(st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
def test_flipped_bytes_give_samples_or_a_read_error(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(REAL.read_bytes())
    with tarfile.open(REAL) as archive:
        members = {entry.name: entry for entry in archive.getmembers()}
    member = members[data.draw(st.sampled_from(sorted(members)))]
    place = data.draw(st.integers(member.offset, member.offset_data + member.size - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    try:
        samples = profile(write(tmp_path, bytes(content)))
    except ReadError as error:
        assert "profile.cubex" in str(error)
    else:
        assert all(math.isfinite(sample.value) for sample in samples)


@given(st.binary(max_size=1200))
@example(b"")
@example(bytes(2048))
@example(b"\x1f\x8b" + bytes(600))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_garbage_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ReadError, match=r"profile\.cubex: "):
        profile(write(tmp_path, content))


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"anchor.xml": b"<cube>"}, "ParseError"),
        ({"anchor.xml": b"<cube/>"}, "no <program>"),
        ({"anchor.xml": b"<cube><program/></cube>"}, "call tree is empty"),
        (
            {"anchor.xml": b"<cube><program><cnode id='0' calleeId='3'/></program></cube>"},
            "unknown region 3",
        ),
        ({"1.index": b"CUBEX.INDEX"}, "values of metric visits"),
        ({"1.index": b"nonsense"}, "values of metric visits"),
        ({"1.data": b"CUBEX.DATA1234"}, "values of metric visits"),
        ({"1.data": b"CUBEX.DATA" + bytes(16)}, "has 2 values, not 6 nodes x 2 locations"),
        ({"1.data": b"ZCUBEX.DATA" + struct.pack("<q", 2**40)}, "values of metric visits"),
        (
            {"1.index": b"CUBEX.INDEX" + struct.pack("<ihBi2i", 1, 0, 1, 2, 0, 0)},
            "names a call-tree node twice",
        ),
        ({"1.index": b"CUBEX.INDEX" + struct.pack("<ihBii", 1, 0, 1, 1, 77)}, "values of metric visits"),
    ],
)
def test_broken_members_are_refused_with_the_reason(
    tmp_path: Path, members: dict[str, bytes], reason: str
) -> None:
    with pytest.raises(ReadError, match=rf"(?s)profile\.cubex: .*{reason}"):
        profile(write(tmp_path, replace(DEMO, members=members)))


def test_the_profile_is_found_in_score_p_s_own_folder(tmp_path: Path) -> None:
    folder = tmp_path / "scorep-20260101_1200" / "deeper"
    folder.mkdir(parents=True)
    (folder / ".hidden.cubex").write_bytes(b"")
    write(folder, DEMO)
    assert read(tmp_path, APPLICATION) == profile(folder / "profile.cubex")


def test_no_profile_and_several_profiles_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"no \.cubex file.*demo instrumented"):
        read(tmp_path, APPLICATION)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, DEMO)
    with pytest.raises(ReadError, match=r"several.*a/profile\.cubex, b/profile\.cubex"):
        read(tmp_path, APPLICATION)
