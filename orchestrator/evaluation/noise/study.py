"""How models withstand noise: exponents and predictions of three modelers on the same disturbed times.

De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section V: *classic*
sees times only, *swc* is the prior with coefficients from times, *combined* the posterior of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from orchestrator import registry
from orchestrator.evaluation.artificial_noise import PATTERNS, factors
from orchestrator.evaluation.noise.cases import Case, Study
from orchestrator.evaluation.parallel import Advance, in_parallel
from orchestrator.models import Priors, locate_times, skeletons, with_prior
from orchestrator.models.base import Floats, Model, Modeler
from orchestrator.models.symbolic import exponent_deviation, terms_of
from orchestrator.types import Measurement, Measurements, Point

CONTENDERS = ("classic", "swc", "combined")
LEVELS = (0.0, 2.0, 5.0, 10.0, 50.0, 75.0)
TRUST = 0.9
TOLERANCE = 0.01
_PARTS = ("value", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One way to disturb the times, and how many repetitions modelers get: the first, or a ``subset``."""

    pattern: str
    percent: float
    repetitions: int
    injection: int
    subset: tuple[int, ...] = ()

    def generator(self, seed: int) -> np.random.Generator:
        """Return the generator of its noise, the same for every subset and modeler."""
        place = list(PATTERNS).index(self.pattern)
        return np.random.default_rng([seed, place, round(100 * self.percent), self.injection])


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Errors of the models of one kind of call paths under one setting."""

    # contender, kind, setting: who, what, when.
    contender: str
    kind: str
    setting: Setting
    # Exponent deviation, eq. 4, shape (models, parameters).
    deviations: Floats
    # Relative error at the test point, eq. 5, shape (models,).
    error_percent: Floats
    covered: NDArray[np.bool_]  # whether the 90 % interval holds the time at the test point, shape (models,)


def settings(
    levels: Sequence[float], repetitions: Sequence[int], injections: int, patterns: Sequence[str]
) -> list[Setting]:
    """Return all combinations, those only once that injections do not change."""
    found: dict[tuple[str, float, int, int], Setting] = {}
    for level, count, pattern, k in product(levels, repetitions, patterns, range(injections)):
        setting = Setting(pattern=pattern, percent=level, repetitions=count, injection=k)
        if level == 0 or pattern == "none":
            setting = Setting(pattern="none", percent=0.0, repetitions=count, injection=0)
        found.setdefault((setting.pattern, setting.percent, setting.repetitions, setting.injection), setting)
    return list(found.values())


def run(
    study: Study,
    chosen: Sequence[Setting],
    *,
    seed: int = 0,
    workers: int | None,
    advance: Advance | None = None,
) -> list[Errors]:
    """Fit the models of every setting and return their errors; the priors are the same for all.

    Parameters
    ----------
    study
        What to fit.
    chosen
        See `settings`.
    seed
        Of the artificial noise.
    workers, advance
        See `orchestrator.evaluation.parallel.in_parallel`.
    """
    known = Measurements(study.parameters, study.effort)
    priors = skeletons(known, [case.callpath for case in study.cases], _classic(), TOLERANCE, None)
    tasks = [(study, priors, setting, seed) for setting in chosen]
    return [errors for part in in_parallel(_errors_of_setting, tasks, workers, advance) for errors in part]


def _errors_of_setting(task: tuple[Study, Priors, Setting, int]) -> list[Errors]:
    study, priors, setting, seed = task
    rng = setting.generator(seed)
    errors: list[Errors] = []
    # The noise of computation and of communication differs, and so do their aggregates.
    for kind in dict.fromkeys(case.kind for case in study.cases):
        cases = [case for case in study.cases if case.kind == kind]
        items = tuple(
            Measurement(case.callpath, "time", disturbed(case.times, setting, rng)) for case in cases
        )
        timed = Measurements(study.parameters, items)
        classic = {model.callpath: model for model in _classic()(timed)}
        located = locate_times(timed, "auto")
        fitted = [with_prior(classic[case.callpath], priors, located, (None, TRUST)) for case in cases]
        contenders = ([classic[case.callpath] for case in cases], *zip(*fitted, strict=True))
        for contender, models in zip(CONTENDERS, contenders, strict=True):
            errors.append(_errors(contender, cases, models, study, setting))
    return errors


def _classic() -> Modeler:
    """Return the modeler that sees times only."""
    modeler: Modeler = registry.load("model", "pmnf")()
    return modeler


def disturbed(
    times: Mapping[Point, Sequence[float]], setting: Setting, rng: np.random.Generator
) -> dict[Point, tuple[float, ...]]:
    """Return the times that modelers get under a setting; points without any are left out."""
    most = max(map(len, times.values()))
    # Drawn for all repetitions, so that fewer of them see the same noise.
    noise = factors(setting.pattern, setting.percent, (len(times), most), rng)
    chosen = setting.subset or range(setting.repetitions)
    values = {
        point: tuple(float(runs[k] * row[k]) for k in chosen if k < len(runs))
        for (point, runs), row in zip(times.items(), noise, strict=True)
    }
    return {point: found for point, found in values.items() if found}


def _errors(
    contender: str, cases: Sequence[Case], models: Sequence[Model], study: Study, setting: Setting
) -> Errors:
    expected = np.array([case.expected for case in cases])
    predictions = [model.predict([study.test]) for model in models]
    value, low, high = (np.array([getattr(p, name)[0] for p in predictions]) for name in _PARTS)
    deviations = [
        [exponent_deviation(terms_of(model), case.truth, name) for name in study.parameters]
        for case, model in zip(cases, models, strict=True)
    ]
    error = 100 * np.abs(value - expected) / expected
    covered = (low <= expected) & (expected <= high)
    return Errors(
        contender=contender,
        kind=cases[0].kind,
        setting=setting,
        deviations=np.array(deviations),
        error_percent=error,
        covered=covered,
    )
