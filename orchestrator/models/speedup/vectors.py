"""Five-sample vectors: what the overhead of a run is learned from (section 3, equations 7 and 8).

Four samples are runs of a problem with few processes, ``1 < N <= c_h = c_f / 2``, with their overheads. The
fifth is a run of the same problem with ``c_h < N <= c_f``, whose overhead is to be predicted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats, Integers
from orchestrator.models.regression.samples import Samples, plain_columns
from orchestrator.models.speedup.layout import Layout
from orchestrator.models.speedup.nearby import Nearby

_CONTEXT = 4  # runs beside the one that is predicted in a vector. Chosen by hand; not derived
# Vectors for training, at most and per run that is to be predicted; and per prediction. Chosen by hand.
_MOST_VECTORS, _PER_RUN, PER_PREDICTION = 2000, 24, 8


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Contexts:
    """Runs with few processes, by problem: the first four samples of vectors are drawn from these."""

    layout: Layout  # what coordinates mean
    x: Floats  # coordinates of the runs, shape (runs, axes)
    log_tau: Floats  # logarithms of their overheads, equation 5, shape (runs,)
    members: tuple[Integers, ...]  # the runs of every problem that has any
    nearby: Nearby  # looks these problems up
    most: float  # c_h: the most processes of a run among them
    weak: bool  # whether the problem grows with N, so that its ratio w is 1/N

    @classmethod
    def of(cls, samples: Samples, layout: Layout, log_tau: Floats, most: float, weak: bool) -> Contexts:
        """Collect the runs with 1 < N <= most.

        Raises
        ------
        ModelError
            When there is none.
        """
        n = layout.processes(samples.x)
        few = np.flatnonzero((n > 1 + 1e-9) & (n <= most * (1 + 1e-9)))
        if not len(few):
            raise ModelError(
                f"no run has from 2 to {most:g} processes, half of the most: measure the speedup there, too"
            )
        problems, index = layout.problems(samples.x[few])
        return cls(
            layout=layout,
            x=samples.x[few],
            log_tau=log_tau[few],
            members=tuple(np.flatnonzero(index == k) for k in range(len(problems))),
            nearby=Nearby.of(layout.problem_axes, problems),
            most=most,
            weak=weak,
        )

    def drawn(self, x: Floats, count: int, rng: np.random.Generator) -> Integers:
        """Return ``count`` sets of four of the runs for each of some coordinates, shape (n, count, 4).

        A problem with fewer than four such runs has some of them several times; one without any has those of
        the nearest problem. The four are in the order of N.
        """
        nearest = self.nearby.nearest(self.layout.problem(x))
        drawn = np.empty((len(x), count, _CONTEXT), dtype=np.intp)
        for k in np.unique(nearest):
            here = np.flatnonzero(nearest == k)
            drawn[here] = _draws(self.members[k], (len(here), count), rng)
        return self._in_order(drawn)

    def vectors(self, x: Floats, drawn: Integers) -> Floats:
        """Return the vectors of coordinates with the runs that were drawn, shape (n * count, features).

        Numbers are logarithms, which changes nothing for trees and lets a network follow powers.
        """
        features = np.column_stack([self.layout.levels(self.x), self.log_tau])
        count = drawn.shape[1]
        context = features[drawn].reshape(len(x), count, -1)
        fixed = np.column_stack([self._problem_columns(x), self.layout.levels(x)])[:, None, :]
        together = np.concatenate([context, np.broadcast_to(fixed, (len(x), count, fixed.shape[2]))], axis=2)
        return together.reshape(len(x) * count, -1)

    def kept(self, rng: np.random.Generator) -> Integers:
        """Return the sets of four that predictions use, shape (problems, draws, 4)."""
        sets = [_draws(members, (1, PER_PREDICTION), rng) for members in self.members]
        return self._in_order(np.concatenate(sets))

    def _in_order(self, drawn: Integers) -> Integers:
        n = self.layout.processes(self.x)
        return np.take_along_axis(drawn, np.argsort(n[drawn], axis=2, kind="stable"), axis=2)

    def _problem_columns(self, x: Floats) -> Floats:
        """Return the columns of m and w: sizes, indicators of categories, and the logarithm of w if weak."""
        columns = plain_columns(self.layout.problem_axes, self.layout.problem(x))
        if not self.weak:
            return columns
        return np.column_stack([columns, -np.log(self.layout.processes(x))])


def training(
    samples: Samples, contexts: Contexts, log_tau: Floats, last: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return vectors of the runs with c_h < N <= c_f, and the logarithms of their overheads.

    Parameters
    ----------
    samples
        The runs of the training set.
    contexts
        Those of them with few processes.
    log_tau
        Logarithms of the overheads of all, shape (samples,).
    last
        c_f.
    rng
        Of the draws.

    Raises
    ------
    ModelError
        When there is no such run.
    """
    n = contexts.layout.processes(samples.x)
    rows = np.flatnonzero((n > contexts.most * (1 + 1e-9)) & (n <= last * (1 + 1e-9)))
    if not len(rows):
        raise ModelError(
            f"no run has more than {contexts.most:g} processes, half of the most: measure the speedup there"
        )
    count = int(np.clip(_MOST_VECTORS // len(rows), 1, _PER_RUN))
    x = samples.x[rows]
    return contexts.vectors(x, contexts.drawn(x, count, rng)), np.repeat(log_tau[rows], count)


def _draws(members: Integers, shape: tuple[int, int], rng: np.random.Generator) -> Integers:
    """Return sets of four members, shape (*shape, 4); without repeating one where there are four."""
    if len(members) < _CONTEXT:
        # Each at least once, so that nothing that was measured is left out.
        drawn = rng.integers(len(members), size=(*shape, _CONTEXT))
        drawn[..., : len(members)] = np.arange(len(members))
        return np.asarray(members[drawn], np.intp)
    ranks = rng.random((*shape, len(members))).argsort(axis=2)[..., :_CONTEXT]
    return np.asarray(members[ranks], np.intp)
