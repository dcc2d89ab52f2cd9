"""Shapes that a search must not lose: products of two of many parameters, and sums of like-growing parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import permutations, product

import numpy as np
import pytest

from orchestrator.models.pmnf.candidates import Candidates, Searched
from orchestrator.models.pmnf.hypotheses import block_values, blocks_chosen
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.modeler import modeler
from orchestrator.models.pmnf.parents import shared
from orchestrator.types import Measurement, Measurements, Point
from tests.models.builders import fit, grid, series, uniform, value

VALUES = {"p": (8, 64, 512), "d": (4, 6), "g": (64, 96), "z": (1, 2)}
FAR = {"p": 4096, "d": 8, "g": 128, "z": 4}


def kripke(d: float, g: float) -> float:
    """Work per direction and group, and a little per direction."""
    return 72 + 2193 * d * g + 9 * d


def measured(names: Sequence[str], noise: float = 0.0, seed: int = 0) -> PmnfModel:
    """Fit three runs of every point, of whose parameters only d and g matter."""
    rng = np.random.default_rng(seed)
    values = {}
    for coordinates in product(*(VALUES[name] for name in names)):
        at = dict(zip(names, coordinates, strict=True))
        factors = np.exp(noise * rng.normal(size=3))
        values[Point.of(at)] = tuple(float(kripke(at["d"], at["g"]) * f) for f in factors)
    (model,) = modeler()(Measurements(tuple(names), (Measurement("f", "time", values),)))
    assert isinstance(model, PmnfModel)
    return model


def product_weight(model: PmnfModel) -> float:
    """Probability of hypotheses with a term in which d and g are multiplied."""
    d, g = (model.parameters.index(name) for name in "dg")
    used = np.asarray(model.posterior.exponents.any(axis=3))
    together = (used[:, :, d] & used[:, :, g]).any(axis=1)
    return float(model.posterior.weights[together].sum())


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("names", [*permutations("pdg"), tuple("pzdg"), tuple("dzpg")])
def test_products_of_two_of_many_parameters_are_not_lost(names: tuple[str, ...], noise: float) -> None:
    model = measured(names, noise)
    assert model.posterior.correction is None
    assert product_weight(model) > 0.99
    found = model.predict([Point.of({name: FAR[name] for name in names})])
    truth = kripke(FAR["d"], FAR["g"])
    assert found.low[0] <= 1.01 * truth and found.high[0] >= 0.99 * truth
    assert found.value[0] == pytest.approx(truth, rel=0.01 if noise == 0 else 0.15)


def parent(p: float, q: float, power: float = 2.0) -> float:
    """A function that computes, and one that communicates as much along a tree."""
    return float(0.5 * q**power + 0.3 * q**power * np.log2(p))


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("repetitions", [2, 5])
def test_a_parent_whose_children_grow_alike_is_found_exactly(power: float, repetitions: int) -> None:
    (model,) = fit(2, series(partial(parent, power=power), grid(2), repetitions=repetitions))
    assert not [note for note in model.notes if "no form fits" in note]
    found = model.predict([Point.of({"p": 1024, "q": 12})])
    assert found.value[0] == pytest.approx(parent(1024, 12, power), rel=1e-3)
    assert found.high[0] / found.low[0] < 1.01


def test_parents_under_noise_are_predicted_well() -> None:
    rng = np.random.default_rng(3)
    cases = [series(parent, grid(2), uniform(rng, 0.02), 3) for _ in range(10)]
    errors = [abs(value(model, 1024, 12) / parent(1024, 12) - 1) for model in fit(2, *cases)]
    assert np.median(errors) < 0.01 and max(errors) < 0.05


def test_parents_of_three_parameters_are_found() -> None:
    def truth(p: float, q: float, r: float) -> float:
        return float(r * (3 * q + 0.7 * q * np.log2(p)))

    (model,) = fit(3, series(truth, grid(3), repetitions=3))
    assert value(model, 1024, 12, 60) == pytest.approx(truth(1024, 12, 60), rel=1e-4)


def test_shared_blocks_are_the_best_of_all() -> None:
    blocks = np.array([(0, 0), (0, 1), (0.5, 0), (1, 0), (1, 1), (2, 0)], dtype=float)
    points = np.array(grid(2))
    tables = tuple(block_values(points[:, k], blocks) for k in range(2))
    truth = 1 + tables[0][3] * (2 + 0.4 * tables[1][1])
    values = np.log(np.stack([truth, tables[1][5] * (3 + tables[0][2])]))
    found, rss = shared(Searched(tables, values, np.ones_like(values), np.full(2, 1e-4)))
    best = [found.terms[found.row == row][np.argmin(rss[found.row == row])].tolist() for row in (0, 1)]
    assert best == [[[3, 0], [3, 1]], [[0, 5], [2, 5]]]
    assert rss[found.row == 0].min() < 1e-12


def test_a_block_that_terms_share_is_chosen_once() -> None:
    terms = np.array([[[3, 0], [3, 1]], [[3, 0], [2, 1]], [[0, 0], [0, 0]]], dtype=np.int16)
    assert blocks_chosen(Candidates(np.arange(3), terms).terms).tolist() == [[1, 1], [2, 1], [0, 0]]
