"""The tables of docs/evaluation.md: accuracy per core-hour on synthetic functions, and on measured data.

    python benchmarks/evaluation.py --functions 200 --seed 2026 > tables.md

Each line is one command `orchestrator evaluate synthetic`, whose arguments it shows. ``--part`` repeats one
table only.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from orchestrator.evaluation.rows import Row
from orchestrator.evaluation.synthetic import evaluate_synthetic

OURS = ("information",)
ALL = ("full", "cpf", "cpf-2", "gpr", "gpr-without-gp", "hybrid", "bayesian", "random", "grid", "oracle")

# Parameters, noise in percent, budget in percent of the full cost, strategies beside ours.
PARTS: dict[str, tuple[tuple[int, float, float, Sequence[str]], ...]] = {
    "figures": (
        (2, 5.0, 10.0, ("cpf-2", "oracle")),
        (2, 5.0, 3.0, ("cpf-2", "oracle-information")),
        (2, 5.0, 1.0, ("cpf-2",)),
        (2, 10.0, 10.0, ("cpf-2", "oracle")),
        (2, 10.0, 3.0, ("cpf-2",)),
        (3, 5.0, 2.0, ("cpf-2",)),
        (3, 5.0, 0.5, ("cpf-2",)),
        (4, 5.0, 1.0, ("cpf-2",)),
        (4, 5.0, 0.1, ("cpf-2",)),
    ),
    "strategies": ((2, 5.0, 10.0, ALL),),
}


COLUMNS = (
    "parameters",
    "noise",
    "budget",
    "strategy",
    "accurate %",
    "feasible %",
    "median error %",
    "median cost %",
    "median runs",
    "coverage %",
)


def line(parameters: int, noise: float, row: Row) -> str:
    percents = (
        f"{row['accurate_percent']:.1f}",
        f"{row['feasible_percent']:.1f}",
        f"{row['median_error_percent']:.2f}",
        f"{row['median_cost_percent']:.2f}",
        f"{row['median_runs']:g}",
        f"{row['interval_coverage_percent']:.0f}",
    )
    setting = (str(parameters), f"±{noise:g} %", f"{row['budget_percent']:g} %", row["strategy"])
    return f"| {' | '.join((*setting, *percents))} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--parameters", type=int, choices=(2, 3, 4), action="append")
    chosen = parser.parse_args(arguments)
    for part in chosen.part or PARTS:
        print(f"\n{part}: {chosen.functions} functions, seed {chosen.seed}\n")
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
        for parameters, noise, budget, others in PARTS[part]:
            if parameters not in (chosen.parameters or (2, 3, 4)):
                continue
            began = time.monotonic()
            table = evaluate_synthetic(
                parameters=parameters,
                noise=noise,
                functions=chosen.functions,
                strategies=(*OURS, *others),
                budgets=(budget,),
                seed=chosen.seed,
            )
            print("\n".join(line(parameters, noise, row) for row in table), flush=True)
            print(f"{parameters} parameters, {budget} %: {time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
