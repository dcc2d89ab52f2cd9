"""The modeler of scikit-learn's learners: those that predict best what was left out."""

from __future__ import annotations

from orchestrator.errors import ModelError
from orchestrator.models.base import Modeler, one_of
from orchestrator.models.learned.family import candidates, extrapolators, paper_grid, small_networks
from orchestrator.models.regression.choice import Candidates, Family
from orchestrator.models.regression.learner import Learner
from orchestrator.models.regression.modeler import modeler_of
from orchestrator.models.regression.samples import Samples

_GRIDS: dict[str, Candidates] = {"own": candidates, "paper": paper_grid}


def modeler(
    *, aggregate: str = "auto", grid: str = "own", only: str = "", combine: bool = True, seed: int = 0
) -> Modeler:
    """Return a modeler of learners (Hutter and Solomonik, section 6.0.4, and some of our own).

    Parameters
    ----------
    aggregate
        How repetitions become one value, as for ``pmnf``.
    grid
        Candidates within the measured range: ``own``, or ``paper`` for all options of that comparison.
    only
        Text that names of candidates must contain: ``extra trees``; ``rprop`` for the networks of Lee et al.
    combine
        Whether several learners may be combined; otherwise the best one is taken.
    seed
        Of the random parts of fits and of their comparison.

    Raises
    ------
    ModelError
        For an unknown aggregate or grid; and by the modeler when no call path can be fitted, or when no
        candidate has such a name.
    """
    one_of("grid", grid, _GRIDS)

    def inside(samples: Samples) -> tuple[Learner, ...]:
        learners = (*_GRIDS[grid](samples), *(small_networks(samples) if only else ()))
        found = tuple(learner for learner in learners if only in learner.name)
        if not found and learners:
            names = ", ".join(learner.name for learner in learners)
            raise ModelError(f"only is {only!r}, which no learner's name contains: {names}")
        return found

    return modeler_of(
        Family(inside=inside, outside=extrapolators, combine=combine, doubts=True),
        aggregate=aggregate,
        seed=seed,
    )
