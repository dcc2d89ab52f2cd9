from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from orchestrator.errors import CampaignError
from orchestrator.evaluation.models import figures, processes, table
from orchestrator.evaluation.models.fit import Contender, Row, Task, fit
from orchestrator.types import Measurements
from tests.evaluation.models.toys import (
    Toy,
    dying,
    faulty,
    nearest_point,
    refusing,
    samples,
    sleeping,
    toy,
    warning,
)
from tests.slurm.daemons import wait_for

ROOT = Path(__file__).parents[3]
PARENT = """\
from orchestrator.evaluation.models import processes
from orchestrator.evaluation.models.fit import Task
from tests.evaluation.models.toys import Telling, samples
if __name__ == "__main__":
    known = samples()
    task = Task(contender=Telling({pids!r}, "toy", {{}}), size=40, seed=0, train=known, test=known)
    list(processes.rows([task], workers=1))
"""
MEASURED = ("mlogq", "mlogq2", "mape", "mae", "mse", "smape", "bytes", "fit_seconds", "predict_seconds")


def task(contender: Contender, train: Measurements | None = None, test: Measurements | None = None) -> Task:
    return Task(
        contender=contender,
        size=40,
        seed=3,
        train=samples() if train is None else train,
        test=samples(10, seed=1) if test is None else test,
    )


def test_a_row_has_what_came_of_a_fit() -> None:
    row = fit(task(toy(nearest_point)))
    assert (row["modeler"], row["size"], row["seed"], row["test"]) == ("nearest_point", 40, 3, 10)
    assert row["failure"] is None and row["models"] == 1 and row["unpredicted"] == 0
    assert row["expression"] == "nearest of 40 points"
    assert all(row[key] is not None and row[key] >= 0 for key in MEASURED)  # type: ignore[literal-required]
    assert row["bytes"] and row["bytes"] > 1000


def test_the_model_is_right_at_points_it_was_fitted_to() -> None:
    row = fit(task(toy(nearest_point), test=samples(5)))
    assert row["mlogq"] == pytest.approx(0.0, abs=1e-12) and row["coverage"] == 1.0


def test_the_normal_form_explains_what_is_in_it() -> None:
    row = fit(
        task(Contender.of("pmnf:members=20"), samples(60, noise=0.02), samples(200, noise=0.02, seed=1))
    )
    assert row["mlogq"] is not None and row["mlogq"] < 0.03
    assert row["coverage"] is not None and 0.75 < row["coverage"] <= 1
    assert row["width"] is not None and 1.03 < row["width"] < 1.3


def test_one_model_per_category_is_asked_where_it_holds() -> None:
    modeler = Contender.of("pmnf:members=20")
    row = fit(task(modeler, samples(60, noise=0.01, texts=True), samples(20, seed=1, texts=True)))
    assert row["unpredicted"] == 0 and row["mlogq"] is not None and row["mlogq"] < 0.05


def test_points_of_a_category_that_was_never_measured_are_counted_not_scored() -> None:
    train = samples(texts=True)
    only = {point: values for point, values in train.items[0].values.items() if point["solver"] == "a"}
    known = Measurements(train.parameters, (type(train.items[0])("main", "t", only),))
    row = fit(task(Contender.of("pmnf:members=20"), known, samples(20, seed=1, texts=True)))
    assert row["unpredicted"] == 10 and row["mlogq"] is not None and row["mlogq"] < 0.05


@pytest.mark.parametrize(
    ("contender", "reason"),
    [
        (toy(refusing), "fewer samples than cells"),
        (toy(faulty), "ZeroDivisionError: a mistake of the family"),
    ],
)
def test_a_fit_that_fails_gives_a_row_with_the_reason(contender: Toy, reason: str) -> None:
    row = fit(task(contender))
    assert row["failure"] == reason and row["mlogq"] is None and row["bytes"] is None


def test_warnings_of_libraries_do_not_cover_the_progress(recwarn: pytest.WarningsRecorder) -> None:
    assert fit(task(toy(warning)))["failure"] is None
    assert not recwarn.list


def test_options_of_a_modeler_are_yaml() -> None:
    found = Contender.of("pmnf:exponents=[[1, 0], [2, 1]],wide=false, members=50")
    assert found.name == "pmnf"
    assert found.options == {"exponents": [[1, 0], [2, 1]], "wide": False, "members": 50}
    assert Contender.of("curves").options == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pmnff", "unknown model 'pmnff': did you mean 'pmnf'"),
        ("pmnf:members", "'members' is no option; write NAME:key=value"),
        ("pmnf:colour=red", "modeler 'pmnf' has no option 'colour'"),
        ("pmnf:exponents=none", "modeler 'pmnf': "),
        ("learned:grid=small", "modeler 'learned': .*'small'"),
        ("pmnf:exponents=[1", "the value of exponents is not YAML"),
    ],
)
def test_a_modeler_that_cannot_be_is_refused_before_anything_is_fitted(text: str, message: str) -> None:
    with pytest.raises(CampaignError, match=message):
        Contender.of(text)


@pytest.mark.slow
def test_a_process_that_dies_costs_its_own_row_only() -> None:
    contenders = [toy(dying), toy(nearest_point), toy(nearest_point, "again")]
    rows = {row["modeler"]: row for row in processes.rows([task(one) for one in contenders], 2)}
    assert len(rows) == 3
    assert rows["dying"]["failure"] == "its process was ended by SIGKILL (out of memory?)"
    here = fit(task(toy(nearest_point)))["mlogq"]
    assert rows["nearest_point"]["mlogq"] == rows["again"]["mlogq"] == here


@pytest.mark.slow
def test_a_fit_that_takes_too_long_is_given_up() -> None:
    [row] = processes.rows([task(toy(sleeping))], workers=1, limit=0.5)
    assert row["failure"] == "no result within 0.5 s"


@pytest.mark.slow
def test_fits_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = tmp_path / "parent.py"
    script.write_text(PARENT.format(pids=str(pids)))
    parent = subprocess.Popen([sys.executable, script], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    wait_for(lambda: pids.exists() and pids.read_text().endswith("\n"), "the fit")
    child = int(pids.read_text())
    assert Path(f"/proc/{child}").exists()
    parent.kill()
    parent.wait()
    wait_for(lambda: not Path(f"/proc/{child}").exists(), "the end of the fit")


def some_rows() -> list[Row]:
    rows = [
        fit(
            Task(
                contender=one, size=size, seed=seed, train=samples(size, seed=seed), test=samples(10, seed=9)
            )
        )
        for one in (toy(nearest_point), toy(nearest_point, "again"), toy(refusing))
        for size in (10, 40)
        for seed in (0, 1)
    ]
    return rows


def test_a_table_has_means_over_seeds_and_the_reasons_of_failures() -> None:
    rows = some_rows()
    lines = table.table(rows).splitlines()
    assert lines[0].split()[:3] == ["size", "modeler", "MLogQ"]
    mean = np.mean([row["mlogq"] for row in rows[:2] if row["mlogq"] is not None])
    assert lines[1].split()[:3] == ["10", "nearest_point", f"{mean:.4f}"] and lines[1].endswith("2/2")
    assert lines[5].split()[:3] == ["10", "refusing", "-"] and lines[5].endswith("0/2")
    assert lines[-1] == "refusing, 40 points, seed 1: fewer samples than cells"


@pytest.mark.parametrize(("value", "text"), [(0, "0 B"), (999, "999 B"), (12_345, "12.3 kB"), (5e9, "5 GB")])
def test_sizes_are_short(value: float, text: str) -> None:
    assert table.size_text(value) == text


def test_figures_are_drawn_also_where_fits_failed(tmp_path: Path) -> None:
    rows = some_rows()
    figures.write({"all": rows, "none": rows[-2:]}, tmp_path / "figures")
    written = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert written == ["error-bytes.png", "error-size.png", "errors.png"]
    assert all((tmp_path / "figures" / name).stat().st_size > 5000 for name in written)
