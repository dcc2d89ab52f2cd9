"""Two campaigns, or sets of measurements, compared: as a JSON document, and in sentences."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.models.base import Category, Key, Model, is_of, unit_of
from orchestrator.models.comparison.compared import (
    At,
    Compared,
    common_factor,
    compared,
    discoveries,
    in_category,
    largest_common,
)
from orchestrator.models.comparison.conditions import Condition, check
from orchestrator.models.comparison.mixtures import Mixture
from orchestrator.models.comparison.pairs import Aligned
from orchestrator.models.comparison.work import Work, works
from orchestrator.models.effort import EFFORT
from orchestrator.models.intervals import LEVEL
from orchestrator.models.symbolic import Term, compare, exponent_deviation, growth, terms_of
from orchestrator.models.uncertainty import RELEVANT_SHARE
from orchestrator.report.models_document import band_at, label, number, short_form
from orchestrator.types import Measurement, Measurements, Point
from orchestrator.units import count

SCHEMA = 1
SURE = 0.95
"""From this probability on, sentences say that something changed."""
_TAIL = (1 - LEVEL / 100) / 2
_FAR = 99.5  # percent, that two digits would round to 100
_HARDLY = 0.01  # percent, which no one would call a change
_UNLIKELY = 0.5
_FEW = 3  # common points
_ZERO = "what was measured is zero in both, or nearly"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of a comparison."""

    points: Sequence[Point]  # where the ratio is wanted; none: at the largest common point
    metrics: Sequence[str] | None = None  # the wanted ones; None for all but counts
    conditions: Sequence[Condition] = ()  # under which the comparison fails
    theories: Mapping[str, Sequence[Term]] = field(default_factory=dict)  # stated laws as terms, by call path
    callpaths: Collection[str] | None = None  # the shown ones; None for all
    names: tuple[str, str] = ("A", "B")  # what A and B are called


def document(
    both: Aligned, models: tuple[Sequence[Model], Sequence[Model]], question: Question
) -> dict[str, Any]:
    """Return the comparison, JSON-ready.

    Parameters
    ----------
    both
        What was measured.
    models
        Of A and of B; they may be empty.
    question
        What is asked.
    """
    metrics = question.metrics or [name for name in both.first.metrics() if name not in EFFORT]
    everything = compared(both, *models, metrics)
    rows = [row for row in everything if question.callpaths is None or row.key[0] in question.callpaths]
    points = list(question.points) or [largest_common(rows, both)]
    work = {key: item for metric in metrics for key, item in works(both, metric).items()}
    shares = discoveries(everything)
    alarms = {row.key: share for row, share in zip(everything, shares, strict=True)}
    unknown = _not_compared(both, rows, metrics, question)
    described = []
    for row in rows:
        where = _points(row, points, both.first, bool(question.points))
        found = _row(row, where, question, work.get(row.key), unknown.get(row.key, _ZERO))
        if row.ratio is not None and not any(is_of(point, row.key[2]) for point in where):
            own = in_category(points[0], row.key[2], both.first)
            found["sentence"] = f"the ratio is wanted for another category; ask for {own}"
        described.append(found | {"false_discovery_rate": alarms[row.key]})
    not_compared = [
        {"callpath": callpath, "metric": metric, "category": dict(category), "reason": reason}
        for (callpath, metric, category), reason in unknown.items()
    ]
    factor = common_factor(rows)
    return {
        "schema": SCHEMA,
        "names": dict(zip("ab", question.names, strict=True)),
        "points": [point.as_dict() for point in points],
        "level": LEVEL,
        "rows": described,
        "only_in_a": [{"callpath": path, "metric": metric} for path, metric in both.only_first],
        "only_in_b": [{"callpath": path, "metric": metric} for path, metric in both.only_second],
        "renamed": dict(both.renamed),
        "not_compared": not_compared,
        "conditions": [
            _verdict(condition, described, not_compared, question.names[1])
            for condition in question.conditions
        ],
        "notes": [*_same(both, question.names), *([] if factor is None else [_alike(factor)])],
    }


def passes(found: Mapping[str, Any]) -> bool:
    """Return whether every condition could be checked wherever it applies, and none of them holds."""
    return not any(item["failed"] or item["not_checked"] for item in found["conditions"])


def _not_compared(
    both: Aligned, rows: Sequence[Compared], metrics: Sequence[str], question: Question
) -> dict[Key, str]:
    """Return what takes time in one of both and has no ratio, with the reason.

    What is zero in both, or hardly more in one of them, is as good as equal. A call path that one of both
    lacks is as if it were zero there: profiles leave out what was never called.
    """
    sides, wanted = (both.first, both.second), question.callpaths
    first, second = ({(item.callpath, item.metric): item for item in side.items} for side in sides)
    peaks = [_peaks(side) for side in sides]
    common = {metric for metric in metrics if all(metric in peak for peak in peaks)}
    asked = [key for key in first | second if key[1] in common and (wanted is None or key[0] in wanted)]
    there = {row.key[:2] for row in rows}
    keys = [row.key for row in rows if row.ratio is None]
    keys += [(*key, ()) for key in asked if key not in there]
    reasons: dict[Key, str] = {}
    for key in keys:
        sizes = [_largest(side.get(key[:2]), key[2]) for side in (first, second)]
        shares = [size / peak[key[1]] if size > 0 else 0.0 for size, peak in zip(sizes, peaks, strict=True)]
        if min(shares) > 0:
            reasons[key] = "no common points, and no models of both"
        elif max(shares) > RELEVANT_SHARE:
            less = shares[0] > 0
            there_too = key[:2] in (first, second)[less]
            reasons[key] = (
                f"every value of {question.names[less]} is zero, negative or missing"
                if there_too
                else f"{question.names[less]} has no such call path"
            )
    return reasons


def _largest(item: Measurement | None, category: Category) -> float:
    values = {} if item is None else item.values
    return max((max(some) for point, some in values.items() if some and is_of(point, category)), default=0.0)


def _peaks(side: Measurements) -> dict[str, float]:
    """Return the largest value of each metric."""
    found: dict[str, float] = {}
    for item in side.items:
        found[item.metric] = max(found.get(item.metric, 0.0), _largest(item, ()))
    return found


def _points(row: Compared, points: Sequence[Point], known: Measurements, stated: bool) -> list[Point]:
    """Return where a row is looked at; a point that nobody stated has the row's categories."""
    return list(points) if stated else [in_category(point, row.key[2], known) for point in points]


def _row(
    row: Compared, points: Sequence[Point], question: Question, work: Work | None, why_not: str
) -> dict[str, Any]:
    """Describe a row; ``why_not`` it cannot be compared, if it cannot."""
    callpath, metric, category = row.key
    there = [at for point in points if (at := row.at(point)) is not None]
    predictions = [_prediction(row, at) for at in there]
    first = predictions[0] if predictions else {"ratio": None, "low": None, "high": None, "basis": None}
    theory = question.theories.get(callpath)
    described = {
        "callpath": callpath,
        "metric": metric,
        "category": dict(category),
        "unit": unit_of(metric),
        "ratio": first["ratio"],
        "low": first["low"],
        "high": first["high"],
        "probability": row.probability,
        "basis": first["basis"],
        "pairs": len(row.ratio.pairs.difference) if row.ratio is not None and row.paired else 0,
        "noise": None
        if row.ratio is None
        else {"a": row.ratio.pairs.noise[0], "b": row.ratio.pairs.noise[1]},
        "predictions": predictions,
        "expression": {"a": _expression(row.first), "b": _expression(row.second)},
        "short": {side: _short(model, there) for side, model in (("a", row.first), ("b", row.second))},
        "growth": _growth(row, points[0]),
        "work": None if work is None or not there else _work(work, there[0].point),
        "theory": None if theory is None else _theory(row, theory),
        "checks": [
            {"condition": item.condition.text, "probability": item.probability, "failed": item.failed}
            for condition in question.conditions
            if (item := check(condition, row, there, theory)) is not None
        ],
    }
    words = sentence(described) if row.ratio is not None else f"not comparable: {why_not}"
    return described | {"sentence": words, "notes": _notes(row)}


def _prediction(row: Compared, at: At) -> dict[str, Any]:
    return {
        "point": at.point.as_dict(),
        **_band(at.ratio),
        "basis": at.basis,
        "a": _value(row.first, at.point),
        "b": _value(row.second, at.point),
    }


def _band(known: Mixture) -> dict[str, float | None]:
    """Return ratio and interval from what is known of its logarithm."""
    with_ends = (0.5, _TAIL, 1 - _TAIL)
    middle, low, high = (_exp(known.quantile(share)) for share in with_ends)
    return {"ratio": middle, "low": low, "high": high}


def _exp(value: float) -> float | None:
    try:
        return number(math.exp(value))
    except OverflowError:
        return None


def _value(model: Model | None, point: Point) -> dict[str, float | None] | None:
    return None if model is None else band_at(model.predict([point]), 0)


def _expression(model: Model | None) -> str | None:
    return None if model is None else model.document()["normal_form"]


def _short(model: Model | None, there: Sequence[At]) -> str | None:
    return None if model is None else short_form(model, there[0].point if there else None)


def _growth(row: Compared, point: Point) -> list[dict[str, Any]]:
    """Return how both grow in every parameter, and what the pairs say about the growth of the ratio.

    A row of other categories than the point has pairs, too: only the numbers of the point count.
    """
    growths = []
    symbolic = _both_terms(row)
    for name in _names(row):
        item: dict[str, Any] = {"parameter": name, "a": None, "b": None, "faster": None}
        if symbolic is not None:
            a, b = symbolic
            order = compare(b, a, name)
            item |= {
                "a": _exponents(a, name),
                "b": _exponents(b, name),
                "faster": {1: "b", 0: None, -1: "a"}[order],
                "exponent_deviation": exponent_deviation(a, b, name),
            }
        if row.ratio is not None and row.paired:
            place = {other: point.number(other) for other in row.ratio.pairs.parameters}
            known = row.ratio.growth(name, place)
            item |= {
                "probability": (row.probability or 0.0) * row.ratio.depends(name),
                "exponent": known.quantile(0.5),
                "low": known.quantile(_TAIL),
                "high": known.quantile(1 - _TAIL),
            }
        growths.append(item)
    return growths


def _names(row: Compared) -> tuple[str, ...]:
    """Return the parameters; where there are models, those that varied in one of both."""
    models = [model for model in (row.first, row.second) if model is not None]
    varied = {name for model in models for name in model.parameters}
    if row.ratio is not None:
        return tuple(name for name in row.ratio.pairs.parameters if not models or name in varied)
    return row.first.parameters if row.first is not None else ()


def _both_terms(row: Compared) -> tuple[list[dict[str, Any]], list[dict[str, Any]]] | None:
    a, b = (terms_of(model) for model in (row.first, row.second))
    return (a, b) if a and b else None


def _exponents(terms: Sequence[Term], name: str) -> dict[str, float]:
    exponent, logarithm = growth(terms, name)
    return {"exponent": exponent, "log_exponent": logarithm}


def _work(work: Work, point: Point) -> dict[str, Any]:
    """Return whether work changed, its speed, both or neither."""
    parts = {name: _part(item, point) for name, item in (("amount", work.amount), ("speed", work.speed))}
    changed = [
        word
        for name, word in (("amount", "work"), ("speed", "speed"))
        if (parts[name]["probability"] or 0.0) >= SURE
    ]
    return {"count": work.count, "changed": changed, **parts}


def _part(row: Compared, point: Point) -> dict[str, Any]:
    at = row.at(point)
    band: dict[str, float | None] = {"ratio": None, "low": None, "high": None}
    return {**(band if at is None else _band(at.ratio)), "probability": row.probability}


def _theory(row: Compared, theory: Sequence[Term]) -> list[dict[str, Any]]:
    """Return how both models compare with the stated law, per parameter."""
    laws = []
    for name in _names(row):
        item: dict[str, Any] = {"parameter": name, "stated": _exponents(theory, name)}
        for side, model in (("a", row.first), ("b", row.second)):
            terms = terms_of(model)
            item[side] = (
                {
                    **_exponents(terms, name),
                    "deviation": exponent_deviation(terms, theory, name),
                    "faster": compare(terms, theory, name) > 0,
                }
                if terms
                else None
            )
        laws.append(item)
    return laws


def _verdict(
    condition: Condition,
    rows: Sequence[Mapping[str, Any]],
    unknown: Sequence[Mapping[str, Any]],
    second: str,
) -> dict[str, Any]:
    """Return where a condition holds, and where it applies but cannot be checked; ``second``: B's name."""
    checked = [(row, item) for row in rows for item in row["checks"] if item["condition"] == condition.text]
    if condition.subject == "theory":
        there = [row["callpath"] for row, _ in checked]
        left = [
            f"{label_of(row)} (the model of {second} is no formula)"
            for row in rows
            if row["theory"] is not None and row["callpath"] not in there
        ]
    else:
        left = [f"{label_of(item)} ({item['reason']})" for item in unknown]
    if condition.subject == "growth":
        left += [
            f"{label_of(row)} (no common points)"
            for row in rows
            if row["ratio"] is not None and not row["pairs"]
        ]
    return {
        "condition": condition.text,
        "checked": len(checked),
        "failed": [label_of(row) for row, item in checked if item["failed"]],
        "not_checked": left,
    }


def label_of(row: Mapping[str, Any]) -> str:
    """Return what names a row among others: ``main->solve [solver=cg] time``."""
    return f"{label(row)} {row['metric']}"


def sentence(row: Mapping[str, Any]) -> str:
    """Return what a row says, in words."""
    if row["ratio"] is None or row["probability"] is None:
        return "not comparable at these points"
    percent = 100 * (row["ratio"] - 1)
    far = abs(percent) >= _FAR
    amount = f"{row['ratio']:.3g} times" if far else f"{abs(percent):.2g} %"
    more = "more" if percent > 0 else "less"
    text = f"{amount} as much" if far else f"{amount} {more}"
    if abs(percent) < _HARDLY:  # the probability is that of all points
        text = "a change, but none at this point"
    if row["probability"] >= SURE:
        words = text
    elif row["probability"] >= _UNLIKELY:
        words = f"perhaps {text}"
    else:
        words = "no change to be seen"
    grows = [item["parameter"] for item in row["growth"] if item.get("probability", 0.0) >= SURE]
    if grows:
        words += f", depending on {' and '.join(grows)}"
    work = row.get("work")
    if work is not None and work["changed"]:
        words += f" ({' and '.join(work['changed'])} changed)"
    elif work is not None and row["probability"] >= SURE:
        words += " (neither work nor speed clearly changed)"
    return words


def _notes(row: Compared) -> list[str]:
    if row.ratio is None:
        return []
    if not row.paired:
        return ["no common points: the ratio is that of two models, which share no error"]
    common = len(row.ratio.pairs.difference)
    return [f"only {count(common, 'common point')}"] if common < _FEW else []


def _same(both: Aligned, names: tuple[str, str]) -> list[str]:
    if both.first.items != both.second.items:
        return []
    return [f"{names[0]} and {names[1]} hold the same values: check the paths if they are to differ"]


def _alike(factor: float) -> str:
    return (
        f"nearly all call paths differ by about the same factor ({factor:.3f}): that looks like the machine, "
        "its clock or a compiler's flag rather than like one change of the code; measure both in the same "
        "allocations to tell them apart"
    )
