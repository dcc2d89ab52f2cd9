"""A model that is the sum of other models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from orchestrator.models.base import Category, Floats, Model, document
from orchestrator.models.belief import LogBelief, ModelWithBelief
from orchestrator.models.intervals import FromPredictive, Predictive, predictive
from orchestrator.models.symbolic import LARGEST_LOG, Symbolic, number_text, sum_text, term_values, terms_of
from orchestrator.types import Point
from orchestrator.units import listed

# Draws that stand for the belief, and the seed of their generator: the same at every call.
_DRAWS, _SEED = 128, 0
# Terms that are shown, the share from which the correction of a part is, and how far beyond the measured
# values the share counts. Chosen by hand.
_SHOWN, _LARGE, _BEYOND = 12, 0.05, 16.0
_NAMED = 5  # parts that the note names
# The short form: terms until they make up this share of all, and no more than these. Chosen by hand.
_SHORT_SHARE, _SHORT_TERMS = 0.9, 3
_TINY = 1e-300  # keeps quotients of zero finite


@dataclass(frozen=True, eq=False, kw_only=True)
class Summed(FromPredictive):
    """The model of a call path as the sum of the models of its parts."""

    own: ModelWithBelief  # the model of the call path alone, from which it has its noise
    # Models of what it includes, and of what it does itself; all have terms.
    parts: tuple[ModelWithBelief, ...]
    scale: float  # by which their sum is multiplied, for what is negligible
    doubt: float  # standard deviation of its logarithm
    correlation: float  # of the errors of the parts, 0 to 1
    smape: float  # on the measured locations, 0..200 %
    points: tuple[Point, ...]  # what was measured

    @property
    def callpath(self) -> str:  # noqa: D102
        return self.own.callpath

    @property
    def metric(self) -> str:  # noqa: D102
        return self.own.metric

    @property
    def parameters(self) -> tuple[str, ...]:
        """Those of all parts."""
        return tuple(dict.fromkeys(chain.from_iterable(part.parameters for part in self.parts)))

    @property
    def category(self) -> Category:
        """That of all parts."""
        return self.own.category

    @cached_property
    def terms(self) -> list[dict[str, Any]]:
        """Those of all parts: equal ones merged, and so many that they can be read."""
        return _condensed(_merged(self.leaves()), self._reach)

    @property
    def normal_form(self) -> str:
        """The terms as text, without corrections of the parts."""
        return sum_text(self.terms)

    @cached_property
    def expression(self) -> str:
        """The terms, and the expressions of large parts that are more than a sum of terms."""
        leaves, reach = list(self.leaves()), self._reach
        total = np.maximum(self.value(reach), _TINY)
        own = [not _is_plain(leaf) and _is_large(scale * leaf.value(reach) / total) for scale, leaf in leaves]
        plain = [item for item, apart in zip(leaves, own, strict=True) if not apart]
        texts = [_scaled(*item) for item, apart in zip(leaves, own, strict=True) if apart]
        if plain:
            texts.insert(0, sum_text(_condensed(_merged(plain), reach)))
        return " + ".join(texts)

    def largest_terms(self, point: Point | None = None) -> list[dict[str, Any]]:
        """Return the terms that make up most of the sum at a point, the largest first.

        Parameters
        ----------
        point
            Where they are compared; None: at the largest measured values of all parameters.
        """
        place = Point.of({**self.points[0].as_dict(), **self._corner}) if point is None else point
        table = _table([place])
        with np.errstate(all="ignore"):
            sizes = np.abs([term_values(term, table)[0] for term in self.terms])
        if not np.isfinite(sizes).all():
            return self.terms
        order = np.argsort(-sizes, kind="stable")
        enough = int(np.searchsorted(np.cumsum(sizes[order]), _SHORT_SHARE * sizes.sum())) + 1
        return [self.terms[k] for k in order[: min(enough, _SHORT_TERMS)]]

    def leaves(self) -> Iterator[tuple[float, Model]]:
        """Yield the models that are no sums themselves, each with what it is multiplied by."""
        for part in self.parts:
            if isinstance(part, Summed):
                yield from ((self.scale * scale, leaf) for scale, leaf in part.leaves())
            else:
                yield self.scale, part

    @property
    def _corner(self) -> dict[str, float]:
        return {name: max(point.number(name) for point in self.points) for name in self.parameters}

    @property
    def _reach(self) -> list[Point]:
        """Measured points, and some far beyond in one parameter or all."""
        corner = self._corner
        beyond = {name: _BEYOND * value for name, value in corner.items()}
        first = self.points[0].as_dict()
        alone = ({**first, **corner, name: beyond[name]} for name in corner)
        return [*self.points, Point.of({**first, **beyond}), *map(Point.of, alone)]

    @property
    def noise(self) -> float:
        """That of the call path."""
        return self.own.noise

    @property
    def notes(self) -> tuple[str, ...]:
        """That it is a sum, and what holds for the call path and a part of it alike."""
        known = {note for part in self.parts for note in part.notes}
        return (*(note for note in self.own.notes if note in known), self._note)

    @property
    def _note(self) -> str:
        names = [part.callpath.removeprefix(self.callpath) for part in self.parts]
        return f"the sum of the models of its parts: {listed(names, _NAMED)}"

    def predictive(self, points: Sequence[Point]) -> Predictive:
        """Return the draws at each point, all equally probable."""
        shared = predictive(self.own, points[:0]).shared
        return Predictive.of_belief(self.value(points), self.belief(points), shared)

    def value(self, points: Sequence[Point]) -> Floats:
        """Return the sum of the values."""
        return self._sum([part.value(points) for part in self.parts])

    def expected(self, points: Sequence[Point]) -> Floats:
        """Return the sum of the means."""
        return self._sum([part.expected(points) for part in self.parts])

    def _sum(self, values: Sequence[Floats]) -> Floats:
        result: Floats = self.scale * np.sum(values, axis=0)
        return result

    def belief(self, points: Sequence[Point]) -> LogBelief:
        """Return draws of all parts, added up: members that are equally probable and sure of themselves."""
        rng = np.random.default_rng([_SEED, len(self.parts)])
        beliefs = [part.belief(points) for part in self.parts]
        mean = np.logaddexp.reduce([_drawn(belief, rng) for belief in beliefs], axis=0) + np.log(self.scale)
        centre = mean.mean(axis=0)
        share = np.exp(np.minimum([belief.centre for belief in beliefs] - centre, 0.0))
        sizes = share * np.sqrt([belief.variance for belief in beliefs])
        # The draws of different parts are independent, their errors are not.
        wider = self._together(sizes) / np.maximum(np.sqrt((sizes**2).sum(axis=0)), _TINY)
        rough = share * np.sqrt([belief.weights @ belief.rough**2 for belief in beliefs])
        return LogBelief(
            weights=np.full(_DRAWS, 1 / _DRAWS),
            mean=centre + wider * (mean - centre),
            factor=np.zeros((_DRAWS, 0, len(points))),
            rough=np.broadcast_to(np.hypot(self._together(rough), self.doubt), mean.shape),
            rough_is_measured=any(belief.rough_is_measured for belief in beliefs),
            noise=self.noise,
        )

    def _together(self, sizes: Floats) -> Floats:
        """Return the size of the sum of errors that have some correlation; sizes have shape (parts, n)."""
        apart, same = (sizes**2).sum(axis=0), sizes.sum(axis=0) ** 2
        result: Floats = np.sqrt((1 - self.correlation) * apart + self.correlation * same)
        return result

    def document(self) -> dict[str, Any]:
        """Return the model as a JSON-ready object, with the names of its parts."""
        return {**document(self), "parts": [part.callpath for part in self.parts]}


def _drawn(belief: LogBelief, rng: np.random.Generator) -> Floats:
    """Return draws of log predictions without their roughness, shape (draws, n)."""
    places = (rng.permutation(_DRAWS) + 0.5) / _DRAWS  # as many of every member as its weight says
    chosen = np.minimum(np.searchsorted(np.cumsum(belief.weights), places), len(belief.weights) - 1)
    z = rng.standard_normal((_DRAWS, belief.factor.shape[1]))
    result: Floats = belief.mean[chosen] + np.einsum("dqn,dq->dn", belief.factor[chosen], z)
    return np.minimum(result, LARGEST_LOG)


def _is_plain(leaf: Model) -> bool:
    return isinstance(leaf, Symbolic) and leaf.expression == leaf.normal_form


def _scaled(scale: float, leaf: Model) -> str:
    factor = number_text(scale)
    return f"({leaf.expression})" if factor == "1" else f"{factor} * ({leaf.expression})"


def _merged(leaves: Iterable[tuple[float, Model]]) -> list[dict[str, Any]]:
    """Return the terms of models with their factors, the constant first; equal ones are merged."""
    found: dict[tuple[tuple[str, float, float], ...], dict[str, Any]] = {}
    for scale, term in ((scale, term) for scale, leaf in leaves for term in terms_of(leaf)):
        key = tuple(sorted((f["parameter"], f["exponent"], f["log_exponent"]) for f in term["factors"]))
        known = found.setdefault(key, {**term, "coefficient": 0.0})
        known["coefficient"] += scale * term["coefficient"]
    return sorted(found.values(), key=lambda term: bool(term["factors"]))


def _condensed(terms: Sequence[dict[str, Any]], points: Sequence[Point]) -> list[dict[str, Any]]:
    """Return the largest terms, enlarged by those of the others that are most alike."""
    table = _table(points)
    values = np.array([term_values(term, table) for term in terms])
    sizes = np.abs(values)
    share = (sizes / np.maximum(sizes.sum(axis=0), _TINY)).max(axis=1)
    order = np.argsort(-share, kind="stable")
    kept = sorted(order[:_SHOWN].tolist())
    logs = np.log(np.maximum(sizes, _TINY))
    factor = np.ones(len(terms))
    for k in order[_SHOWN:]:
        ratio = logs[k] - logs[kept]
        alike = int(np.argmin(ratio.std(axis=1)))
        sign = np.sign(values[k].sum() * values[kept[alike]].sum())
        factor[kept[alike]] += sign * np.exp(ratio[alike].mean())
    return [{**terms[k], "coefficient": float(terms[k]["coefficient"] * factor[k])} for k in kept]


def _is_large(share: Floats) -> bool:
    return bool(share.max() > _LARGE)


def _table(points: Sequence[Point]) -> dict[str, Floats]:
    """Return the values of every numeric parameter at points."""
    numeric = [name for name, value in points[0].items if not isinstance(value, str)]
    return {name: np.array([point.number(name) for point in points]) for name in numeric}
