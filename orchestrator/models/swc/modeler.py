"""One model and its prior: fitted to the same times, then put together.

De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, sections III-C
and VII.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.errors import ModelError
from orchestrator.models import data
from orchestrator.models.base import Floats, Model, Modeler, is_of
from orchestrator.models.noise import Located, locate
from orchestrator.models.pmnf import modeler as pmnf
from orchestrator.models.pmnf.model import PmnfModel, growth, power_text
from orchestrator.models.pmnf.posterior import Posterior
from orchestrator.models.pmnf.solver import remarks
from orchestrator.models.swc import counts
from orchestrator.models.swc.posterior import Seen, joined, member
from orchestrator.models.swc.regression import Fit, Times, fit
from orchestrator.models.swc.skeleton import Column, Skeleton, evaluate, names, skeletons
from orchestrator.types import Measurements, Point, format_value

_UNKNOWN = "no effort was counted here or below: modelled from times alone"
_IMPOSSIBLE = "the prior cannot be evaluated at every point (a logarithm of 0?): modelled from times alone"

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
            point = next(p for p in points[label] if is_of(p, group.category))
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
        Per call path and category, see `orchestrator.models.swc.skeleton.skeletons`.
    seen
        The located times, see `locate_times`.
    trust
        Probability of the prior's form before looking at times; None where it is the only one.
    """
    return informed(model, priors, seen, (trust,))[0]


def informed(
    model: Model,
    priors: Mapping[str, Mapping[data.Category, Skeleton]],
    seen: Mapping[Key, Seen],
    trusts: Sequence[float | None],
) -> tuple[Model, ...]:
    """Return what `inform` does, for several values of ``trust``: the prior is fitted once."""
    if not isinstance(model, PmnfModel) or (model.callpath, model.metric, model.category) not in seen:
        return (model,) * len(trusts)
    prior = priors.get(model.callpath, {})
    skeleton = prior.get(model.category, prior.get(()))
    if skeleton is None:
        return (replace(model, notes=(*model.notes, _UNKNOWN)),) * len(trusts)
    if not skeleton.columns:
        return (replace(model, notes=(*model.notes, *skeleton.notes)),) * len(trusts)
    known = _relevant(seen[model.callpath, model.metric, model.category], model, skeleton.columns)
    design = evaluate(skeleton.columns, known.parameters, known.x)
    if not np.all(np.isfinite(design)):
        return (replace(model, notes=(*model.notes, *skeleton.notes, _IMPOSSIBLE)),) * len(trusts)
    columns = skeleton.columns
    if len(columns) > 1 and np.any(np.ptp(design[:, 1:], axis=0) <= 1e-9 * design[:, 1:].max(axis=0)):
        columns, design = columns[1:], design[:, 1:]  # where times do not vary, effort is no constant
    fitted = _Fitted.of(columns, design, known)
    return tuple(_with_prior(model, skeleton, fitted, trust) for trust in trusts)


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A prior with its coefficients: columns at the measured points, their fit, and it as a posterior."""

    design: Floats
    fit: Fit
    posterior: Posterior
    seen: Seen

    @classmethod
    def of(cls, columns: Sequence[Column], design: Floats, seen: Seen) -> Self:
        counted = np.array([column.counted for column in columns])
        floored = np.array([not column.constant for column in columns])
        found = fit(design, counted, floored, seen.times)
        return cls(design, found, member(columns, found, seen.parameters), seen)

    @property
    def smape(self) -> float:
        return float(200 * np.mean(np.tanh(np.abs(self.fit.residuals) / 2)))


def _with_prior(model: PmnfModel, skeleton: Skeleton, prior: _Fitted, trust: float | None) -> Model:
    """Put the prior in the place of the model, or beside it as times and ``trust`` demand."""
    seen = prior.seen
    alone = replace(
        model,
        parameters=seen.parameters,
        posterior=prior.posterior,
        smape=prior.smape,
        notes=(*seen.notes, *skeleton.notes, *_misfit(skeleton, prior)),
    )
    if trust is None:
        return alone
    both, probability = joined(model, prior.posterior, seen, prior.fit, prior.design, trust)
    if probability >= both.posterior.weights[0]:
        doubt = f"times make the form of the counted effort no more than {100 * probability:.0f} % probable"
        return replace(both, smape=alone.smape, notes=(*alone.notes, *([doubt] if probability < 0.5 else [])))
    gap = _disagreement(model, alone, prior, probability)
    return replace(both, notes=(*model.notes, *skeleton.notes, gap, *skeleton.doubts))


def _misfit(skeleton: Skeleton, prior: _Fitted) -> tuple[str, ...]:
    lack = prior.fit.lack
    if lack <= max(2 * float(np.sqrt(prior.seen.times.variance)), 0.01):
        return ()
    text = f"times scatter by {100 * lack:.2g} % around the counted effort, beyond the noise"
    return (text, *skeleton.doubts)


def _relevant(seen: Seen, model: PmnfModel, columns: Sequence[Column]) -> Seen:
    """Keep the parameters that appear in the model or in the prior."""
    wanted = {*model.parameters, *names(columns)}
    kept = [k for k, name in enumerate(seen.parameters) if name in wanted]
    return replace(seen, parameters=tuple(seen.parameters[k] for k in kept), x=seen.x[:, kept])


def _disagreement(model: PmnfModel, alone: PmnfModel, prior: _Fitted, probability: float) -> str:
    """Say where times overrule the counted effort: that gap is waiting time (section VII)."""
    seen, residuals = prior.seen, prior.fit.residuals
    apart = [
        f"{name} (time {_growth(model, name)}, effort {_growth(alone, name)})"
        for name in seen.parameters
        if growth(model.terms, name) != growth(alone.terms, name)
    ]
    worst = int(np.argmax(residuals))
    share = 100 * (1 - float(np.exp(-residuals[worst])))
    where = ", ".join(
        f"{n}={format_value(float(v))}" for n, v in zip(seen.parameters, seen.x[worst], strict=True)
    )
    growths = f" in {', '.join(apart)}" if apart else ""
    return (
        f"time and counted effort disagree{growths}: the gap, up to {share:.0f} % of the time at P({where}), "
        f"is waiting time or a cost that counts do not see (probability of the prior {probability:.2g})"
    )


def _growth(model: PmnfModel, name: str) -> str:
    exponent, log_exponent = growth(model.terms, name)
    parts = [power_text(name, exponent), power_text(f"log2({name})", log_exponent)]
    return " * ".join(part for part in parts if part) or "constant"


#
# # FOLDED orchestrator.models.swc.modeler: The SWC modeler: counted effort gives the shape of a model, measured times its coefficients.
#
# De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section III. Effort
# (executed basic blocks, transferred bytes) hardly varies between runs, so its models are exact where those of
# times are lost in noise. See `docs/priors.md`.
#


POSTERIORS = ("combined", "prior")


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
        if counts.has_effort(rest):
            paths = list(dict.fromkeys(item.callpath for item in timed.items))
            priors = skeletons(measurements, paths, plain, tolerance, ranks)
            seen = locate_times(timed, aggregate) if any(m.metric in times for m in found) else {}
            found = tuple(
                inform(m, priors, seen, None if posterior == "prior" else trust) if m.metric in times else m
                for m in found
            )
            found = _marked(found, _wild(rest, tolerance), *counts.unmatched(rest, paths))
        order = {(item.callpath, item.metric): k for k, item in enumerate(measurements.items)}
        return tuple(sorted(found, key=lambda m: order[m.callpath, m.metric]))

    return model


def _split(known: Measurements, times: Sequence[str]) -> tuple[Measurements, Measurements]:
    timed = tuple(item for item in known.items if item.metric in times)
    rest = tuple(item for item in known.items if item.metric not in times)
    return replace(known, items=timed), replace(known, items=rest)


def _wild(known: Measurements, tolerance: float) -> dict[tuple[str, str], float]:
    """Return by how much counts differ between effort runs at one point, where that is too much."""
    changes = {
        (item.callpath, item.metric): counts.variation(item.values)
        for item in known.items
        if item.metric in counts.EFFORT
    }
    return {label: change for label, change in changes.items() if change > tolerance}


def _marked(
    found: Sequence[Model], wild: dict[tuple[str, str], float], lost: frozenset[str], share: float
) -> tuple[Model, ...]:
    """Say of effort that it is not reproducible, or that no time is known for it: the builds that count and
    that are timed may differ.
    """
    unknown = (
        "no time was measured here or at a caller, so this is no prior; such call paths have "
        f"{100 * share:.2g} % of all basic blocks"
    )

    def marked(model: PmnfModel) -> PmnfModel:
        notes, change = list(model.notes), wild.get((model.callpath, model.metric))
        if change is not None:
            notes.append(
                f"counts differ by up to {100 * change:.2g} % between effort runs at one point "
                "(polling or busy waiting?): no prior from them"
            )
        if model.callpath in lost:
            notes.append(unknown)
        return replace(model, notes=tuple(notes))

    return tuple(marked(m) if m.metric in counts.EFFORT and isinstance(m, PmnfModel) else m for m in found)


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
