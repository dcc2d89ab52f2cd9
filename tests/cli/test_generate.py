"""`orchestrator generate` as a user calls it, and its programs in `orchestrator evaluate noise`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.evaluation.noise import runs as noise_runs
from orchestrator.evaluation.noise.cases import synthetic
from orchestrator.generate.population import Range
from orchestrator.report.export import export
from orchestrator.types import Measurement, Measurements
from tests.cli.running import run


def test_a_specified_function_has_the_complexity_of_its_loops(tmp_path: Path) -> None:
    options = ["--loop", "n", "--loop", "log2(p)**2", "--arrangement", "nested"]
    options += ["--operation", "reduce", "--message", "n**(1/3)*p", "--calls", "n**0.5"]
    result = run("generate", str(tmp_path / "new"), *options, "--json")
    assert result.code == 0
    assert "1 function in 1 program; " in run("generate", str(tmp_path / "said"), *options).out
    (function,) = json.loads(result.out)["programs"]["benchmark"]
    assert function["computation"]["complexity"] == "n + n * log2(p)**2"
    assert function["communication"]["complexity"] == "n**0.5 * log2(p) + n**(5/6) * p"


def test_functions_are_spread_over_programs_and_a_seed_is_a_population(tmp_path: Path) -> None:
    names = []
    for folder in ("first", "second"):
        result = run("generate", str(tmp_path / folder), "--count", "7", "--programs", "3", "--seed", "9")
        assert result.code == 0 and "7 functions in 3 programs" in result.out
        names.append(sorted(path.name for path in (tmp_path / folder).glob("*.cpp")))
    assert names[0] == ["benchmark0.cpp", "benchmark1.cpp", "benchmark2.cpp"]
    for name in names[0]:
        assert (tmp_path / "first" / name).read_text() == (tmp_path / "second" / name).read_text()


def test_kernels_are_written_where_they_are_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "init mpi-kernel --executable kernels/kernels" in run("generate", "kernels").out
    assert sorted(path.name for path in Path("kernels").iterdir()) == ["Makefile", "kernels.c"]
    assert run("generate", "kernels", "other", "--json").document == {
        "files": ["other/kernels.c", "other/Makefile"]
    }
    again = run("generate", "kernels")
    assert again.code == 2 and "is not empty" in again.err
    assert run("generate", "a", "b").code == 2


def test_a_build_that_fails_says_what_it_needs_and_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make = tmp_path / "make"
    make.write_text("#!/bin/sh\necho cannot find -lopenblas >&2\nexit 2\n")
    make.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    failed = run("generate", "kernels", "--build")
    assert failed.code == 2 and "cannot find -lopenblas\nit needs mpicc and OpenBLAS" in failed.err
    assert failed.err.endswith("then: make -C kernels\n")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--loop", "x**2"], "parameters are p, n"),
        (["--loop", "n**-1"], "exponents positive"),
        (["--message", "n+p"], "--message"),
        (["--count", "0"], "--count"),
        (["--count", "2", "--programs", "3"], "--programs"),
        (["--smallest", "p=1,n=10"], "--smallest p=1"),
        (["--smallest", "p"], "--smallest"),
        (["--exponents", "a,b"], "--exponents"),
        (["--seed", "-1"], "argument --seed: '-1' is not a whole number from 0"),
    ],
)
def test_mistakes_are_refused_before_anything_is_written(
    tmp_path: Path, options: list[str], word: str
) -> None:
    result = run("generate", str(tmp_path / "new"), *options)
    assert result.code == 2 and word in result.err
    assert not (tmp_path / "new").exists()


def test_a_directory_with_files_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes").write_text("mine")
    result = run("generate", str(folder))
    assert result.code == 2 and "not empty" in result.err
    assert [path.name for path in folder.iterdir()] == ["notes"]


@pytest.mark.slow
def test_the_noise_study_prints_a_row_per_modeler_and_setting(tmp_path: Path) -> None:
    options = ["--functions", "3", "--injections", "1", "--level", "0", "--level", "50", "--workers", "1"]
    result = run(
        "evaluate", "noise", *options, "--repetitions", "1", "--json", "--figures", str(tmp_path / "figures")
    )
    found = json.loads(result.out)["rows"]
    assert len(found) == 2 * 2 * 3  # kinds, levels, modelers
    assert {row["exact_percent"] for row in found if row["modeler"] == "swc"} == {100.0}
    assert [p.name for p in (tmp_path / "figures").iterdir()] == ["noise-1.png"]


def test_the_noise_study_takes_measured_programs(tmp_path: Path) -> None:
    """Simulated times stand in for runs: what a folder holds is not measured again."""
    folder = tmp_path / "new"
    values = ["--smallest", "p=128,n=8000", "--largest", "p=1024,n=40000"]
    assert run("generate", str(folder), "--seed", "6", *values).code == 0
    study = synthetic(1, 2.0, 6, Range({"p": 128, "n": 8000}, {"p": 1024, "n": 40000}))
    times = [
        Measurement(case.callpath, "time", {**case.times, study.test: (case.expected,)})
        for case in study.cases
    ]
    known = Measurements(study.parameters, (*times, *study.effort))
    (folder / noise_runs.FILE).write_bytes(export(known, "extrap-jsonl"))
    options = ["--level", "0", "--repetitions", "2", "--workers", "1", "--json"]
    result = run("evaluate", "noise", "--programs", str(folder), *options)
    rows = json.loads(result.out)["rows"]
    assert {(row["kind"], row["models"]) for row in rows} == {("computation", 1), ("communication", 1)}
    assert all(row["error_percent"] < 5 for row in rows)


def test_a_model_of_times_uses_the_effort_that_is_in_the_file(tmp_path: Path) -> None:
    study = synthetic(1, 50.0, 3)
    case = study.cases[0]
    known = Measurements(study.parameters, (Measurement(case.callpath, "time", case.times), *study.effort))
    (tmp_path / "runs.jsonl").write_bytes(export(known, "extrap-jsonl"))
    result = run("model", str(tmp_path / "runs.jsonl"), "--modeler", "swc", "--metric", "time", "--json")
    (model,) = json.loads(result.out)["models"]
    assert model["metric"] == "time"
    assert not any("no effort was counted" in note for note in model["notes"])
