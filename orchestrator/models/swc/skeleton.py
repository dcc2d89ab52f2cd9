"""Priors of all measured times, from counted effort.

De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section III-B: effort
is modelled per call path by the modeler of the normal form. The terms of these models, without their
coefficients, are the prior (the skeleton) of the time at that call path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from orchestrator.errors import ModelError
from orchestrator.models import callpaths
from orchestrator.models.base import Category, Model, Modeler
from orchestrator.models.effort import (
    BLOCKS,
    CALLS,
    SIZE,
    Effort,
    Values,
    assign,
    blocks,
    occurs,
    polls,
    repeated,
    total,
    transfers,
    variation,
)
from orchestrator.models.mpi_costs import SEND, Row, rows
from orchestrator.models.swc.columns import (
    CONSTANT,
    Column,
    Monomial,
    Size,
    communication,
    computation,
    distinct,
    monomials,
)
from orchestrator.models.symbolic import Term, growth, terms_of
from orchestrator.types import Measurement, Measurements

# A constant term below this share of the smallest count is rounding, because messages hold whole elements.
# Chosen by hand: it is half an element of a message of 100 elements.
_ROUNDING = 5e-3
_UNREPEATED = "no effort run was repeated: whether its counts are reproducible is unknown"
# Names that the parameter for the number of MPI ranks may have, in the order in which they are looked up.
RANKS = ("p", "ranks", "processes", "nprocs", "np", "mpi_ranks")


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The prior of one measured time in one category."""

    columns: tuple[Column, ...]  # empty where no count can be used
    notes: tuple[str, ...]  # remarks that every model with this prior carries
    doubts: tuple[str, ...] = ()  # remarks that only a model carries whose times and effort disagree


@dataclass(kw_only=True)
class _Plan:
    """What has to be modelled for one call path.

    ``counts`` has one entry per effort model that is needed: ``basic_blocks``, ``bcast calls``, ``bcast
    bytes_received``, ``bcast size``. ``operations`` are the MPI operations that get columns.
    """

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
        All measurements; metrics as Score-P names them (see `orchestrator.models.effort.EFFORT`).
    times
        Call paths with a time.
    modeler
        For the effort models.
    tolerance
        Counts that differ by more between effort runs at one point are not reproducible.
    ranks
        The parameter that counts MPI ranks; None for the first of `RANKS` that there is.
    """
    name = ranks_of(known, ranks)
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

    Counts that are not reproducible and operations that poll are left out. Parameters as for `skeletons`.
    """
    return _items(_plans(known, times, tolerance, ranks_of(known, ranks)))


def ranks_of(known: Measurements, ranks: str | None) -> str:
    """Return the parameter that counts MPI ranks: the stated one, or the first of `RANKS`; empty if none."""
    return ranks if ranks is not None else next((n for n in RANKS if n in known.parameters), "")


def _plans(known: Measurements, times: Iterable[str], tolerance: float, ranks: str) -> list[_Plan]:
    efforts, _ = assign(known, times)
    return [_plan(effort, tolerance, ranks) for effort in efforts.values()]


def _items(plans: Iterable[_Plan]) -> tuple[Measurement, ...]:
    return tuple(
        Measurement(plan.effort.callpath, key, _once(values))
        for plan in plans
        for key, values in plan.counts.items()
    )


def _once(counts: Values) -> Values:
    """Return the mean count per point.

    Runs that agree exactly would imply counts without any noise. Hypotheses would then follow the rounding of
    loop bounds and messages.
    """
    return {point: (sum(values) / len(values),) for point, values in counts.items() if values}


def _plan(effort: Effort, tolerance: float, ranks: str) -> _Plan:
    plan = _Plan(effort=effort, ranks=ranks)
    executed, unreproducible = blocks(effort, tolerance)
    plan.notes.extend(_unreproducible_blocks(effort.callpath, unreproducible))
    if executed is not None and _usable(plan, "basic blocks", executed, tolerance):
        plan.counts[BLOCKS] = executed
    operations: dict[str, list[Mapping[str, Values]]] = {}
    for name, metrics in transfers(effort):
        operations.setdefault(name, []).append(metrics)
    for name, parts in operations.items():
        _plan_operation(plan, name, parts, tolerance)
    return plan


def _unreproducible_blocks(callpath: str, variations: Mapping[str, float]) -> Iterator[str]:
    """Yield a note on the call paths whose basic blocks are left out, with their largest variation."""
    if not variations:
        return
    worst = max(variations, key=lambda name: variations[name])
    others = f" and {len(variations) - 1} more" if len(variations) > 1 else ""
    where = "" if variations.keys() == {callpath} else f" of {callpaths.parts(worst)[-1]}{others} below"
    yield (
        f"basic blocks{where} differ by up to {100 * variations[worst]:.2g} % between effort runs at one "
        "point (polling or busy waiting?): no prior from them"
    )


def _plan_operation(plan: _Plan, name: str, parts: Sequence[Mapping[str, Values]], tolerance: float) -> None:
    if any(polls(name, metrics, tolerance) for metrics in parts):
        plan.notes.append(f"MPI_{name.capitalize()} polls: its time is waiting time, which no count predicts")
        return
    for row in rows(name):
        volume = _sum(parts, (row.metric,)) if row.metric else None
        if volume is None and name.startswith("wait"):
            continue  # a wait for sends receives nothing
        if volume is not None:
            if not _usable(plan, f"bytes of MPI_{name.capitalize()}", volume, tolerance):
                continue
            plan.counts[f"{name} {row.metric}"] = _whole(plan, volume, row, parts[0].get(SIZE, {}))
        calls, sizes = _sum(parts, CALLS), parts[0].get(SIZE)
        if sizes is not None and _all_ranks(sizes, plan.ranks):
            sizes = None
        for key, values in ((f"{name} calls", calls), (f"{name} size", sizes)):
            if values is not None and variation(values) <= tolerance:
                plan.counts[key] = values
        plan.operations.append((name, row))
    if not rows(name) and _sum(parts, (SEND.metric, "bytes_received")) is not None:
        plan.notes.append(f"no theoretical run time for MPI_{name.capitalize()}: modelled from times alone")


def _sum(parts: Sequence[Mapping[str, Values]], metrics: Sequence[str]) -> Values | None:
    """Return the total of the first of ``metrics`` that was counted; None if missing or zero everywhere."""
    metric = next((m for m in metrics if any(m in part for part in parts)), None)
    found = [part[metric] for part in parts if metric in part] if metric else []
    values = total(found) if found else {}
    return values if occurs(values) else None


def _all_ranks(sizes: Values, ranks: str) -> bool:
    """Return whether communicators hold all ranks; then their size needs no model."""
    return bool(ranks) and all(size == point.number(ranks) for point, v in sizes.items() for size in v)


def _whole(plan: _Plan, counts: Values, row: Row, sizes: Values) -> Values:
    """Return the bytes of the whole vector from the bytes of one rank.

    Where the size of the communicator was not counted, all ranks are taken.
    """
    if not (row.power or row.later):
        return counts
    found = {}
    for point, values in counts.items():
        ranks = point.number(plan.ranks) if plan.ranks else 1.0
        size = float(median(sizes[point])) if sizes.get(point) else ranks
        found[point] = tuple(row.whole(value, size) for value in values)
    return found


def _usable(plan: _Plan, what: str, values: Values, tolerance: float) -> bool:
    """Return whether counts are reproducible.

    Adds a note where they are not, and a doubt where no effort run was repeated.
    """
    change = variation(values)
    if change > tolerance:
        plan.notes.append(
            f"{what} differ by {100 * change:.2g} % between effort runs at one point (polling or busy "
            "waiting?): no prior from them"
        )
        return False
    if not repeated(values) and _UNREPEATED not in plan.doubts:
        plan.doubts.append(_UNREPEATED)
    return True


def _skeleton(plan: _Plan, models: Mapping[str, Model], size: Size) -> Skeleton:
    columns: list[Column] = [CONSTANT]
    if BLOCKS in models:
        columns += computation(_terms(plan, models, BLOCKS))
    for name, row in plan.operations:
        columns += communication(
            row,
            monomials(_terms(plan, models, f"{name} calls")) or (Monomial(1.0),),
            monomials(_terms(plan, models, f"{name} {row.metric}")),
            _size(models.get(f"{name} size"), size),
        )
    if not plan.operations and BLOCKS not in models:
        return Skeleton((), tuple(plan.notes))
    return Skeleton(distinct(columns), tuple(plan.notes), tuple(plan.doubts))


def _terms(plan: _Plan, models: Mapping[str, Model], key: str) -> Sequence[Term]:
    """Return the terms of an effort model, without a constant that is only rounding; none without a model."""
    if key not in models:
        return []
    counts = [count for values in plan.counts[key].values() for count in values if count > 0]
    least = _ROUNDING * min(counts, default=0.0)
    terms = terms_of(models[key])
    kept = [t for t in terms if t["factors"] or abs(t["coefficient"]) >= least]
    return kept or terms


def _size(model: Model | None, default: Size) -> Size:
    """Return the size of a communicator from its model, where it was counted; otherwise ``default``."""
    if model is None or not default.name:
        return default
    exponent = growth(terms_of(model), default.name)[0]
    if exponent <= 0:
        return Size()
    return Size(default.name, exponent)
