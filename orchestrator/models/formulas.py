"""One model from formulas and curves: a short formula where it explains the measurements, else curves.

The performance model normal form is the language of the answer where it is as good as the rest. What it
leaves unexplained is followed by curves around it, and where it explains too little, curves alone remain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from orchestrator.models import data, factored
from orchestrator.models.base import Floats, Label, Model, Modeler, label_of
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
from orchestrator.models.pmnf.neighbours import NOTHING, Neighbours
from orchestrator.models.pmnf.normal_forms import NormalForms
from orchestrator.models.pmnf.options import Options
from orchestrator.models.symbolic import term_text
from orchestrator.models.unseen import Unseen, ties
from orchestrator.types import Measurements

# Share of the points that curves may leave out as outliers: more are no exceptions. Chosen by hand; not
# derived.
_MOST_OUTLIERS = 0.125


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
            known = self.search.informed(groups, located)
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
        return replace(self, search=self.search.of_rest()).modeler()(measurements)


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

    An exact sum is the answer where values check it; elsewhere formulas and curves are, as always. What a
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
    first = NormalForms.most_probable([item.posterior for item in forms])
    return Known(first, lambda row: NormalForms.of(forms[row].posterior), forms)


def _alone(
    group: data.Group, located: Located, forms: Mapping[Label, PmnfModel], beside: Collection[Label]
) -> Iterator[PmnfModel]:
    """Yield the formulas that are models by themselves: no exact sums, and none with curves ``beside`` it."""
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
