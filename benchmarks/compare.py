"""How often a comparison finds what is not there, and what is: simulated pairs of campaigns.

    python benchmarks/compare.py [--pairs N] [--seed N] [--only NAME ...] [--models]

Every campaign has 20 points (5 x 4 values of two parameters), 2 runs each, and 5 call paths: drawn functions
in the performance model normal form. The first one changes. Printed is the table of docs/evaluation.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from command import options
from numpy.typing import NDArray

from orchestrator.models.base import Floats, Modeler
from orchestrator.models.comparison.compared import Compared, compared, discoveries
from orchestrator.models.comparison.pairs import aligned
from orchestrator.types import Measurement, Measurements, Point

PROCESSES, SIZES = (4, 8, 16, 32, 64), (10, 20, 40, 80)
POINTS = tuple(Point.of(p=p, n=n) for p in PROCESSES for n in SIZES)
P = np.array([point.number("p") for point in POINTS])
N = np.array([point.number("n") for point in POINTS])
FAR = Point.of(p=256, n=160)
CALLPATHS, RUNS = 5, 2
SURE = 0.95
_EXPONENTS = (0.0, 0.25, 0.5, 2 / 3, 1.0, 1.5, 2.0)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kind of pair: how B differs from A, and how both are disturbed."""

    name: str
    noise: float = 0.05
    factor: float = 1.0
    term: bool = False  # A has n log2(p), B n p, with the same value at the fewest processes
    tail: bool = False  # Student's t with 3 degrees of freedom, instead of normal noise
    slow: float = 0.0  # share of runs that take 1.5 to 3 times as long
    jobs: float = 0.0  # noise that both runs of a point share
    drift: float = 0.0  # by which the machine slows down from the first run to the last
    day: float = 0.0  # by which the machine differs between both campaigns, standard deviation
    load: float = 0.0  # most that slows repetition k of both: two executables in one campaign
    callpaths: int = CALLPATHS


CASES = (
    *(Case(name=f"no change, {100 * x:g} % noise", noise=x) for x in (0.01, 0.05, 0.2)),
    Case(name="no change, heavy tails (t, 3 degrees of freedom)", tail=True),
    Case(name="no change, 5 % of the runs 1.5 to 3 times as long", slow=0.05),
    Case(name="no change, 5 % noise between jobs, 1 % within", noise=0.01, jobs=0.05),
    Case(name="no change, both machines drift by 10 %", drift=0.1),
    Case(name="no change, 3 % from day to day", day=0.03),
    Case(name="no change, 100 call paths", callpaths=100),
    *(Case(name=f"10 % slower, {100 * x:g} % noise", noise=x, factor=1.1) for x in (0.01, 0.05, 0.2)),
    Case(name="10 % slower, heavy tails (t, 3 degrees of freedom)", factor=1.1, tail=True),
    Case(name="10 % slower, 5 % of the runs 1.5 to 3 times as long", factor=1.1, slow=0.05),
    Case(name="10 % slower, 5 % noise between jobs, 1 % within", factor=1.1, noise=0.01, jobs=0.05),
    *(Case(name=f"3 % slower, {100 * x:g} % noise", noise=x, factor=1.03) for x in (0.01, 0.05)),
    *(
        Case(name=f"one campaign, load up to 30 %: {what}", noise=0.01, factor=factor, load=0.3)
        for what, factor in (("no change", 1.0), ("10 % slower", 1.1), ("3 % slower", 1.03))
    ),
    *(Case(name=f"n log p becomes n p, {100 * x:g} % noise", noise=x, term=True) for x in (0.01, 0.05, 0.2)),
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was found in one pair: per call path, whether it changed, its probability and its ratios."""

    changed: Floats
    probability: Floats
    false_share: Floats
    inside: Floats
    width: Floats
    beyond: Floats


def outcome(case: Case, rng: np.random.Generator, modeler: Modeler | None) -> Outcome:
    """Draw one pair of campaigns, and compare it."""
    first, second, far = _functions(case, rng)
    load = np.log1p(rng.uniform(0, case.load, (1, len(POINTS), RUNS))) if case.load else np.zeros(1)
    a, b = (_measured(case, times, load, rng) for times in (first, second))
    both = aligned(a, b, together=case.load > 0)
    first_models, second_models = (
        () if modeler is None else modeler(side) for side in (both.first, both.second)
    )
    rows = compared(both, first_models, second_models)
    here = POINTS[-1]
    truth = np.log(second[:, -1] / first[:, -1])
    ends, far_ends = (_ends(rows, point) for point in (here, FAR))
    return Outcome(
        changed=(truth != 0).astype(float),
        probability=np.array([row.probability for row in rows]),
        false_share=np.array(discoveries(rows), dtype=float),
        inside=((ends[:, 0] <= truth) & (truth <= ends[:, 1])).astype(float),
        width=ends[:, 1] - ends[:, 0],
        beyond=((far_ends[:, 0] <= far) & (far <= far_ends[:, 1])).astype(float),
    )


def _ends(rows: Sequence[Compared], point: Point) -> Floats:
    """Return the ends of the 90 % intervals of log B / A, shape (call paths, 2)."""
    known = [at.ratio for row in rows if (at := row.at(point)) is not None]
    return np.array([[item.quantile(share) for share in (0.05, 0.95)] for item in known])


def _functions(case: Case, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Return the times of A and B, shape (call paths, points), and log B / A at the far point."""
    number = case.callpaths
    i, j = rng.choice(_EXPONENTS, number), rng.choice(_EXPONENTS, number)
    weight = 10 ** rng.uniform(-2, 0, number)

    def times(p: Floats, n: Floats) -> Floats:
        result: Floats = 1 + weight[:, None] * (p / 4) ** i[:, None] * (n / 10) ** j[:, None]
        return result

    p_far, n_far = (np.array([FAR.number(name)]) for name in ("p", "n"))
    first = times(P, N)
    second = first.copy()
    second[0] *= case.factor
    far = np.zeros(number)
    far[0] = np.log(case.factor)
    if case.term:
        first[0], second[0] = 1 + 0.1 * N * np.log2(P), 1 + 0.05 * N * P
        far[0] = float(np.log((1 + 0.05 * n_far * p_far) / (1 + 0.1 * n_far * np.log2(p_far)))[0])
    return first, second, far


def _measured(case: Case, times: Floats, load: Floats, rng: np.random.Generator) -> Measurements:
    shape = (*times.shape, RUNS)
    # A disturbance slows all call paths of its run alike.
    noise = rng.standard_t(3, shape) / np.sqrt(3) if case.tail else rng.standard_normal(shape)
    logs = case.noise * noise + case.jobs * rng.standard_normal((1, shape[1], 1))
    hit = rng.random((1, *shape[1:])) < case.slow
    logs = logs + np.where(hit, np.log(rng.uniform(1.5, 3, hit.shape)), 0.0)
    order = rng.permutation(shape[1] * RUNS).reshape(1, shape[1], RUNS) / (shape[1] * RUNS)
    logs = logs + load + np.log1p(case.drift * order) + case.day * rng.standard_normal()
    values = times[:, :, None] * np.exp(logs)
    return Measurements(
        ("p", "n"),
        tuple(
            Measurement(f"f{k}", "time", {point: tuple(row) for point, row in zip(POINTS, rows, strict=True)})
            for k, rows in enumerate(values.tolist())
        ),
    )


def row(case: Case, pairs: int, seed: int, modeler: Modeler | None) -> str:
    """Return a line of the table."""
    found = [outcome(case, np.random.default_rng([seed, k]), modeler) for k in range(pairs)]
    joined = {
        name: np.concatenate([getattr(item, name) for item in found]) for name in Outcome.__annotations__
    }
    changed = joined["changed"].astype(bool)
    alarm = joined["probability"] >= SURE
    strict = joined["false_share"] <= 1 - SURE
    asked = changed if changed.any() else ~changed
    inside, beyond = (100 * joined[name][asked].mean() for name in ("inside", "beyond"))

    def share(which: NDArray[np.bool_], among: NDArray[np.bool_]) -> str:
        return f"{100 * which[among].mean():.1f} %" if among.any() else "-"

    cells = (
        case.name,
        share(alarm, ~changed),
        share(strict, ~changed),
        share(alarm, changed),
        share(strict, changed),
        f"{inside:.0f} %",
        f"{100 * np.median(joined['width'][asked]):.1f} %",
        f"{beyond:.0f} %",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = options(__doc__)
    parser.add_argument("--pairs", type=int, default=200, help="of campaigns, per row (default 200)")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--only", nargs="+", default=[""], help="rows whose name has one of these texts")
    parser.add_argument("--models", action="store_true", help="fit pmnf to all campaigns, too: slow")
    arguments = parser.parse_args()
    modeler = None
    if arguments.models:
        from orchestrator import registry

        modeler = registry.load("model", "pmnf")()
    heads = (
        "200 pairs of campaigns".replace("200", str(arguments.pairs)),
        "false alarms", "false alarms, by rate",
        "found", "found, by rate", "90 % hold", "width", "90 % hold far out",
    )  # fmt: skip
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for case in CASES:
        if any(text in case.name for text in arguments.only):
            pairs = max(1, arguments.pairs * CALLPATHS // case.callpaths)
            print(row(case, pairs, arguments.seed, modeler), flush=True)


if __name__ == "__main__":
    main()
