"""What new runs change: factors are improved from where they were instead of found anew."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats
from orchestrator.models.cpr.als import row_begins
from orchestrator.models.cpr.completion import Completion, factors, modes_of
from orchestrator.models.cpr.continuation import Continued
from orchestrator.models.cpr.ensemble import Average
from orchestrator.models.cpr.modes import Mode
from orchestrator.models.regression.learner import Fitted
from orchestrator.models.regression.samples import Samples
from orchestrator.models.regression.trend import OnTrend


def continued(earlier: Fitted, samples: Samples) -> Fitted:
    """Return what was fitted to some samples, improved for these, which usually contain them.

    The trend, the smoothness and the combinations of parameters stay; the nodes follow the samples, and
    factors begin as the earlier ones at them, so that a fourth of the sweeps of a new fit is enough.

    Raises
    ------
    ModelError
        When ``earlier`` is no completed tensor.
    """
    match earlier:
        case OnTrend(trend, rest):
            return OnTrend(trend, continued(rest, samples.with_y(samples.y - trend.at(samples.x))))
        case Continued(inside, _, part):
            return Continued(continued(inside, samples), samples.axes, part)
        case Average(members):
            return Average(tuple(_improved(member, samples) for member in members))
        case Completion():
            return _improved(earlier, samples)
    raise ModelError(f"Further samples cannot improve {earlier.text}, only completed tensors: fit it anew.")


def _improved(earlier: Completion, samples: Samples) -> Completion:
    modes = modes_of(samples, earlier.recipe)
    table = moved(earlier.modes, np.asarray(earlier.table, np.float64), modes)
    normal = samples.with_y((samples.y - earlier.mean) / earlier.scale)
    table = factors(modes, normal, earlier.recipe, table, is_begun=True)
    return Completion.of(modes, table, earlier.mean, earlier.scale, earlier.recipe)


def moved(old: Sequence[Mode], table: Floats, new: Sequence[Mode]) -> Floats:
    """Return factors at the nodes of new modes; new levels begin as the mean of the others."""
    rank = table.shape[1]
    parts = [
        _at_nodes(before, table[begin : begin + len(before)], after)
        for before, begin, after in zip(old, row_begins([len(mode) for mode in old]), new, strict=True)
    ]
    return np.vstack([*parts, np.zeros((1, rank))])


def _at_nodes(before: Mode, factor: Floats, after: Mode) -> Floats:
    if after.is_categorical:
        more = np.repeat(factor.mean(axis=0, keepdims=True), max(len(after) - len(before), 0), axis=0)
        return np.vstack([factor, more])[: len(after)]
    columns = [np.interp(after.nodes, before.nodes, column) for column in factor.T]
    return np.column_stack(columns)
