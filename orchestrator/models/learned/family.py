"""The family of learners: which are tried, for points inside the measured range and beyond it."""

from __future__ import annotations

from orchestrator.models.learned.linear import lasso, least_squares, ridge
from orchestrator.models.learned.neighbours import nearest
from orchestrator.models.learned.trees import (
    extra_trees,
    gradient_boosting,
    histogram_boosting,
    random_forest,
)
from orchestrator.models.regression.learner import Learner
from orchestrator.models.regression.samples import Samples
from orchestrator.models.regression.trend import on_trend


def candidates(samples: Samples) -> tuple[Learner, ...]:
    """Return learners for points inside the measured range, cheap ones first; names are unique."""
    rest: list[Learner] = [
        nearest(3),
        nearest(6),
        extra_trees(),
        extra_trees(leaf=3),
        extra_trees(products=True),
        extra_trees(leaf=3, products=True),
        random_forest(products=True),
        gradient_boosting(trees=300, products=True),
        histogram_boosting(),
        histogram_boosting(products=True),
        histogram_boosting(trees=600, rate=0.04, products=True, values=True),
    ]
    plain: list[Learner] = [ridge(2), least_squares(3), ridge(4), lasso(3), extra_trees(products=True)]
    return (*plain, *map(on_trend, rest))


def extrapolators(samples: Samples) -> tuple[Learner, ...]:
    """Return learners for points beyond the measured range."""
    return (
        least_squares(1),
        ridge(2),
        lasso(2),
        on_trend(nearest(6)),
        on_trend(extra_trees(products=True)),
        on_trend(histogram_boosting(products=True)),
    )
