"""Generated programs: they build, run, and count what the manifest promises."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from orchestrator.campaign import loader
from orchestrator.errors import CampaignError, ReadError
from orchestrator.evaluation.noise import runs
from orchestrator.evaluation.noise.cases import REPETITIONS
from orchestrator.generate import counts, directory, manifest, program
from orchestrator.generate.complexity import OPERATIONS, Communication, Computation, Element, Function
from orchestrator.generate.manifest import Manifest, callpaths
from orchestrator.generate.population import DEFAULT, Range, draw
from orchestrator.types import Measurements, Point
from tests.requirements import need

RANGE = Range({"p": 2, "n": 1000}, {"p": 2, "n": 2000})
NESTED = Computation("nested", (Element("n", 1.0), Element("p", 1.0)))


def population(seed: int = 0, count: int = 6) -> tuple[Function, ...]:
    rng = np.random.default_rng(seed)
    return tuple(draw(index, RANGE, DEFAULT, rng) for index in range(count))


def test_a_manifest_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    content = Manifest(5, RANGE, {"a": population(), "b": population(1)})
    directory.write(tmp_path / "new", content)
    assert manifest.read(tmp_path / "new" / manifest.NAME) == content


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 1}', '{"schema": 99}'])
def test_what_is_no_manifest_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(text)
    with pytest.raises(ReadError, match=r"manifest\.json"):
        manifest.read(path)


def test_a_directory_that_was_not_generated_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="orchestrator generate"):
        manifest.read(tmp_path / manifest.NAME)


def test_other_files_are_not_mixed_with_generated_ones(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(CampaignError, match="not empty"):
        directory.write(tmp_path, Manifest(0, RANGE, {"a": population()}))


def test_the_campaign_that_comes_along_is_valid(tmp_path: Path) -> None:
    wide = Range({"p": 2, "n": 1000}, {"p": 8, "n": 2000})
    directory.write(tmp_path / "new", Manifest(0, wide, {"benchmark": population()}))
    (tmp_path / "new" / "benchmark").write_text("#!/bin/sh\n")
    (tmp_path / "new" / "benchmark").chmod(0o755)
    loaded = loader.load(tmp_path / "new" / "benchmark.yaml", [])
    assert [parameter.name for parameter in loaded.parameters] == ["p", "n"]


def test_a_source_says_what_it_costs() -> None:
    function = Function("f000", NESTED, Communication("bcast", (Element("n", 1.0),)))
    text = program.source([function], RANGE)
    assert "// computation (nested): n + n * p" in text
    assert "// MPI_Bcast: log2(p) + n" in text


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Manifest, Measurements]:
    """Build and run one function per MPI operation with two ranks."""
    for tool in ("make", "mpicxx", "mpiexec"):
        need(shutil.which(tool), tool)
    functions = [
        Function(f"f{k:03d}", NESTED, Communication(operation, (Element("n", 1.5),)))
        for k, operation in enumerate(OPERATIONS)
    ]
    functions.append(Function("f900", NESTED, Communication("barrier", (), Element("n", 0.5))))
    loops = Computation("sequential", (Element("n", 1 / 3), Element("p", log_exponent=1.0)))
    functions.append(Function("f901", loops, Communication("bcast")))
    content = Manifest(0, RANGE, {"benchmark": tuple(functions)})
    folder = tmp_path_factory.mktemp("generated") / "programs"
    directory.write(folder, content)
    directory.build(folder)
    return content, runs.measurements(folder, content)


@pytest.mark.slow
def test_programs_count_what_the_manifest_promises(ran: tuple[Manifest, Measurements]) -> None:
    content, known = ran
    found = {(item.callpath, item.metric): item.values for item in known.items}
    point = Point.of(p=2, n=1500)
    x = {"p": 2.0, "n": 1500.0}
    for function in content.programs["benchmark"]:
        compute, communicate = callpaths(function)
        blocks = sum(counts.loop_counts(function, RANGE, x))
        assert found[compute, "basic_blocks"][point] == pytest.approx((blocks,), abs=1)
        expected = counts.bytes_per_rank(function, RANGE, x)
        calls = counts.calls(function, RANGE, x)
        assert found[communicate, "visits"][point] == (calls,)
        for metric, size in expected.items():
            assert found[communicate, metric][point] == pytest.approx((calls * size,))


@pytest.mark.slow
def test_programs_measure_every_repetition_and_the_point_beyond(ran: tuple[Manifest, Measurements]) -> None:
    content, known = ran
    found = {(item.callpath, item.metric): item.values for item in known.items}
    functions = [function for program in content.programs.values() for function in program]
    for path in (path for function in functions for path in callpaths(function)):
        times = found[path, "time"]
        assert Point.of(p=4, n=2250) in times
        assert all(len(values) == REPETITIONS and min(values) > 0 for values in times.values())


def test_what_is_not_built_is_said_with_the_remedy(tmp_path: Path) -> None:
    content = Manifest(0, RANGE, {"benchmark": population()})
    directory.write(tmp_path / "new", content)
    with pytest.raises(CampaignError, match="make -C"):
        runs.measurements(tmp_path / "new", content)


def test_measurements_are_kept_and_not_taken_again(tmp_path: Path) -> None:
    content = Manifest(0, RANGE, {"benchmark": population()})
    directory.write(tmp_path / "new", content)
    line = {"params": {"p": 2, "n": 1000}, "callpath": "main", "metric": "time", "value": [1.0]}
    (tmp_path / "new" / runs.FILE).write_text(json.dumps(line) + "\n")
    assert runs.measurements(tmp_path / "new", content).points == (Point.of(p=2, n=1000),)
