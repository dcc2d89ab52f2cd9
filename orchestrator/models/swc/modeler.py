"""The SWC modeler: counted effort gives the form of a model, measured times its coefficients.

De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section III. Effort
(executed basic blocks, transferred bytes) hardly varies between runs. So models of effort are exact where
models of times are lost in noise. See `docs/priors.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from orchestrator.errors import ModelError
from orchestrator.models import data
from orchestrator.models.base import Label, Model, Modeler, key_of, label_of, one_of
from orchestrator.models.effort import EFFORT, TOLERANCE, has_effort, unmatched, variation
from orchestrator.models.factored import FactoredModel
from orchestrator.models.pmnf import modeler as pmnf
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.neighbours import NOTHING, Neighbours
from orchestrator.models.swc.combination import NO_EFFORT, with_prior
from orchestrator.models.swc.skeleton import skeletons
from orchestrator.models.swc.times import locate_times
from orchestrator.models.zero import ZeroModel
from orchestrator.types import Measurements

POSTERIORS = ("combined", "prior")


def modeler(
    *,
    posterior: str = "combined",
    trust: float = 0.9,
    tolerance: float = TOLERANCE,
    times: Sequence[str] = ("time",),
    ranks: str | None = None,
    exponents: str | Iterable[Sequence[float]] = "paper",
    negative_exponents: str | bool = "auto",
    aggregate: str = "auto",
    members: int = 200,
    wide: bool = True,
    neighbours: Neighbours = NOTHING,
) -> Modeler:
    """Return a modeler that uses effort metrics, where they are among the measurements, as priors of times.

    Parameters
    ----------
    posterior
        ``"combined"``: the prior is one more hypothesis among those of the normal form, and good times
        overrule it. ``"prior"``: the prior is the only hypothesis, as in the paper.
    trust
        Probability, before looking at times, that a prior has the right form.
    tolerance
        Counts that differ by more (relatively) between effort runs at one point are not used.
    times
        The metrics that priors are for.
    ranks
        The parameter that counts MPI ranks; by default ``p``, ``ranks``, ``processes`` or the like.
    exponents, negative_exponents, aggregate, members, wide
        Options of ``pmnf``, for times and effort alike.
    neighbours
        What other campaigns know. Where no effort was counted, their counts give the priors.

    Raises
    ------
    ModelError
        For an option out of range. The modeler raises it when no call path can be fitted.
    """
    one_of("posterior", posterior, POSTERIORS)
    if not 0 < trust < 1:
        raise ModelError(f"trust is {trust}: a probability between 0 and 1, both excluded")
    if not 0 <= tolerance < 1:
        raise ModelError(f"tolerance is {tolerance}: a relative difference from 0 to less than 1")
    plain = pmnf.modeler(
        exponents=exponents,
        negative_exponents=negative_exponents,
        aggregate=aggregate,
        members=members,
        wide=wide,
        neighbours=neighbours,
    )

    certain = None if posterior == "prior" else trust
    foreign = neighbours.counts

    def model(measurements: Measurements) -> tuple[Model, ...]:
        timed, rest = measurements.split(times)
        # Counts vary less than times by orders of magnitude. One estimate of the noise would fit neither.
        models = _both(plain, timed, rest)
        counts = rest if foreign is None or has_effort(rest) else foreign
        if has_effort(counts):
            models = with_priors(models, timed, counts)
            variations = _unreproducible(rest, tolerance)
            models = _with_notes(models, variations, *unmatched(counts, _paths(timed)))
            if counts is foreign:
                models = tuple(_with_origin(m) if m.metric in times else m for m in models)
        return data.in_order(measurements, {key_of(item): item for item in models})

    def with_priors(models: Sequence[Model], timed: Measurements, counted: Measurements) -> tuple[Model, ...]:
        """Combine the models of times with priors, whose form comes from counts."""
        # Of another campaign, counts are at other points.
        known = replace(counted, items=(*timed.items, *counted.items))
        priors = skeletons(known, _paths(timed), plain, tolerance, ranks)
        located = locate_times(timed, aggregate) if any(m.metric in times for m in models) else {}
        return tuple(
            with_prior(m, priors, located, (certain,))[0] if m.metric in times else m for m in models
        )

    return model


def _paths(timed: Measurements) -> list[str]:
    """Return the call paths of which times were measured."""
    return list(dict.fromkeys(item.callpath for item in timed.items))


def _with_origin(model: Model) -> Model:
    if not isinstance(model, PmnfModel) or NO_EFFORT in model.notes:
        return model
    return replace(model, notes=(*model.notes, "effort was counted in another campaign"))


def _unreproducible(known: Measurements, tolerance: float) -> dict[Label, float]:
    """Return the variation of counts between effort runs at one point, where it exceeds the tolerance."""
    changes = {label_of(item): variation(item.values) for item in known.items if item.metric in EFFORT}
    return {label: change for label, change in changes.items() if change > tolerance}


def _with_notes(
    models: Sequence[Model],
    variations: Mapping[Label, float],
    unmatched_paths: frozenset[str],
    share: float,
) -> tuple[Model, ...]:
    """Add notes to models of effort: counts that are not reproducible, and call paths without a time.

    A call path may have no time because the build that counts differs from the build that is timed.
    """
    without_time = (
        "no time was measured here or at a caller, so this is no prior; such call paths have "
        f"{100 * share:.2g} % of all basic blocks"
    )

    def noted(model: Model) -> Model:
        if model.metric not in EFFORT or not isinstance(model, PmnfModel | ZeroModel | FactoredModel):
            return model
        notes, change = [], variations.get(label_of(model))
        if change is not None:
            notes.append(
                f"counts differ by up to {100 * change:.2g} % between effort runs at one point "
                "(polling or busy waiting?): no prior from them"
            )
        if model.callpath in unmatched_paths:
            notes.append(without_time)
        if isinstance(model, FactoredModel):
            return replace(model, remarks=(*model.remarks, *notes))
        return replace(model, notes=(*model.notes, *notes))

    return tuple(map(noted, models))


def _both(plain: Modeler, *parts: Measurements) -> tuple[Model, ...]:
    """Fit the parts one by one; fail only where no part can be fitted."""
    models: list[Model] = []
    failure: ModelError | None = None
    for part in parts:
        if part.items:
            try:
                models += plain(part)
            except ModelError as error:
                failure = error
    if not models and failure is not None:
        raise failure
    return tuple(models)
