"""Models of measured applications against stated theories: which are read, what is fitted and counted."""

from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np
import pytest

from orchestrator.errors import CampaignError
from orchestrator.evaluation.models.fit import Contender
from orchestrator.evaluation.noise import measured as noise_measured
from orchestrator.evaluation.noise import theory as noise_theory
from orchestrator.evaluation.noise.rows import rows
from orchestrator.models.effort import assign
from orchestrator.models.symbolic import growth
from orchestrator.types import Measurement, Measurements, Point

NAMES = ("p", "n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p + n*log2(n*p)", {"p": (1.0, 0.0), "n": (1.0, 1.0)}),
        ("n**3", {"p": (0.0, 0.0), "n": (3.0, 0.0)}),
        ("(p - 1)/p * n", {"p": (0.0, 0.0), "n": (1.0, 0.0)}),
        ("sqrt(p) * cbrt(n)**2", {"p": (0.5, 0.0), "n": (2 / 3, 0.0)}),
        ("(n + p)**2 - p**2", {"p": (1.0, 0.0), "n": (2.0, 0.0)}),
        ("3 + log(8*p)**2 / n", {"p": (0.0, 2.0), "n": (0.0, 0.0)}),
    ],
)
def test_theories_are_read_as_growth(text: str, expected: dict[str, tuple[float, float]]) -> None:
    found = noise_theory.terms(text, NAMES)
    assert {name: growth(found, name) for name in NAMES} == {
        name: pytest.approx(pair) for name, pair in expected.items()
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q*n", "unknown name 'q'"),
        ("log2(n + p)", "a logarithm of a sum"),
        ("(n + p)**0.5", "a sum to the power 0.5"),
        ("max(n, p)", "is not part of such a sum"),
        ("n/(p - p)", "division by zero"),
        ("n**p", "theory 'n\\*\\*p'"),
    ],
)
def test_other_expressions_are_refused(text: str, message: str) -> None:
    with pytest.raises(CampaignError, match=message):
        noise_theory.terms(text, NAMES)


def measured(repetitions: int = 3, paths: tuple[str, ...] = ("main", "main->solve")) -> Measurements:
    """Linear in n, with 1 % noise; the largest n is the test point."""
    rng = np.random.default_rng(3)
    times = {
        Point.of(n=n): tuple(0.1 * n * (1 + 0.01 * rng.uniform(-1, 1, repetitions)))
        for n in (10, 20, 40, 80, 160, 320)
    }
    return Measurements(("n",), tuple(Measurement(path, "time", times) for path in paths))


def test_call_paths_of_theories_are_found_by_their_last_name() -> None:
    known = measured(paths=("main", "main->solve", "main->solve->dot"))
    assert set(noise_theory.stated(["solve=n", "main=n"], known)) == {"main", "main->solve"}
    with pytest.raises(CampaignError, match="no such call path"):
        noise_theory.stated(["nothing=n"], known)
    with pytest.raises(CampaignError, match="write CALLPATH=EXPRESSION"):
        noise_theory.stated(["n*log2(n)"], known)


def test_all_subsets_of_repetitions_and_injections_into_all() -> None:
    found = noise_measured.settings([0.0, 10.0], (), 2, ["uniform", "none"], 4)
    subsets = [item.subset for item in found if not item.percent]
    assert len(set(subsets)) == len(subsets) == sum(comb(4, k) for k in range(1, 5))
    assert [item.subset for item in found if item.percent] == [(0, 1, 2, 3)] * 2
    assert {len(item.subset) for item in noise_measured.settings([0.0], (2,), 1, [], 4)} == {2}


def studied(known: Measurements, theory: str) -> noise_measured.Application:
    theories = noise_theory.stated([theory], known)
    names = {path: path for path in theories}
    return noise_measured.application(known, "time", theories, names=names)


def test_models_are_scored_at_the_point_that_was_left_out() -> None:
    application = studied(measured(), "solve=n**2")
    assert max(p.number("n") for item in application.timed.items for p in item.values) == 160
    chosen = noise_measured.settings([0.0, 50.0], (), 1, ["exponential"], application.repetitions)
    errors = noise_measured.run(application, [Contender.of("pmnf")], chosen, workers=1)
    results = {(row["noise_percent"], row["repetitions"]): row for row in rows(errors, ("n",))}
    assert results[0.0, 1]["models"] == 3 and results[0.0, 3]["models"] == 1
    assert results[0.0, 3]["deviations"] == {"n": pytest.approx(1.0)}  # the truth is linear, the theory not
    assert results[0.0, 3]["error_percent"] < 2.0
    assert results[50.0, 3]["error_percent"] != results[0.0, 3]["error_percent"]


def test_points_are_chosen_by_conditions_and_must_be_enough() -> None:
    known = measured()
    theories = noise_theory.stated(["solve=n"], known)
    names = {"main->solve": "solve"}
    found = noise_measured.application(
        known, "time", theories, names=names, test_where=["n == 20 or n == 40"]
    )
    assert [p.number("n") for p in found.expected["main->solve"]] == [20, 40]
    assert [p.number("n") for p in found.timed.items[0].values] == [10, 80, 160, 320]
    with pytest.raises(CampaignError, match="2 training points and 4 test points"):
        noise_measured.application(known, "time", theories, names=names, train_where=["n < 40"])
    with pytest.raises(CampaignError, match="no energy of main->solve"):
        noise_measured.application(known, "energy", theories, names=names)


def counted(known: Measurements, *labels: tuple[str, str]) -> Measurements:
    """Add counts that grow with the square of n."""
    counts = {point: (float(point.number("n")) ** 2,) for point in known.items[0].values}
    return Measurements(
        known.parameters, known.items + tuple(Measurement(path, metric, counts) for path, metric in labels)
    )


def labels(items: tuple[Measurement, ...]) -> set[tuple[str, str]]:
    return {(item.callpath, item.metric) for item in items}


def test_only_what_a_theory_needs_is_fitted() -> None:
    known = counted(
        measured(paths=("main", "main->solve", "main->solve->MPI_Send", "main->write")),
        ("main->solve", "basic_blocks"),
        ("main->solve->inlined", "basic_blocks"),
        ("main->solve->MPI_Send", "bytes_sent"),
        ("main->write", "basic_blocks"),
        ("main", "basic_blocks"),
    )
    found = studied(known, "solve=n")
    assert labels(found.timed.items) == {("main->solve", "time"), ("main->solve->MPI_Send", "time")}
    assert labels(found.effort) == {
        ("main->solve", "basic_blocks"),
        ("main->solve->inlined", "basic_blocks"),
        ("main->solve->MPI_Send", "bytes_sent"),
    }
    everything = assign(known, ("main", "main->solve", "main->solve->MPI_Send", "main->write"))[0]
    few = assign(replace(found.timed, items=found.effort), [item.callpath for item in found.timed.items])[0]
    for part in ("counts", "below"):
        assert set(getattr(few["main->solve"], part)) == set(getattr(everything["main->solve"], part))


def test_everything_is_fitted_where_effort_would_belong_to_other_times() -> None:
    """``f`` is below two callers: by its last name alone it is neither, unless one of the two is left out."""
    paths = ("main", "main->solve", "main->solve->f", "main->write->f")
    known = counted(measured(paths=paths), ("main->solve->inner->f", "basic_blocks"))
    theories = noise_theory.stated(["main->solve=n", "main->solve->f=n"], known)
    found = noise_measured.application(known, "time", theories, names={path: path for path in theories})
    assert len(found.timed.items) == len(paths)


def test_counts_change_the_models_of_modelers_that_use_them_alone() -> None:
    plain = measured(paths=("main",))
    with_counts = counted(plain, ("main", "basic_blocks"))
    chosen = noise_measured.settings([0.0], (3,), 1, [], 3)
    contenders = [Contender.of("pmnf"), Contender.of("swc:posterior=prior")]

    def deviations(known: Measurements) -> dict[str, float]:
        errors = noise_measured.run(studied(known, "main=n"), contenders, chosen, workers=1)
        return {row["modeler"]: row["deviation"] for row in rows(errors, ("n",))}

    assert deviations(plain) == {"pmnf": 0.0, "swc:posterior=prior": 0.0}
    assert deviations(with_counts) == {"pmnf": 0.0, "swc:posterior=prior": pytest.approx(1.0)}


def test_test_points_are_predicted_by_the_model_of_their_category() -> None:
    times = {
        Point.of(n=n, solver=solver): (scale * n, 1.001 * scale * n)
        for n in (10, 20, 40, 80, 160)
        for solver, scale in (("cg", 1.0), ("amg", 5.0))
    }
    known = Measurements(("n", "solver"), (Measurement("main", "time", times),), frozenset({"solver"}))
    chosen = noise_measured.settings([0.0], (2,), 1, [], 2)
    [row] = rows(noise_measured.run(studied(known, "main=n"), [Contender.of("pmnf")], chosen), ("n",))
    assert row["models"] == 2 and row["error_percent"] < 1.0 and row["exact_percent"] == 100.0

    theories = noise_theory.stated(["main=n"], known)
    application = noise_measured.application(
        known, "time", theories, names={"main": "main"}, train_where=["solver == 'cg'"]
    )
    with pytest.raises(CampaignError, match=r"pmnf has no model of main at P\(n=10, solver=amg\)"):
        noise_measured.run(application, [Contender.of("pmnf")], chosen)
