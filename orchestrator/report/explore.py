"""An exploration of measurements: what depends on what, as one JSON-ready document."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from orchestrator.models.base import Floats
from orchestrator.report.explore_samples import Column, Samples, samples
from orchestrator.report.explore_statistics import (
    INTERVALS,
    Association,
    Interval,
    Merge,
    association,
    by_intervals,
    merges,
    similarity,
)
from orchestrator.types import Measurements
from orchestrator.units import count as in_words

MOST = 12  # responses by default

# Similarities (squared correlations) from which columns are said to belong together. Chosen by hand:
# responses that share 90 % of their variance have one shape, and parameters that share a fifth (a correlation
# of 0.45) were hardly varied independently.
_SAME_RESPONSE = 0.9
_ENTANGLED = 0.2
_BENT = 0.1  # more explained by a parabola than by a straight line of ranks
_CHANCE = 0.01  # largest p-value of what is called an effect
_PER_PARAMETER = 20  # samples per predictor that keep a regression from overfitting (Lee et al., 2.4.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A parameter, how much it explains of a response, and the response over its intervals."""

    parameter: Column
    association: Association
    intervals: tuple[Interval, ...]

    @property
    def explained(self) -> float:
        """The share of the variance of the response's ranks that it explains, bends included."""
        return max(self.association.explained, self.association.bent)

    @property
    def factor(self) -> float | None:
        """The largest of the intervals' medians over the smallest; None unless all are positive."""
        medians = [interval.median for interval in self.intervals]
        return max(medians) / min(medians) if min(medians) > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """What was found."""

    samples: Samples  # the columns
    # Per response, its parameters, those that explain most first.
    rankings: tuple[tuple[Column, tuple[Ranked, ...]], ...]
    # shares, tree, merges: similarity of all columns (parameters, then responses), and how they cluster; see
    # `orchestrator.report.explore_statistics`.
    shares: Floats
    tree: Floats
    merges: tuple[Merge, ...]
    findings: tuple[str, ...]  # sentences

    @property
    def columns(self) -> tuple[Column, ...]:
        """Parameters, then responses."""
        return (*self.samples.parameters, *self.samples.responses)


def explored(known: Measurements, most: int = MOST, intervals: int = INTERVALS) -> Exploration:
    """Return what measurements say before any model; raises as `orchestrator.report.explore_samples.samples`.

    Parameters
    ----------
    known
        What was measured.
    most
        Responses to look at, the largest.
    intervals
        Of a parameter with many values.
    """
    sampled = samples(known, most)
    columns = (*sampled.parameters, *sampled.responses)
    shares = similarity(columns)
    steps, tree = merges(columns, shares)
    rankings = tuple((response, _ranking(sampled, response, intervals)) for response in sampled.responses)
    return Exploration(
        samples=sampled,
        rankings=rankings,
        shares=shares,
        tree=tree,
        merges=steps,
        findings=tuple(_findings(sampled, rankings, shares)),
    )


def _ranking(found: Samples, response: Column, intervals: int) -> tuple[Ranked, ...]:
    ranked = [
        Ranked(
            parameter=parameter,
            association=association(parameter, response),
            intervals=by_intervals(parameter, response, intervals),
        )
        for parameter in found.parameters
    ]
    return tuple(sorted(ranked, key=lambda item: -item.explained))


def _findings(
    found: Samples, rankings: tuple[tuple[Column, tuple[Ranked, ...]], ...], shares: Floats
) -> list[str]:
    """Return what the figures say, in words."""
    count, texts = len(found.parameters), []
    for i in range(count):
        for j in range(i):
            if shares[i, j] >= _ENTANGLED:
                texts.append(
                    f"{found.parameters[j].name} and {found.parameters[i].name} were not varied "
                    f"independently (similarity {shares[i, j]:.2f}): their effects are hard to tell apart"
                )
    texts += _alike(found.responses, shares[count:, count:])
    for parameter in found.parameters:
        if parameter.categorical and 2 * len(parameter.levels) > found.points:
            texts.append(
                f"{parameter.name} has {len(parameter.levels)} categories at {found.points} points: too many "
                "to see an effect"
            )
            continue
        mine = [item.association for _, ranks in rankings for item in ranks if item.parameter is parameter]
        if all(item.p_value > _CHANCE and item.bent < _BENT for item in mine):
            texts.append(f"{parameter.name} has no visible effect by itself on any response")
    for response, ranks in rankings:
        bent = [item for item in ranks if item.association.bent - item.association.explained >= _BENT]
        if bent:
            names = ", ".join(item.parameter.name for item in bent)
            texts.append(f"{response.name} both rises and falls with {names}")
    if found.points < _PER_PARAMETER * count:
        texts.append(
            f"{found.points} points for {in_words(count, 'parameter')}: below {_PER_PARAMETER} each, a "
            "regression with a coefficient per parameter already risks overfitting"
        )
    return texts


def _alike(responses: tuple[Column, ...], shares: Floats) -> list[str]:
    """Say which responses one of them can stand for: those in one cluster at `_SAME_RESPONSE`."""
    number, clusters = connected_components(shares >= _SAME_RESPONSE)
    groups: list[list[str]] = [[] for _ in range(number)]
    for response, cluster in zip(responses, clusters, strict=True):
        groups[cluster].append(response.name)
    return [
        f"one model may stand for all of these, which rise and fall together: {', '.join(names)}"
        for names in groups
        if len(names) > 1
    ]


def document(exploration: Exploration) -> dict[str, Any]:
    """Return an exploration as one JSON-ready document."""
    return {
        "points": exploration.samples.points,
        "parameters": [_parameter(column) for column in exploration.samples.parameters],
        "responses": [
            {
                "name": response.name,
                "callpath": response.callpath,
                "metric": response.metric,
                "ranking": [
                    {
                        "parameter": item.parameter.name,
                        **asdict(item.association),
                        "factor": item.factor,
                        "intervals": [asdict(interval) for interval in item.intervals],
                    }
                    for item in ranks
                ],
            }
            for response, ranks in exploration.rankings
        ],
        "clusters": {
            "columns": [column.name for column in exploration.columns],
            "similarity": exploration.shares.tolist(),
            "merges": [
                {"members": list(step.members), "similarity": step.similarity} for step in exploration.merges
            ],
        },
        "findings": list(exploration.findings),
        "notes": list(exploration.samples.notes),
    }


def _parameter(column: Column) -> dict[str, Any]:
    if column.categorical:
        return {"name": column.name, "categories": list(column.levels)}
    values = np.unique(column.values)
    return {
        "name": column.name,
        "low": float(values[0]),
        "high": float(values[-1]),
        "values": len(values),
    }
