"""Counts are exact sums with coefficients of any sign: halos, triangles, trees, surfaces of ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import registry
from orchestrator.models.base import Model
from orchestrator.models.factored import FactoredModel
from orchestrator.models.pmnf.exact_sums import repeats_exactly
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.modeler import modeler
from orchestrator.models.pmnf.peeling import supports, usable
from orchestrator.models.pmnf.posterior import Posterior
from orchestrator.readers import cube_set
from orchestrator.types import Measurement, Measurements, Point
from tests.requirements import measurement_data

Count = Callable[..., float]
CUBES, EDGES = (1, 8, 27), (6, 8, 10, 12, 14)
DOUBLINGS, SIZES = (1, 2, 4, 8, 16), (8, 16, 24, 32, 40)


def edge(p: int) -> int:
    """Ranks along an edge of a cube of ranks."""
    return {1: 1, 8: 2, 27: 3, 64: 4, 125: 5}[p]


def stencil(p: int, s: int) -> int:
    """Cells, faces between ranks with halos, and a constant per rank."""
    return 7 * p * s**3 + 72 * (p - edge(p) ** 2) * s**2 + 5 * p


def halo(p: int, s: int) -> int:
    """Nodes of a cube, and messages for faces, edges and corners between ranks."""
    q = edge(p)
    faces, edges, corners = (q - 1) * q**2, (q - 1) ** 2 * q, (q - 1) ** 3
    return 40 * p * (s + 1) ** 3 + 78 * faces * (s + 1) ** 2 + 108 * edges * (s + 1) + 40 * corners + 4 * p


def neighbours(p: int, s: int) -> int:
    """Of the rank with the most neighbours: 7, 26, and no more."""
    faces, edges, corners = {1: (0, 0, 0), 8: (3, 3, 1), 27: (6, 12, 8)}[p]
    return 80 + 11 * faces * (s + 1) ** 2 + 7 * edges * (s + 1) + corners


def triangle(p: int, s: int) -> int:
    return p * s * (s - 1) // 2 + 3 * s + 11 * p


def pairs(p: int, s: int) -> int:
    return s * p * (p - 1) // 2 + 17 * p * s**2 + 9


def tree(p: int, s: int) -> int:
    return 3 * s**2 * (s - 1) + 14 * s * round(log2(p)) + 5 * p * round(log2(p)) + 2 * p


def measured(count: Count, points: Sequence[tuple[float, ...]], repetitions: int = 2) -> Measurements:
    names = "psn"[: len(points[0])]
    values = {
        Point.of(dict(zip(names, map(float, x), strict=True))): (float(count(*x)),) * repetitions
        for x in points
    }
    return Measurements(tuple(names), (Measurement("f", "basic_blocks", values),))


def fitted(count: Count, points: Sequence[tuple[float, ...]], repetitions: int = 2) -> PmnfModel:
    (model,) = modeler()(measured(count, points, repetitions))
    assert isinstance(model, PmnfModel)
    return model


def is_exact(count: Count, points: Sequence[tuple[float, ...]]) -> bool:
    """Return whether a sum is believed, of the values or of what is left of them without a law."""
    (model,) = modeler()(measured(count, points))
    if isinstance(model, FactoredModel):
        model = model.model
    assert isinstance(model, PmnfModel)
    return model.is_exact


def holds(model: Model, x: tuple[float, ...], truth: float) -> bool:
    at = model.predict([Point.of(dict(zip("psn", map(float, x), strict=False)))])
    return bool(at.low[0] <= truth * (1 + 1e-9) and at.high[0] >= truth * (1 - 1e-9))


def predicted(model: Model, *x: float) -> float:
    return float(model.value([Point.of(dict(zip("psn", map(float, x), strict=False)))])[0])


def without_corner(*values: Sequence[int]) -> list[tuple[int, ...]]:
    return list(product(*values))[:-1]


@pytest.mark.parametrize("name", ["auto", "pmnf"])
@pytest.mark.parametrize(
    ("count", "ranks", "sizes"),
    [
        (stencil, CUBES, EDGES),
        (halo, CUBES, EDGES),
        (neighbours, CUBES, EDGES),
        (triangle, DOUBLINGS, SIZES),
        (pairs, DOUBLINGS, SIZES),
        (tree, DOUBLINGS, SIZES),
    ],
)
def test_the_missing_corner_of_exact_counts_is_exact(
    name: str, count: Count, ranks: Sequence[int], sizes: Sequence[int]
) -> None:
    (model,) = registry.load("model", name)()(measured(count, without_corner(ranks, sizes)))
    corner = (ranks[-1], sizes[-1])
    assert predicted(model, *corner) == pytest.approx(count(*corner), rel=1e-9)
    assert holds(model, corner, count(*corner))
    twice = (ranks[-1], 2 * sizes[-1])
    assert predicted(model, *twice) == pytest.approx(count(*twice), rel=1e-9)


@pytest.mark.parametrize(("count", "beyond"), [(stencil, (64, 14)), (halo, (64, 14)), (halo, (125, 20))])
def test_terms_that_as_many_values_determine_leave_doubt_beyond_them(
    count: Count, beyond: tuple[int, int]
) -> None:
    model = fitted(count, without_corner(CUBES, EDGES))
    assert holds(model, beyond, count(*beyond))


def test_the_expression_has_the_terms_with_their_round_coefficients() -> None:
    model = fitted(triangle, without_corner(DOUBLINGS, SIZES))
    found = {
        tuple((f["parameter"], f["exponent"]) for f in term["factors"]): term["coefficient"]
        for term in model.terms
    }
    assert found == {(("p", 1), ("s", 2)): 0.5, (("p", 1), ("s", 1)): -0.5, (("s", 1),): 3, (("p", 1),): 11}
    assert model.smape < 1e-9
    assert any(note.startswith("a sum of 4 terms explains all 24 values") for note in model.notes)


def test_counts_of_one_parameter() -> None:
    model = fitted(lambda n: n * (n - 1) // 2 * 13 + 5, [(n,) for n in (10, 20, 30, 40, 50)])
    assert predicted(model, 1000) == pytest.approx(1000 * 999 // 2 * 13 + 5, rel=1e-9)


def test_counts_of_three_parameters() -> None:
    def count(p: int, s: int, n: int) -> int:
        return 3 * n * p * (s - 2) ** 3 + 8 * n * (p - 1) * s**2 + 40 * p * n - 7 * s**2

    points = without_corner((2, 4, 8, 16), (8, 16, 24, 32), (1, 2, 3))
    model = fitted(count, points)
    assert predicted(model, 64, 50, 9) == pytest.approx(count(64, 50, 9), rel=1e-9)


def test_means_over_ranks_are_exact_without_being_whole() -> None:
    model = fitted(lambda p, s: stencil(p, s) / p, without_corner(CUBES, EDGES))
    assert predicted(model, 27, 14) == pytest.approx(stencil(27, 14) / 27, rel=1e-9)


def test_single_runs_of_whole_numbers_are_enough() -> None:
    model = fitted(tree, without_corner(DOUBLINGS, SIZES), repetitions=1)
    assert predicted(model, 16, 40) == pytest.approx(tree(16, 40), rel=1e-9)


@settings(max_examples=10, deadline=None)
@given(
    cells=st.integers(1, 500),
    faces=st.integers(-300, 300),
    edges=st.integers(-300, 300),
    ranks=st.integers(1, 1000),
    grown=st.integers(-2, 2),
)
def test_polynomials_of_loops_are_recovered(
    cells: int, faces: int, edges: int, ranks: int, grown: int
) -> None:
    def count(p: int, s: int) -> int:
        n = s + grown
        return 400 * cells * p * n**3 + faces * (p - 1) * n**2 + edges * p * n + ranks * p

    model = fitted(count, without_corner(DOUBLINGS, SIZES))
    assert predicted(model, 16, 40) == pytest.approx(count(16, 40), rel=1e-8)
    assert predicted(model, 64, 100) == pytest.approx(count(64, 100), rel=1e-6)


@pytest.mark.parametrize(
    "count",
    [
        lambda p, s: round(900 * s**2.3 * p**0.4),
        lambda p, s: 900 * ceil(s / 5) ** 2 * p + 40 * p,
        lambda p, s: round(13.3 * p**0.31 * s**0.47) * (27 * s**3 + 8 * s**2),
        lambda p, s: round(1e5 * s**2 * p**0.5 * (1 + 0.05 * np.sin(0.1 * s + log2(p)))),
    ],
)
def test_counts_that_are_no_sum_are_not_taken_for_one(count: Count) -> None:
    assert not is_exact(count, without_corner(DOUBLINGS, SIZES))
    (mixed,) = registry.load("model", "auto")()(measured(count, without_corner(DOUBLINGS, SIZES)))
    assert holds(mixed, (16, 40), count(16, 40))


def test_rounding_of_loop_bounds_is_not_explained_by_more_terms() -> None:
    points = without_corner((2, 4, 8, 16, 32), SIZES)
    assert not is_exact(lambda p, s: round(198_400 * p ** (1 / 3)), points)


@pytest.mark.parametrize("name", ["pmnf", "auto", "swc"])
@pytest.mark.parametrize(
    "count",
    [
        lambda p, n: 2 * n**2 + 57 * n + 474,
        lambda p, n: 7 * (n - 2) ** 3 + 31 * n,
        lambda p, n: 5 * n**3 - 12 * n**2 + 7 * n + 100,
    ],
)
def test_four_values_are_enough_for_whole_coefficients(name: str, count: Count) -> None:
    """Few whole numbers are values of such polynomials; other ranks, which change nothing, prove nothing."""
    (model,) = registry.load("model", name)()(measured(count, list(product((1, 2, 4), (6, 10, 14, 18)))))
    assert predicted(model, 8, 36) == pytest.approx(count(8, 36), rel=1e-9)
    assert holds(model, (8, 36), count(8, 36))


@pytest.mark.parametrize("values", [(1, 2, 3), (1, 2, 3, 4), (8, 12, 16, 20), (4, 8, 16, 32)])
@pytest.mark.parametrize("exponent", [0.6, 1.4, 1.9, 2.3])
def test_whole_coefficients_may_be_chance(exponent: float, values: Sequence[int]) -> None:
    """Every other polynomial through whole numbers at 1, 2 and 3 has whole coefficients."""
    points = list(product((1, 2, 4), values))
    assert not is_exact(lambda p, n: round(237 * n**exponent) + 951, points)


@pytest.mark.parametrize(
    ("count", "values"),
    [
        (lambda p, n: 5 * n**3 - 12 * n**2 + 7 * n + 100, (10, 20, 30)),
        (lambda p, n: (n + 1) * (n + 2) * (n - 1) * (n - 3) + 7 * n, (8, 12, 16, 20)),
        (lambda p, n: 24 * 4**n, (2, 4, 6, 8)),
    ],
)
def test_polynomials_of_another_degree_have_whole_coefficients_too(
    count: Count, values: Sequence[int]
) -> None:
    """Through values of a cubic go quadratics with whole coefficients, as cubics through a quartic."""
    assert not is_exact(count, list(product((1, 2, 4), values)))


@pytest.mark.parametrize("name", ["pmnf", "swc"])
@pytest.mark.parametrize("repetitions", [1, 2])
def test_ranks_that_change_nothing_are_no_evidence(name: str, repetitions: int) -> None:
    """Of counts that are no sum, 16 points with four values of s show as little as four points."""
    points, fit = list(product((1, 2, 4, 8), (8, 12, 16, 20))), registry.load("model", name)()
    held = []
    for exponent in np.arange(0.55, 2.9, 0.15):
        count = partial(_power, exponent)
        (model,) = fit(measured(count, points, repetitions))
        assert model.value([Point.of(p=64.0, s=12.0)]) == pytest.approx(count(64, 12), rel=1e-9)
        held.append(holds(model, (16, 40), count(16, 40)))
    assert np.mean(held) >= 0.8


def _power(exponent: float, p: float, s: float) -> float:
    return float(np.rint(237 * s**exponent)) + 951


def test_too_few_points_prove_nothing() -> None:
    """A polynomial goes through four points whatever was measured."""
    assert not fitted(lambda n: (n - 3) ** 3 + 1000, [(8,), (16,), (32,), (64,)]).is_exact


def test_noise_is_never_explained_exactly() -> None:
    rng = np.random.default_rng(0)
    values = {
        Point.of({"p": float(p), "s": float(s)}): tuple(stencil(p, s) * rng.normal(1, 1e-4, 2))
        for p, s in without_corner(CUBES, EDGES)
    }
    (model,) = modeler()(Measurements(("p", "s"), (Measurement("f", "time", values),)))
    assert isinstance(model, PmnfModel) and not model.is_exact


def test_exact_are_equal_repetitions_and_whole_numbers() -> None:
    nan = np.nan
    values = np.array(
        [
            [[1.5, 1.5], [2.5, nan]],
            [[1.5, 1.6], [2.5, nan]],
            [[1.5, nan], [2.5, nan]],
            [[3.0, nan], [7.0, nan]],
        ]
    )
    assert repeats_exactly(values).tolist() == [True, False, False, True]


def test_peeling_finds_the_products() -> None:
    points = np.array(without_corner(DOUBLINGS, SIZES), dtype=float)
    values = np.array([triangle(int(p), int(s)) for p, s in points], dtype=float)
    blocks = tuple(usable(column, True) for column in points.T)
    best = supports(points, values, np.full(len(points), 1e-6), blocks)[0]
    one, two, no = (1.0, 0.0), (2.0, 0.0), (0.0, 0.0)
    assert set(best.terms) == {(one, two), (one, one), (no, one), (one, no)}


def test_blocks_that_have_no_value_are_left_out() -> None:
    assert all(log == 0 for _, log in usable(np.array([0.5, 2.0]), True))
    assert all(power >= 0 for power, _ in usable(np.array([0.0, 2.0]), True))
    assert all(power >= 0 for power, _ in usable(np.array([1.0, 2.0]), False))


def test_terms_that_cancel_each_other_are_not_kept_above_a_share_of_their_sizes() -> None:
    def posterior(least_share: float) -> Posterior:
        return Posterior(
            weights=np.ones(1),
            exponents=np.array([[[[1.0, 0.0]]]]),
            coefficients=np.array([[-99_999.0, 100_000.0]]),
            covariance=np.zeros((1, 2, 2)),
            misfit=np.zeros(1),
            least_share=least_share,
        )

    assert posterior(least_share=1e-12).best(np.ones((1, 1)))[0] == pytest.approx(1)
    assert posterior(least_share=1e-3).best(np.ones((1, 1)))[0] == pytest.approx(199.999)


def test_counts_of_a_shock_code_without_their_corner() -> None:
    folder = measurement_data() / "cubex" / "lulesh-effort"
    known = cube_set.read([folder], ["basic_blocks", "bytes_sent"])
    corner = next(q for q in known.points if (q.number("p"), q.number("s")) == (27, 14))
    items = [item for item in known.items if item.values[corner][0] > 0]
    kept = tuple(
        Measurement(item.callpath, item.metric, {q: v for q, v in item.values.items() if q != corner})
        for item in items
    )
    models = registry.load("model", "auto")()(Measurements(known.parameters, kept))
    truth = np.array([item.values[corner][0] for item in items])
    found = [model.predict([corner]) for model in models]
    error = np.array([at.value[0] for at in found]) / truth - 1
    assert np.abs(error).max() < 1e-3
    held = [
        at.low[0] * (1 - 1e-9) <= t <= at.high[0] * (1 + 1e-9) for at, t in zip(found, truth, strict=True)
    ]
    assert np.mean(held) >= 0.9
