"""Regional sampling: every prediction is a regression on the samples that are most similar (section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Floats, Integers
from orchestrator.models.regression.samples import Axis, Samples, plain_columns
from orchestrator.models.splines.design import Design, correlation
from orchestrator.models.splines.moments import Scale
from orchestrator.models.splines.response import Response

# What a region does not determine is as in the regression on all samples: price on the differences of
# coefficients of standardised columns. Chosen by hand; not derived.
_RIDGE = 1e-3
# Queries that are answered together: of so many samples a block of columns takes some megabytes.
_TOGETHER = 64
# A column that is not correlated with times still counts so much in a distance.
_LEAST = 0.01


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Distances:
    """Columns whose distances tell which samples are similar: normalised, weighted by correlation."""

    axes: tuple[Axis, ...]  # what the coordinates are
    # mean, factor: of every column, shape (columns,): what is subtracted, and what it is then multiplied by.
    mean: Floats
    factor: Floats

    def at(self, x: Floats) -> Floats:
        """Return the columns at coordinates (n, axes)."""
        return (plain_columns(self.axes, x) - self.mean) * self.factor


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Regional:
    """Residuals of a regression on all samples, followed by one per query on the nearest samples."""

    # distances, places: the map to comparable columns, and the samples in it, shape (samples, columns).
    distances: Distances
    places: Floats
    # scale, columns: the same for the columns of the regression, shape (samples, columns of the design).
    scale: Scale
    columns: Floats
    # residuals, weights: of the regression on all samples, and their weights, shape (samples,).
    residuals: Floats
    weights: Floats
    nearest: int  # samples of a region

    def at(self, x: Floats, columns: Floats) -> Floats:
        """Return what is to be added to the regression on all samples, shape (n,).

        Parameters
        ----------
        x, columns
            Coordinates (n, axes) and columns of the design (n, columns) at the queries.
        """
        from scipy.spatial import cKDTree

        _, nearest = cKDTree(self.places).query(self.distances.at(x), self.nearest)
        near = np.asarray(nearest, np.intp).reshape(len(x), self.nearest)
        near = np.minimum(near, len(self.places) - 1)  # farther than numbers reach, none is the nearest
        scaled = self.scale.at(columns)
        answers = np.empty(len(x))
        for begin in range(0, len(x), _TOGETHER):
            part = slice(begin, begin + _TOGETHER)
            answers[part] = self._answers(near[part], scaled[part])
        return answers

    def _answers(self, near: Integers, scaled: Floats) -> Floats:
        here = self.columns[near]
        weighted = here * self.weights[near][:, :, None]
        gram = weighted.transpose(0, 2, 1) @ here
        total = self.weights[near].sum(axis=1)
        gram += (_RIDGE * total)[:, None, None] * np.eye(here.shape[2])
        right = np.einsum("qrc,qr->qc", weighted, self.residuals[near])
        differences = np.linalg.solve(gram, right[:, :, None])[:, :, 0]
        return np.asarray((differences * scaled).sum(axis=1), np.float64)


def regional(
    samples: Samples, design: Design, coefficients: Floats, response: Response, weights: Floats, nearest: int
) -> Regional:
    """Return the regions around queries, for a regression with coefficients (columns,) on all samples."""
    columns = design.at(samples.x)
    scale = Scale.of(columns, weights)
    distances = _distances(samples)
    return Regional(
        distances=distances,
        places=distances.at(samples.x),
        scale=scale,
        columns=scale.at(columns),
        residuals=response.of(samples.y) - columns @ coefficients,
        weights=weights,
        nearest=nearest,
    )


def _distances(samples: Samples) -> Distances:
    plain = plain_columns(samples.axes, samples.x)
    spread = plain.std(axis=0)
    weight = np.array([abs(correlation(values, samples.y)) for values in plain.T])
    weight = np.maximum(weight / max(weight.max(), 1e-12), _LEAST)
    return Distances(
        axes=samples.axes,
        mean=plain.mean(axis=0),
        factor=np.where(spread > 1e-12, weight / np.where(spread > 1e-12, spread, 1.0), 0.0),
    )
