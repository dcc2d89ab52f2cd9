"""Bayesian optimisation with expected improvement (Ritter et al., section IV-B)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np
from scipy.stats import norm

from orchestrator.models.base import Floats
from orchestrator.strategies.base import Choice, Strategy, View
from orchestrator.strategies.candidates import (
    Candidate,
    chunks,
    cost_text,
    open_points,
    single_runs,
    within_budget,
)
from orchestrator.strategies.relevance import noise_percent, predicted, relevant
from orchestrator.strategies.starting_set import after_starting_set
from orchestrator.strategies.surrogate import Surrogate, encode, fit
from orchestrator.types import Point


def strategy() -> Strategy:
    """Return Bayesian optimisation: the starting set, then the n_b runs of the largest expected improvement.

    The process of the GPR strategy models how far the performance models are off across the search space;
    the largest deviation is sought: that is where a measurement teaches most. Blind to cost, apart from the
    budget. One pass over the space per round, memory for one chunk of it.
    """
    return after_starting_set(lambda view, rng: _largest_improvement(view))


def model_errors(view: View) -> dict[Point, float]:
    """Return |log(mean time / predicted time)| per measured point, averaged over call paths by share.

    0 where a call path has no model or no positive prediction.
    """
    errors: dict[Point, float] = {}
    for entry in relevant(view):
        means = entry.means()
        points = list(means)
        for point, guess in zip(points, predicted(entry.models, points), strict=True):
            error = abs(np.log(means[point][0] / guess)) if np.isfinite(guess) and guess > 0 else 0.0
            errors[point] = errors.get(point, 0.0) + entry.share * float(error)
    return errors


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Return E[max(e - best, 0)] for e normal with mean and deviation; 0 where nothing is uncertain."""
    z = np.divide(mean - best, deviation, out=np.full_like(mean, -np.inf), where=deviation > 0)
    return np.asarray(
        np.where(deviation > 0, (mean - best) * norm.cdf(z) + deviation * norm.pdf(z), 0.0), np.float64
    )


def _largest_improvement(view: View) -> list[Choice]:
    errors = model_errors(view)
    best = max(errors.values(), default=0.0)
    variance = (noise_percent(relevant(view)) / 100.0) ** 2
    noise = np.array([variance / max(view.done.get(point, 1), 1) for point in errors])
    surrogate = fit(view.space.parameters, list(errors), np.array(list(errors.values())), noise)
    rated = heapq.nlargest(view.batch_size, _rate(view, surrogate, best), key=lambda entry: entry[0])
    gains = {run.point: gain for gain, run in rated}

    def reason(run: Candidate) -> str:
        return (
            f"largest expected improvement {gains[run.point]:.3g} over the largest model error of "
            f"{100 * best:.3g} %: {cost_text(view, run)}"
        )

    return within_budget(view, [run for _, run in rated], reason)


def _rate(view: View, surrogate: Surrogate, best: float) -> Iterator[tuple[float, Candidate]]:
    for chunk in chunks(open_points(view)):
        runs = single_runs(view, chunk)
        if runs:
            coordinates = encode(view.space.parameters, [run.point for run in runs])
            gains = expected_improvement(*surrogate.predict(coordinates), best)
            yield from zip(map(float, gains), runs, strict=True)
