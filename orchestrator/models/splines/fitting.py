"""A regression with restricted cubic splines: from samples to a function of coordinates (section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats
from orchestrator.models.regression.samples import Samples, where_known
from orchestrator.models.regression.trend import OnlyTrend, only_trend
from orchestrator.models.splines.design import Design, Pair, design_of
from orchestrator.models.splines.interactions import chosen_pairs
from orchestrator.models.splines.moments import Moments, Scale
from orchestrator.models.splines.regional import Regional, regional
from orchestrator.models.splines.response import Response, response_of, strata
from orchestrator.models.splines.significance import TermTest, term_tests

SAMPLINGS = ("plain", "stratified", "regional")
"""How samples count: all alike, by their inverse values, or only those near a query."""

# A region has this part of all samples, but no more than bearable time allows, and so many per column.
_REGION, _MOST_NEAR, _PER_COLUMN = 0.2, 500, 2.0

Names = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How to fit."""

    response: str = "log"  # one of `orchestrator.models.splines.response.RESPONSES`
    sampling: str = "plain"  # one of `SAMPLINGS`
    # Names of parameters that interact; None to find them by cross-validation.
    interactions: Names | None = None
    knots: int | None = None  # of every number; None for the paper's

    @property
    def name(self) -> str:
        """Unique among recipes of one modeler."""
        return f"splines, {self.response} response, {self.sampling}"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Splines:
    """A fitted regression."""

    # design, response: what the columns are, and what their weighted sum is.
    design: Design
    response: Response
    coefficients: Floats  # of the columns, shape (columns,)
    region: Regional | None  # what regressions on the nearest samples add; None without regional sampling
    tests: tuple[TermTest, ...]  # of the terms

    @property
    def text(self) -> str:
        """The formula in short: ``exp(rcs(log(m), 4) + log(n) + log(m):log(n))``."""
        label = self.response.label(self.design.label)
        return label if self.region is None else f"{label} of the {self.region.nearest} nearest points"

    @property
    def formula(self) -> str:
        """The regression on all samples as text for Python, with ``exp``, ``log`` and ``max``."""
        terms = [
            f"{value:.12g}" if text == "1" else f"{value:.12g} * {text}"
            for value, text in zip(self.coefficients, self.design.texts, strict=True)
            if value or text == "1"
        ]
        return self.response.text(" + ".join(terms))

    def at(self, x: Floats) -> Floats:
        """Return logarithms at coordinates (n, axes), shape (n,); NaN for unknown coordinates."""
        return where_known(x, self._known_at)

    def _known_at(self, x: Floats) -> Floats:
        columns = self.design.at(x)
        response = columns @ self.coefficients
        if self.region is not None:
            response = response + self.region.at(x, columns)
        return self.response.logarithm(response)


def fit(samples: Samples, recipe: Recipe, rng: np.random.Generator) -> Splines | OnlyTrend:
    """Fit a regression.

    Parameters
    ----------
    samples
        What was measured.
    recipe
        How.
    rng
        Of the folds that choose interactions.

    Raises
    ------
    ModelError
        When ``recipe.interactions`` names what is no axis.
    """
    if (nothing_more := only_trend(samples)) is not None:
        return nothing_more
    response = response_of(samples.y, recipe.response)
    values = response.of(samples.y)
    # Of square roots also those of a region: absolute errors of large times would hide all others.
    stratified = recipe.sampling == "stratified" or (recipe.sampling, recipe.response) == ("regional", "sqrt")
    weights = strata(samples.y) if stratified else np.ones(len(samples))
    design = design_of(samples, recipe.knots)
    if recipe.interactions is None:
        design = design.with_pairs(chosen_pairs(design, samples.x, values, weights, rng))
    else:
        design = design.with_pairs(named_pairs(samples, recipe.interactions))
    columns = design.at(samples.x)
    scale = Scale.of(columns, weights)
    moments = Moments.of(scale.at(columns), values, weights)
    coefficients = scale.unscaled(moments.solved()[0])
    region = None
    if recipe.sampling == "regional":
        region = regional(
            samples, design, coefficients, response, weights, _nearest(len(samples), design.width)
        )
    return Splines(
        design=design,
        response=response,
        coefficients=coefficients,
        region=region,
        tests=term_tests(design, moments),
    )


def _nearest(samples: int, columns: int) -> int:
    """Return how many samples a region has."""
    part = min(_REGION * samples, _MOST_NEAR)
    return int(min(samples, max(_PER_COLUMN * columns, part)))


def named_pairs(samples: Samples, names: Sequence[Sequence[str]]) -> tuple[Pair, ...]:
    """Return the positions of pairs of parameters.

    Raises
    ------
    ModelError
        For a name that is no axis.
    """
    places = {axis.name: k for k, axis in enumerate(samples.axes)}
    for pair in names:
        for name in pair:
            if name not in places:
                there = ", ".join(places) or "none"
                raise ModelError(f"interactions: {name!r} does not vary; parameters that do: {there}")
    return tuple(dict.fromkeys((min(p), max(p)) for p in ([places[name] for name in pair] for pair in names)))
