"""What other campaigns found out about the same call paths, as a prior on forms and on noise.

An older version of a program, another machine or a smaller input mostly has the same terms, with other
coefficients. So a hypothesis h has the prior probability ``(1 - w) standard(h) + w neighbour(h)``: either the
other campaign says nothing, or the form is one of those that were probable there, or one close to them. The
measurements decide which: a neighbour that misleads costs a factor of ``1 - w`` and no more, because the
standard prior goes on to weigh every hypothesis (a mixture prior that is robust to conflicts: Schmidli and
others 2014, Robust meta-analytic-predictive priors in clinical trials with historical control information).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from orchestrator.models.base import Category, Floats, Integers, coordinates, label_of
from orchestrator.models.data import Group
from orchestrator.models.noise import GUESS_WEIGHT, GUESSED, Located
from orchestrator.models.pmnf.hypotheses import block_values, structures, terms_used
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.types import Measurements, Point

# Probability, before anything is measured, that the form is that of the other campaign or close to it. Chosen
# by hand: even odds.
TRUST = 0.5
# By how much exponents and powers of logarithms may differ between campaigns: a block is less probable by a
# factor of e for every such distance. Chosen by hand: nine of ten blocks stay what they were.
_POWER, _LOGARITHM = 0.05, 0.3
# Most forms of another campaign that are kept, the least probability of one relative to the best, and
# decimals of what is written into files.
_FORMS, _LEAST, _DIGITS = 40, 1e-3, 12
# Observations that the noise of another campaign is worth: machines differ; and noise below which values
# repeat exactly, which no other campaign can say. Chosen by hand; not derived.
_NOISE_WEIGHT, _EXACT = 3.0, 1e-4
# Terms of a hypothesis up to which they are compared in every order; more are compared in the one they have.
_REORDERED = 3
_UNFIT = 2.0  # lack of fit in standard deviations of the noise from which a form does not fit
_TINY = 1e-300  # keeps logarithms of zero finite
# Exponent above which the normal form as published has no block.
_HIGHEST = 3.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbour:
    """The posterior of another campaign about one call path."""

    source: str  # name of that campaign
    # callpath, metric, category, parameters: what was modelled there.
    callpath: str
    metric: str
    category: Category
    parameters: tuple[str, ...]
    weights: Floats  # probabilities of forms, which sum to 1, shape (forms,)
    exponents: Floats  # pairs per form, term and parameter, shape (forms, terms, parameters, 2)
    coefficients: Floats  # constant first, shape (forms, terms + 1): what runs cost there
    noise: float | None  # relative standard deviation of a repetition there; None where it was a guess
    fits: bool  # whether the best form explained the measurements there within their noise

    @classmethod
    def of(cls, model: PmnfModel, source: str) -> Self:
        """Keep the most probable forms of a model."""
        posterior = model.posterior
        order = np.argsort(-posterior.weights, kind="stable")[:_FORMS]
        order = order[posterior.weights[order] >= _LEAST * posterior.weights[order[0]]]
        weights = posterior.weights[order]
        return cls(
            source=source,
            callpath=model.callpath,
            metric=model.metric,
            category=model.category,
            parameters=model.parameters,
            weights=weights / weights.sum(),
            exponents=posterior.exponents[order],
            coefficients=posterior.coefficients[order],
            noise=None if GUESSED in model.notes else model.noise,
            fits=posterior.correction is None and bool(posterior.misfit[0] <= _UNFIT * model.noise),
        )

    def document(self) -> dict[str, Any]:
        """Return it as a JSON-ready object; `read` is the inverse."""
        return {
            "callpath": self.callpath,
            "metric": self.metric,
            "category": dict(self.category),
            "parameters": list(self.parameters),
            "weights": [round(float(weight), _DIGITS) for weight in self.weights],
            "exponents": self.exponents.tolist(),
            "coefficients": self.coefficients.tolist(),
            "noise": self.noise,
            "fits": self.fits,
        }

    @classmethod
    def read(cls, document: Mapping[str, Any], source: str) -> Self:
        """Return what `document` wrote; raise ``KeyError`` or ``ValueError`` for anything else."""
        weights = np.array(document["weights"], dtype=float)
        parameters = tuple(map(str, document["parameters"]))
        exponents = np.array(document["exponents"], dtype=float)
        return cls(
            source=source,
            callpath=str(document["callpath"]),
            metric=str(document["metric"]),
            category=tuple((str(name), str(value)) for name, value in document["category"].items()),
            parameters=parameters,
            weights=weights,
            exponents=exponents.reshape(len(weights), -1, len(parameters), 2)
            if exponents.size
            else np.zeros((len(weights), 0, len(parameters), 2)),
            coefficients=np.array(document["coefficients"], dtype=float).reshape(len(weights), -1),
            noise=None if document["noise"] is None else float(document["noise"]),
            fits=bool(document["fits"]),
        )

    def terms(self, parameters: Sequence[str]) -> Floats | None:
        """Return the exponents of all forms in some parameters, (forms, terms, parameters, 2).

        Other parameters of the neighbour count as constant. None where it does not know all of these.
        """
        if not set(parameters) <= set(self.parameters):
            return None
        return self.exponents[:, :, [self.parameters.index(name) for name in parameters]]

    def seconds(self, points: Sequence[Point]) -> Floats:
        """Return what the other campaign expects at points that have all its parameters, shape (points,)."""
        x = coordinates(points, self.parameters)
        design = np.ones((*self.coefficients.shape, len(points)))
        for k in range(len(self.parameters)):
            pairs = self.exponents[:, :, k].reshape(-1, 2)
            design[:, 1:] *= block_values(x[:, k], pairs).reshape(*self.exponents.shape[:2], len(points))
        values = np.einsum("ft,ftn->fn", self.coefficients, design)
        return np.asarray(self.weights @ np.maximum(values, _TINY))


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What other campaigns know of call paths; ``counts`` are effort metrics that were measured there."""

    items: tuple[Neighbour, ...] = ()
    counts: Measurements | None = None

    def of(self, callpath: str, metric: str, category: Category) -> tuple[Neighbour, ...]:
        """Return what is known of a call path: in the same category, or else in any."""
        found = [item for item in self.items if label_of(item) == (callpath, metric)]
        alike = [item for item in found if item.category == category]
        return tuple(alike or found)

    def prices(
        self, metric: str, parameters: Collection[str], cores: Callable[[Point], float]
    ) -> Callable[[Sequence[Point]], Floats] | None:
        """Return expected core-seconds of runs, in the scale of the other campaigns; None if unknown.

        The geometric mean over campaigns: the ratios between points are about the same on another machine.

        Parameters
        ----------
        metric
            The one that is the duration of whole runs; without it the only call path there is.
        parameters
            Those that points have: models of others are left out.
        cores
            Cores of a run at a point.
        """
        known = [item for item in self.items if item.metric == metric] or self._only()
        whole = [item for item in known if set(item.parameters) <= set(parameters)]
        if not whole:
            return None

        def costs(points: Sequence[Point]) -> Floats:
            with np.errstate(all="ignore"):
                logs = np.mean([np.log(item.seconds(points)) for item in whole], axis=0)
            return np.asarray(np.exp(logs) * np.array([cores(point) for point in points]))

        return costs

    def _only(self) -> list[Neighbour]:
        return list(self.items) if len({item.callpath for item in self.items}) == 1 else []

    def of_group(self, group: Group) -> list[tuple[Neighbour, ...]]:
        """Return what is known of every call path of a group."""
        if not self.items:
            return [()] * len(group.labels)
        return [self.of(*label, group.category) for label in group.labels]


NOTHING = Neighbours()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expected:
    """Forms that other campaigns make probable, in the blocks of a search."""

    neighbours: tuple[Neighbour, ...]  # where they come from
    sources: tuple[str, ...]
    source: Integers  # the place of its campaign among the names of ``sources``, shape (forms,)
    log_weights: Floats  # logarithm of the probability of every form, shape (forms,)
    sizes: Integers  # terms of every form, shape (forms,)
    # Per parameter the logarithm of the probability that a block of a form is each block of the search, shape
    # (forms, terms, blocks).
    log_moved: tuple[Floats, ...]

    @classmethod
    def of(
        cls, neighbours: Sequence[Neighbour], parameters: Sequence[str], blocks: Sequence[Floats]
    ) -> Self | None:
        """Translate what neighbours found into blocks, (blocks, 2) per parameter; None if nothing is known.

        Each campaign has the same weight.
        """
        known = [(item, item.terms(parameters)) for item in neighbours] if parameters else []
        usable = [(item, terms) for item, terms in known if terms is not None]
        if not usable:
            return None
        sources = tuple(dict.fromkeys(item.source for item, _ in usable))
        forms: dict[tuple[int, tuple[tuple[float, ...], ...]], float] = {}
        for item, exponents in usable:
            for weight, form in zip(item.weights, exponents, strict=True):
                # A term that varies in other parameters only is a part of the constant here.
                used = {tuple(map(float, term.ravel())) for term in form if np.any(term)}
                key = sources.index(item.source), tuple(sorted(used))
                forms[key] = forms.get(key, 0.0) + float(weight) / len(usable)
        width = max(max(len(terms) for _, terms in forms), 1)
        exponents = np.zeros((len(forms), width, len(parameters), 2))
        for place, (_, terms) in enumerate(forms):
            for t, term in enumerate(terms):
                exponents[place, t] = np.reshape(term, (-1, 2))
        return cls(
            neighbours=tuple(item for item, _ in usable),
            sources=sources,
            source=np.array([source for source, _ in forms], dtype=np.intp),
            log_weights=np.log(np.maximum(list(forms.values()), 1e-300)),
            sizes=np.array([len(terms) for _, terms in forms], dtype=np.intp),
            log_moved=tuple(_log_moved(exponents[:, :, k], table) for k, table in enumerate(blocks)),
        )

    def terms(self) -> NDArray[np.int16]:
        """Return the forms in the closest blocks, shape (forms, terms, parameters)."""
        return np.stack([moved.argmax(axis=2) for moved in self.log_moved], axis=2).astype(np.int16)

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Whether forms fitted in each source, shape (sources,)."""
        return np.array([all(n.fits for n in self.neighbours if n.source == name) for name in self.sources])

    def log_mass(self, terms: NDArray[np.int16]) -> Floats:
        """Return log probabilities that hypotheses (hypotheses, terms, parameters) come from each source.

        Returns
        -------
        Shape (sources, hypotheses).
        """
        used = terms_used(terms)
        each = np.full((len(self.sizes), len(terms)), -np.inf)
        for size in np.unique(self.sizes):
            mine, alike = np.flatnonzero(self.sizes == size), np.flatnonzero(used == size)
            orders = permutations(range(size)) if size <= _REORDERED else [tuple(range(size))]
            for order in orders:
                logs = np.zeros((len(mine), len(alike)))
                for place, t in enumerate(order):
                    for k, moved in enumerate(self.log_moved):
                        logs += moved[mine, place][:, terms[alike, t, k]]
                each[np.ix_(mine, alike)] = np.maximum(each[np.ix_(mine, alike)], logs)
        each += self.log_weights[:, None]
        groups = [np.flatnonzero(self.source == place) for place in range(len(self.sources))]
        with np.errstate(divide="ignore"):
            return np.stack([logsumexp(each[group], axis=0) for group in groups])

    def mixed(self, standard: Floats, terms: NDArray[np.int16]) -> tuple[Floats, Floats]:
        """Return log priors of hypotheses, and the share of each that every source has in it.

        Parameters
        ----------
        standard
            Log priors without any neighbour, on whose scale all hypotheses of a structure sum to 1.
        terms
            The hypotheses.

        Returns
        -------
        Shapes (hypotheses,) and (sources, hypotheses).
        """
        scale = np.log(structures(len(self.log_moved)))
        mass = np.log(TRUST) + scale + self.log_mass(terms)
        both = np.logaddexp(np.log(1 - TRUST) + standard, logsumexp(mass, axis=0))
        return both, np.exp(mass - both)


def _log_moved(pairs: Floats, blocks: Floats) -> Floats:
    """Return log probabilities of blocks (blocks, 2) given those of another campaign, (forms, terms, 2)."""
    distance = np.abs(pairs[:, :, None] - blocks) @ np.array([1 / _POWER, 1 / _LOGARITHM])
    none = ~pairs.any(axis=2)
    logs = -distance
    logs[:, :, 0] = -np.inf  # a parameter that appears there appears here
    with np.errstate(invalid="ignore", divide="ignore"):
        logs -= logsumexp(logs, axis=2, keepdims=True)
    logs[none] = -np.inf
    logs[none, 0] = 0.0
    return np.asarray(np.where(np.isnan(logs), -np.inf, logs))


def needed_blocks(
    neighbours: Sequence[tuple[Neighbour, ...]], parameters: Sequence[str]
) -> NDArray[np.bool_]:
    """Return whether neighbours of call paths have falling blocks, and such above the published exponents.

    Returns
    -------
    Shape (call paths, parameters or at least 1, 2).
    """
    result = np.zeros((len(neighbours), max(len(parameters), 1), 2), dtype=bool)
    for row, known in enumerate(neighbours):
        for item in known:
            terms = item.terms(parameters)
            if terms is not None and terms.size:
                result[row, :, 0] |= terms[..., 0].min(axis=(0, 1)) < 0
                result[row, :, 1] |= terms[..., 0].max(axis=(0, 1)) > _HIGHEST
    return result


def informed(
    groups: Sequence[Group], located: Sequence[Located], neighbours: Neighbours
) -> Sequence[Located]:
    """Add what other campaigns know of the noise of call paths, as a few more observations of it."""
    if not neighbours.items:
        return located
    return [_informed(*pair, neighbours) for pair in zip(groups, located, strict=True)]


def _informed(group: Group, located: Located, neighbours: Neighbours) -> Located:
    sigma, freedom = located.sigma.copy(), located.freedom.copy()
    for row, known in enumerate(neighbours.of_group(group)):
        noises = [item.noise for item in known if item.noise is not None and item.noise > _EXACT]
        if noises and sigma[row] > _EXACT:
            own = 0.0 if freedom[row] <= GUESS_WEIGHT else float(freedom[row])
            typical = np.exp(np.mean(np.log(noises)))
            freedom[row] = own + _NOISE_WEIGHT
            sigma[row] = np.sqrt((own * sigma[row] ** 2 + _NOISE_WEIGHT * typical**2) / freedom[row])
    return replace(located, sigma=sigma, freedom=freedom)
