"""Which part of a difference between modelers are the runs that they choose, and which the models.

    python benchmarks/same_runs.py [--functions 200] [--seed 7 --seed 8 --seed 9] [--budget 1]
        [--parameters 2] [--functions-file m2.json] [--batch-size 1] [--workers N]

Campaigns of `information` on functions of some parameters, drawn or those of a file, ±5 % noise, once with
every modeler. Every modeler is then fitted to the runs of every campaign. Per pair, over the functions whose
budget holds a starting set: the share within 5 % of the truth one step beyond the grid, the mean absolute log
error (MLogQ), how often the 90 % interval holds the truth, and how wide it is (geometric mean of high/low).
Last, in how many campaigns only one of the modelers is accurate with its own runs, and how probable so uneven
numbers are by chance (sign test).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from command import options
from scipy.stats import binomtest

from orchestrator import registry
from orchestrator.evaluation.parallel import in_parallel
from orchestrator.evaluation.strategies.bench import FULL_REPETITIONS
from orchestrator.evaluation.strategies.contenders import contenders
from orchestrator.evaluation.strategies.functions import draw, read
from orchestrator.evaluation.strategies.synthetic import SERIES, synthetic_bench
from orchestrator.evaluation.strategies.trial import Conditions, measured
from orchestrator.models.sums import with_sums

MODELERS = ("pmnf", "auto")
NOISE = 5.0
CLOSE = 0.05

Said = tuple[float, float, float]  # value, low and high, relative to the truth


def said(
    task: tuple[int, int], parameters: int, budget: float, batch_size: int, file: Path | None
) -> dict[tuple[str, str], Said]:
    """Return what models say at P+, by the modeler that chose the runs and that which was fitted to them.

    A task is a seed and the number of a function.
    """
    seed, index = task
    rng = np.random.default_rng([seed, index])
    series = [parameter for parameter, _ in SERIES[:parameters]]
    function = draw(series, rng) if file is None else read(file, [item.name for item in series])[index]
    bench = synthetic_bench(function, parameters, NOISE, rng)
    (contender,) = contenders(("information",))
    fit = {name: with_sums(registry.load("model", name)()) for name in MODELERS}
    conditions = Conditions(
        budget_percent=budget,
        full_cost=bench.full_cost(FULL_REPETITIONS),
        batch_size=batch_size,
        seed=(seed, index),
    )
    found: dict[tuple[str, str], Said] = {}
    for chooses in MODELERS:
        runs = measured(bench, contender, fit[chooses], conditions)
        for name in MODELERS if runs.points else ():
            (model,) = fit[name](runs)
            at, (truth,) = model.predict([bench.evaluation_point]), bench.truth.values()
            found[chooses, name] = (
                float(at.value[0]) / truth,
                float(at.low[0]) / truth,
                float(at.high[0]) / truth,
            )
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--functions", type=int, default=200)
    parser.add_argument("--seed", type=int, action="append", help="repeatable (default 7, 8, 9)")
    parser.add_argument("--budget", type=float, default=1.0, help="percent of the full cost (default 1)")
    parser.add_argument("--parameters", type=int, default=2, help="of the functions (default 2)")
    parser.add_argument("--functions-file", type=Path, metavar="FILE", help="expressions in a, b, ...")
    parser.add_argument("--batch-size", type=int, default=1, help="runs per round (default 1)")
    parser.add_argument("--workers", type=int, help="processes, as many as there are cores unless given")
    chosen = parser.parse_args(arguments)
    work = partial(
        said,
        parameters=chosen.parameters,
        budget=chosen.budget,
        batch_size=chosen.batch_size,
        file=chosen.functions_file,
    )
    tasks = list(product(chosen.seed or [7, 8, 9], range(chosen.functions)))
    found = list(in_parallel(work, tasks, chosen.workers))
    print("| runs chosen with | model | within 5 % | MLogQ | 90 % hold | high/low |")
    print("|---|---|---|---|---|---|")
    for pair in product(MODELERS, MODELERS):
        value, low, high = np.array([item[pair] for item in found if pair in item]).T
        figures = (
            f"{100 * np.mean(np.abs(value - 1) <= CLOSE):.1f}",
            f"{np.abs(np.log(value)).mean():.3f}",
            f"{100 * np.mean((low <= 1) & (high >= 1)):.1f}",
            f"{np.exp(np.log(high / low).mean()):.2f}",
        )
        print("| " + " | ".join((*(f"`{name}`" for name in pair), *figures)) + " |")
    print(f"\n{_only_one(found)}")


def _only_one(found: Sequence[Mapping[tuple[str, str], Said]]) -> str:
    """Say in how many campaigns only one modeler is accurate."""
    own = [(name, name) for name in MODELERS]
    value = np.array([[item[pair][0] for pair in own] for item in found if own[-1] in item])
    accurate = np.abs(value - 1) <= CLOSE
    number = [int((accurate[:, k] & ~accurate[:, 1 - k]).sum()) for k in range(2)]
    chance = binomtest(number[0], sum(number)).pvalue if any(number) else 1.0
    of = " and ".join(f"{n} with `{name}` only" for n, name in zip(number, MODELERS, strict=True))
    return f"Of {len(value)} campaigns, accurate are {of}: p = {chance:.2f}."


if __name__ == "__main__":
    main()
