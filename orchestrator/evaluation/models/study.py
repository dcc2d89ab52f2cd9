"""Modelers compared on measured samples: errors, sizes and times over the number of training points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.errors import MeasurementError
from orchestrator.evaluation.models import samples
from orchestrator.evaluation.models.fit import Contender, Row, Task
from orchestrator.types import Measurements

SHARE = 0.2  # of the points, to test with


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What is compared on which samples."""

    train: Measurements  # one response at one call path
    # The same at held-out points; None to hold out a ``share`` of the points of ``train``, others for each
    # seed.
    test: Measurements | None = None
    share: float = SHARE  # of the points, to test with
    # source, test_source: the files, for errors.
    source: str = "the training samples"
    test_source: str = "the test samples"
    where: Sequence[str] = ()  # conditions that all points must satisfy
    # train_where, test_where: those of points to fit and to test with: the protocol of an extrapolation. With
    # the latter and without ``test``, the test points are taken from ``train``. Points on both sides are not
    # fitted.
    train_where: Sequence[str] = ()
    test_where: Sequence[str] = ()
    sizes: Sequence[int] = ()  # numbers of points to fit; all there are if empty
    seeds: int = 1  # how many times subsets (and held-out points) are drawn
    contenders: Sequence[Contender]  # the modelers


def tasks(study: Study) -> list[Task]:
    """Return all fits, smaller ones first. Every modeler gets the same points, smaller sets within larger.

    Raises
    ------
    ExpressionError
        For a condition that cannot be evaluated.
    MeasurementError
        For samples that allow no comparison: none left, fewer points than a size, a constant response, test
        values that are not positive.
    """
    given = _given(study)
    fits: list[Task] = []
    for seed in range(study.seeds):
        # Two generators: the subsets of given training samples depend on no share.
        holding, drawing = (np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(2))
        train, test = _drawn(study, holding) if given is None else given
        sizes = sorted(set(study.sizes)) or [len(train.items[0].values)]
        drawn = samples.subsets(train, sizes, drawing, study.source)
        fits += [
            Task(contender=contender, size=size, seed=seed, train=subset, test=test)
            for size, subset in zip(sizes, drawn, strict=True)
            for contender in study.contenders
        ]
    return sorted(fits, key=lambda task: task.size)


def available(study: Study) -> int:
    """Return how many points there are to fit; raises as `tasks`."""
    train, _ = _given(study) or _drawn(study, np.random.default_rng(0))
    return len(train.items[0].values)


def overlap(study: Study) -> int:
    """Return how many training points are test points, too. They are not fitted."""
    sides = _sides(study)
    return 0 if sides is None else len(set(sides[0].points) & set(sides[1].points))


def _given(study: Study) -> tuple[Measurements, Measurements] | None:
    """Return what to fit and to test with, disjoint; None where it is drawn at random."""
    sides = _sides(study)
    if sides is None:
        return None
    train, test = sides
    held = set(test.points)
    kept = [point for point in train.items[0].values if point not in held]
    if not kept:
        raise MeasurementError(
            f"{study.source}: all {len(train.points)} points to fit are test points, too: "
            + ("give other files" if study.test is not None else "let the conditions exclude each other")
        )
    train = samples.of_points(train, kept)
    samples.check_response(train, study.source)
    samples.check_positive(test, study.source if study.test is None else study.test_source)
    return train, test


def _sides(study: Study) -> tuple[Measurements, Measurements] | None:
    """Return what satisfies the conditions of points to fit, and of test points; None without the latter."""
    if study.test is not None:
        samples.check_alike(study.train, study.test, (study.source, study.test_source))
        held, held_source = study.test, study.test_source
    elif study.test_where:
        held, held_source = study.train, study.source
    else:
        return None
    return (
        samples.where(study.train, (*study.where, *study.train_where), study.source),
        samples.where(held, (*study.where, *study.test_where), held_source),
    )


def _drawn(study: Study, rng: np.random.Generator) -> tuple[Measurements, Measurements]:
    """Return what to fit and to test with, drawn at random."""
    known = samples.where(study.train, (*study.where, *study.train_where), study.source)
    train, test = samples.split(known, study.share, rng)
    samples.check_response(train, study.source)
    samples.check_positive(test, study.source)
    return train, test


def ordered(rows: Iterable[Row], contenders: Sequence[str]) -> list[Row]:
    """Return rows by size, then modeler in the order of ``contenders``, then seed."""
    places = {label: k for k, label in enumerate(contenders)}
    return sorted(rows, key=lambda row: (row["size"], places[row["modeler"]], row["seed"]))
