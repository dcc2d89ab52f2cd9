"""Fit models to a table of measurements, or to measurements of any other source."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orchestrator import cores, registry
from orchestrator.api.arguments import optional_mapping, warn
from orchestrator.api.fitted import Models
from orchestrator.api.inputs import of_metrics
from orchestrator.errors import CampaignError
from orchestrator.guards import returning_models
from orchestrator.models.base import Model, Modeler
from orchestrator.models.spread import spread_by
from orchestrator.models.sums import with_sums
from orchestrator.types import Measurements

if TYPE_CHECKING:
    import pandas as pd

    from orchestrator.api.frames import Names
    from orchestrator.models import Neighbours


def fit(
    frame: pd.DataFrame,
    parameters: Names | None = None,
    response: Names | None = None,
    callpath: str | None = None,
    modeler: str | Modeler = "auto",
    priors: Mapping[str, pd.DataFrame] | None = None,
    **options: Any,
) -> Models:
    """Fit one model per call path and metric.

    Parameters
    ----------
    frame
        One row per run (and call path); or a long table with the columns ``callpath``, ``metric`` and
        ``value``, as `orchestrator.read` returns it.
    parameters
        Columns that are execution parameters. Texts are categories.
    response
        Columns that were measured, one per metric; times in seconds, or with their unit in the name, as in
        ``time [ms]``. Of a long table the wanted metrics (default: all).
    callpath
        Column that names the code region (default: the column ``callpath``, if there is one).
    modeler, options
        The kind of model, and its options as under ``model:`` of a campaign file; or a function from
        `Measurements` to models, which takes no options.
    priors
        Tables of earlier measurements, by a name for notes: their forms and noise are a prior, see
        docs/priors.md. Columns mean the same as in ``frame``.

    Raises
    ------
    MeasurementError
        For a table that cannot be used as it is.
    ModelError
        Where no model can be fitted to it.
    CampaignError
        For an unknown kind of model or option.
    """
    from orchestrator.api.frames import to_measurements

    known = warn(to_measurements(frame, parameters, response, callpath))
    tables = optional_mapping(priors, "priors", "{'last year': frame}")
    earlier = {name: to_measurements(table, parameters, response, callpath) for name, table in tables.items()}
    learned = learned_from(known, modeler, earlier)
    return Models(known, fit_measurements(known, chosen_modeler(modeler, {**learned, **options})))


def fit_measurements(
    known: Measurements, modeler: Modeler, metrics: Sequence[str] | None = None
) -> tuple[Model, ...]:
    """Fit models to measurements of some metrics (all by default); see `fit`."""
    return modeler(known if metrics is None else _with_effort(of_metrics(known, metrics), known))


def chosen_modeler(name: str | Modeler, options: Mapping[str, Any]) -> Modeler:
    """Return a modeler, by name or as it is, which also models call paths as the sum of their parts.

    Fits that take long are spread over the cores of this machine.

    Raises
    ------
    CampaignError
        For an unknown name, options that it does not take, and a function that takes no measurements.
    """
    if callable(name) and options:
        raise CampaignError(
            f"a modeler that is a function has its options already, but {', '.join(options)} was given too"
        )
    built = _checked(name) if callable(name) else registry.build("model", name, options, called="modeler")
    return spread_by(cores.spread, with_sums(built))


def _checked(modeler: Modeler) -> Modeler:
    """Return a function of the user's whose result is checked; what it raises keeps its traceback."""
    called = getattr(modeler, "__name__", type(modeler).__name__)
    with suppress(ValueError):  # a function without a signature
        try:
            inspect.signature(modeler).bind(None)
        except TypeError:
            raise CampaignError(
                f"modeler {called} does not take measurements: if it returns a modeler, call it, as in "
                f"modeler={called}()"
            ) from None
    return returning_models(modeler, f"the modeler {called}")


def learned_from(
    known: Measurements, modeler: str | Modeler, priors: Mapping[str, Measurements]
) -> dict[str, Neighbours]:
    """Return what other measurements tell of these, as an option of the modeler; nothing without any.

    Raises
    ------
    CampaignError
        Where they cannot tell anything, and for a modeler that takes no priors.
    """
    return {"neighbours": _neighbours(known, modeler, priors)} if priors else {}


def _neighbours(
    known: Measurements, modeler: str | Modeler, priors: Mapping[str, Measurements]
) -> Neighbours:
    from orchestrator.models import Neighbour, Neighbours, of_measurements
    from orchestrator.models.effort import EFFORT

    if callable(modeler) or "neighbours" not in inspect.signature(registry.load("model", modeler)).parameters:
        raise CampaignError(f"modeler {modeler!r} takes no priors: use auto, formulas, pmnf or swc")
    items: list[Neighbour] = []
    counts: Measurements | None = None
    for name, other in priors.items():
        wanted, varied = ({n for n in m.parameters if len(m.values_of(n)) > 1} for m in (known, other))
        missing = sorted(n for n in wanted - varied if not known.is_categorical(n))
        if missing:
            raise CampaignError(
                f"prior {name}: it varied {', '.join(sorted(varied)) or 'nothing'}, so of "
                f"{', '.join(missing)} it knows nothing; leave it out, or give parameters the same names"
            )
        effort, times = other.split(EFFORT)
        items += of_measurements(times, name).items
        counts = counts or (effort if effort.items else None)
    if not items:
        raise CampaignError(f"prior {', '.join(priors)}: no model can be fitted to it")
    return Neighbours(tuple(items), counts)


def _with_effort(chosen: Measurements, known: Measurements) -> Measurements:
    """Add what was counted at the chosen call paths and below them: modelers may know how to use it."""
    from orchestrator.models.callpaths import names
    from orchestrator.models.effort import EFFORT

    effort = [item for item in known.items if item.metric in EFFORT]
    if not effort:
        return chosen
    there = {(item.callpath, item.metric) for item in chosen.items}
    paths = names({item.callpath for item in chosen.items}, {item.callpath for item in effort})
    more = tuple(
        item for item in effort if (item.callpath, item.metric) not in there and paths.callers(item.callpath)
    )
    return replace(known, items=(*chosen.items, *more))
