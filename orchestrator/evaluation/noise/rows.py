"""From errors of models to the rows of the noise study."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

import numpy as np

from orchestrator.evaluation.aligned import aligned
from orchestrator.evaluation.noise.study import Errors


class Row(TypedDict):
    """One modeler under one intensity of noise with so many repetitions: all functions, patterns, injections.

    ``exact_percent`` counts models whose exponents are right in every parameter; deviations (eq. 4) are means
    over parameters as well, ``deviation_spread`` and ``error_spread`` standard deviations. Errors (eq. 5) and
    ``covered_percent`` (90 % intervals) are those at the test point.
    """

    kind: str
    modeler: str
    noise_percent: float
    repetitions: int
    models: int
    exact_percent: float
    deviation: float
    deviation_spread: float
    deviations: dict[str, float]
    error_percent: float
    error_spread: float
    median_error_percent: float
    covered_percent: float


def rows(errors: Iterable[Errors], parameters: Sequence[str]) -> list[Row]:
    """Aggregate errors of models by kind, noise, repetitions and modeler, in this order."""
    groups: dict[tuple[str, float, int, str], list[Errors]] = {}
    for item in errors:
        key = (item.kind, item.setting.percent, item.setting.repetitions, item.contender)
        groups.setdefault(key, []).append(item)
    places = {kind: k for k, kind in enumerate(dict.fromkeys(key[0] for key in groups))}
    contenders = {name: k for k, name in enumerate(dict.fromkeys(key[3] for key in groups))}
    ordered = sorted(groups, key=lambda key: (places[key[0]], key[1], key[2], contenders[key[3]]))
    return [_row(key, groups[key], parameters) for key in ordered]


def _row(key: tuple[str, float, int, str], members: Sequence[Errors], parameters: Sequence[str]) -> Row:
    kind, percent, repetitions, contender = key
    deviations = np.concatenate([item.deviations for item in members])
    errors = np.concatenate([item.error_percent for item in members])
    return Row(
        kind=kind,
        modeler=contender,
        noise_percent=percent,
        repetitions=repetitions,
        models=len(errors),
        exact_percent=100.0 * float(np.mean(np.all(deviations < 1e-9, axis=1))),
        deviation=float(deviations.mean()),
        deviation_spread=float(deviations.mean(axis=1).std()),
        deviations=dict(zip(parameters, map(float, deviations.mean(axis=0)), strict=True)),
        error_percent=float(errors.mean()),
        error_spread=float(errors.std()),
        median_error_percent=float(np.median(errors)),
        covered_percent=100.0 * float(np.mean(np.concatenate([item.covered for item in members]))),
    )


def table(results: Sequence[Row]) -> str:
    """Return rows as aligned text, a header first."""
    names = list(results[0]["deviations"]) if results else []
    heads = ["code", "noise", "runs", "modeler", "exact", *(f"exponent off, {name}" for name in names)]
    lines = [[*heads, "relative error, mean", "median", "coverage", "models"]]
    for row in results:
        lines.append(
            [
                row["kind"],
                f"{row['noise_percent']:g} %",
                str(row["repetitions"]),
                row["modeler"],
                f"{row['exact_percent']:.1f} %",
                *(f"{row['deviations'][name]:.3f}" for name in names),
                f"{row['error_percent']:.1f} %",
                f"{row['median_error_percent']:.1f} %",
                f"{row['covered_percent']:.0f} %",
                str(row["models"]),
            ]
        )
    return "\n".join(aligned(lines, left={0, 3}))
