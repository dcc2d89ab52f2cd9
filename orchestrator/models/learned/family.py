"""The family of learners: which are tried, for points inside the measured range and beyond it."""

from __future__ import annotations

from itertools import product

from orchestrator.models.learned.columns import is_whole
from orchestrator.models.learned.ends import with_straight_ends
from orchestrator.models.learned.kernels import KERNELS, gaussian_process, support_vectors
from orchestrator.models.learned.linear import affordable_degree, lasso, least_squares, ridge
from orchestrator.models.learned.neighbours import nearest
from orchestrator.models.learned.networks import networks
from orchestrator.models.learned.rprop import rprop
from orchestrator.models.learned.trees import (
    extra_trees,
    gradient_boosting,
    histogram_boosting,
    random_forest,
)
from orchestrator.models.regression.learner import Learner
from orchestrator.models.regression.samples import Samples
from orchestrator.models.regression.trend import on_trend

# From so many samples on, larger trees.
_MANY = 8000
# How many boosted trees, from so many samples on. Of 100 and 200 samples of five programs 130 have 1.5 %
# smaller errors than 400, of 512 samples 200 have equal ones (and 100 of depth 6 as 300), of 1024 3 % larger.
_BOOSTED = ((_MANY, 1000), (600, 400), (300, 200), (0, 130))
_DEEP_BOOSTED = ((600, 300), (0, 100))
# Polynomials of a high degree are candidates where they have no more products.
_FEW_PRODUCTS = 300
# Where slopes beyond the measured range are estimated, and whether they depend on other parameters.
_ENDS = tuple(product((0.5, 0.33, 0.2), (False, True)))
# The grid of the paper's comparison (section 6.0.4): its ranges, doubled from step to step.
_DEPTHS, _TREES, _NEIGHBOURS, _DEGREES = (2, 4, 8, 16), (1, 4, 16, 64), range(1, 7), (1, 2, 3)
_LAYERS, _WIDTHS, _ACTIVATIONS = (1, 2, 4, 8), (2, 8, 32, 128, 512, 2048), ("relu", "tanh")


def candidates(samples: Samples) -> tuple[Learner, ...]:
    """Return learners for points inside the measured range, cheap ones first; names are unique."""
    return (*quick(samples), *map(on_trend, _networks(samples)))


def quick(samples: Samples) -> tuple[Learner, ...]:
    """Return those that take less than a second: all but networks."""
    many = len(samples) >= _MANY
    columns = zip(samples.axes, samples.x.T, strict=True)
    aligned = any(is_whole(axis, values) for axis, values in columns)
    plain = [ridge(2), lasso(3)]
    if affordable_degree(samples.axes, 4, _FEW_PRODUCTS) == 4:
        plain += [least_squares(3), ridge(4)]
    trees, leaves = _for(len(samples), _BOOSTED), 31 if many else 15
    deep = _for(len(samples), _DEEP_BOOSTED)
    rest = [
        nearest(3),
        nearest(6, products=True),
        extra_trees(leaf=2 if many else 1),
        extra_trees(leaf=2 if many else 1, products=True),
        histogram_boosting(trees=trees, leaves=leaves),
        histogram_boosting(trees=trees, leaves=leaves, products=True),
        histogram_boosting(trees=2 * trees, leaves=leaves, share=0.3, products=True),
        histogram_boosting(trees=trees, leaves=31, absolute=True, products=True),
        *([] if many else [gradient_boosting(trees=deep, depth=6, products=True)]),
        support_vectors(by_relevance=True, products=True),
        gaussian_process(by_relevance=False, own_lengths=len(samples.axes) <= 12),
        gaussian_process(products=True),
    ]
    if aligned:
        rest += [
            extra_trees(leaf=2, products=True, alignment=True),
            histogram_boosting(trees=trees, leaves=leaves, values=True, alignment=True),
            histogram_boosting(trees=trees, leaves=leaves, products=True, values=True, alignment=True),
            histogram_boosting(trees=trees, absolute=True, products=True, values=True, alignment=True),
        ]
    return (*plain, *map(on_trend, rest))


def _for(n: int, steps: tuple[tuple[int, int], ...]) -> int:
    """Return what belongs to the first number of samples that n reaches."""
    return next(trees for least, trees in steps if n >= least)


def _networks(samples: Samples) -> tuple[Learner, ...]:
    wide = 128 if len(samples) >= _MANY else 64
    return (networks(), networks(products=True), networks(layers=3, width=wide, products=True))


def extrapolators(samples: Samples) -> tuple[Learner, ...]:
    """Return learners for points beyond the measured range: straight lines there, by different guides.

    Lines on least squares are for a choice that shifts them to meet another learner at the edge: this is
    fast, and what they predict inside no longer matters.
    """
    line, trees = least_squares(1), on_trend(extra_trees(leaf=3, products=True))
    steady = [with_straight_ends(line, share=share, coupled=coupled) for share, coupled in _ENDS]
    return (line, ridge(2), trees, with_straight_ends(trees, share=0.33, coupled=False), *steady)


def small_networks(samples: Samples) -> tuple[Learner, ...]:
    """Return the ensembles of small networks for points inside the measured range."""
    return (rprop(), on_trend(rprop())) if samples.axes else ()


def paper_grid(samples: Samples) -> tuple[Learner, ...]:
    """Return all learners and options of the comparison by Hutter and Solomonik (section 6.0.4).

    Depths, numbers of trees, layers and widths in powers of two or four. Each with and without the trend.
    """
    plain = [
        *(nearest(k, weighted=False, by_relevance=False) for k in _NEIGHBOURS),
        *(
            kind(trees=trees, depth=depth)
            for kind in (random_forest, extra_trees, gradient_boosting)
            for depth, trees in product(_DEPTHS, _TREES)
        ),
        *(gaussian_process(kernel, by_relevance=False) for kernel in KERNELS),
        *(support_vectors("poly", degree=degree) for degree in _DEGREES),
        support_vectors("rbf"),
        *(
            networks(layers=layers, width=width, count=1, activation=activation, by_relevance=False)
            for layers, width, activation in product(_LAYERS, _WIDTHS, _ACTIVATIONS)
        ),
    ]
    return (*plain, *map(on_trend, plain))
