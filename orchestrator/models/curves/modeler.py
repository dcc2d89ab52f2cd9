"""The modeler of Gaussian processes in the logarithms, alone or around formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models import data, processes
from orchestrator.models.base import Modeler, one_of, smape_of
from orchestrator.models.blas import one_blas_thread
from orchestrator.models.curves.design import Design
from orchestrator.models.curves.evidence import Formulas
from orchestrator.models.curves.explanations import Explanations
from orchestrator.models.curves.model import CurveModel
from orchestrator.models.curves.prior import Sizes, learned
from orchestrator.models.curves.scatter import Scatter
from orchestrator.models.curves.screening import screened
from orchestrator.models.curves.sharing import doubt
from orchestrator.models.curves.weighing import explain
from orchestrator.models.groupwise import by_group
from orchestrator.models.noise import AGGREGATES, GUESSED, Located
from orchestrator.models.symbolic import Symbolic


@dataclass(frozen=True, slots=True)
class Known:
    """What another family knows of the call paths of a group."""

    first: Formulas  # the most probable formula of every call path
    formulas: Callable[[int], Formulas]  # all that remain possible, by row
    forms: Sequence[Symbolic]  # the most probable one of every call path as a model


def modeler(*, aggregate: str = "auto", sizes: str | Sizes = "all") -> Modeler:
    """Return a modeler of smooth and rough curves in the logarithms of time and parameters.

    The curve is a slope per parameter, bends, products of two parameters, and random walks, each of unknown
    size (`orchestrator.models.curves.prior`).

    Parameters
    ----------
    aggregate
        How repetitions become one value, as for ``pmnf``.
    sizes
        Typical sizes of the components: a name for `orchestrator.models.curves.prior.learned`, or sizes.

    Raises
    ------
    ModelError
        For an option that makes no sense; and by the modeler when no call path can be fitted.
    """
    one_of("aggregate", aggregate, AGGREGATES)

    typical = learned(sizes) if isinstance(sizes, str) else sizes

    return by_group(lambda group, located: fit(group, located, typical, None), aggregate)


def fit(
    group: data.Group, located: Located, sizes: Sizes, known: Known | None, *, saturates: bool = False
) -> list[CurveModel]:
    """Weigh curves, and formulas where there are some; leave out call paths that a formula alone explains.

    Parameters
    ----------
    group
        Call paths that were measured at the same points.
    located
        Their locations and noise.
    sizes
        As in `modeler`.
    known
        The formulas; None if there are none.
    saturates
        Whether saturating speedups are explanations, too, where formulas are and names of parameters say what
        counts processes.
    """
    with one_blas_thread():
        # One matrix for all call paths: robust weights differ between them by little.
        design = Design.of(group.points, np.maximum(located.count.mean(axis=0), 1e-3))
        scatter = [
            Scatter(sigma=float(sigma), freedom=float(freedom))
            for sigma, freedom in zip(located.sigma, located.freedom, strict=True)
        ]
        rows, doubts = list(range(len(group.labels))), np.zeros(len(group.labels))
        if known is not None:
            seen = screened(design, located.log_value, scatter, known.first, sizes)
            rows = [k for k in rows if not seen.suffices[k]]
            doubts = doubt(seen.log_odds, [metric for _, metric in group.labels])
        explained = explain(
            design,
            located.log_value[rows],
            [scatter[k] for k in rows],
            None if known is None else [known.formulas(k) for k in rows],
            sizes,
            _counting(group.parameters) if saturates else (),
            doubts[rows],
        )
        forms = [None if known is None else known.forms[k] for k in rows]
        return [
            _model(group, located, k, item, form)
            for k, item, form in zip(rows, explained, forms, strict=True)
        ]


def _counting(parameters: Sequence[str]) -> tuple[int, ...]:
    """Return the places of those whose product is the number of processes; none where names do not say it."""
    try:
        found = processes.found(parameters)
    except ModelError:
        return ()
    return () if found is None else tuple(parameters.index(name) for name in found.names)


def _model(
    group: data.Group, located: Located, row: int, explained: Explanations, form: Symbolic | None
) -> CurveModel:
    callpath, metric = group.labels[row]
    guessed = (GUESSED,) if located.is_guess[row] else ()
    return CurveModel(
        callpath=callpath,
        metric=metric,
        parameters=group.parameters,
        category=group.category,
        smape=float(smape_of(explained.left_over)),
        noise=float(located.sigma[row]),
        remarks=(*group.notes[row], *guessed),
        corner=tuple(map(float, group.points.max(axis=0))) if group.parameters else (),
        explained=explained,
        form=form,
        shared_noise=float(located.shared_sigma[row]),
        unvaried=group.unvaried,
    )
