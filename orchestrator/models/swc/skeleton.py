"""Priors: skeletons of terms from counted effort (de Morais et al., Denoising Application Performance Models
with Noise-Resilient Priors, section III-B).

A prior is a list of columns. Each has one unknown coefficient, not negative, and is a fixed sum of products
of powers and logarithms. A column of computation is one term of the basic-block model; one of communication
is what follows α, β or γ in Table I, with the whole bytes model as ``B(p, x)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats, Model, Modeler
from orchestrator.models.data import Category
from orchestrator.models.pmnf.hypotheses import block_values
from orchestrator.models.pmnf.model import growth
from orchestrator.models.swc import callpaths
from orchestrator.models.swc import counts as swc_effort
from orchestrator.models.swc.counts import CALLS, SIZE, Effort, Values
from orchestrator.models.swc.mpi_costs import SEND, Row, rows
from orchestrator.types import Measurement, Measurements

Exponent = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Monomial:
    """``coefficient * Π name**i * log2(name)**j``; ``factors`` are (name, (i, j)), sorted by name."""

    coefficient: float
    factors: tuple[tuple[str, Exponent], ...] = ()

    def times(self, other: Monomial) -> Monomial:
        """Return the product."""
        exponents = dict(self.factors)
        for name, (i, j) in other.factors:
            old = exponents.get(name, (0.0, 0.0))
            exponents[name] = (old[0] + i, old[1] + j)
        kept = tuple(sorted((name, pair) for name, pair in exponents.items() if any(pair)))
        return Monomial(self.coefficient * other.coefficient, kept)


@dataclass(frozen=True, slots=True)
class Column:
    """A sum of monomials with one unknown coefficient.

    ``counted`` is its coefficient in the basic-block model; 0 where effort tells nothing of its size (a
    constant, communication).
    """

    monomials: tuple[Monomial, ...]
    counted: float = 0.0

    @property
    def constant(self) -> bool:
        """Whether it does not depend on any parameter."""
        return not any(m.factors for m in self.monomials)


@dataclass(frozen=True, slots=True)
class Size:
    """Ranks of a communicator: ``coefficient * name**exponent``; a constant without a name."""

    name: str = ""
    exponent: float = 1.0
    coefficient: float = 1.0

    @property
    def inverse(self) -> Monomial:
        """One over the size."""
        return Monomial(1 / self.coefficient, ((self.name, (-self.exponent, 0.0)),) if self.name else ())

    @property
    def log(self) -> Monomial:
        """What the logarithm of the size is proportional to, the constant aside."""
        return Monomial(1.0, ((self.name, (0.0, 1.0)),) if self.name else ())


CONSTANT = Column((Monomial(1.0),))


def monomials(terms: Iterable[Mapping[str, object]]) -> tuple[Monomial, ...]:
    """Convert the terms of a model (`orchestrator.models.base.Model.terms`)."""
    found = []
    for term in terms:
        factors: Sequence[Mapping[str, object]] = term["factors"]  # type: ignore[assignment]
        pairs = sorted(
            (str(f["parameter"]), (float(str(f["exponent"])), float(str(f["log_exponent"])))) for f in factors
        )
        found.append(Monomial(float(str(term["coefficient"])), tuple(pairs)))
    return tuple(found)


def computation(terms: Iterable[Mapping[str, object]]) -> tuple[Column, ...]:
    """Return the prior of computation: the basic-block model without its coefficients (section III-B).

    A model with negative coefficients stays whole: its terms mean nothing apart.
    """
    found = monomials(terms)
    if any(m.coefficient < 0 for m in found):
        return (Column(found, counted=1.0),)
    return tuple(
        Column((Monomial(1.0, m.factors),), m.coefficient) for m in found if m.factors and m.coefficient > 0
    )


def communication(
    row: Row, calls: Sequence[Monomial], volume: Sequence[Monomial], size: Size
) -> tuple[Column, ...]:
    """Return the prior of one MPI operation, Table I.

    Parameters
    ----------
    row
        The operation's row.
    calls
        How often it is called: every call has its latency.
    volume
        B(p, x), the model of the bytes of the whole vector; empty where there are none.
    size
        Of the communicator.
    """
    latency = size.log if row.tree else Monomial(1.0)
    columns = [Column(tuple(m.times(latency) for m in calls))]
    if volume:
        fraction = Column(tuple(volume))
        if size.name:
            less = (m.times(size.inverse) for m in volume)
            fraction = Column((*volume, *(Monomial(-m.coefficient, m.factors) for m in less)))
        columns.append(fraction if row.fraction else Column(tuple(volume)))
        if row.reduces:
            columns.append(fraction)
    return tuple(columns)


def distinct(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return a constant, then every other column once; those that differ by a factor are one.

    Regression could not tell their coefficients apart; of the two the counted one stays.
    """
    kept: dict[tuple[tuple[float, object], ...], Column] = {}
    for column in columns:
        if column.constant:
            continue
        scale = column.monomials[0].coefficient
        key = tuple((round(m.coefficient / scale, 9), m.factors) for m in column.monomials)
        if key not in kept or column.counted > kept[key].counted:
            kept[key] = column
    return (CONSTANT, *kept.values())


def evaluate(columns: Sequence[Column], parameters: Sequence[str], x: Floats) -> Floats:
    """Evaluate columns at coordinates (n, parameters): shape (n, columns)."""
    place = {name: k for k, name in enumerate(parameters)}
    result = np.zeros((len(x), len(columns)))
    for c, column in enumerate(columns):
        for monomial in column.monomials:
            value = np.full(len(x), monomial.coefficient)
            for name, pair in monomial.factors:
                value *= block_values(x[:, place[name]], np.array([pair]))[0]
            result[:, c] += value
    return result


def names(columns: Sequence[Column]) -> frozenset[str]:
    """Return the parameters that appear."""
    return frozenset(n for column in columns for m in column.monomials for n, _ in m.factors)


#
# # FOLDED orchestrator.models.swc.skeleton: From counted effort to the prior of every measured time.
#
# De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section III-B:
# effort is modelled per call path by the modeler of the normal form, and the models' terms become priors.
#


# A constant below this share of the smallest count is rounding: messages are whole elements.
_ROUNDING = 5e-3
_UNREPEATED = "no effort run was repeated: whether its counts are reproducible is unknown"
# What the parameter that counts MPI ranks may be called.
RANKS = ("p", "ranks", "processes", "nprocs", "np", "mpi_ranks")


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The prior of one measured time in one category.

    Attributes
    ----------
    columns
        Empty where nothing that was counted can be used.
    notes
        What a reader should know.
    doubts
        What a reader should know where times and effort disagree.
    """

    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass
class _Plan:
    """What has to be modelled for one call path: counts by the keys under which they are looked up."""

    effort: Effort
    ranks: str
    counts: dict[str, Values] = field(default_factory=dict)
    operations: list[tuple[str, Row]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


def skeletons(
    known: Measurements, times: Iterable[str], modeler: Modeler, tolerance: float, ranks: str | None
) -> dict[str, Mapping[Category, Skeleton]]:
    """Return the prior of every call path with a time, per category; call paths without effort have none.

    Parameters
    ----------
    known
        All measurements; metrics as Score-P names them (see `orchestrator.models.swc.counts.EFFORT`).
    times
        Call paths with a time.
    modeler
        For the effort models.
    tolerance
        Counts that differ by more between effort runs at one point are not reproducible.
    ranks
        The parameter that counts MPI ranks; None for the first of `RANKS` that there is.
    """
    name = _ranks(known, ranks)
    plans = _plans(known, times, tolerance, name)
    items = _items(plans)
    models: dict[str, dict[Category, dict[str, Model]]] = {}
    if items:
        try:
            fitted = modeler(replace(known, items=items))
        except ModelError:
            fitted = ()
        for model in fitted:
            parts = models.setdefault(model.callpath, {}).setdefault(model.category, {})
            parts[model.metric] = model
    return {
        plan.effort.callpath: {
            category: _skeleton(plan, parts, Size(name))
            for category, parts in models.get(plan.effort.callpath, {(): {}}).items()
        }
        for plan in plans
    }


def counted(
    known: Measurements, times: Iterable[str], tolerance: float, ranks: str | None
) -> tuple[Measurement, ...]:
    """Return the counts that priors are made of, one value per point, by call path with a time.

    What is not reproducible, or polls, is left out. Parameters as for `skeletons`.
    """
    return _items(_plans(known, times, tolerance, _ranks(known, ranks)))


def _ranks(known: Measurements, ranks: str | None) -> str:
    return ranks if ranks is not None else next((n for n in RANKS if n in known.parameters), "")


def _plans(known: Measurements, times: Iterable[str], tolerance: float, ranks: str) -> list[_Plan]:
    efforts, _ = swc_effort.assign(known, times)
    return [_plan(effort, tolerance, ranks) for effort in efforts.values()]


def _items(plans: Iterable[_Plan]) -> tuple[Measurement, ...]:
    return tuple(
        Measurement(plan.effort.callpath, key, _once(values))
        for plan in plans
        for key, values in plan.counts.items()
    )


def _once(counts: Values) -> Values:
    """Return one value per point. Runs that agree exactly would say that the counts have no noise at all, and
    hypotheses would be bent to the rounding of loop bounds and messages.
    """
    return {point: (sum(values) / len(values),) for point, values in counts.items() if values}


def _plan(effort: Effort, tolerance: float, ranks: str) -> _Plan:
    plan = _Plan(effort, ranks)
    blocks, wild = swc_effort.blocks(effort, tolerance)
    plan.notes.extend(_wild(effort.callpath, wild))
    if blocks is not None and _usable(plan, "basic blocks", blocks, tolerance):
        plan.counts[swc_effort.BLOCKS] = blocks
    together: dict[str, list[Mapping[str, Values]]] = {}
    for name, metrics in swc_effort.transfers(effort):
        together.setdefault(name, []).append(metrics)
    for name, parts in together.items():
        _plan_operation(plan, name, parts, tolerance)
    return plan


def _wild(callpath: str, wild: Mapping[str, float]) -> Iterator[str]:
    """Say which basic blocks are not used because they are not reproducible."""
    if not wild:
        return
    worst = max(wild, key=lambda name: wild[name])
    others = f" and {len(wild) - 1} more" if len(wild) > 1 else ""
    where = "" if wild.keys() == {callpath} else f" of {callpaths.parts(worst)[-1]}{others} below"
    yield (
        f"basic blocks{where} differ by up to {100 * wild[worst]:.2g} % between effort runs at one point "
        "(polling or busy waiting?): no prior from them"
    )


def _plan_operation(plan: _Plan, name: str, parts: Sequence[Mapping[str, Values]], tolerance: float) -> None:
    if any(swc_effort.polls(name, metrics, tolerance) for metrics in parts):
        plan.notes.append(
            f"MPI_{name.capitalize()} polls: its time is waiting time, which no count foretells"
        )
        return
    for row in rows(name):
        volume = _sum(parts, (row.metric,)) if row.metric else None
        if volume is None and name.startswith("wait"):
            continue  # of sends: nothing is received
        if volume is not None:
            if not _usable(plan, f"bytes of MPI_{name.capitalize()}", volume, tolerance):
                continue
            plan.counts[f"{name} {row.metric}"] = _whole(plan, volume, row.power, parts[0].get(SIZE, {}))
        calls, sizes = _sum(parts, CALLS), parts[0].get(SIZE)
        if sizes is not None and _all_ranks(sizes, plan.ranks):
            sizes = None
        for key, values in ((f"{name} calls", calls), (f"{name} size", sizes)):
            if values is not None and swc_effort.variation(values) <= tolerance:
                plan.counts[key] = values
        plan.operations.append((name, row))
    if not rows(name) and _sum(parts, (SEND.metric, "bytes_received")) is not None:
        plan.notes.append(f"no theoretical run time for MPI_{name.capitalize()}: modelled from times alone")


def _sum(parts: Sequence[Mapping[str, Values]], metrics: Sequence[str]) -> Values | None:
    """Total of the first of some metrics that there is; None where it is missing or zero everywhere."""
    metric = next((m for m in metrics if any(m in part for part in parts)), None)
    found = [part[metric] for part in parts if metric in part] if metric else []
    values = swc_effort.total(found) if found else {}
    return values if any(any(v) for v in values.values()) else None


def _all_ranks(sizes: Values, ranks: str) -> bool:
    """Tell whether communicators hold all ranks: then their size need not be modelled."""
    return bool(ranks) and all(size == point.number(ranks) for point, v in sizes.items() for size in v)


def _whole(plan: _Plan, counts: Values, power: int, sizes: Values) -> Values:
    """Bytes of the whole vector from those of one rank; the size of the communicator is that of all ranks
    where it was not counted.
    """
    if not power:
        return counts
    found = {}
    for point, values in counts.items():
        ranks = point.number(plan.ranks) if plan.ranks else 1.0
        size = float(median(sizes[point])) if sizes.get(point) else ranks
        found[point] = tuple(value * size**power for value in values)
    return found


def _usable(plan: _Plan, what: str, values: Values, tolerance: float) -> bool:
    """Tell whether counts are reproducible; a note says why they are not used, a doubt that it is unknown."""
    variation = swc_effort.variation(values)
    if variation > tolerance:
        plan.notes.append(
            f"{what} differ by {100 * variation:.2g} % between effort runs at one point (polling or busy "
            "waiting?): no prior from them"
        )
        return False
    if not swc_effort.repeated(values) and _UNREPEATED not in plan.doubts:
        plan.doubts.append(_UNREPEATED)
    return True


def _skeleton(plan: _Plan, models: Mapping[str, Model], size: Size) -> Skeleton:
    columns: list[Column] = [CONSTANT]
    if swc_effort.BLOCKS in models:
        columns += computation(_terms(plan, models, swc_effort.BLOCKS))
    for name, row in plan.operations:
        columns += communication(
            row,
            monomials(_terms(plan, models, f"{name} calls")) or (Monomial(1.0),),
            monomials(_terms(plan, models, f"{name} {row.metric}")),
            _size(models.get(f"{name} size"), size),
        )
    if not plan.operations and swc_effort.BLOCKS not in models:
        return Skeleton((), tuple(plan.notes))
    return Skeleton(distinct(columns), tuple(plan.notes), tuple(plan.doubts))


def _terms(plan: _Plan, models: Mapping[str, Model], key: str) -> list[dict[str, object]]:
    """Return the terms of an effort model without a constant that is mere rounding; none without a model."""
    if key not in models:
        return []
    counts = [count for values in plan.counts[key].values() for count in values if count > 0]
    least = _ROUNDING * min(counts, default=0.0)
    terms = models[key].terms
    kept = [t for t in terms if t["factors"] or abs(float(str(t["coefficient"]))) >= least]
    return kept or terms


def _size(model: Model | None, default: Size) -> Size:
    """Size of a communicator from its model, where it was counted; that of all ranks otherwise."""
    if model is None or not default.name:
        return default
    exponent = growth(model.terms, default.name)[0]
    if exponent <= 0:
        return Size()
    return Size(default.name, exponent)
