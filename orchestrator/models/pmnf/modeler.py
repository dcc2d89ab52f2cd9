"""The PMNF modeler: joint choice of one hypothesis over all parameters, for all call paths at once.

Ritter et al., Cost-Effective Empirical Performance Modeling, eq. 1. See `docs/families.md` for the method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.errors import ModelError
from orchestrator.models import data, factored
from orchestrator.models.base import Floats, Label, Model, Modeler, label_of
from orchestrator.models.blas import one_blas_thread
from orchestrator.models.groupwise import of_groups
from orchestrator.models.noise import Located
from orchestrator.models.pmnf import build
from orchestrator.models.pmnf.build import Solved
from orchestrator.models.pmnf.categories import with_shared_forms
from orchestrator.models.pmnf.correction import Features
from orchestrator.models.pmnf.exact_sums import doubtful, with_exact_sums
from orchestrator.models.pmnf.hypotheses import (
    FALLING,
    HIGHER,
    block_values,
    growth_of,
)
from orchestrator.models.pmnf.misfit import with_correction
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.neighbours import (
    NOTHING,
    Expected,
    Neighbour,
    Neighbours,
    needed_blocks,
)
from orchestrator.models.pmnf.options import Options
from orchestrator.models.pmnf.outliers import without_outliers
from orchestrator.models.pmnf.plain import without_correction
from orchestrator.models.pmnf.solution import Task
from orchestrator.models.pmnf.trends import falling, remarks
from orchestrator.models.spread import spread
from orchestrator.types import Measurements, Point, format_value

# Hypotheses that are fitted closely, at most. Thousands may explain few measurements, and to leave some out
# makes intervals too narrow: with 200 instead of 3000, 82 instead of 88 to 90 % of functions are modelled
# well; ten thousand change nothing (docs/experiments.md).
_FITTED = 3000
# Call paths that are solved at once: those of thousands would take gigabytes.
_TOGETHER = 200
# The same of several categories, which are weighed together: hypotheses of all call paths, and the least of
# each. Chosen by hand; not derived.
_FITTED_TOGETHER, _FITTED_LEAST = _TOGETHER * _FITTED, 256
# Values of a parameter that cannot show two terms in it: a constant and two terms have three coefficients.
_FEW_VALUES = 3

Fitter = Callable[[Sequence[data.Group], Sequence[Located]], list[list[PmnfModel]]]


def modeler(
    *,
    exponents: str | Iterable[Sequence[float]] = "paper",
    negative_exponents: str | bool = "auto",
    aggregate: str = "auto",
    members: int = 200,
    wide: bool = True,
    neighbours: Neighbours = NOTHING,
) -> Modeler:
    """Return a modeler of the performance model normal form.

    Parameters
    ----------
    exponents
        ``"paper"`` (all pairs of de Morais et al., eq. 2), ``"extra-p"`` (the 42 pairs of Extra-P's
        default), or a list of pairs [exponent, log exponent]. The named sets are extended to exponent 5
        for call paths that no hypothesis fits and whose best one has the largest exponent.
    negative_exponents
        Add falling blocks such as ``1/p`` and ``log2(p)/p``: True, False, or ``"auto"``, for the call
        paths and parameters along which the measured values fall.
    aggregate
        How repetitions become one value: ``"none"`` (each counts, robustly), ``"mean"``, ``"median"``,
        ``"min"``, or ``"auto"``, whichever varies least.
    members
        Most hypotheses kept in the posterior of a model, to stand for all that remain possible.
    wide
        Where no hypothesis fits within the noise, try also two terms in one parameter and negative
        coefficients.
    neighbours
        What other campaigns know of call paths, see `orchestrator.models.pmnf.neighbours`.

    Raises
    ------
    ModelError
        For an option that makes no sense; and by the modeler when no call path can be fitted.
    """
    return searching(
        Options.checked(
            exponents=exponents,
            negative_exponents=negative_exponents,
            aggregate=aggregate,
            members=members,
            wide=wide,
            neighbours=neighbours,
        )
    )


def searching(options: Options) -> Modeler:
    """Return the modeler that searches with these options."""
    fit = fitter(options)

    def every(groups: Sequence[data.Group], located: Sequence[Located]) -> list[list[Model]]:
        found = fit(groups, options.informed(groups, located))
        if not (options.wide and options.extends):
            return [list[Model](items) for items in found]
        return [_with_laws(*pair, of_rest) for pair in zip(groups, found, strict=True)]

    def of_rest(measurements: Measurements) -> tuple[Model, ...]:
        """Model exact values without the laws of some parameters."""
        return searching(options.of_rest())(measurements)

    return of_groups(every, options.aggregate)


def _with_laws(group: data.Group, found: list[PmnfModel], of_rest: Modeler) -> list[Model]:
    """Divide laws of single parameters out where no sum explains exact values, or where nothing checks it."""
    forms = {label_of(item): item for item in found}
    models: dict[Label, Model] = {**forms}
    for row, item in factored.models(group, doubtful(group, forms), of_rest).items():
        label = group.labels[row]
        models[label] = forms[label].beside(item) if forms[label].is_exact else item
    return list(models.values())


def of_measurements(measurements: Measurements, source: str) -> Neighbours:
    """Return what a campaign with these measurements tells others, fitted without any prior of its own."""
    try:
        found = modeler()(measurements)
    except ModelError:
        return NOTHING
    return Neighbours(tuple(Neighbour.of(item, source) for item in found if isinstance(item, PmnfModel)))


def fitter(options: Options) -> Fitter:
    """Return what fits one model to every call path of every group, whose values were located before.

    What it returns takes the groups of all categories, because these may share their form, and gives the
    models of each group.
    """

    def fit(groups: Sequence[data.Group], located: Sequence[Located]) -> list[list[PmnfModel]]:
        for group in groups:
            check_parameters(group)
        # Hypotheses that the points cannot tell apart or determine are marked invalid, not warned about.
        with one_blas_thread(), np.errstate(all="ignore"):
            if len({group.category for group in groups}) == 1:
                return [_parted(*pair, options) for pair in zip(groups, located, strict=True)]
            solved = [_solved(*pair, options) for pair in zip(groups, located, strict=True)]
            return [_models(item, options) for item in with_shared_forms(solved)]

    return fit


def check_parameters(group: data.Group) -> None:
    """Refuse parameters below 0: they have no powers with fractions as exponents."""
    for values in group.points[(group.points < 0).any(axis=1)]:
        below = [(name, value) for name, value in zip(group.parameters, values, strict=True) if value < 0]
        point = Point.of(dict(zip(group.parameters, map(float, values), strict=True)))
        name, value = below[0]
        raise ModelError(
            f"{point}: {name} is {format_value(float(value))}, but the normal form needs parameters >= 0; "
            "shift or rescale the parameter, or make it categorical"
        )


def _parted(group: data.Group, located: Located, options: Options) -> list[PmnfModel]:
    """Model the call paths of a group, some together."""
    rows = np.arange(len(group.labels))
    parts = np.split(rows, range(_TOGETHER, len(rows), _TOGETHER))
    tasks = [(group.take(part), located.rows(part), options) for part in parts]
    return [model for models in spread(_of_part, tasks) for model in models]


def _of_part(task: tuple[data.Group, Located, Options]) -> list[PmnfModel]:
    """Model some call paths of a group, in this process or another one."""
    group, located, options = task
    with one_blas_thread(), np.errstate(all="ignore"):
        return _models(_solved(group, located, options), options)


def _models(solved: Solved, options: Options) -> list[PmnfModel]:
    """Build the models of a group; values that repeat exactly may be sums that are longer than hypotheses."""
    models: dict[int, PmnfModel] = {}
    for case, chosen in solved.cases:
        models.update(build.models(case, chosen, solved.notes))
    if options.wide and options.extends:
        # A parameter that varies in other categories only is none of the group's.
        plain = {row: item for row, item in models.items() if item.parameters == solved.group.parameters}
        models.update(with_exact_sums(solved.group, plain, options.negative != "false"))
    return list(models.values())


def _solved(group: data.Group, located: Located, options: Options) -> Solved:
    """Solve the call paths of a group; again, with more blocks, those that no hypothesis fits."""
    search = _Search.of(group, located, options)
    flags = search.flags()
    cases = [search.case(rows, flags[rows[0]]) for rows in _alike(flags)]
    score, latest = np.zeros(len(group.labels)), np.zeros(len(group.labels), dtype=np.intp)
    wider = flags.copy()
    for number, case in enumerate(cases):
        latest[case.rows] = number
        score[case.rows] = case.solution.fits.score[case.solution.first()]
        wider[case.rows] |= search.more_blocks(case)
    again = np.flatnonzero((wider & ~flags).any(axis=(1, 2)))
    for rows in _alike(wider[again]):
        case = search.case(again[rows], wider[again[rows[0]]])
        better = case.solution.fits.score[case.solution.first()] > score[case.rows]
        latest[case.rows[better]] = len(cases)
        cases.append(case)
    chosen = ((case, np.flatnonzero(latest[case.rows] == number)) for number, case in enumerate(cases))
    notes = remarks(group.parameters, group.points, located)
    return Solved(group, [(case, rows) for case, rows in chosen if len(rows)], notes)


def _alike(flags: NDArray[np.bool_]) -> Iterator[NDArray[np.intp]]:
    """Yield the rows that have the same flags."""
    flat = flags.reshape(len(flags), flags.shape[1] * flags.shape[2])
    for pattern in np.unique(flat, axis=0):
        yield np.flatnonzero((flat == pattern).all(axis=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """The search for hypotheses of the call paths of a group."""

    group: data.Group
    located: Located
    options: Options
    points: Floats  # those of the group; without parameters, of one that is always 1
    features: Features

    @classmethod
    def of(cls, group: data.Group, located: Located, options: Options) -> Self:
        points = group.points if group.parameters else np.ones((len(group.points), 1))
        return cls(group=group, located=located, options=options, points=points, features=Features.of(points))

    def flags(self) -> NDArray[np.bool_]:
        """Return whether to add falling and higher blocks at first, shape (call paths, parameters, 2)."""
        if self.options.negative == "auto":
            falls = falling(self.points, self.located)
        else:
            shape = len(self.group.labels), self.points.shape[1]
            falls = np.full(shape, self.options.negative == "true")
        found = np.stack([falls, np.zeros_like(falls)], axis=2)
        if self.options.extends:
            needed = needed_blocks(self.options.neighbours.of_group(self.group), self.group.parameters)
            found |= needed & (self.options.negative != "false")
        return found

    def case(self, rows: NDArray[np.intp], flags: NDArray[np.bool_]) -> build.Case:
        """Solve some call paths, with the same falling and higher blocks, shape (parameters, 2)."""
        group, options = self.group, self.options
        blocks = tuple(_blocks(x, options, *more) for x, more in zip(self.points.T, flags, strict=True))
        expected: tuple[Expected | None, ...] = ()
        if options.neighbours.items:
            known = options.neighbours.of_group(group)
            expected = tuple(Expected.of(known[row], group.parameters, blocks) for row in rows)
        values, located = group.values[rows], self.located.rows(rows)
        task = Task(
            tables=tuple(block_values(x, b) for x, b in zip(self.points.T, blocks, strict=True)),
            growth=growth_of(blocks),
            features=self.features(self.points),
            keep=min(max(_FITTED_TOGETHER // len(rows), _FITTED_LEAST), _FITTED),
            wide=options.wide,
            expected=expected,
        )
        solution = without_outliers(task, values, without_correction(task, located))
        return build.Case(
            group=group,
            rows=rows,
            task=task,
            features=self.features,
            blocks=blocks,
            solution=with_correction(task, solution),
            members=options.members,
        )

    def more_blocks(self, case: build.Case) -> NDArray[np.bool_]:
        """Return blocks to add for call paths that no hypothesis fits: falling ones, and higher at the edge.

        A parameter along which the time grows may still have a falling term (``100/p + 3 log2(p)``).
        """
        more = np.zeros((len(case.rows), self.points.shape[1], 2), dtype=bool)
        if self.options.extends:
            more[:, :, 1] = build.at_edge(case)
        if self.options.negative == "auto" and self.options.wide:
            several = [len(np.unique(column)) > _FEW_VALUES for column in self.group.points.T]
            more[:, : len(several), 0] = build.unfit(case)[:, None] & np.array(several, dtype=bool)
        return more


def _blocks(x: Floats, options: Options, falls: np.bool_, higher: np.bool_) -> Floats:
    """Blocks that can be evaluated at all values of a parameter; the constant comes first."""
    if np.all(x == x[0]):
        return np.zeros((1, 2))
    extra = (FALLING if falls else ()) + (HIGHER if higher else ())
    pairs = [(0.0, 0.0), *options.exponents, *(pair for pair in extra if pair not in options.exponents)]
    if x.min() < 1:
        pairs = [p for p in pairs if p[1] == 0]
    if x.min() <= 0:
        pairs = [p for p in pairs if p[0] >= 0]
    return np.array(pairs)
