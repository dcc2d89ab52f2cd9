"""Models as a JSON document: ``models.json`` and the output of ``orchestrator model``."""

from __future__ import annotations

import hashlib
import heapq
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator import __version__
from orchestrator.journal.state import RunStatus, State, runs_measured
from orchestrator.readers.base import EXCLUSIVE
from orchestrator.storage import write_atomically
from orchestrator.types import Point
from orchestrator.units import count, listed

if TYPE_CHECKING:  # numpy, which reading a document does without
    from orchestrator.models.base import Model, Prediction
    from orchestrator.models.scaling import Band

FILE_NAME = "models.json"
_TIME = "time"
_PRINTED = 1e-5  # relative: what six printed digits leave open, and a little more
_FAR = 1.25  # factor between a prediction and its expression from which a table says so; chosen by hand
_NAMED = 3  # of them
_COMPARED = 200  # measured runs that show which call paths include others

CORRECTED = "c: a smooth correction for what the terms do not fit; in full: 'expression' in JSON"
DEVIATING = "predictions are far from the values of these expressions, as other curves are possible, too"
SHORTENED = "sum of parts: its largest terms; in full: 'expression' in JSON"


def describe(
    model: Model, points: Sequence[Point], levels: Sequence[float] = (), runs: int = 1
) -> dict[str, Any]:
    """Return one model, JSON-ready, with predictions (and 90 % intervals) at ``points``.

    With ``levels`` in percent, each prediction has ``intervals`` of the mean and of ``runs`` further runs.
    """
    predictions: list[dict[str, Any]] = []
    if points:
        import numpy as np

        with np.errstate(all="ignore"):  # far out, there may be no number: see `without_number`
            predicted = model.predict(points)
        predictions = [{"point": point.as_dict(), **band_at(predicted, k)} for k, point in enumerate(points)]
    if levels:
        from orchestrator.models.intervals import predictive

        with np.errstate(all="ignore"):
            intervals = predictive(model, points).intervals(levels, runs)
        for k, prediction in enumerate(predictions):
            prediction["intervals"] = [
                {
                    "level": int(item.level) if item.level.is_integer() else item.level,
                    "kind": item.kind,
                    "low": number(item.low[k]),
                    "high": number(item.high[k]),
                }
                for item in intervals
            ]
    short = short_form(model, points[0] if points else None)
    return {**model.document(), **({} if short is None else {"short": short}), "predictions": predictions}


def band_at(predicted: Prediction | Band, k: int) -> dict[str, float | None]:
    """Return one of many predictions, JSON-ready: ``value``, ``low`` and ``high``."""
    return {name: number(float(getattr(predicted, name)[k])) for name in ("value", "low", "high")}


def short_form(model: Model, point: Point | None) -> str | None:
    """Return a long sum of parts by its largest terms at a point; None where a model is no sum of several.

    ``sum of 6 parts: 3.4e-6 * x * steps + ...``. Without a point, it is that of the largest measured values.
    """
    from orchestrator.models.summed import Summed
    from orchestrator.models.symbolic import sum_text

    if not isinstance(model, Summed) or len(list(model.leaves())) == 1:
        return None
    largest = model.largest_terms(point)
    if len(largest) == len(model.terms):
        return None
    form = f"{sum_text(largest)} + ..."
    shown_form = form if model.expression == model.normal_form else _corrected(form)
    return f"sum of {count(len(model.parts), 'part')}: {shown_form}"


def label(described: Mapping[str, Any]) -> str:
    """Return what names a described model among others: ``main->solve [solver=cg]``."""
    chosen = ", ".join(f"{name}={value}" for name, value in described.get("category", {}).items())
    return f"{described['callpath']} [{chosen}]" if chosen else str(described["callpath"])


def shown(described: Mapping[str, Any]) -> str:
    """Return a described model for a table: its normal form, ``* c`` if corrected (see `CORRECTED`).

    Of a long sum of parts only the largest terms (see `short_form`).
    """
    if short := described.get("short"):
        return str(short)
    form: str = described["normal_form"]
    return form if described["expression"] == form else _corrected(form)


def legend(described: Iterable[Mapping[str, Any]]) -> str:
    """Return what explains the models of a table as `shown` gives them; empty where that is nothing."""
    models = list(described)
    corrected = any(item["expression"] != item["normal_form"] for item in models)
    shortened = any(item.get("short") for item in models)
    return "\n".join([CORRECTED] * corrected + [SHORTENED] * shortened + _deviating(models))


def _deviating(models: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line that names the models whose predictions are far from the values of their expressions.

    An expression may be the power law of curves where they end, which go on otherwise.
    """
    names = []
    for item in models:
        if not item["predictions"] or item["expression"] != item["normal_form"]:
            continue
        first = item["predictions"][0]
        value, predicted = value_at(item["terms"] or (), Point.of(first["point"])), first["value"]
        if value and predicted and not 1 / _FAR < predicted / value < _FAR:
            names.append(f"{label(item)} {item['metric']}")
    return [f"{DEVIATING}: {listed(names, _NAMED, rest='other')}"] if names else []


def value_at(terms: Iterable[Mapping[str, Any]], point: Point) -> float | None:
    """Return the value of a described normal form at a point; None without terms, or where it has none."""
    try:
        values = [_term(term, point) for term in terms]
        total = math.fsum(values)  # a root of a negative number is a TypeError
    except (KeyError, TypeError, ValueError, ArithmeticError):  # a category, or a form of another family
        return None
    return total if values and math.isfinite(total) and total > 0 else None


def _term(term: Mapping[str, Any], point: Point) -> float:
    value = float(term["coefficient"])
    for factor in term["factors"]:
        x = point.number(factor["parameter"])
        value *= x ** factor["exponent"]
        if factor["log_exponent"]:
            value *= math.log2(x) ** factor["log_exponent"]
    return value


def _corrected(form: str) -> str:
    return f"({form}) * c" if " + " in form or " - " in form else f"{form} * c"


def without_number(prediction: Mapping[str, Any]) -> str:
    """Return which part of a prediction is not a finite number; empty where all of it is."""
    if number(prediction["value"]) is None:
        return "the prediction is not a finite number"
    intervals = [prediction, *prediction.get("intervals", ())]
    endless = any(number(item[end]) is None for item in intervals for end in ("low", "high"))
    if endless:
        return "an interval has no finite end: so far from the measurements, nearly anything is possible"
    return ""


def number(value: float | None) -> float | None:
    """Return a JSON number, or None for what JSON cannot hold."""
    return None if value is None or not math.isfinite(value) else float(value)


def validation(state: State, models: Sequence[Model]) -> list[dict[str, Any]]:
    """Return predicted against measured at the evaluation point, once the validation run is measured.

    ``low`` and ``high`` are the interval of the true mean, ``run_low`` and ``run_high`` that of a single run,
    which the measured one is compared with.
    """
    run = state.validation
    if run is None or state.runs[run].status is not RunStatus.MEASURED:
        return []
    from orchestrator.models.base import holds_at
    from orchestrator.models.intervals import LEVEL, predictive

    rows = []
    for model in models:
        measured = state.runs[run].samples.get(model.metric, {}).get(model.callpath)
        if measured is None or not holds_at(model, run.point):
            continue
        predicted = model.predict([run.point])
        run_low, run_high = (float(end[0]) for end in predictive(model, [run.point]).of_measured(LEVEL))
        value = float(predicted.value[0])
        rows.append(
            {
                "callpath": model.callpath,
                "metric": model.metric,
                "point": run.point.as_dict(),
                "measured": measured,
                "predicted": number(value),
                "low": number(float(predicted.low[0])),
                "high": number(float(predicted.high[0])),
                "run_low": number(run_low),
                "run_high": number(run_high),
                "error_percent": number(100 * (value - measured) / measured) if measured else None,
            }
        )
    return rows


def run_ends(row: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return the interval of a single run of a row of `validation`; earlier rows have only that of the mean.

    None where it has no end.
    """
    return row.get("run_low", row["low"]), row.get("run_high", row["high"])


def is_inside(row: Mapping[str, Any]) -> bool | None:
    """Return whether the measured value of a row of `validation` is in the interval of a run, if it has one.

    Programs print about six digits: an interval of a count or rate may be narrower than that.
    """
    low, high = run_ends(row)
    if low is None or high is None:
        return None
    slack = _PRINTED * abs(row["measured"])
    return bool(low - slack <= row["measured"] <= high + slack)


def document(
    state: State,
    models: Sequence[Model],
    point: Point | None,
    basis: str = "",
    fastest: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the content of ``models.json``.

    ``basis`` identifies what the models were fitted to; ``fastest`` is from `orchestrator.control.fastest`.
    """
    return {
        "campaign": state.campaign.get("name"),
        "id": state.id,
        "round": state.rounds_completed,
        "measured": runs_measured(state),
        "discards": state.discards,
        "basis": basis,
        "models": [describe(model, [point] if point else []) for model in models],
        "validation": validation(state, models),
        "contradictions": [*contradictions(state, models, point), *unended(state, models)],
        "fastest": fastest,
    }


def contradictions(state: State, models: Sequence[Model], point: Point | None) -> list[dict[str, Any]]:
    """Return the call paths that are predicted to take less time at P₊ than the parts that they include."""
    measure = state.campaign.get("measure") or {}
    exclusive = measure.get("profiler") in EXCLUSIVE and not measure.get("inclusive")
    if point is None or exclusive or not models:
        return []
    from orchestrator.models.consistency import contradictions, sentence

    measured = (run for run, item in state.runs.items() if item.status is RunStatus.MEASURED)
    runs = (run for run in measured if run.repetition == 1 and _TIME in state.runs[run].samples)
    chosen = heapq.nsmallest(_COMPARED, runs, key=lambda run: run.id)
    values = [state.runs[run].samples[_TIME] for run in chosen]
    return [
        {
            "callpath": item.callpath,
            "metric": item.metric,
            "point": point.as_dict(),
            "value": item.value,
            "children": list(item.children),
            "children_total": item.total,
            "beyond_intervals": item.beyond,
            "note": sentence(item, point),
        }
        for item in contradictions(models, point, values, _TIME)
    ]


def unended(state: State, models: Sequence[Model]) -> list[dict[str, Any]]:
    """Return the points whose runs all reached a time limit that is longer than models say they may take.

    No model was fitted to these runs, so its interval may be narrow all the same.
    """
    from orchestrator.policy.progress import beyond_limits

    return [
        {
            "callpath": item.callpath,
            "metric": item.metric,
            "point": item.point.as_dict(),
            "value": item.value,
            "limit": item.limit,
            "note": (
                f"{item.callpath}: no run at {item.point} ended within {item.limit:.4g} s, but predicted "
                f"{item.value:.4g} s, at most {item.high:.4g} s: the program hangs there, or "
                "all models are wrong there and beyond; a higher retries.timeout or budget would show which"
            ),
        }
        for item in beyond_limits(state, models)
    ]


def write(
    directory: Path,
    state: State,
    models: Sequence[Model],
    point: Point | None,
    fastest: Mapping[str, Any] | None = None,
) -> None:
    """Replace ``models.json`` atomically; it can be rebuilt from the journal at any time."""
    content = document(state, models, point, _basis(directory, state), fastest)
    write_atomically(directory / FILE_NAME, json.dumps(content, indent=1, allow_nan=False) + "\n")


def published(directory: Path, state: State) -> dict[str, Any]:
    """Return the content of ``models.json``; ``outdated`` says why its models are not of a state, or is None.

    Where the file is missing, damaged or of another campaign, there are no models in it.
    """
    try:
        document = json.loads((directory / FILE_NAME).read_bytes())
    except (OSError, ValueError):
        document = None
    if not _is_of(document, state):
        return {**_EMPTY, "outdated": _no_models(state)}
    current = document.get("basis") == _basis(directory, state)
    # Of a validation that was discarded the file does not know.
    checked: dict[str, Any] = {} if _is_validated(state) else {"validation": []}
    return {**_EMPTY, **document, **checked, "outdated": None if current else _difference(document, state)}


_EMPTY: dict[str, Any] = {"models": [], "validation": [], "contradictions": [], "fastest": None}


def _is_of(found: Any, state: State) -> bool:
    """Return whether a document describes models of the campaign of a state, and has the form to show it."""
    if not isinstance(found, dict) or found.get("id") != state.id:
        return False
    models = found.get("models")
    return isinstance(models, list) and all(isinstance(item, dict) and set(item) >= _SHOWN for item in models)


_SHOWN = {"callpath", "metric", "expression", "normal_form", "smape", "predictions"}


def _no_models(state: State) -> str | None:
    """Return why there are no models of a state; None where nothing was measured."""
    if not runs_measured(state):
        return None
    if not state.rounds_completed:
        return "the first round is not completed"
    return f"{FILE_NAME} is missing, damaged or of another version"


def _difference(found: Mapping[str, Any], state: State) -> str:
    """Return how models differ from those of a state, in words."""
    if int(found.get("discards") or 0) != state.discards:
        return "since then measurements were discarded or restored"
    since = runs_measured(state) - int(found.get("measured") or 0)
    if since > 0:
        return f"they are those after round {found.get('round')}; {count(since, 'run')} measured since then"
    return "since then outputs were read again, or the rules or the program changed"


def _is_validated(state: State) -> bool:
    run = state.validation
    return run is not None and state.runs[run].status is RunStatus.MEASURED


def _basis(directory: Path, state: State) -> str:
    """Return a digest of all that decides about models: program, campaign, and how many runs were measured.

    Which runs count, and what they have measured, changes only where runs are measured, outputs are read
    again, or measurements are discarded or restored. So numbers say which ones they are.
    """
    measured = runs_measured(state)
    validated = _is_validated(state)
    try:
        rules = (directory / "campaign.yaml").read_bytes()  # a user may have edited it
    except OSError:
        rules = b""
    changes = [state.rereads, state.discards] if state.discards else [state.rereads]
    said = json.dumps([__version__, state.id, measured, validated, *changes], separators=(",", ":"))
    return hashlib.sha256(said.encode() + b"\n" + rules).hexdigest()
