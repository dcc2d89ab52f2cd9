"""The modeler of restricted cubic splines: of all kinds the one that predicts best what was left out."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.errors import ModelError
from orchestrator.models.base import Model, Modeler, one_of
from orchestrator.models.regression.choice import Family
from orchestrator.models.regression.learner import Learner
from orchestrator.models.regression.model import RegressionModel
from orchestrator.models.regression.modeler import modeler_of
from orchestrator.models.regression.samples import Samples
from orchestrator.models.splines.basis import MOST_KNOTS
from orchestrator.models.splines.family import learners
from orchestrator.models.splines.fitting import SAMPLINGS, Names, Splines, named_pairs
from orchestrator.models.splines.model import SplineModel
from orchestrator.models.splines.response import RESPONSES
from orchestrator.types import Measurements

_AUTO, _NONE = "auto", "none"


def modeler(
    *,
    response: str = _AUTO,
    sampling: str = _AUTO,
    interactions: str | Sequence[Sequence[str]] = _AUTO,
    knots: str | int = _AUTO,
    aggregate: str = "auto",
    seed: int = 0,
) -> Modeler:
    """Return a modeler of restricted cubic splines (Lee et al., section 3.2).

    Parameters
    ----------
    response
        What is fitted: ``log`` or ``sqrt`` of values; ``auto`` for what predicts better.
    sampling
        ``plain``, ``stratified`` (weights are inverse values) or ``regional`` (every prediction from the
        nearest points); ``auto`` for what predicts best (section 3.1).
    interactions
        Pairs of parameters as ``[[m, n], [n, solver]]``, ``none``, or ``auto`` for those that
        cross-validation finds.
    knots
        Of every number, 3 to 7, or 0 for straight lines; ``auto`` for four, five for the number with the
        highest rank correlation with the values, fewer of few points.
    aggregate
        How repetitions become one value, as for ``pmnf``.
    seed
        Of the parts that are left out.

    Raises
    ------
    ModelError
        For an option that makes no sense; and by the modeler when no call path can be fitted, or when
        ``interactions`` names what does not vary.
    """
    pairs = _pairs(interactions)
    number = _number(knots)
    choices = learners(
        responses=_chosen("response", response, RESPONSES),
        samplings=_chosen("sampling", sampling, SAMPLINGS),
        interactions=pairs,
        knots=number,
    )
    beyond = learners(responses=("log",), samplings=("plain",), interactions=pairs, knots=number)

    def inside(samples: Samples) -> tuple[Learner, ...]:
        named_pairs(samples, pairs or ())
        return choices

    fit = modeler_of(Family(inside=inside, outside=lambda samples: beyond), aggregate=aggregate, seed=seed)

    def model(measurements: Measurements) -> tuple[Model, ...]:
        return tuple(map(_described, fit(measurements)))

    return model


def _described(model: Model) -> Model:
    """Add the formula and the tests of its terms, where splines were chosen."""
    if not isinstance(model, RegressionModel):
        return model
    first = model.inside.members[0]
    return SplineModel.of(model, first) if isinstance(first, Splines) else model


def _chosen(option: str, value: str, known: tuple[str, ...]) -> tuple[str, ...]:
    if value == _AUTO:
        return known
    one_of(option, value, (_AUTO, *known))
    return (value,)


def _pairs(interactions: str | Sequence[Sequence[str]]) -> Names | None:
    """Read pairs of names; None to find them."""
    if interactions == _AUTO:
        return None
    if interactions == _NONE:
        return ()
    found = []
    for pair in interactions if isinstance(interactions, list | tuple) else [interactions]:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or pair[0] == pair[1]:
            raise ModelError(
                f"interactions has {pair!r}: use {_AUTO}, {_NONE}, or pairs of two parameters as [[m, n]]"
            )
        found.append((str(pair[0]), str(pair[1])))
    return tuple(found)


def _number(knots: str | int) -> int | None:
    if knots == _AUTO:
        return None
    if isinstance(knots, bool) or knots not in (0, *range(3, MOST_KNOTS + 1)):
        raise ModelError(f"knots is {knots!r}: use {_AUTO}, 0 for straight lines, or 3 to {MOST_KNOTS}")
    return int(knots)
