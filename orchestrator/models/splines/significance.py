"""Which terms matter: F tests of each predictor, of its bends, and of every interaction.

As Harrell's ``anova`` of a fit: a predictor is tested with all interactions that it is part of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.splines.design import Design
from orchestrator.models.splines.moments import Moments

# A probability below this is zero to readers.
_CERTAIN = 1e-16


@dataclass(frozen=True, slots=True, kw_only=True)
class TermTest:
    """Whether a regression is worse without a term."""

    term: str  # the name of a parameter, ``bends of NAME``, or ``NAME:NAME`` for an interaction
    # By how much the residual sum of squares grows per degree of freedom of the term, over the variance.
    f: float
    # freedom, rest: degrees of freedom of the term, and of the residuals.
    freedom: int
    rest: int
    p: float  # probability of such an F if the term did not matter

    @property
    def text(self) -> str:
        """One of a list for readers: ``bends of n (F 3.2, by chance 4 %)``."""
        chance = f"< {100 * _CERTAIN:g}" if self.p < _CERTAIN else f"{100 * self.p:.2g}"
        return f"{self.term} (F {self.f:.3g}, by chance {chance} %)"

    @property
    def document(self) -> dict[str, Any]:
        """The same, JSON-ready."""
        return {"term": self.term, "f": self.f, "freedom": [self.freedom, self.rest], "p": self.p}


def term_tests(design: Design, moments: Moments) -> tuple[TermTest, ...]:
    """Return the tests of all terms, those of predictors first; none where no residual is left.

    Parameters
    ----------
    design
        The regression.
    moments
        Of its columns, standardised.
    """
    from scipy.stats import f as distribution

    coefficients, rank = moments.solved()
    rest = moments.rows - rank
    # Rounding is no residual.
    variance = max(moments.loss(coefficients), 1e-13 * moments.square) / max(rest, 1)
    if rest < 1 or variance == 0:
        return ()
    found = []
    for term, dropped in _terms(design):
        without = moments.some(~dropped)
        other, smaller = without.solved()
        freedom = rank - smaller
        if freedom < 1:
            continue
        grown = max(without.loss(other) - moments.loss(coefficients), 0.0)
        value = grown / freedom / variance
        p = float(distribution.sf(value, freedom, rest))
        found.append(TermTest(term=term, f=float(value), freedom=freedom, rest=rest, p=p))
    return tuple(found)


def note(tests: Sequence[TermTest]) -> str:
    """Return the tests as a note, the strongest predictors and interactions first; empty for none."""
    plain = sorted((test for test in tests if " " not in test.term), key=lambda test: -test.f)
    idle = [test.term for test in plain if test.p > 0.05]
    matter = "; ".join(test.text for test in plain if test.p <= 0.05)
    parts = [
        *([f"terms that matter (F tests): {matter}"] if matter else []),
        *([f"without influence (p > 0.05): {', '.join(idle)}"] if idle else []),
    ]
    return "; ".join(parts)


def _terms(design: Design) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield every term with the columns that are dropped without it."""
    count, blocks, bent = len(design.predictors), design.blocks, design.bent
    pairs = list(zip(design.pairs, blocks[count:], strict=True))
    for k, (predictor, block) in enumerate(zip(design.predictors, blocks, strict=False)):
        dropped = np.zeros(design.width, bool)
        for part in (block, *(place for pair, place in pairs if k in pair)):
            dropped[part] = True
        yield predictor.axis.name, dropped
    for k, predictor in enumerate(design.predictors):
        if predictor.knots:
            yield f"bends of {predictor.axis.name}", bent[k]
    for pair, block in pairs:
        dropped = np.zeros(design.width, bool)
        dropped[block] = True
        yield ":".join(design.predictors[k].axis.name for k in pair), dropped
