"""The ensemble of networks of Lee et al. (section 3.3): ten small ones that stop early, each by other points.

Weights follow the signs of gradients alone, each with a step of its own: resilient backpropagation
(Riedmiller and Braun 1993), as iRprop- (Igel and Hüsken 2003), which forgets a gradient whose sign has
changed. All ten networks are computed together, as one product of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.learned.columns import columns_of
from orchestrator.models.learned.distances import Scaled, standardised
from orchestrator.models.learned.fitted import learner, named
from orchestrator.models.regression.learner import Fitted, Learner
from orchestrator.models.regression.samples import Samples

# The paper's: parts of the samples, units of the hidden layer, and the largest initial weight.
_PARTS, _UNITS, _INITIAL = 10, 16, 0.01
# Riedmiller and Braun's: factors of steps, their bounds, and the first step.
_FALL, _RISE, _SMALLEST, _LARGEST, _FIRST = 0.5, 1.2, 1e-6, 50.0, 0.1
# Most steps, and steps without a better error of the early stopping set after which a network is finished.
STEPS, _PATIENCE = 5000, 500
# Responses are scaled to this range of the output's sigmoid.
_LOW, _HIGH = 0.1, 0.9
# Of more samples, a fit takes longer than all other networks.
_MOST = 2048


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of several networks with one hidden layer; of each layer the last is that of the constant 1."""

    hidden: Floats  # from inputs to units, shape (inputs + 1, networks, units)
    output: Floats  # from units to the output, shape (networks, units + 1)

    @classmethod
    def drawn(cls, inputs: int, networks: int, units: int, rng: np.random.Generator) -> Weights:
        """Return weights between -0.01 and 0.01."""
        return cls(
            rng.uniform(-_INITIAL, _INITIAL, (inputs + 1, networks, units)),
            rng.uniform(-_INITIAL, _INITIAL, (networks, units + 1)),
        )

    def of(self, networks: NDArray[np.bool_]) -> Weights:
        """Return those of some networks."""
        return Weights(self.hidden[:, networks], self.output[networks])

    def outputs(self, inputs: Floats) -> Floats:
        """Return the outputs (equation 6) for inputs (n, inputs), shape (n, networks)."""
        return forward(self, with_one(inputs))[1]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Ensemble:
    """The mean of networks."""

    text: str
    columns: Scaled  # the map from coordinates to inputs
    weights: Weights  # of the networks
    # low, span: logarithms of values at the outputs 0 and 1: the smaller one, and the distance.
    low: float
    span: float
    # Mean absolute log ratio of every network at the samples that it was neither fitted to nor stopped by,
    # shape (networks,).
    errors: Floats

    def at(self, x: Floats) -> Floats:
        """Return logarithms at coordinates (n, axes), shape (n,); NaN at unknown coordinates."""
        return np.asarray(self.each(x).mean(axis=1), np.float64)

    def each(self, x: Floats) -> Floats:
        """Return the logarithms of every network at coordinates (n, axes), shape (n, networks)."""
        known = np.isfinite(x).all(axis=1)
        logs = np.full((len(x), len(self.weights.output)), np.nan)
        logs[known] = self.low + self.span * self.weights.outputs(self.columns.at(x[known]))
        return logs


def rprop(*, steps: int = STEPS, **derived: bool) -> Learner:
    """Return the mean of ten networks with 16 sigmoid units, fitted by resilient backpropagation.

    Every network is fitted to eight tenths of the samples, stops by the ninth, and is scored by the last.

    Parameters
    ----------
    steps
        At most so many; early stopping mostly ends before.
    derived
        Derived columns, see `columns_of`.
    """
    name = named(f"rprop: {_PARTS} networks of {_UNITS} sigmoid units", **derived)

    def build(samples: Samples, rng: np.random.Generator) -> Fitted:
        columns = standardised(columns_of(samples, **derived), samples)
        inputs = columns.at(samples.x)
        low, high = float(samples.y.min()), float(samples.y.max())
        span = (high - low) / (_HIGH - _LOW)
        low -= _LOW * span
        fitted, stopping, scored = shares(len(samples), rng)
        weights = Weights.drawn(inputs.shape[1], fitted.shape[1], _UNITS, rng)
        weights = trained(weights, inputs, (samples.y - low) / span, fitted, stopping, steps)
        ensemble = Ensemble(
            text=name, columns=columns, weights=weights, low=low, span=span, errors=np.empty(0)
        )
        apart = np.abs(ensemble.each(samples.x) - samples.y[:, None])
        errors = (apart * scored).sum(axis=0)
        text = f"{name}, errors {errors.mean():.3f} ± {errors.std(ddof=1):.3f}"
        return replace(ensemble, errors=errors, text=text)

    return learner(name, build, _MOST)


def shares(n: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Return which samples are fitted, stop, and score, per network: (n, networks) each; columns sum to 1.

    There are ten parts of equal size, or as many as samples. Network k leaves out the parts k and k + 1: the
    first stops it, the second scores it.
    """
    count = min(_PARTS, n)
    part = np.empty(n, np.intp)
    part[rng.permutation(n)] = np.arange(n) % count
    number = np.arange(count)
    stopping = part[:, None] == number
    scored = part[:, None] == (number + 1) % count
    parts = (~(stopping | scored), stopping, scored)
    fitted, stopped, left = (each / each.sum(axis=0) for each in parts)
    return fitted, stopped, left


def trained(
    weights: Weights, inputs: Floats, targets: Floats, fitted: Floats, stopping: Floats, most: int = STEPS
) -> Weights:
    """Return the weights with which the early stopping sets have their smallest squared errors.

    Parameters
    ----------
    weights
        Where networks begin.
    inputs, targets
        Of the samples, shapes (n, inputs) and (n,).
    fitted, stopping
        Shares of the samples in the error that is minimised, and in the one that stops, (n, networks) each.
    most
        Steps at most.
    """
    inputs = with_one(inputs)
    best = Weights(weights.hidden.copy(), weights.output.copy())
    running = np.arange(len(weights.output))
    smallest, since = np.full(len(running), np.inf), np.zeros(len(running), int)
    steps = Weights(np.full_like(weights.hidden, _FIRST), np.full_like(weights.output, _FIRST))
    before = Weights(np.zeros_like(weights.hidden), np.zeros_like(weights.output))
    for _ in range(most):
        units, output = forward(weights, inputs)
        wrong = output - targets[:, None]
        error = (stopping * wrong**2).sum(axis=0)
        better = error < smallest
        smallest, since = np.where(better, error, smallest), np.where(better, 0, since + 1)
        best.hidden[:, running[better]] = weights.hidden[:, better]
        best.output[running[better]] = weights.output[better]
        left = since < _PATIENCE
        if not left.any():
            break
        slopes = backward(weights, inputs, units, output, fitted * wrong)
        weights, steps, before = _stepped(weights, steps, before, slopes)
        if not left.all():
            running, smallest, since = running[left], smallest[left], since[left]
            fitted, stopping = fitted[:, left], stopping[:, left]
            weights, steps, before = weights.of(left), steps.of(left), before.of(left)
    return best


def forward(weights: Weights, inputs: Floats) -> tuple[Floats, Floats]:
    """Return the units (n, networks, units) and the outputs (n, networks) for inputs with a one."""
    _, networks, units = weights.hidden.shape
    hidden = _sigmoid(inputs @ weights.hidden.reshape(len(weights.hidden), -1))
    hidden = hidden.reshape(len(inputs), networks, units)
    sums = np.einsum("nku,ku->nk", hidden, weights.output[:, :-1]) + weights.output[:, -1]
    return hidden, _sigmoid(sums)


def backward(weights: Weights, inputs: Floats, units: Floats, output: Floats, wrong: Floats) -> Weights:
    """Return the slopes of half the squared errors (equation 7) by all weights, by backpropagation.

    Parameters
    ----------
    weights, inputs
        Of the networks, and of the samples with a one.
    units, output
        As `forward` returns them.
    wrong
        Errors of the outputs, times what each counts, shape (n, networks).
    """
    at_output = wrong * output * (1 - output)
    of_output = np.column_stack([np.einsum("nk,nku->ku", at_output, units), at_output.sum(axis=0)])
    at_units = units * (1 - units)
    at_units *= weights.output[:, :-1]
    at_units *= at_output[:, :, None]
    of_hidden = inputs.T @ at_units.reshape(len(inputs), -1)
    return Weights(of_hidden.reshape(weights.hidden.shape), of_output)


def _stepped(
    weights: Weights, steps: Weights, before: Weights, slopes: Weights
) -> tuple[Weights, Weights, Weights]:
    """Return weights after a step, the steps, and the slopes that the next step compares with."""
    hidden = _layer(weights.hidden, steps.hidden, before.hidden, slopes.hidden)
    output = _layer(weights.output, steps.output, before.output, slopes.output)
    return Weights(hidden[0], output[0]), Weights(hidden[1], output[1]), Weights(hidden[2], output[2])


def _layer(weight: Floats, step: Floats, before: Floats, slope: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the same for one layer, as arrays of one shape."""
    agreement = before * slope
    factor = np.where(agreement > 0, _RISE, np.where(agreement < 0, _FALL, 1.0))
    step = np.clip(step * factor, _SMALLEST, _LARGEST)
    slope = np.where(agreement < 0, 0.0, slope)
    return weight - np.sign(slope) * step, step, slope


def _sigmoid(sums: Floats) -> Floats:
    # In terms of the hyperbolic tangent nothing overflows.
    return np.asarray(0.5 * (1 + np.tanh(0.5 * sums)), np.float64)


def with_one(inputs: Floats) -> Floats:
    """Return inputs with the constant 1 as the last."""
    return np.column_stack([inputs, np.ones(len(inputs))])
