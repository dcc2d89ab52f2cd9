"""One modeler for everything: formulas for scaling, learners for tuning spaces, chosen per call path.

A scaling study has few points of few parameters: formulas and curves around them are right there. A tuning
space has many parameters, categories and jumps: learners are right there, if there are points enough. Where
both are possible, they are compared by what was left out, never by training error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Label, Model, Modeler, label_of, one_of
from orchestrator.models.blas import one_blas_thread
from orchestrator.models.cpr import family as cpr
from orchestrator.models.curves.model import CurveModel
from orchestrator.models.exponential import with_levels
from orchestrator.models.factored import FactoredModel
from orchestrator.models.formulas import modeler as formulas_modeler
from orchestrator.models.learned import family as learned
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.neighbours import NOTHING, Neighbours
from orchestrator.models.progress import tracked
from orchestrator.models.regression import modeler as regression
from orchestrator.models.regression.choice import Candidates, Family, Memory
from orchestrator.models.regression.cross_validation import attempt
from orchestrator.models.regression.formula import FORMULA, Formula, formula_learner
from orchestrator.models.regression.learner import Fitted, Learner
from orchestrator.models.regression.model import RegressionModel, SymbolicRegressionModel
from orchestrator.models.regression.samples import Samples, Series, arranged
from orchestrator.models.splines import family as splines
from orchestrator.models.symbolic import Symbolic
from orchestrator.models.zero import ZeroModel
from orchestrator.types import Measurement, Measurements

# Points from which learners may take part; with categories or as many parameters as here, formulas need far
# more points than learners, and fewer do. So do fewer that scatter: some parameter has more different values
# than a grid has, and formulas do not follow what happens between them. Chosen by hand; not derived.
_MANY, _SOME, _PARAMETERS = 200, 100, 5
_FEW, _SCATTERED = 64, 16
# Numeric parameters up to which a formula is searched beside learners.
_MOST_SEARCHED = 6
# Points up to which a formula that wins is fitted to everything, with its own intervals.
_MOST_FOR_FORMULAS = 1000
# Repeated runs from which on noise is known, and errors in units of its own that nothing can reduce much.
# Chosen by hand; not derived.
_REPEATED, _WITHIN_NOISE = 30, 1.2
# Call paths of a metric for which families are compared, which takes half a minute each, or more.
_MOST_COMPARED = 16

FAMILIES = ("formulas", "cpr", "learned", "rprop", "splines", "speedup")
"""What may take part."""
# Learners within the measured range, and beyond it.
_INSIDE: Mapping[str, Candidates] = MappingProxyType(
    {
        "cpr": cpr.candidates,
        "learned": learned.candidates,
        "rprop": learned.small_networks,
        "splines": splines.candidates,
    }
)
# The same for few points, where networks take most of the time and gain little.
_QUICK: Mapping[str, Candidates] = MappingProxyType(
    {"cpr": cpr.candidates, "learned": learned.quick, "splines": splines.candidates}
)
_OUTSIDE: Mapping[str, Candidates] = MappingProxyType(
    {"cpr": cpr.extrapolators, "learned": learned.extrapolators, "splines": splines.extrapolators}
)


def modeler(
    *,
    exponents: str | Sequence[Sequence[float]] = "paper",
    negative_exponents: str | bool = "auto",
    aggregate: str = "auto",
    members: int = 200,
    wide: bool = True,
    sizes: str = "all",
    families: str | Sequence[str] = "all",
    seed: int = 0,
    neighbours: Neighbours = NOTHING,
) -> Modeler:
    """Return the modeler that chooses among all families.

    Parameters
    ----------
    exponents, negative_exponents, aggregate, members, wide, neighbours
        Options of ``pmnf``.
    sizes
        Option of ``curves``.
    families
        Which take part: ``all``, or some of `FAMILIES`. Few points have formulas and curves in any case.
    seed
        Of the random parts of learners and of their comparison.

    Raises
    ------
    ModelError
        For an option that makes no sense; and by the modeler when no call path can be fitted.
    """
    chosen = _families(families)
    formulas = formulas_modeler(
        exponents=exponents,
        negative_exponents=negative_exponents,
        aggregate=aggregate,
        members=members,
        wide=wide,
        sizes=sizes,
        saturates="speedup" in chosen,
        neighbours=neighbours,
    )
    formula = formula_learner(formulas)
    selection = _Selection(
        chosen=chosen,
        formulas=formulas,
        formula=formula,
        family=_family(chosen, formula),
        memory=Memory(),
        aggregate=aggregate,
        seed=seed,
    )
    return with_levels(selection)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Selection:
    """The modeler."""

    chosen: tuple[str, ...]  # families that take part, by name
    # formulas, formula: the modeler of formulas and curves, and the same as a learner that can be compared.
    formulas: Modeler
    formula: Learner
    family: Family  # all learners that take part
    memory: Memory  # choices of earlier calls: for the same samples they are not made again
    # aggregate, seed: options of `modeler`.
    aggregate: str
    seed: int

    def __call__(self, measurements: Measurements) -> tuple[Model, ...]:
        known: dict[Label, Model] = {}
        notes: dict[Label, str] = {}
        enough = tuple(item for item in measurements.items if _has_enough(item, measurements))
        if enough:
            series, _ = arranged(replace(measurements, items=enough), self.aggregate)
            use_formulas = "formulas" in self.chosen
            forms = _of_formulas(series, measurements, self.formulas) if use_formulas else {}
            explained = {label_of(one) for one in series if _explains(forms.get(label_of(one)), one)}
            with one_blas_thread():
                known, notes = self.compared([one for one in series if label_of(one) not in explained], forms)
            for label in forms.keys() - known.keys():
                known[label] = _noted(forms[label], notes[label]) if label in notes else forms[label]
        return _with_formulas(measurements, self.formulas, known, notes)

    def compared(
        self, series: Sequence[Series], forms: Mapping[Label, Model]
    ) -> tuple[dict[Label, Model], dict[Label, str]]:
        """Return models of those for which learners were chosen, and why the others have formulas."""
        largest = _largest(series, self.formula) if "formulas" in self.chosen else series
        left = f"not compared with learners: of {len(series)} call paths, the {len(largest)} largest are"
        known: dict[Label, Model] = {}
        notes = {label_of(item): left for item in series}
        found_of_all = regression.fits(largest, self.family, self.memory, self.seed)
        for item, found in zip(tracked(largest, "comparing families of models"), found_of_all, strict=True):
            label = label_of(item)
            notes[label] = found.notes[-1]
            if not _is_formula(found, item):
                known[label] = _with_form(found, self.formula, item.samples, self.seed, forms.get(label))
        return known, notes


def _with_formulas(
    measurements: Measurements, formulas: Modeler, known: Mapping[Label, Model], notes: Mapping[Label, str]
) -> tuple[Model, ...]:
    """Return known models, and those of formulas for all others with their notes, in order of call paths."""
    models = {label: [item] for label, item in known.items()}
    others = tuple(item for item in measurements.items if label_of(item) not in known)
    for item in formulas(replace(measurements, items=others)) if others else ():
        label = label_of(item)
        models.setdefault(label, []).append(_noted(item, notes[label]) if label in notes else item)
    order = dict.fromkeys(map(label_of, measurements.items))
    return tuple(item for label in order for item in models.get(label, ()))


def _largest(series: Sequence[Series], formula: Learner) -> list[Series]:
    """Return those for which families are compared, in their order; formulas are the models of the others.

    Of each metric the largest, as far as they were measured first, and all for which no formula is searched.
    """
    of_metrics: dict[str, list[Series]] = {}
    for item in series:
        if _formulas(formula, item.samples):
            of_metrics.setdefault(item.metric, []).append(item)
    left_out = {
        label_of(item)
        for own in of_metrics.values()
        for item in sorted(own, key=_size, reverse=True)[_MOST_COMPARED:]
    }
    return [item for item in series if label_of(item) not in left_out]


def _size(series: Series) -> float:
    """Return the mean of what was measured first, from which a choice is made: it must not change often."""
    return float(np.exp(series.first().y).mean())


def _family(chosen: Sequence[str], formula: Learner) -> Family:
    """Return the learners of all families as one: they are compared, and those within the range combined."""
    return Family(
        inside=lambda samples: inside(chosen, formula, samples),
        outside=lambda samples: tuple(
            learner for name, found in _OUTSIDE.items() if name in chosen for learner in found(samples)
        ),
        combine=True,
        doubts=True,
        preferred=FORMULA,
    )


def _formulas(formula: Learner, samples: Samples) -> tuple[Learner, ...]:
    """Return the learner of formulas, or nothing where the search would take longer than all other fits."""
    numeric = [axis for axis in samples.axes if not axis.is_categorical]
    return (formula,) if len(numeric) <= _MOST_SEARCHED else ()


def inside(chosen: Sequence[str], formula: Learner, samples: Samples) -> tuple[Learner, ...]:
    """Return the learners of some families for points within the measured range."""
    own = _formulas(formula, samples) if "formulas" in chosen else ()
    families = _QUICK if _are_few(samples) else _INSIDE
    return (*own, *(item for name, found in families.items() if name in chosen for item in found(samples)))


def _families(named: str | Sequence[str]) -> tuple[str, ...]:
    """Return the families that take part; raises ``ModelError`` for an unknown one."""
    if named == "all":
        return FAMILIES
    chosen = (named,) if isinstance(named, str) else tuple(named)
    if not chosen:
        raise ModelError(f"families names none: use all, or some of {', '.join(FAMILIES)}")
    return tuple(one_of("families", name, FAMILIES) for name in chosen)


def _has_enough(item: Measurement, measurements: Measurements) -> bool:
    """Return whether a call path has so many points that learners may take part."""
    number, names = len(item.values), measurements.parameters
    if number >= _MANY:
        return True
    if any(measurements.is_categorical(name) for name in names) or len(names) >= _PARAMETERS:
        return number >= _SOME
    return number >= _FEW and any(len({p[name] for p in item.values}) >= _SCATTERED for name in names)


def _are_few(samples: Samples) -> bool:
    """Return whether there are so few points that formulas may know more of what is beyond them."""
    return _is_searched(samples) and len(samples) < _MANY


def _is_searched(samples: Samples) -> bool:
    """Return whether a formula is searched for all points at once."""
    return len(samples.axes) <= _MOST_SEARCHED and not any(axis.is_categorical for axis in samples.axes)


def _of_formulas(
    series: Sequence[Series], measurements: Measurements, formulas: Modeler
) -> dict[Label, Model]:
    """Return the models of formulas of those that need one before learners are asked, if they do."""
    wanted = {label_of(one) for one in series if _are_few(one.samples) or _noise_is_known(one)}
    items = tuple(item for item in measurements.items if label_of(item) in wanted)
    found: dict[Label, list[Model]] = {}
    for model in formulas(replace(measurements, items=items)) if items else ():
        found.setdefault(label_of(model), []).append(model)
    return {label: own[0] for label, own in found.items() if len(own) == 1}


def _noise_is_known(series: Series) -> bool:
    samples = series.samples
    repeated = float(samples.runs.sum()) - len(samples)
    return _is_searched(samples) and repeated >= _REPEATED and len(samples) <= _MOST_FOR_FORMULAS


def _explains(model: Model | None, series: Series) -> bool:
    """Return whether means of repetitions differ from a model as much as noise makes them differ.

    No learner can be better then, and finding that out would take a thousand times as long.
    """
    if model is None or not _noise_is_known(series):
        return False
    own = series.sigma**2 - series.shared_sigma**2
    noise = np.sqrt(series.shared_sigma**2 + own / series.samples.runs)
    return bool(model.smape / 100 <= _WITHIN_NOISE * np.sqrt(2 / np.pi) * noise.mean())


def _is_formula(model: RegressionModel, series: Series) -> bool:
    """Return whether the formula alone was chosen, for so few points that it can be fitted to all of them."""
    members = model.inside.members
    return len(members) == 1 and isinstance(members[0], Formula) and len(series.samples) <= _MOST_FOR_FORMULAS


def _noted(model: Model, note: str) -> Model:
    """Add a note to a model of formulas or curves."""
    if isinstance(model, CurveModel | FactoredModel):
        return replace(model, remarks=(*model.remarks, note))
    return replace(model, notes=(*model.notes, note)) if isinstance(model, PmnfModel | ZeroModel) else model


def _with_form(
    model: RegressionModel, formula: Learner, samples: Samples, seed: int, form: Model | None
) -> RegressionModel:
    """Add the formula, where there is one for all categories: the one that is known, else one of its own.

    Of few points, formulas and curves also have a say beyond the range.
    """
    if form is not None and _are_few(samples):
        note = f"beyond the measured range, predictions are between those and {form.expression}"
        model = replace(model, beside=form, notes=(note, *model.notes))
    symbolic = form if isinstance(form, Symbolic) else _own_form(model, formula, samples, seed)
    return model if symbolic is None else SymbolicRegressionModel.of(model, symbolic)


def _own_form(model: RegressionModel, formula: Learner, samples: Samples, seed: int) -> Symbolic | None:
    """Return the formula that takes part, else one that is fitted to the same samples; None without any."""
    found: Fitted | None = next((item for item in model.inside.members if isinstance(item, Formula)), None)
    if found is None and _formulas(formula, samples):
        found = attempt(formula, samples, np.random.default_rng(seed))
    return found.symbolic if isinstance(found, Formula) else None
