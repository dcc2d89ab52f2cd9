"""The noise study: patterns, exponents that noise does not touch, and what its tables say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from orchestrator.errors import CampaignError
from orchestrator.evaluation.artificial_noise import PATTERNS, factors
from orchestrator.evaluation.noise import cases as noise_cases
from orchestrator.evaluation.noise import figures as noise_figures
from orchestrator.evaluation.noise import study as noise_study
from orchestrator.evaluation.noise.rows import Row, rows, table
from orchestrator.evaluation.noise.study import Errors, Setting
from orchestrator.generate.manifest import Manifest
from orchestrator.generate.population import DEFAULT, Range, draw
from orchestrator.types import Measurements

SMALL = Range({"p": 128, "n": 8000}, {"p": 1024, "n": 40000})


@pytest.mark.parametrize("pattern", PATTERNS)
def test_noise_only_slows_down_and_is_bounded(pattern: str) -> None:
    found = factors(pattern, 75.0, (20_000,), np.random.default_rng(0))
    assert found.min() >= 1.0 and found.max() <= 1.75
    disturbed = np.mean(found > 1.0)
    assert disturbed == 0.0 if pattern == "none" else abs(disturbed - 0.5) < 0.02


def test_patterns_have_their_means() -> None:
    """Uniform 1/2; half normal on [0, 1] 0.46; Poisson about 0.99; exponential 1 - 1/e."""
    rng = np.random.default_rng(1)
    means = {name: float(factors(name, 100.0, (50_000,), rng, selected=1.0).mean()) - 1 for name in PATTERNS}
    expected = {"uniform": 0.5, "normal": 0.46, "poisson": 0.987, "exponential": 1 - np.exp(-1), "none": 0.0}
    assert means == pytest.approx(expected, abs=0.01)


def test_settings_that_injections_do_not_change_come_once() -> None:
    found = noise_study.settings([0.0, 10.0], [1, 5], 3, list(PATTERNS))
    assert len(found) == len(set(found)) == 2 * (1 + 4 * 3)


@pytest.fixture(scope="module")
def errors() -> list[Errors]:
    study = noise_cases.synthetic(12, 2.0, seed=4, range_=SMALL)
    chosen = noise_study.settings([0.0, 75.0], [1, 5], 1, ["uniform", "none"])
    return noise_study.run(study, chosen, workers=1)


@pytest.mark.slow
def test_priors_keep_exponents_that_noise_takes_from_classic_models(errors: list[Errors]) -> None:
    results = {(r["kind"], r["modeler"], r["noise_percent"], r["repetitions"]): r for r in rows(errors, "pn")}
    for kind in noise_cases.KINDS:
        for modeler in ("swc", "combined"):
            for repetitions in (1, 5):
                row = results[kind, modeler, 75.0, repetitions]
                assert row["exact_percent"] == 100.0 and row["deviation"] == pytest.approx(0.0, abs=1e-9)
        assert results[kind, "classic", 75.0, 1]["exact_percent"] < 80.0


def test_priors_predict_better_under_noise(errors: list[Errors]) -> None:
    results = {(r["kind"], r["modeler"], r["noise_percent"], r["repetitions"]): r for r in rows(errors, "pn")}
    classic, prior = (results["computation", name, 75.0, 1] for name in ("classic", "swc"))
    assert prior["error_percent"] < classic["error_percent"]


def test_the_same_seed_gives_the_same_study() -> None:
    first, second = (noise_cases.synthetic(3, 2.0, seed=7, range_=SMALL) for _ in range(2))
    assert first == second


def row_of(members: list[tuple[tuple[float, float], float]]) -> Row:
    setting = Setting(pattern="uniform", percent=10.0, repetitions=1, injection=0)
    found = [
        Errors(
            contender="classic",
            kind="computation",
            setting=setting,
            deviations=np.array([dev]),
            error_percent=np.array([error]),
            covered=np.array([True]),
        )
        for dev, error in members
    ]
    (row,) = rows(found, ("p", "n"))
    return row


def test_rows_are_means_over_functions_and_parameters() -> None:
    row = row_of([((0.0, 0.0), 1.0), ((1.0, 0.5), 5.0)])
    assert row["exact_percent"] == 50.0
    assert row["deviation"] == 0.375
    assert row["deviations"] == {"p": 0.5, "n": 0.25}
    assert (row["error_percent"], row["median_error_percent"]) == (3.0, 3.0)


def test_the_table_shows_every_row(errors: list[Errors]) -> None:
    results = rows(errors, ("p", "n"))
    lines = table(results).splitlines()
    assert len(lines) == 1 + len(results) and "exponent off, p" in lines[0]


def test_figures_are_written(errors: list[Errors], tmp_path: Path) -> None:
    results = rows(errors, ("p", "n"))
    noise_figures.write(results, tmp_path / "new")
    files = {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()}
    assert set(files) == {"noise-1.png", "noise-5.png", "repetitions.png"}
    assert all(content.startswith(b"\x89PNG") for content in files.values())


def test_measured_programs_need_their_counts_and_test_point() -> None:
    study = noise_cases.synthetic(1, 0.0, seed=0, range_=SMALL)
    rng = np.random.default_rng(0)
    function = draw(0, SMALL, DEFAULT, rng)
    manifest = Manifest(0, SMALL, {"benchmark": (function,)})
    with pytest.raises(CampaignError, match="largest values"):
        noise_cases.measured(manifest, Measurements(("p", "n"), study.effort))
