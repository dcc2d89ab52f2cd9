"""Gaussian process regression as a guide (Ritter et al., Cost-Effective Empirical Performance Modeling,
section III, figure 3).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.strategies.base import Choice, Strategy, View
from orchestrator.strategies.candidates import (
    Candidate,
    chunks,
    cost_text,
    kind_of_run,
    open_points,
    single_runs,
    within_budget,
)
from orchestrator.strategies.relevance import Relevant, noise_percent, relevant
from orchestrator.strategies.starting_set import after_starting_set
from orchestrator.strategies.surrogate import Surrogate, encode, fit
from orchestrator.types import Parameter, Point

# Percent, for the white kernel when no point has two runs. Chosen by hand; not derived.
_NOISE_WITHOUT_REPETITIONS = 1.0
_SMALLEST_COST = 1e-12  # core-seconds; a run expected to cost nothing must not divide all others away


def strategy(*, gp: bool = True, accuracy_weight: float = 1.0, cost_weight: float = 1.0) -> Strategy:
    """Return the GPR strategy: the starting set, then the n_b candidates of the lowest weighted cost.

    A candidate is one more run at any point, measured or not (equation 7):
    ``C_w = (C**2 * w_c)**cost_weight / (k**2)**accuracy_weight`` with the expected cost C, the weight
    w_c of noise and repetitions (equation 8) and the covariance k of the Gaussian process, refitted on all
    points every round. One pass over the space per round, memory for one chunk of it.

    Parameters
    ----------
    gp
        False leaves the Gaussian process out (k = 1): what cost and repetitions alone achieve.
    accuracy_weight, cost_weight
        w_a and w_c of the user. As factors, which equation 7 makes of them, they cannot change the order of
        candidates; they are exponents here, and 1 is equation 7.
    """
    return after_starting_set(
        lambda view, rng: best_rated(view, Rating.of(view, gp, accuracy_weight, cost_weight))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """What the rating of candidates needs: noise, and share and process of every relevant call path."""

    parameters: tuple[Parameter, ...]
    surrogates: tuple[tuple[float, Surrogate], ...]
    noise: float
    accuracy_weight: float
    cost_weight: float

    @classmethod
    def of(cls, view: View, gp: bool, accuracy_weight: float, cost_weight: float) -> Rating:
        """Fit the processes to the measurements of a view."""
        entries = relevant(view)
        noise = noise_percent(entries)
        fitted = tuple((entry.share, process(view, entry, noise)) for entry in entries) if gp else ()
        return cls(
            parameters=view.space.parameters,
            surrogates=fitted,
            noise=noise,
            accuracy_weight=accuracy_weight,
            cost_weight=cost_weight,
        )

    def variance(self, points: Sequence[Point]) -> Floats:
        """Return k(P, P): the variance of the logarithm of the time, averaged over call paths by share."""
        if not self.surrogates:
            return np.ones(len(points))
        coordinates = encode(self.parameters, points)
        parts = [share * surrogate.predict(coordinates)[1] ** 2 for share, surrogate in self.surrogates]
        return np.asarray(np.sum(parts, axis=0), dtype=np.float64)

    def weighted_cost(self, seconds: float, variance: float, repetitions: int) -> float:
        """Return C_w (equation 7), where only the order counts."""
        cost = max(seconds, _SMALLEST_COST) ** 2 * cost_factor(self.noise, repetitions)
        return float(cost**self.cost_weight / max(variance, 1e-300) ** (2 * self.accuracy_weight))


def process(view: View, entry: Relevant, noise: float) -> Surrogate:
    """Fit the process of one call path, to the logarithm of its mean times: noise is relative to the time."""
    means = entry.means()
    variance = ((noise or _NOISE_WITHOUT_REPETITIONS) / 100.0) ** 2
    return fit(
        view.space.parameters,
        list(means),
        np.log([mean for mean, _ in means.values()]),
        np.array([variance / repetitions for _, repetitions in means.values()]),
    )


def cost_factor(noise: float, repetitions: int) -> float:
    """Return w_c = w_n + w_r (equation 8).

    Parameters
    ----------
    noise
        n, mean noise level in percent, clipped to 0..100.
    repetitions
        r, runs that the point has already, clipped to 1..10.
    """
    n = min(max(noise, 0.0), 100.0)
    r = min(max(repetitions, 1), 10)
    return -math.tanh(n / 4 - 5 / 2) + math.pow(2.0, r / 2 - 1 / 2)


def best_rated(view: View, rating: Rating) -> list[Choice]:
    """Return the n_b affordable runs of the lowest weighted cost, best first."""
    rated = heapq.nsmallest(view.batch_size, _rate(view, rating), key=lambda entry: entry[0])
    details = {candidate.point: (cost, variance) for cost, variance, candidate in rated}

    def reason(run: Candidate) -> str:
        cost, variance = details[run.point]
        sure = f"the process is unsure by {100 * math.sqrt(variance):.3g} %, " if rating.surrogates else ""
        return (
            f"{kind_of_run(view, run.point)} of the lowest weighted cost {cost:.3g} (eq. 7): "
            f"{sure}noise {rating.noise:.2g} %, {cost_text(view, run)}"
        )

    return within_budget(view, [candidate for _, _, candidate in rated], reason)


def _rate(view: View, rating: Rating) -> Iterator[tuple[float, float, Candidate]]:
    for chunk in chunks(open_points(view)):
        runs = single_runs(view, chunk)
        variances = rating.variance([run.point for run in runs]) if runs else ()
        for run, variance in zip(runs, map(float, variances), strict=True):
            cost = rating.weighted_cost(run.seconds, variance, view.done.get(run.point, 0))
            yield cost, variance, run
