"""How probable explanations are: of all call paths that were measured at the same points, together.

Sizes of the process are not chosen: every draw of the prior counts with its evidence.

First come the evidence of curves alone (`explain`), and of formulas beside them
(`orchestrator.models.curves.weighed`); then, for each call path, the members that stand for all explanations
(`orchestrator.models.curves.members`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.curves.design import Design
from orchestrator.models.curves.evidence import Formulas, normalised, of_curves
from orchestrator.models.curves.explanations import LIKELY, Explanations
from orchestrator.models.curves.kinds import Curves, every
from orchestrator.models.curves.members import Members, coefficients
from orchestrator.models.curves.prior import Sizes, alone
from orchestrator.models.curves.regimes import Regimes
from orchestrator.models.curves.regimes import fit as fit_regimes
from orchestrator.models.curves.scatter import Scatter, log_plausible
from orchestrator.models.curves.weighed import AllDraws, WeighedFormulas, weigh
from orchestrator.models.unseen import per_doubling

# Call paths that are weighed at once: so many, fewer where their matrices have more numbers than that. A
# matrix has as many rows and columns as projected values, and there is one for each of so many members.
_TOGETHER, _NUMBERS, _MEMBERS = 64, 4_000_000, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Callpath:
    """What is known of one call path before its explanations are weighed."""

    log_value: Floats  # logarithm of the location of the values, shape (points,)
    log_curves: Floats  # log probability of every draw of curves alone, shape (draws,)
    scatter: Scatter  # what repetitions say
    # formulas, regimes: None where there are none.
    formulas: Formulas | None
    regimes: Regimes | None
    doubt: float  # natural logarithm of how probable formulas remain because of other call paths


def explain(
    design: Design,
    log_value: Floats,
    scatter: Sequence[Scatter],
    formulas: Sequence[Formulas] | None,
    sizes: Sizes,
    counting: Sequence[int] = (),
    doubts: Floats | float = 0.0,
) -> list[Explanations]:
    """Weigh the explanations of call paths that were measured at the points of a design.

    Parameters
    ----------
    design
        Points and features.
    log_value
        Logarithm of the location of the values, shape (call paths, points).
    scatter, formulas
        Of every call path; None where there are no formulas.
    sizes
        Of curves alone.
    counting
        Columns of the points whose product is the number of processes; none where nothing counts them.
    doubts
        As `orchestrator.models.curves.sharing.doubt` returns them, or the same for all.
    """
    curves = alone(design.points.shape[1], sizes)
    logs = of_curves(design, curves, log_value) + log_plausible(curves.noise, design, scatter)
    logs -= np.log(len(curves.noise))
    draws = AllDraws.of(design, curves)
    regimes = None if formulas is None else fit_regimes(design, log_value, counting)
    doubted = np.broadcast_to(doubts, len(log_value)).tolist()
    callpaths = [
        _Callpath(
            log_value=log_value[k],
            log_curves=logs[:, k],
            scatter=scatter[k],
            formulas=None if formulas is None else formulas[k],
            regimes=None if regimes is None else regimes[k],
            doubt=doubted[k],
        )
        for k in range(len(log_value))
    ]
    step = int(np.clip(_NUMBERS // (_MEMBERS * len(design.projection) ** 2), 1, _TOGETHER))
    result: list[Explanations] = []
    for begin in range(0, len(callpaths), step):
        part = slice(begin, begin + step)
        result += _explained(draws, callpaths[part], log_value[part])
    return result


def _explained(draws: AllDraws, callpaths: Sequence[_Callpath], log_value: Floats) -> list[Explanations]:
    """Explain some call paths, whose logarithms are the rows of ``log_value``."""
    design = draws.process.design
    together = _weighed(draws, callpaths, log_value)
    formulas = [together.of_callpath(k) for k in range(len(callpaths))]
    members = [
        Members.of(_kinds(draws, item, own), own) for item, own in zip(callpaths, formulas, strict=True)
    ]
    centre = log_value.mean(axis=1)
    centred, projected = design.weighted(log_value - centre[:, None])
    posterior = coefficients(draws, together, members)
    around = zip(centre.tolist(), centred, projected, strict=True)
    each = zip(callpaths, formulas, members, around, posterior, strict=True)
    return [_explanations(draws, *item) for item in each]


def _weighed(draws: AllDraws, callpaths: Sequence[_Callpath], log_value: Floats) -> WeighedFormulas:
    """Weigh the formulas of all, or say that there are none: either all call paths have some, or none has."""
    formulas = [item.formulas for item in callpaths if item.formulas is not None]
    regimes = [item.regimes for item in callpaths if item.regimes is not None]
    if not formulas:
        return WeighedFormulas.none(len(callpaths), *draws.process.design.projection.shape)
    doubts = np.array([item.doubt for item in callpaths])
    return weigh(draws, log_value, [item.scatter for item in callpaths], formulas, regimes or None, doubts)


def _explanations(
    draws: AllDraws,
    callpath: _Callpath,
    formulas: WeighedFormulas,
    members: Members,
    around: tuple[float, Floats, Floats],
    posterior: tuple[Floats, Floats],
) -> Explanations:
    """Return what a model keeps: of hundreds of formulas only those of members.

    Only these have to be evaluated at every prediction.

    Parameters
    ----------
    draws, callpath, formulas, members
        What was known, and what the call path was explained by.
    around
        Mean of the logarithms of the values; weighted logarithms around it (points,); the same projected
        (rank,).
    posterior
        ``shift`` and ``root`` of `Explanations`.
    """
    centre, centred, projected = around
    shift, root = posterior
    design, columns = draws.process.design, formulas.columns
    scatter, known = callpath.scatter, callpath.formulas
    number = 0 if known is None else len(known.weights)
    share = float(members.odds[:number].sum())
    used = np.unique(np.append(members.formula[(members.formula >= 0) & (members.formula < number)], 0))
    kept = np.append(used[:number], np.arange(number, len(members.odds)))
    chosen = draws.process.draws.rows(members.draws)
    curved = np.asarray(chosen.sizes.any(axis=1), np.bool_)
    # Without repetitions, nobody can tell noise from what points have of their own: all of it counts. And
    # formulas miss something per doubling then, instead of having heavy tails.
    if scatter.is_guess:
        rough, inexact = chosen.noise, curved
        unseen = np.where(curved, 0.0, per_doubling(chosen.noise))
    else:
        location = scatter.sigma / np.sqrt(design.typical)
        rough = np.sqrt(np.maximum(chosen.noise**2 - location**2, 0))
        inexact = curved | scatter.is_exceeded(chosen.noise, design.typical)
        unseen = np.zeros(len(curved))
    if share >= LIKELY:
        left_over = columns.weighted[0, -1]
    else:
        left_over = members.left_over(draws, formulas, centred, shift)
    return Explanations(
        process=draws.process,
        formulas=None if known is None else known.rows(used),
        regimes=callpath.regimes,
        formula=np.where(members.formula < 0, -1, np.searchsorted(kept, members.formula)),
        additive=members.additive,
        added=members.added,
        draws=members.draws,
        weights=members.weights,
        rough=rough,
        unseen=unseen,
        inexact=inexact,
        centre=centre,
        left_over=left_over / np.sqrt(design.precision),
        residuals=np.concatenate([columns.onto[kept, -1], projected[None]]),
        slopes=columns.onto[kept, :-1],
        scale=columns.scale[kept],
        shift=shift,
        root=root,
        share=share,
        odds=members.odds[number:],
    )


def _kinds(draws: AllDraws, callpath: _Callpath, formulas: WeighedFormulas) -> list[Curves]:
    """Return the kinds of curves of a call path; only one where formulas are the answer anyway."""
    given, log_curves = normalised(callpath.log_curves)
    scatter = callpath.scatter
    multiplied = Curves(additive=None, given=given, log_mass=float(log_curves))
    log_formulas = float(np.logaddexp.reduce(formulas.log_mass))
    if log_formulas > log_curves and not scatter.is_guess and not _misfits(draws, formulas, scatter):
        return [multiplied]
    best = max(log_formulas, float(log_curves))
    return every(draws.process, multiplied, callpath.log_value, scatter, best)


def _misfits(draws: AllDraws, formulas: WeighedFormulas, scatter: Scatter) -> bool:
    """Return whether points scatter around the most probable formula far more than repetitions say."""
    most_probable = formulas.pattern[formulas.log_mass.argmax()]
    exceeded = scatter.is_exceeded(draws.noise_of_formulas, draws.process.design.typical)
    return float(formulas.given[:, most_probable] @ exceeded) >= LIKELY
