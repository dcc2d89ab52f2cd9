"""Splines and small networks as Lee et al. used them, fitted to a few hundred samples of large spaces.

    python benchmarks/splines_and_networks.py [--data FOLDER] [--sets gemm,kripke] [--samples 600]
        [--growing 200,400,1000] [--seeds 3] [--write docs/evaluation/tuning-spaces.md]

FOLDER is that of `tuning_spaces.py`: the sets without extrapolations are taken from there. Samples are drawn
at random from the training points; all test points are predicted, at most 1000. Printed are medians and third
quartiles of ``|observed - predicted| / predicted`` in percent, as in figure 7 of the paper, and medians for
growing numbers of samples as in its figures 8 and 9.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from command import options
from pages import Block, as_markdown
from threadpoolctl import threadpool_limits
from tuning_spaces import SPACES

from orchestrator.evaluation.models import study as models_study
from orchestrator.evaluation.models.fit import Contender
from orchestrator.models.base import Floats
from orchestrator.models.learned.rprop import rprop
from orchestrator.models.learned.trees import histogram_boosting
from orchestrator.models.regression.learner import Learner
from orchestrator.models.regression.samples import Samples, arranged, encoded
from orchestrator.models.regression.trend import on_trend
from orchestrator.models.splines.family import learner
from orchestrator.models.splines.fitting import Recipe

_BLOCK = Block("splines and networks")
SETS = tuple(name for name in SPACES if "," not in name)
LEARNERS: Mapping[str, Learner] = {
    "log, no interactions": learner(Recipe(interactions=())),
    "log": learner(Recipe()),
    "log, regional": learner(Recipe(sampling="regional")),
    "sqrt": learner(Recipe(response="sqrt")),
    "sqrt, stratified": learner(Recipe(response="sqrt", sampling="stratified")),
    "sqrt, regional": learner(Recipe(response="sqrt", sampling="regional")),
    "rprop": rprop(),
    "rprop, trend": on_trend(rprop()),
    "boosted trees": on_trend(histogram_boosting(trees=400, products=True)),
}
# The paper's two kinds, of which its figures 8 and 9 show the errors for growing numbers of samples.
GROWING = ("log", "log, regional", "rprop")
_MOST_TESTED = 1000


@dataclass(frozen=True, slots=True)
class Drawn:
    """Samples of a set, and coordinates and logarithms of what is predicted."""

    samples: Samples
    x: Floats
    y: Floats


@dataclass(frozen=True, slots=True)
class Score:
    """Errors in percent, and CPU seconds of a fit."""

    median: float
    quartile: float
    seconds: float


def drawn(data: Path, name: str, samples: int, seed: int) -> Drawn:
    """Draw samples of a set, the smaller numbers within the larger ones."""
    study = SPACES[name].study(data, [Contender.of("splines")], seed + 1)
    most = min(samples, models_study.available(study))
    [task] = [task for task in models_study.tasks(replace(study, sizes=(most,))) if task.seed == seed]
    [series], _ = arranged(task.train)
    values = task.test.items[0].values
    tested = np.random.default_rng(seed).permutation(len(values))[:_MOST_TESTED]
    points = list(values)
    y = np.log([float(np.mean(values[points[k]])) for k in tested])
    return Drawn(series.samples, encoded(series.samples.axes, [points[k] for k in tested]), y)


def score(found: Drawn, one: Learner, seed: int) -> Score:
    """Fit and predict."""
    begun = time.process_time()
    fitted = one.fitted(found.samples, np.random.default_rng(seed))
    seconds = time.process_time() - begun
    errors = 100 * np.abs(np.exp(found.y - fitted.at(found.x)) - 1)
    return Score(float(np.nanmedian(errors)), float(np.nanquantile(errors, 0.75)), seconds)


def mean(scores: Sequence[Score]) -> Score:
    """Return the means over draws."""
    columns = np.mean([(one.median, one.quartile, one.seconds) for one in scores], axis=0)
    return Score(*map(float, columns))


def compared(
    data: Path, sets: Sequence[str], names: Sequence[str], samples: int, seeds: int
) -> dict[str, dict[str, Score]]:
    """Return scores by set and learner."""
    found: dict[str, dict[str, Score]] = {}
    for name in sets:
        draws = [drawn(data, name, samples, seed) for seed in range(seeds)]
        found[name] = {
            label: mean([score(draw, LEARNERS[label], seed) for seed, draw in enumerate(draws)])
            for label in names
        }
    return found


def figure_7(found: Mapping[str, Mapping[str, Score]]) -> str:
    """Return medians and third quartiles, a row per set; the smallest median is bold."""
    lines = [["set", *LEARNERS]]
    for name, scores in found.items():
        best = min(scores, key=lambda label: scores[label].median)
        cells = {
            label: ("**{:.1f}**, {:.1f}" if label == best else "{:.1f}, {:.1f}").format(
                score.median, score.quartile
            )
            for label, score in scores.items()
        }
        lines.append([name, *cells.values()])
    seconds = [max(scores[label].seconds for scores in found.values()) for label in LEARNERS]
    lines.append(["slowest fit, s", *(f"{value:.2g}" for value in seconds)])
    return as_markdown(lines)


def figures_8_and_9(by_size: Mapping[int, Mapping[str, Mapping[str, Score]]]) -> str:
    """Return medians, a row per set and learner, a column per number of samples."""
    lines = [["set", "learner", *map(str, by_size)]]
    for name in next(iter(by_size.values())):
        for label in GROWING:
            medians = [found[name][label].median for found in by_size.values()]
            lines.append([name, label, *(f"{value:.1f}" for value in medians)])
    return as_markdown(lines)


def _draws(seeds: int) -> str:
    return "one draw" if seeds == 1 else f"means over {seeds} draws"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--data", metavar="FOLDER", type=Path, default=os.environ.get("MEASUREMENT_DATA"))
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS))
    parser.add_argument("--samples", type=int, default=600, help="of the first table (default 600)")
    parser.add_argument("--growing", type=lambda text: [int(n) for n in text.split(",")], default=[])
    parser.add_argument("--seeds", type=int, default=3, help="draws of the samples (default 3)")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="replace the block of this in a page")
    chosen = parser.parse_args(arguments)
    if chosen.data is None:
        parser.error("give --data FOLDER, or set MEASUREMENT_DATA")
    with threadpool_limits(1):
        first = compared(Path(chosen.data), chosen.sets, list(LEARNERS), chosen.samples, chosen.seeds)
        parts = [
            f"Median and third quartile of the errors in percent, {chosen.samples} samples, "
            f"{_draws(chosen.seeds)}:\n",
            figure_7(first),
        ]
        if chosen.growing:
            sizes = {
                size: compared(Path(chosen.data), chosen.sets, GROWING, size, chosen.seeds)
                for size in chosen.growing
            }
            parts += ["Median errors in percent for growing numbers of samples:\n", figures_8_and_9(sizes)]
    page = "\n".join(parts)
    if chosen.write is not None:
        _BLOCK.rewrite(chosen.write, page)
    print(page)


if __name__ == "__main__":
    main()
