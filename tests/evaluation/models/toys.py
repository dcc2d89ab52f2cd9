"""Modelers that need no registry, so that processes of their own find them, and samples to fit."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.evaluation.models.fit import Contender
from orchestrator.models.base import Model, Modeler
from orchestrator.types import Measurement, Measurements, Point
from tests.models import nearest


def samples(count: int = 40, *, noise: float = 0.0, seed: int = 0, texts: bool = False) -> Measurements:
    """``t = 0.01 m n`` at random points, half as much with the solver ``b``."""
    rng = np.random.default_rng(seed)
    values: dict[Point, tuple[float, ...]] = {}
    while len(values) < count:
        point = {"m": int(rng.integers(1, 1000)), "n": int(rng.integers(1, 1000))}
        factor = 1.0
        if texts:
            point = {**point, "solver": "ab"[len(values) % 2]}  # type: ignore[dict-item]
            factor = 1.0 if point["solver"] == "a" else 0.5  # type: ignore[comparison-overlap]
        time_ = factor * 0.01 * point["m"] * point["n"] * float(np.exp(noise * rng.standard_normal()))
        values[Point.of(point)] = (time_,)
    names = ("m", "n", "solver") if texts else ("m", "n")
    return Measurements(names, (Measurement("main", "t", values),))


def nearest_point(measurements: Measurements) -> tuple[Model, ...]:
    return nearest.modeler()(measurements)


@dataclass(frozen=True, slots=True)
class Toy(Contender):
    """A contender whose modeler is a function of a module."""

    model: Modeler = nearest_point

    def modeler(self) -> Modeler:
        return self.model


def warning(measurements: Measurements) -> tuple[Model, ...]:
    warnings.warn("did not converge", RuntimeWarning, stacklevel=2)
    return nearest_point(measurements)


def refusing(measurements: Measurements) -> tuple[Model, ...]:
    raise ModelError("fewer samples\nthan cells")


def faulty(measurements: Measurements) -> tuple[Model, ...]:
    raise ZeroDivisionError("a mistake of the family")


def dying(measurements: Measurements) -> tuple[Model, ...]:
    os.kill(os.getpid(), 9)
    raise AssertionError


def sleeping(measurements: Measurements) -> tuple[Model, ...]:
    time.sleep(600)
    raise AssertionError


@dataclass(frozen=True, slots=True)
class Telling(Contender):
    """Its fit writes its process number into the file that is its label, and does not end."""

    def modeler(self) -> Modeler:
        def fit(measurements: Measurements) -> tuple[Model, ...]:
            Path(self.label).write_text(f"{os.getpid()}\n")
            return sleeping(measurements)

        return fit


def toy(model: Modeler, label: str = "") -> Toy:
    return Toy(label or getattr(model, "__name__", "toy"), "toy", {}, model)
