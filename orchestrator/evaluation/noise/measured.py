"""The noise study on measured applications: models against a stated theory, and against further points.

De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section V-C: models of
all subsets of the repetitions (figure 8), and of times with artificial noise (figure 7); the exponent
deviation (eq. 4) from the theory, and the relative error (eq. 5) at points beyond those that were fitted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from orchestrator import expressions
from orchestrator.errors import CampaignError
from orchestrator.evaluation.models.fit import Contender
from orchestrator.evaluation.noise.study import Errors, Setting, disturbed
from orchestrator.evaluation.parallel import Advance, in_parallel
from orchestrator.models import callpaths
from orchestrator.models.base import Model, holds_at
from orchestrator.models.effort import assign
from orchestrator.models.mpi_costs import operation
from orchestrator.models.symbolic import Term, exponent_deviation, terms_of
from orchestrator.types import Measurement, Measurements, Point

WITHOUT_EFFORT = ("extra-p", "pmnf", "auto")
WITH_EFFORT = (*WITHOUT_EFFORT, "swc:posterior=prior", "swc")
_FEWEST = 3  # training points
# Modelers to which counts are one more thing to fit.
_BLIND = frozenset({*WITHOUT_EFFORT, "curves", "formulas"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """What is fitted, and what models are compared with."""

    # Times at the training points: of call paths with a theory, and of those that their effort is shared with
    # (`_needed`).
    timed: Measurements
    # Counts at the training points that belong to these times, for modelers that use them.
    effort: tuple[Measurement, ...]
    names: Mapping[str, str]  # how call paths are shown
    theories: Mapping[str, tuple[Term, ...]]  # terms per call path
    # Median of the measured times at the test points, per call path.
    expected: Mapping[str, Mapping[Point, float]]

    @property
    def repetitions(self) -> int:
        """Most repetitions at a training point."""
        return max(len(values) for item in self.timed.items for values in item.values.values())


def application(
    known: Measurements,
    metric: str,
    theories: Mapping[str, tuple[Term, ...]],
    *,
    names: Mapping[str, str],
    train_where: Sequence[str] = (),
    test_where: Sequence[str] = (),
) -> Application:
    """Divide measurements into training and test points.

    Without conditions the point with the largest value of every parameter is the test point, and points where
    every parameter is below its largest value train the models.

    Parameters
    ----------
    known
        Times and, if they were counted, effort.
    metric
        Of the times.
    theories
        See `orchestrator.evaluation.noise.theory.stated`.
    names
        How call paths are shown.
    train_where, test_where
        Conditions that training and test points satisfy, such as ``p < 512``. With one of them only, the
        other points are the others.

    Raises
    ------
    CampaignError
        When a call path has no test point, or too few training points.
    """
    train, test = _division(known, train_where, test_where)
    timed, expected = [], {}
    needed = _needed(known, metric, theories)
    for item in needed.items:
        if item.metric != metric:
            continue
        times = {point: values for point, values in item.values.items() if point in train and values}
        medians = {point: float(np.median(values)) for point, values in item.values.items() if point in test}
        medians = {point: value for point, value in medians.items() if value > 0}
        timed.append(Measurement(item.callpath, item.metric, times))
        if item.callpath not in theories:
            continue
        if len(times) < _FEWEST or not medians:
            raise CampaignError(
                f"{item.callpath} has {len(times)} training points and {len(medians)} test points with a "
                f"positive {metric}: at least {_FEWEST} and 1 are needed; choose others with --train-where "
                "and --test-where"
            )
        expected[item.callpath] = medians
    if missing := sorted(set(theories) - set(expected)):
        raise CampaignError(f"no {metric} of {', '.join(missing)}: choose another one with --metric")
    effort = tuple(
        replace(item, values={p: v for p, v in item.values.items() if p in train}, origins={})
        for item in needed.items
        if item.metric != metric
    )
    return Application(
        timed=replace(known, items=tuple(item for item in timed if item.values)),
        effort=tuple(item for item in effort if item.values),
        names=names,
        theories=theories,
        expected=expected,
    )


def _needed(known: Measurements, metric: str, theories: Collection[str]) -> Measurements:
    """Return the times with a theory, with the counts that are their effort.

    Counts of MPI operations belong to all callers, so that times of these operations are kept as well: they
    say which counts are a caller's own. Should names be found in another way among so few, all are kept.
    """
    times = [item.callpath for item in known.items if item.metric == metric]
    timed = callpaths.names(times, (item.callpath for item in known.items if item.metric != metric))
    owners, counted = set(theories), set()
    for path in {item.callpath for item in known.items if item.metric != metric}:
        callers = timed.callers(path)
        if not set(theories).isdisjoint(callers[: None if operation(path) else 1]):
            owners.add(callers[0])
            counted.add(path)
    items = (i for i in known.items if i.callpath in (owners if i.metric == metric else counted))
    fewer = replace(known, items=tuple(items))
    before, now = assign(known, times)[0], assign(fewer, owners)[0]
    return fewer if all(before.get(path) == now.get(path) for path in theories) else known


def _division(
    known: Measurements, train_where: Sequence[str], test_where: Sequence[str]
) -> tuple[set[Point], set[Point]]:
    texts = {name for name in known.parameters if known.is_categorical(name)}
    within, beyond = (
        [expressions.parse(text, known.parameters, texts) for text in conditions]
        for conditions in (train_where, test_where)
    )
    if within or beyond:
        train, test = (
            {p for p in known.points if all(holds(p.as_dict()) for holds in conditions)}
            for conditions in (within, beyond)
        )
        test = test if beyond else test - train
        return train - test, test
    numeric = [name for name in known.parameters if name not in texts]
    largest = {name: max(point.number(name) for point in known.points) for name in numeric}
    test = {p for p in known.points if all(p.number(name) == largest[name] for name in numeric)}
    varied = [name for name in numeric if len(known.values_of(name)) > 1]
    train = {p for p in known.points if all(p.number(name) < largest[name] for name in varied)}
    return train, test


def settings(
    levels: Sequence[float], repetitions: Sequence[int], injections: int, patterns: Sequence[str], most: int
) -> list[Setting]:
    """Return all subsets of the repetitions without artificial noise, and injections of noise into all.

    Parameters
    ----------
    levels
        Of artificial noise, in percent; 0 is without.
    repetitions
        Sizes of subsets; empty for all.
    injections, patterns
        Draws of each noise, and which.
    most
        How many repetitions there are.
    """
    sizes = [size for size in repetitions or range(1, most + 1) if size <= most]
    found = [
        Setting(pattern="none", percent=0.0, repetitions=size, injection=k, subset=subset)
        for size in (sizes if 0 in levels else ())
        for k, subset in enumerate(combinations(range(most), size))
    ]
    return found + [
        Setting(pattern=pattern, percent=level, repetitions=most, injection=k, subset=tuple(range(most)))
        for level in levels
        for pattern in patterns
        for k in range(injections)
        if level and pattern != "none"
    ]


def run(
    studied: Application,
    contenders: Sequence[Contender],
    chosen: Sequence[Setting],
    *,
    seed: int = 0,
    workers: int | None = None,
    advance: Advance | None = None,
) -> list[Errors]:
    """Fit all models and return their errors; ``kind`` is the call path, one row per model and test point.

    Parameters
    ----------
    studied
        See `application`.
    contenders
        Modelers.
    chosen
        See `settings`.
    seed
        Of the artificial noise.
    workers, advance
        See `orchestrator.evaluation.parallel.in_parallel`.
    """
    tasks = [(studied, contender, setting, seed) for setting in chosen for contender in contenders]
    return [errors for part in in_parallel(_errors, tasks, workers, advance) for errors in part]


def _errors(task: tuple[Application, Contender, Setting, int]) -> list[Errors]:
    studied, contender, setting, seed = task
    rng = setting.generator(seed)
    items = tuple(
        Measurement(item.callpath, item.metric, disturbed(item.values, setting, rng))
        for item in studied.timed.items
    )
    effort = () if contender.name in _BLIND else studied.effort
    models = contender.modeler()(replace(studied.timed, items=(*items, *effort)))
    metric = studied.timed.items[0].metric
    return [
        errors
        for path in studied.theories
        for errors in _of_callpath(
            studied, [m for m in models if (m.callpath, m.metric) == (path, metric)], path, contender, setting
        )
    ]


def _of_callpath(
    studied: Application, models: Sequence[Model], path: str, contender: Contender, setting: Setting
) -> Iterator[Errors]:
    """Yield the errors of the models of a call path, one per category, each at the test points it is for."""
    for point in studied.expected[path]:
        if not any(holds_at(model, point) for model in models):
            raise CampaignError(
                f"{contender.label} has no model of {studied.names[path]} at {point}: choose points with "
                "--train-where and --test-where so that every category among the test points is fitted, too"
            )
    for model in models:
        points = [point for point in studied.expected[path] if holds_at(model, point)]
        if points:
            yield _of_model(studied, model, points, contender.label, setting)


def _of_model(
    studied: Application, model: Model, points: Sequence[Point], label: str, setting: Setting
) -> Errors:
    theory, expected = studied.theories[model.callpath], studied.expected[model.callpath]
    predicted = model.predict(points)
    measured = np.array([expected[point] for point in points])
    names = [name for name in studied.timed.parameters if not studied.timed.is_categorical(name)]
    deviations = [exponent_deviation(terms_of(model), theory, name) for name in names]
    return Errors(
        contender=label,
        kind=studied.names[model.callpath],
        setting=setting,
        deviations=np.array([deviations] * len(measured)),
        error_percent=100.0 * np.abs(predicted.value - measured) / measured,
        covered=(predicted.low <= measured) & (measured <= predicted.high),
    )
