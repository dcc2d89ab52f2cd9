"""Times that fall: work that is divided costs something that noise may hide."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from orchestrator.models.pmnf.candidates import REPEATED, Candidates, log_prior
from orchestrator.models.pmnf.hypotheses import FALLS, FASTER, IN_PROPORTION, NO_BLOCK
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.types import Point
from tests.models.builders import fit

PROCESSES, SIZES = (1, 2, 4, 8, 16, 32, 64), (1, 2, 4)


def share_of_overheads(model: PmnfModel) -> float:
    """Return the probability of hypotheses in which the first parameter falls and grows."""
    powers, logs = model.posterior.exponents[:, :, 0, 0], model.posterior.exponents[:, :, 0, 1]
    used = model.posterior.coefficients[:, 1:] != 0
    falls = ((powers < 0) & used).any(axis=1)
    grows = (((powers > 0) | ((powers == 0) & (logs > 0))) & used).any(axis=1)
    return float(model.posterior.weights[falls & grows].sum())


def runs(truth: Callable[..., float], parameters: int, seed: int) -> dict[Point, tuple[float, ...]]:
    rng = np.random.default_rng(seed)
    places: list[tuple[int, ...]] = (
        list(product(PROCESSES, SIZES)) if parameters == 2 else [(p,) for p in PROCESSES]
    )
    return {
        Point.of(dict(zip("pq", place, strict=False))): tuple(
            truth(*place) * np.exp(0.03 * rng.standard_normal(3))
        )
        for place in places
    }


@pytest.mark.parametrize("parameters", [1, 2])
def test_what_division_costs_is_possible_where_noise_hides_it(parameters: int) -> None:
    def truth(p: float, n: float = 1.0) -> float:
        return 100 * n / p + 0.8 + 0.1 * float(np.log2(p))

    found = [share_of_overheads(fit(parameters, runs(truth, parameters, seed))[0]) for seed in range(6)]
    assert np.mean(found) > 0.15


def test_narrow_searches_have_one_term_per_parameter() -> None:
    known = runs(lambda p, n: 100 * n / p + 0.8 + 0.1 * np.log2(p), 2, seed=5)
    assert share_of_overheads(fit(2, known, wide=False)[0]) == 0


def test_only_terms_that_grow_alike_cost_more_as_a_second_one() -> None:
    growth = (np.array([NO_BLOCK, IN_PROPORTION, FASTER, FALLS, FALLS]),)
    pairs = np.array([[1, 2], [3, 4], [1, 3], [2, 4]], dtype=np.int16)[:, :, None]
    found = log_prior(Candidates(np.zeros(4, dtype=np.intp), pairs), growth)
    plain = -2 * np.log(4)
    assert found == pytest.approx([plain - REPEATED, plain - REPEATED, plain, plain])
