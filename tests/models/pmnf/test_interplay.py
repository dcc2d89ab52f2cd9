"""What points leave open of how parameters change terms that lack them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest

from orchestrator import registry
from orchestrator.models.base import Model
from orchestrator.models.pmnf.interplay import Interplay
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.posterior import Posterior
from orchestrator.types import Measurement, Measurements, Point

Law = Callable[[float, float], float]
SIZES = (16, 32, 64, 128, 256)
RANKS = (2, 4, 8, 16, 32)
CORNER = Point.of(p=64, n=512)
LINES = [*((2, n) for n in SIZES), *((p, 16) for p in RANKS[1:]), (4, 32)]
GRID = [(p, n) for p in RANKS for n in SIZES]


def added(p: float, n: float) -> float:
    """Return a time of which each parameter adds its own part."""
    return 10 + 2 * p + 0.002 * n**2


def shared_out(p: float, n: float) -> float:
    """Return a time of which p makes less what n adds: along lines through small n that hardly shows."""
    return float(10 + 2 * p + 0.002 * n**2 * (p / 2) ** -0.2)


def fitted(law: Law, points: Iterable[tuple[int, int]], scale: float = 1.0) -> PmnfModel:
    rng = np.random.default_rng(3)
    values = {
        Point.of(p=p * scale, n=n): tuple(law(p, n) * np.exp(rng.normal(0, 0.02, 3))) for p, n in points
    }
    found: tuple[Model, ...] = registry.load("model", "auto")()(
        Measurements(("p", "n"), (Measurement("f", "time", values),))
    )
    assert isinstance(found[0], PmnfModel)
    return found[0]


def width(model: PmnfModel, point: Point = CORNER) -> float:
    found = model.predict([point])
    return float(found.high[0] / found.low[0])


def test_lines_leave_open_what_a_grid_shows() -> None:
    lines, grid = fitted(added, LINES), fitted(added, GRID)
    assert lines.interplay is not None and grid.interplay is not None
    assert width(lines) > 2 > 1.1 > width(grid)
    assert any("hardly show how p changes" in note and "n**2" in note for note in lines.notes)
    assert not any("hardly show" in note for note in grid.notes)


def test_the_interval_holds_what_no_line_shows() -> None:
    model = fitted(added, LINES)
    found = model.predict([CORNER])
    assert found.low[0] < shared_out(64, 512) < found.high[0]
    assert found.low[0] < added(64, 512) < found.high[0]


def test_within_the_lines_intervals_are_as_narrow_as_ever() -> None:
    model = fitted(added, LINES)
    for point in (Point.of(p=2, n=256), Point.of(p=32, n=16)):
        assert width(model, point) < 1.1


def test_a_run_where_both_are_large_says_most() -> None:
    """Strategies see it: what is open at the corner varies with what is open there, and not along a line."""
    believed = fitted(added, LINES).belief([CORNER, Point.of(p=32, n=256), Point.of(p=2, n=256)])
    covariance, variance = believed.covariance(0), believed.variance
    correlation = covariance / np.sqrt(variance * variance[0])
    assert correlation[1] > 0.9 > 0.5 > abs(correlation[2])


def test_one_such_run_settles_it() -> None:
    settled = fitted(added, [*LINES, (32, 256)])
    assert width(settled) < 1.2


def test_units_do_not_matter() -> None:
    own, scaled = fitted(added, LINES), fitted(added, LINES, scale=8.0)
    far = Point.of(p=512, n=512)
    assert width(scaled, far) == pytest.approx(width(own), rel=0.02)


def test_a_formula_whose_terms_have_all_parameters_has_none() -> None:
    model = fitted(lambda p, n: 0.05 * n**2 * p, GRID)
    assert model.interplay is None


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 1.0])
def test_it_holds_for_any_noise(noise: float) -> None:
    points = np.array([*((2, n) for n in SIZES), (4, 32)], dtype=float)
    law = Posterior(
        weights=np.ones(1),
        exponents=np.array([[[[1.0, 0], [0, 0]], [[0, 0], [2, 0]]]]),
        coefficients=np.array([[10.0, 2.0, 0.05]]),
        covariance=np.zeros((1, 3, 3)),
        misfit=np.zeros(1),
    )
    found = Interplay.of(law, points, law.log_mean(points)[0], np.full(len(points), noise))
    assert found is not None and found.term.tolist() == [0, 1] and found.parameter.tolist() == [1, 0]
    spread = np.linalg.norm(found.causes(np.array([[2.0, 256.0], [64.0, 512.0]])), axis=0)
    assert np.isfinite(spread).all() and spread[0] < max(3 * noise, 1e-5) and spread[0] < spread[1]
