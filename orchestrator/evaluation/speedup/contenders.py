"""What is compared: variants of Amdahl's law, its learned overheads, Oliveira's model, and other modelers.

Alasandagutti et al., Grey-Box Machine Learning Prediction of Parallel Application Scaling, section 5. Every
contender predicts run times; a predicted speedup is a measured time on one process over a predicted time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from orchestrator.errors import CampaignError, ModelError
from orchestrator.evaluation.models.fit import Contender as AnyModeler
from orchestrator.evaluation.speedup.runs import Runs, Scaling
from orchestrator.models import speedup_learner
from orchestrator.models.base import Floats
from orchestrator.models.regression.samples import arranged, encoded
from orchestrator.units import did_you_mean

Sight = Literal["small", "near", "all"]
"""Which runs a contender may use beside the training set: those on at most c_f / 2 processes of larger sizes,
on at most c_f processes, or all, also those that it is tested with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a contender is asked for."""

    seen: Runs  # the runs that it may use
    asked: Runs  # those whose times it predicts
    parameters: tuple[str, ...]  # names of their coordinates
    scaling: Scaling  # what kind
    # cutoff, largest: c_f and w_f: the training set has at most so many processes, and problems of at most
    # this size.
    cutoff: float
    largest: float


Predict = Callable[[Question, np.random.Generator], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One row of a table."""

    # name, text: for the command, and in tables.
    name: str
    text: str
    sees: Sight  # which runs it may use
    predict: Predict  # returns the seconds of the runs that are asked for
    scalings: tuple[Scaling, ...] = ("strong", "weak", "hybrid")  # those that it is made for
    by_scaling: bool = True  # whether its predictions depend on the kind of scaling that is asked for
    random: bool = False  # whether its fit is


def _law(overhead: str, variant: str = "aggregate", *, inside: bool = True) -> Predict:
    """Return the law with an overhead; all that is ``inside`` the cut-offs is fitted, or all that is seen."""

    def predict(question: Question, rng: np.random.Generator) -> Floats:
        known = question.seen.measurements(question.parameters)
        learner = speedup_learner(
            known,
            overhead=overhead,
            variant=variant,
            scaling=question.scaling,
            most_processes=question.cutoff,
            largest={"n": question.largest} if inside and "n" in question.parameters else {},
        )
        [series], _ = arranged(known, "auto")
        fitted = learner.fitted(series.samples, rng)
        return np.exp(fitted.at(encoded(series.samples.axes, question.asked.points(question.parameters))))

    return predict


def _modeler(text: str) -> Predict:
    """Return any modeler that measurements can be given to."""
    chosen = AnyModeler.of(text)

    def predict(question: Question, rng: np.random.Generator) -> Floats:
        [model] = chosen.modeler()(question.seen.measurements(question.parameters))
        return model.value(question.asked.points(question.parameters))

    return predict


def _noiseless(question: Question, rng: np.random.Generator) -> Floats:
    if not np.isfinite(question.asked.exact).all():
        raise ModelError("the times without noise are known of simulated runs only")
    return question.asked.exact


_STRONG: tuple[Scaling, ...] = ("strong",)
_OWN = (
    Contender(name="forest", text="random forest", sees="small", predict=_law("forest"), random=True),
    Contender(name="boosting", text="boosted trees", sees="small", predict=_law("boosting"), random=True),
    Contender(name="network", text="network", sees="small", predict=_law("network"), random=True),
    Contender(
        name="oliveira-swarm",
        text="Oliveira, swarm",
        sees="small",
        predict=_law("oliveira-swarm"),
        scalings=_STRONG,
        random=True,
    ),
    Contender(
        name="oliveira",
        text="Oliveira, least squares",
        sees="small",
        predict=_law("oliveira"),
        scalings=_STRONG,
        random=True,
    ),
    Contender(
        name="oliveira-more",
        text="Oliveira, small runs, too",
        sees="small",
        predict=_law("oliveira", inside=False),
        scalings=_STRONG,
        random=True,
    ),
    Contender(name="aggregate", text="Amdahl aggregate p", sees="small", predict=_law("none")),
    Contender(name="optimal", text="Amdahl optimal p", sees="near", predict=_law("none", "optimal")),
    Contender(name="full-data", text="Amdahl optimal p FD", sees="all", predict=_law("none", "full-data")),
    Contender(name="noise", text="no error but noise", sees="all", predict=_noiseless, by_scaling=False),
)
_BY_NAME = MappingProxyType({contender.name: contender for contender in _OWN})

STANDARD = (*(name for name in _BY_NAME if name != "noise"), "pmnf", "auto")
"""What is compared unless something else is asked for."""
SIMULATED = (*STANDARD, "noise")
"""The same for simulated runs, with the error that noise alone causes."""


def contender(name: str) -> Contender:
    """Return a contender by its name, or any modeler as ``pmnf`` or ``learned:only=trees``.

    Raises
    ------
    CampaignError
        For an unknown name, and for options that a modeler does not take.
    """
    if name in _BY_NAME:
        return _BY_NAME[name]
    try:
        return Contender(name=name, text=f"`{name}`", sees="small", predict=_modeler(name), by_scaling=False)
    except CampaignError as error:
        if ":" in name or not str(error).startswith("unknown model"):
            raise
        raise CampaignError(
            f"unknown contender {name!r}: {did_you_mean(name, [*_BY_NAME, 'pmnf', 'auto', 'speedup'])}"
        ) from None
