"""Weights of learners in a combination, from their residuals where they were not fitted."""

import numpy as np
import pytest

from orchestrator.models.base import Floats
from orchestrator.models.regression.cross_validation import Compared, mlogq, weights
from orchestrator.models.regression.learner import Learner
from orchestrator.models.regression.trend import fit_trend


def compared(residuals: Floats) -> Compared:
    errors = np.array([mlogq(row) for row in residuals])
    order = np.argsort(errors)
    learners = tuple(Learner(family="some", name=str(k), fit=fit_trend) for k in order)
    return Compared(learners, errors[order], residuals[order])


def test_two_that_are_as_good_share_the_weight_though_others_are_far_off() -> None:
    rng = np.random.default_rng(1)
    good = rng.standard_t(3, (2, 1400)) * 0.04
    far = [rng.standard_normal((2, 1400)) * size + 0.1 for size in (0.3, 1.0)]
    found = compared(np.concatenate([good, *far]))
    share = weights(found)
    assert share[:2] == pytest.approx([0.5, 0.5], abs=0.1) and not share[2:].any()
    assert mlogq(share @ found.residuals) < 0.9 * found.errors[0]


@pytest.mark.parametrize("scale", [1e-9, 1.0])
def test_no_other_combination_has_a_smaller_error(scale: float) -> None:
    rng = np.random.default_rng(2)
    found = compared(scale * rng.standard_normal((3, 60)) * np.array([[1.0], [1.1], [1.2]]))
    share = weights(found)
    assert share.sum() == pytest.approx(1) and (share >= 0).all()
    others = rng.dirichlet(np.ones(3), 2000) @ found.residuals
    assert mlogq(share @ found.residuals) <= 1.001 * min(mlogq(row) for row in others)


def test_a_learner_that_was_not_fitted_everywhere_has_no_weight() -> None:
    rng = np.random.default_rng(3)
    residuals = rng.standard_normal((3, 50))
    residuals[0, 10:] = np.nan
    share = weights(compared(residuals))
    assert share[2] == 0 and share[:2].sum() == pytest.approx(1)


def test_one_that_is_exact_is_taken_alone() -> None:
    share = weights(compared(np.array([np.ones(20), np.zeros(20)])))
    assert share.tolist() == [1, 0]
