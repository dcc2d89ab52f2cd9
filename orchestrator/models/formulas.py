"""One model from formulas and curves: a short formula where it explains the measurements, else curves.

The performance model normal form is the language of the answer where it is as good as the rest. What it
leaves unexplained is followed by curves around it, and where it explains too little, curves alone remain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from orchestrator.models import data, factored
from orchestrator.models.base import Floats, Integers, Label, Model, Modeler, label_of
from orchestrator.models.curves.explanations import LIKELY
from orchestrator.models.curves.model import CurveModel
from orchestrator.models.curves.modeler import Known, fit
from orchestrator.models.curves.prior import Sizes, learned
from orchestrator.models.groupwise import of_groups
from orchestrator.models.noise import CLOCK_NOISE, Located
from orchestrator.models.pmnf.build import AT_EDGE, SCATTERED, UNFIT
from orchestrator.models.pmnf.exact_sums import doubtful
from orchestrator.models.pmnf.interplay import Interplay
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.modeler import fitter
from orchestrator.models.pmnf.neighbours import NOTHING, Neighbours, informed
from orchestrator.models.pmnf.options import Options
from orchestrator.models.pmnf.posterior import Posterior
from orchestrator.models.symbolic import term_text
from orchestrator.models.unseen import Unseen, ties
from orchestrator.types import Measurements

# Exponent above which a formula becomes improbable: the largest of the normal form as published. Natural
# logarithm of how much less probable it is for every one that an exponent is larger: only the last values of
# a parameter support it, and anything else may begin there.
_STEEPEST, _STEEP = 3.0, 5.0
# The same for every e-fold by which a term grows by more than this from the second largest to the largest
# measured value of a parameter: only that value supports it. Chosen by hand; not derived.
_LAST_STEP, _STEP_PRICE = 12.0, 3.0
# The same for every one by which a term grows faster than a parameter that shows in it at two values only,
# because another factor of the term is zero at the others: with one ratio any steepness fits. Chosen by hand;
# not derived. And the least value at which the slope of a logarithm is taken.
_STEEP_RATIO, _SLOPES_FROM = 12.0, 1.5
# Share of the points that curves may leave out as outliers: more are no exceptions. Chosen by hand; not
# derived.
_MOST_OUTLIERS = 0.125
# Natural logarithm of how much more probable a constant, and a constant and one of these, as exponents of a
# parameter and of its logarithm, are where there is one: latency and bandwidth, serial and parallel parts.
_COMMON, _MORE = ((-1, 0), (1, 0), (2, 0), (3, 0), (0, 1)), 2.0


def modeler(
    *,
    exponents: str | Sequence[Sequence[float]] = "paper",
    negative_exponents: str | bool = "auto",
    aggregate: str = "auto",
    members: int = 200,
    wide: bool = True,
    sizes: str | Sizes = "all",
    saturates: bool = True,
    neighbours: Neighbours = NOTHING,
) -> Modeler:
    """Return a modeler that weighs the formulas of ``pmnf`` against ``curves``.

    Parameters
    ----------
    exponents, negative_exponents, aggregate, members, wide, neighbours
        Options of ``pmnf``.
    sizes
        Option of ``curves``.
    saturates
        Whether speedups may saturate as Amdahl's law says, where names say which parameters count processes.

    Raises
    ------
    ModelError
        For an option that makes no sense; and by the modeler when no call path can be fitted.
    """
    search = Options.checked(
        exponents=exponents,
        negative_exponents=negative_exponents,
        aggregate=aggregate,
        members=members,
        wide=wide,
        neighbours=neighbours,
    )
    typical = learned(sizes) if isinstance(sizes, str) else sizes
    return _Weighing(search, typical, saturates).modeler()


@dataclass(frozen=True, slots=True)
class _Weighing:
    """How formulas and curves are weighed against each other: the options of `modeler`."""

    search: Options
    sizes: Sizes
    saturates: bool

    def modeler(self) -> Modeler:
        """Return what fits formulas to the groups of all categories, and then curves around them."""
        forms = fitter(self.search)

        def every(groups: Sequence[data.Group], located: Sequence[Located]) -> Iterable[Iterable[Model]]:
            if below := _below_zero(groups):
                note = (
                    f"no formula was searched, because of values below 0: {', '.join(below)}; the expression "
                    "holds near the largest values only"
                )
                return [self.curves_alone(*pair, note) for pair in zip(groups, located, strict=True)]
            known = informed(groups, located, self.search.neighbours)
            return map(self.weighed, groups, known, forms(groups, known))

        return of_groups(every, self.search.aggregate)

    def curves_alone(self, group: data.Group, located: Located, note: str) -> list[Model]:
        """Return curves without formulas, with a note that says why."""
        curves = fit(group, located, self.sizes, None)
        return [replace(item, remarks=(*item.remarks, note)) for item in curves]

    def weighed(self, group: data.Group, located: Located, formulas: Sequence[PmnfModel]) -> Iterable[Model]:
        """Return all that explains the call paths of a group, by their formulas."""
        models = {label_of(item): item for item in formulas}
        # Of a parameter that varies in other categories only, curves know nothing.
        rows = [k for k, label in enumerate(group.labels) if models[label].parameters == group.parameters]
        if not rows:
            return formulas
        if len(rows) < len(models):
            kept = np.array(rows, dtype=np.intp)
            group, located = group.take(kept), located.rows(kept)
        curves = _curves(group, located, models, self.sizes, self.saturates)
        by_law = self.laws(group, models)
        return [*_alone(group, located, models, curves), *_with_curves(models, curves, by_law)]

    def laws(self, group: data.Group, forms: Mapping[Label, PmnfModel]) -> dict[Label, Model]:
        """Return models of call paths with exact values that no formula explains everywhere."""
        if not self.search.wide or not self.search.extends:
            return {}
        rows = doubtful(group, forms)
        return {group.labels[row]: item for row, item in factored.models(group, rows, self.of_rest).items()}

    def of_rest(self, measurements: Measurements) -> tuple[Model, ...]:
        """Model exact values without the laws of some parameters."""
        return replace(self, search=self.search.without_neighbours()).modeler()(measurements)


def _below_zero(groups: Sequence[data.Group]) -> list[str]:
    """Return the parameters with values below 0, which have no powers with fractions as exponents."""
    return list(
        dict.fromkeys(
            name
            for group in groups
            for name, values in zip(group.parameters, group.points.T, strict=True)
            if (values < 0).any()
        )
    )


def _with_curves(
    forms: Mapping[Label, PmnfModel], curves: Mapping[Label, CurveModel], by_law: Mapping[Label, Model]
) -> Iterator[Model]:
    """Yield curves with their notes, exact sums beside what is said where nothing checks them, and laws."""
    for label, item in curves.items():
        if not forms[label].is_exact:
            yield replace(item, remarks=_notes(forms[label], item))
    elsewhere = {**curves, **by_law}
    for label, form in forms.items():
        if form.is_exact:
            yield form.beside(elsewhere.get(label))
    for label, model in by_law.items():
        if not forms[label].is_exact:
            yield model


def _curves(
    group: data.Group, located: Located, forms: Mapping[Label, PmnfModel], sizes: Sizes, saturates: bool
) -> dict[Label, CurveModel]:
    """Return formulas and curves, weighed against each other, of every call path of a group.

    An exact sum says all where it is checked. Elsewhere speak formulas and curves, as of other values. What a
    formula takes for an outlier is none of the values that curves follow, either.
    """
    own = [_without_sum(forms[label]) for label in group.labels]
    alike: dict[tuple[int, ...], list[int]] = {}
    for row, form in enumerate(own):
        alike.setdefault(contradicted(form.outliers, group.points), []).append(row)
    curves = {}
    for outliers, rows in alike.items():
        index, some = np.array(rows, dtype=np.intp), [own[row] for row in rows]
        part, place = group.take(index), located.rows(index)
        if outliers:
            kept = np.delete(np.arange(len(group.points)), outliers)
            part, place = part.at_points(kept), place.at_points(kept)
        found = fit(part, place, sizes, _known(some), saturates=saturates)
        curves.update({label_of(item): item for item in found})
    corner = tuple(group.points.max(axis=0).tolist())
    return {label: replace(item, corner=corner) for label, item in curves.items()}


def contradicted(outliers: tuple[int, ...], points: Floats) -> tuple[int, ...]:
    """Return the outliers that other points contradict: some of these are as far out, in every parameter.

    Of one that is the farthest nobody knows whether something begins there.
    """
    if len(outliers) > _MOST_OUTLIERS * len(points):
        return ()
    others = np.delete(points, outliers, axis=0)
    return tuple(k for k in outliers if (others >= points[k]).all(axis=1).any())


def _known(forms: Sequence[PmnfModel]) -> Known:
    """Return what curves are told of formulas."""
    first = _first([item.posterior for item in forms])
    return Known(first, lambda row: NormalForms.of(forms[row].posterior), forms)


def _alone(
    group: data.Group, located: Located, forms: Mapping[Label, PmnfModel], beside: Collection[Label]
) -> Iterator[PmnfModel]:
    """Yield the formulas that are taken at their word: no exact sums, and no curves speak ``beside`` them."""
    tied = ties(group.points)
    guessed = {label for label, guess in zip(group.labels, located.is_guess, strict=True) if guess}
    rows = {label: row for row, label in enumerate(group.labels)}
    for label, form in forms.items():
        if form.is_exact or label in beside:
            continue
        if label in rows:
            form = _with_interplay(form, group.points, located.rows(np.array([rows[label]])))
        yield _doubted(form, group.points, tied, form.smape / 100 if label in guessed else 0.0)


def _with_interplay(form: PmnfModel, points: Floats, located: Located) -> PmnfModel:
    """Return a formula whose intervals allow for how parameters may change terms that lack them.

    Only what the points leave open counts, and what they leave open at the largest values has a note. Counts
    without noise are what the formula says.
    """
    if form.noise < CLOCK_NOISE:
        return form
    kept = np.delete(np.arange(len(points)), form.outliers)
    points, located = points[kept], located.at_points(kept)
    scatter = np.hypot(located.sigma[0] / np.sqrt(located.count[0]), form.posterior.misfit[0])
    interplay = Interplay.of(form.posterior, points, located.log_value[0], scatter)
    if interplay is None or (noted := interplay.noted(points.max(axis=0))) is None:
        return replace(form, interplay=interplay)
    term, parameter = noted
    text = term_text(form.terms[np.count_nonzero(form.posterior.coefficients[0, : term + 1])])
    name = form.parameters[parameter]
    note = f"the points hardly show how {name} changes {text}: measure where both are large"
    return replace(form, interplay=interplay, notes=(*form.notes, note))


def _without_sum(form: PmnfModel) -> PmnfModel:
    """Return the formula that was found before an exact sum, if that is what the formula is."""
    before = None if form.beyond is None else form.beyond.model
    return before if isinstance(before, PmnfModel) else form


def _doubted(form: PmnfModel, points: Floats, tied: Floats, scatter: float) -> PmnfModel:
    """Return a formula whose intervals allow for what it misses beyond single runs that scatter around it.

    And for what nothing shows of parameters that were only varied together. A count that is the same
    everywhere depends on none of them: that n / p is exactly so much would be a coincidence.
    """
    counted = form.noise < CLOCK_NOISE and not any(term["factors"] for term in form.terms)
    if counted or (not scatter and not len(tied)):
        return form
    return replace(form, unseen=Unseen.of(points, tied, scatter))


def _notes(form: Model, model: CurveModel) -> tuple[str, ...]:
    """Return the notes of a formula that hold where it is only one explanation of several."""
    wrong = (UNFIT,) if model.share >= LIKELY else (UNFIT, AT_EDGE, SCATTERED)
    return tuple(note for note in form.notes if not note.startswith(wrong))


def _part(posterior: Posterior, index: Integers | slice) -> Posterior:
    """Return some hypotheses: what they are, but not how well that is known."""
    weights = posterior.weights[index]
    return Posterior(
        weights=weights,
        exponents=posterior.exponents[index],
        coefficients=posterior.coefficients[index],
        covariance=np.empty((len(weights), 0, 0)),
        misfit=np.empty(0),
        learned=np.zeros(len(weights)) if posterior.learned is None else posterior.learned[index],
    )


def _first(posteriors: Sequence[Posterior]) -> NormalForms:
    """Return the most probable hypothesis of every posterior."""
    return NormalForms(_joined([_part(item, slice(1)) for item in posteriors]))


def _joined(parts: Sequence[Posterior]) -> Posterior:
    """Return the hypotheses of several posteriors, those of one after those of another."""
    terms = max(item.exponents.shape[1] for item in parts)
    number = sum(len(item.weights) for item in parts)
    exponents = np.zeros((number, terms, *parts[0].exponents.shape[2:]))
    coefficients = np.zeros((number, terms + 1))
    begin = 0
    for item in parts:
        here, used = slice(begin, begin + len(item.weights)), item.exponents.shape[1]
        exponents[here, :used], coefficients[here, : used + 1] = item.exponents, item.coefficients
        begin += len(item.weights)
    return Posterior(
        weights=np.concatenate([item.weights for item in parts]),
        exponents=exponents,
        coefficients=coefficients,
        covariance=np.empty((number, 0, 0)),
        misfit=np.empty(0),
        learned=np.concatenate([item.learned for item in parts if item.learned is not None]),
    )


def _last_step(exponents: Floats, points: Floats) -> Floats:
    """Logarithm of the growth of factors from the second largest to the largest value of their parameter.

    Parameters
    ----------
    exponents
        Of powers and of logarithms, shape (formulas, terms, parameters, 2).
    points
        Shape (points, parameters).

    Returns
    -------
    Shape (formulas, terms, parameters); 0 for parameters whose values there are not above 1.
    """
    steps = np.zeros((points.shape[1], 2))
    for k, column in enumerate(points.T):
        last = np.unique(column)[-2:]
        if len(last) == 2 and last[0] > 1:
            steps[k] = np.diff(np.log(last))[0], np.diff(np.log(np.log(last)))[0]
    return np.asarray((exponents * steps).sum(axis=-1), np.float64)


def _from_one_ratio(exponents: Floats, points: Floats) -> Floats:
    """Return how much steeper than proportional terms are that one ratio determines, shape (formulas,).

    A term with ``log2(p)`` is zero along the line of another parameter n on which p is 1. What it does with n
    is known at other points only, and if these have two values of n, by one ratio. `exponents` and `points`
    are as in `_last_step`.
    """
    zero = (exponents[:, :, None, :, 1] > 0) & (points == 1)  # (formulas, terms, points, parameters)
    result = np.zeros(len(exponents))
    if not zero.any():
        return result
    for k, column in enumerate(points.T):
        shows = ~np.delete(zero, k, axis=-1).any(axis=-1)
        values, place = np.unique(column, return_inverse=True)
        at = np.stack([shows[..., place == v].any(axis=-1) for v in range(len(values))], axis=-1)
        last = values[len(values) - 1 - at[..., ::-1].argmax(axis=-1)]
        slope = exponents[..., k, 0] + exponents[..., k, 1] / np.log(np.maximum(last, _SLOPES_FROM))
        few = (at.sum(axis=-1) <= 2) & ~at.all(axis=-1)
        result += (np.maximum(slope - 1, 0) * few).sum(axis=1)
    return result


@dataclass(frozen=True, slots=True)
class NormalForms:
    """Hypotheses of a posterior as formulas around which there may be curves."""

    posterior: Posterior

    @classmethod
    def of(cls, posterior: Posterior) -> Self:
        """Take all members, the most probable first, without their correction: the curves do its work."""
        order = np.argsort(-posterior.weights, kind="stable")
        return cls(_part(posterior, np.concatenate([[0], order[order != 0]])))

    @property
    def weights(self) -> Floats:
        """Their probabilities among all hypotheses, shape (formulas,)."""
        return self.posterior.weights

    @property
    def factors(self) -> Integers:
        """How many powers and logarithms each has, shape (formulas,)."""
        used = (self.posterior.coefficients[:, 1:] != 0)[:, :, None, None]
        return np.asarray(((self.posterior.exponents != 0) & used).sum(axis=(1, 2, 3)), np.intp)

    def log_prior(self, points: Floats) -> Floats:
        """Return how much more probable their exponents are than others, natural logarithm, (formulas,).

        Before anything is known but where it was measured, shape (points, parameters).
        """
        exponents, used = self.posterior.exponents, self.posterior.coefficients[:, 1:] != 0
        beyond = np.maximum(exponents[..., 0] - _STEEPEST, 0) * used[:, :, None]
        late = np.maximum(_last_step(exponents, points) - np.log(_LAST_STEP), 0) * used[:, :, None]
        found = -_STEEP * beyond.sum(axis=(1, 2)) - _STEP_PRICE * late.sum(axis=(1, 2))
        found -= _STEEP_RATIO * _from_one_ratio(exponents * used[:, :, None, None], points)
        if exponents.shape[2] == 1:
            known = (exponents[:, :, 0, None] == _COMMON).all(axis=-1).any(axis=-1)
            found[(used <= known).all(axis=1) & (used.sum(axis=1) <= 1)] += _MORE
        return np.asarray(found, np.float64)

    @property
    def learned(self) -> Floats:
        """Share of each that comes from other campaigns in which such formulas fitted, shape (formulas,)."""
        return np.zeros(len(self.weights)) if self.posterior.learned is None else self.posterior.learned

    @property
    def coefficients(self) -> Floats:
        """Constant first, shape (formulas, coefficients)."""
        return self.posterior.coefficients

    def at(self, x: Floats) -> tuple[Floats, Floats]:
        """Return logarithms (formulas, n), and their slopes by coefficients (formulas, coefficients, n)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.posterior.log_slopes(x)

    def rows(self, index: Integers) -> Self:
        """Select formulas."""
        return type(self)(_part(self.posterior, index))

    def followed_by(self, others: Sequence[Self]) -> Self:
        """Return these formulas, then those of each of the others."""
        return type(self)(_joined([self.posterior, *(other.posterior for other in others)]))
