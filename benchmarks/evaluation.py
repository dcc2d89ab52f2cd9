"""The tables of docs/evaluation.md: accuracy per core-hour on synthetic functions.

    python benchmarks/evaluation.py --functions 200 --seed 2026 --papers FOLDER > tables.md

Each line is one command `orchestrator evaluate synthetic`. FOLDER holds the functions of the papers (m2.json,
m3.json, m4.json); without it their parts are left out. ``--part`` repeats some tables only.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from command import options

from orchestrator.evaluation.strategies.rows import Row, rows
from orchestrator.evaluation.strategies.rules import Rules
from orchestrator.evaluation.strategies.synthetic import Setting, synthetic_outcomes

ALL = ("full", "cpf", "cpf-2", "gpr", "gpr-without-gp", "hybrid", "bayesian", "random", "grid", "oracle")


@dataclass(frozen=True, slots=True)
class Line:
    """Parameters; noise, budget and slowed runs in percent; strategies beside ours; runs per round.

    Rounds grow with the number of runs that fit the budget: one with two parameters, thousands with four.
    """

    parameters: int
    noise: float
    budget: float
    others: tuple[str, ...] = ("cpf-2",)
    outliers: float = 0.0
    batch: int = 1


FIGURES = (
    Line(2, 5.0, 10.0, ("cpf-2", "oracle")),
    Line(2, 5.0, 3.0, ("cpf-2", "oracle-information")),
    Line(2, 5.0, 1.0),
    Line(2, 10.0, 10.0, ("cpf-2", "oracle")),
    Line(2, 10.0, 3.0),
    Line(3, 5.0, 2.0, batch=5),
    Line(3, 5.0, 0.5, ("cpf-2", "oracle-information"), batch=5),
    Line(4, 5.0, 1.0, batch=50),
    Line(4, 5.0, 0.1, ("cpf-2", "oracle-information"), batch=50),
)
PARTS = {
    "papers": FIGURES,
    "drawn": FIGURES,
    "papers-slowed": tuple(Line(2, 5.0, budget, (), share) for budget in (10.0, 3.0) for share in (0.0, 2.0)),
    "papers-strategies": (Line(2, 5.0, 10.0, ALL),),
}
COLUMNS = (
    "parameters",
    "noise",
    "slowed runs",
    "budget",
    "strategy",
    "accurate %",
    "feasible %",
    "median error %",
    "median cost %",
    "median runs",
    "coverage %",
)


def text(line: Line, row: Row) -> str:
    values = (
        str(line.parameters),
        f"±{line.noise:g} %",
        f"{line.outliers:g} %",
        f"{row['budget_percent']:g} %",
        row["strategy"],
        f"{row['accurate_percent']:.1f}",
        f"{row['feasible_percent']:.1f}",
        f"{row['median_error_percent']:.2f}",
        f"{row['median_cost_percent']:.2f}",
        f"{row['median_runs']:g}",
        f"{row['interval_coverage_percent']:.0f}",
    )
    return f"| {' | '.join(values)} |"


def measure(line: Line, functions: int, seed: int, papers: Path | None) -> list[Row]:
    setting = Setting(
        parameters=line.parameters,
        noise=line.noise,
        outliers=line.outliers,
        functions=functions,
        functions_file=papers / f"m{line.parameters}.json" if papers else None,
    )
    strategies = ("information", *line.others)
    rules = Rules(strategies=strategies, budgets=(line.budget,), batch_size=line.batch, seed=seed)
    return rows(synthetic_outcomes(setting, rules))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--functions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--papers", type=Path, metavar="FOLDER", help="with m2.json, m3.json, m4.json")
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--parameters", type=int, choices=(2, 3, 4), action="append")
    chosen = parser.parse_args(arguments)
    for part in chosen.part or PARTS:
        published = part.startswith("papers")
        if published and chosen.papers is None:
            print(f"{part}: left out, see --papers", file=sys.stderr)
            continue
        print(f"\n{part}: {chosen.functions} functions, seed {chosen.seed}\n")
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
        for line in PARTS[part]:
            if line.parameters not in (chosen.parameters or (2, 3, 4)):
                continue
            began = time.monotonic()
            table = measure(line, chosen.functions, chosen.seed, chosen.papers if published else None)
            print("\n".join(text(line, row) for row in table), flush=True)
            print(f"{line}: {time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
