"""The SWC modeler: counted effort gives the shape of a model, measured times its coefficients.

De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section III. Effort
(executed basic blocks, transferred bytes) hardly varies between runs, so its models are exact where those of
times are lost in noise. See `docs/priors.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from orchestrator.errors import ModelError
from orchestrator.models import data, pmnf, swc_effort
from orchestrator.models.asymptotics import growth
from orchestrator.models.base import Model, Modeler
from orchestrator.models.model import PmnfModel
from orchestrator.models.noise import Located, locate
from orchestrator.models.swc_fit import Fit, Times, fit
from orchestrator.models.swc_posterior import Seen, joined, member
from orchestrator.models.swc_prior import Column, evaluate, names
from orchestrator.models.swc_skeleton import Skeleton, skeletons
from orchestrator.models.text import power_text
from orchestrator.models.trend import remarks
from orchestrator.types import Measurements, Point, format_value

POSTERIORS = ("combined", "prior")
_UNKNOWN = "no effort was counted here or below: modelled from times alone"


def modeler(
    *,
    posterior: str = "combined",
    trust: float = 0.9,
    tolerance: float = 0.01,
    times: Sequence[str] = ("time",),
    ranks: str | None = None,
    **options: object,
) -> Modeler:
    """Return a modeler that uses effort metrics, where they are among the measurements, as priors of times.

    Parameters
    ----------
    posterior
        ``"combined"``: the prior is one more hypothesis among those of the normal form, and good times
        overrule it. ``"prior"``: it is the only one, as in the paper.
    trust
        Probability, before looking at times, that a prior has the right form.
    tolerance
        Counts that differ by more (relatively) between effort runs at one point are not used.
    times
        The metrics that priors are for.
    ranks
        The parameter that counts MPI ranks; by default ``p``, ``ranks``, ``processes`` or the like.
    options
        Of the modeler of the normal form (`orchestrator.models.pmnf.modeler`), for times and effort alike.

    Raises
    ------
    ModelError
        For an option that makes no sense; and by the modeler when no call path can be fitted.
    """
    if posterior not in POSTERIORS:
        raise ModelError(f"posterior is {posterior!r}: use one of {', '.join(POSTERIORS)}")
    if not 0 < trust < 1:
        raise ModelError(f"trust is {trust}: a probability between 0 and 1, both excluded")
    if not 0 <= tolerance < 1:
        raise ModelError(f"tolerance is {tolerance}: a relative difference from 0 to less than 1")
    plain = pmnf.modeler(**options)  # type: ignore[arg-type]
    aggregate = str(options.get("aggregate", "auto"))

    def model(measurements: Measurements) -> tuple[Model, ...]:
        timed, rest = _split(measurements, times)
        # Counts vary less than times by orders of magnitude: judged together, neither noise would be right.
        found = _both(plain, timed, rest)
        if swc_effort.has_effort(rest):
            paths = list(dict.fromkeys(item.callpath for item in timed.items))
            priors = skeletons(measurements, paths, plain, tolerance, ranks)
            seen = locate_times(timed, aggregate) if any(m.metric in times for m in found) else {}
            found = tuple(
                inform(m, priors, seen, None if posterior == "prior" else trust) if m.metric in times else m
                for m in found
            )
            found = _marked(found, *swc_effort.unmatched(rest, paths))
        order = {(item.callpath, item.metric): k for k, item in enumerate(measurements.items)}
        return tuple(sorted(found, key=lambda m: order[m.callpath, m.metric]))

    return model


def _split(known: Measurements, times: Sequence[str]) -> tuple[Measurements, Measurements]:
    timed = tuple(item for item in known.items if item.metric in times)
    rest = tuple(item for item in known.items if item.metric not in times)
    return Measurements(known.parameters, timed), Measurements(known.parameters, rest)


def _marked(found: Sequence[Model], lost: frozenset[str], share: float) -> tuple[Model, ...]:
    """Say of effort that no time is known for it: the builds that count and that are timed may differ."""
    note = (
        "no time was measured here or at a caller, so this is no prior; such call paths have "
        f"{100 * share:.2g} % of all basic blocks"
    )
    return tuple(
        replace(m, notes=(*m.notes, note))
        if m.callpath in lost and m.metric in swc_effort.EFFORT and isinstance(m, PmnfModel)
        else m
        for m in found
    )


def _both(plain: Modeler, *parts: Measurements) -> tuple[Model, ...]:
    """Fit parts apart; fail only where nothing at all can be fitted."""
    found: list[Model] = []
    failure: ModelError | None = None
    for part in parts:
        if part.items:
            try:
                found += plain(part)
            except ModelError as error:
                failure = error
    if not found and failure is not None:
        raise failure
    return tuple(found)


Key = tuple[str, str, data.Category]


def locate_times(timed: Measurements, aggregate: str) -> dict[Key, Seen]:
    """Locate all times by (call path, metric, category), with the coordinates of all numeric parameters."""
    found: dict[Key, Seen] = {}
    points = {(item.callpath, item.metric): tuple(item.values) for item in timed.items}
    for group in data.groups(timed)[0]:
        located = locate(group.values, aggregate)
        # An aggregate that was asked for is what coefficients are fitted to; otherwise every run counts.
        runs = np.log(group.values) if aggregate in ("auto", "none") else located.log_value[:, :, None]
        noted = remarks(group.parameters, group.points, located)
        chosen = dict(group.category)
        numeric = [name for name in timed.parameters if name not in chosen]
        for row, label in enumerate(group.labels):
            point = next(
                p for p in points[label] if all(data.text(p[name]) == text for name, text in chosen.items())
            )
            x = np.stack([_column(group, name, point) for name in numeric], axis=1)
            told = (*group.notes[row], *noted[row])
            found[(*label, group.category)] = Seen(tuple(numeric), x, _times(located, row, runs[row]), told)
    return found


def _column(group: data.Group, name: str, point: Point) -> NDArray[np.float64]:
    if name in group.parameters:
        return np.array(group.points[:, group.parameters.index(name)])
    return np.full(len(group.points), point.number(name))


def _times(located: Located, row: int, runs: NDArray[np.float64]) -> Times:
    size = located.log_value.shape[1]
    point, _ = there = np.nonzero(np.isfinite(runs))
    return Times(
        located.log_value[row],
        located.count[row],
        float(located.sigma[row]),
        float(located.freedom[row]),
        np.zeros((size, size)),
        runs[there],
        point,
    )


def inform(
    model: Model,
    priors: Mapping[str, Mapping[data.Category, Skeleton]],
    seen: Mapping[Key, Seen],
    trust: float | None,
) -> Model:
    """Return a model that knows its prior; without a prior the same model, with a word why.

    Parameters
    ----------
    model
        Fitted to times alone.
    priors
        Per call path and category, see `skeletons`.
    seen
        The located times, see `locate_times`.
    trust
        Probability of the prior's form before looking at times; None where it is the only one.
    """
    if not isinstance(model, PmnfModel) or (model.callpath, model.metric, model.category) not in seen:
        return model
    prior = priors.get(model.callpath, {})
    skeleton = prior.get(model.category, prior.get(()))
    if skeleton is None:
        return replace(model, notes=(*model.notes, _UNKNOWN))
    if not skeleton.columns:
        return replace(model, notes=(*model.notes, *skeleton.notes))
    columns = skeleton.columns
    known = _relevant(seen[model.callpath, model.metric, model.category], model, columns)
    design = evaluate(columns, known.parameters, known.x)
    if not np.all(np.isfinite(design)):
        text = "the prior cannot be evaluated at every point (a logarithm of 0?): modelled from times alone"
        return replace(model, notes=(*model.notes, *skeleton.notes, text))
    if len(columns) > 1 and np.any(np.ptp(design[:, 1:], axis=0) <= 1e-9 * design[:, 1:].max(axis=0)):
        columns, design = columns[1:], design[:, 1:]  # where times do not vary, effort is no constant
    counted = np.array([column.counted for column in columns])
    floored = np.array([not column.constant for column in columns])
    fitted = fit(design, counted, floored, known.times)
    own = member(columns, fitted, known.parameters)
    alone = replace(
        model,
        parameters=known.parameters,
        posterior=own,
        smape=float(200 * np.mean(np.tanh(np.abs(fitted.residuals) / 2))),
        notes=(*known.notes, *skeleton.notes, *_misfit(fitted, known)),
    )
    if trust is None:
        return alone
    both, probability = joined(model, own, known, fitted, design, trust)
    if probability >= both.posterior.weights[0]:
        doubt = f"times make the form of the counted effort no more than {100 * probability:.0f} % probable"
        return replace(both, smape=alone.smape, notes=(*alone.notes, *([doubt] if probability < 0.5 else [])))
    return replace(
        both, notes=(*model.notes, *skeleton.notes, *_disagreement(model, alone, known, fitted, probability))
    )


def _misfit(fitted: Fit, seen: Seen) -> tuple[str, ...]:
    noise = float(np.sqrt(seen.times.variance))
    if fitted.lack <= max(2 * noise, 0.01):
        return ()
    return (f"times scatter by {100 * fitted.lack:.2g} % around the counted effort, beyond the noise",)


def _relevant(seen: Seen, model: PmnfModel, columns: Sequence[Column]) -> Seen:
    """Keep the parameters that appear in the model or in the prior."""
    wanted = {*model.parameters, *names(columns)}
    kept = [k for k, name in enumerate(seen.parameters) if name in wanted]
    return replace(seen, parameters=tuple(seen.parameters[k] for k in kept), x=seen.x[:, kept])


def _disagreement(
    model: PmnfModel, prior: PmnfModel, seen: Seen, fitted: Fit, probability: float
) -> tuple[str, ...]:
    """Say where times overrule the counted effort: that gap is waiting time (section VII)."""
    apart = [
        f"{name} (time {_growth(model, name)}, effort {_growth(prior, name)})"
        for name in seen.parameters
        if growth(model.terms, name) != growth(prior.terms, name)
    ]
    worst = int(np.argmax(fitted.residuals))
    share = 100 * (1 - float(np.exp(-fitted.residuals[worst])))
    where = ", ".join(
        f"{n}={format_value(float(v))}" for n, v in zip(seen.parameters, seen.x[worst], strict=True)
    )
    growths = f" in {', '.join(apart)}" if apart else ""
    return (
        f"time and counted effort disagree{growths}: the gap, up to {share:.0f} % of the time at P({where}), "
        f"is waiting time or a cost that counts do not see (probability of the prior {probability:.2g})",
    )


def _growth(model: PmnfModel, name: str) -> str:
    exponent, log_exponent = growth(model.terms, name)
    parts = [power_text(name, exponent), power_text(f"log2({name})", log_exponent)]
    return " * ".join(part for part in parts if part) or "constant"
