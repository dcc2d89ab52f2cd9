"""Speedups on more processes and larger problems than were fitted: the tables of evaluation.md.

    python benchmarks/speedup.py [--seed 2026] [--workers N] [--json OUT] [--figures DIR]
        [--data FOLDER] [--write docs/evaluation.md]

Runs are those of a simulated cluster, of programs measured on one machine (`speedup_measured.csv` beside
this file), and of two autotuned workflows in FOLDER/autotuner (default: $MEASUREMENT_DATA; left out where
there is no such folder). What is compared, and how, is that of `orchestrator evaluate speedup`. Figures are
like 2 to 6 of Alasandagutti et al., Grey-Box Machine Learning Prediction of Parallel Application Scaling.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress

from orchestrator.api.inputs import measurements_in
from orchestrator.evaluation import speedup_cases, speedup_figures, speedup_rows, speedup_study
from orchestrator.evaluation.speedup_contenders import SIMULATED, STANDARD
from orchestrator.evaluation.speedup_study import Case, Row, Task
from orchestrator.types import Measurement, Measurements

MEASURED = Path(__file__).with_name("speedup_measured.csv")
MACHINE = "two cores"
CUTOFF = 8  # processes of the measured programs that are fitted
VARIED = ("network", "oliveira", "pmnf")
CUTOFFS = {"CPU": (25, 50, 100, 150, 200), "GPU": (4, 6, 10, 20)}
SHARES = (0.2, 0.3, 0.4, 0.5, 0.6)
AUTOTUNED = {
    "LAMMPS": (
        "lammps.csv",
        ("processes", "ppn", "threads", "every", "melting", "solid", "time"),
        "processes * threads",
    ),
    "Gray-Scott": ("gray-scott.csv", ("processes", "ppn", "edge", "steps", "time"), "processes"),
}
_BLOCK = re.compile(r"(<!-- speedup -->\n).*?(<!-- end of speedup -->)", re.DOTALL)


def compared(seed: int, data: Path | None) -> list[Task]:
    """Return the tasks of the tables."""
    simulated = speedup_cases.simulated(seed=seed, scalings=("strong", "hybrid", "weak"))
    one, several = ([case for case in simulated if case.runs.levels == count] for count in (1, 2))
    return [
        *speedup_study.tasks(one, SIMULATED, seed),
        *speedup_study.tasks(several, _without(SIMULATED), seed),
        *speedup_study.tasks(measured(), STANDARD, seed),
        *speedup_study.tasks(autotuned(data), _without(STANDARD), seed),
    ]


def _without(names: Sequence[str]) -> list[str]:
    """Leave out what takes minutes per fit of hundreds of points; tuning_spaces.py has it."""
    return [name for name in names if name != "auto"]


def varied(seed: int) -> list[Task]:
    """Return the tasks of the sensitivity to the cut-offs, figures 4 to 6."""
    cases = speedup_cases.simulated(seed=seed, scalings=("strong",))
    found: list[Case] = []
    for case in cases:
        cutoffs = CUTOFFS[case.machine] if case.runs.levels == 1 else (125, 250, 500, 1000)
        found += speedup_cases.sensitivity(case, cutoffs, SHARES)
    return speedup_study.tasks(found, VARIED, seed)


def measured() -> list[Case]:
    """Return the programs that were measured on one machine."""
    known = measurements_in([MEASURED], parameters=["p", "n"], responses=["time"])
    cases = speedup_cases.in_files(known, machine=MACHINE, processes="p", size="n")
    return [replace(case, cutoff=CUTOFF) for case in cases]


def autotuned(folder: Path | None) -> list[Case]:
    """Return the autotuned workflows: random configurations of processes, and of processes per node."""
    if folder is None or not (folder / "autotuner").is_dir():
        return []
    cases = []
    for name, (file, names, processes) in AUTOTUNED.items():
        parameters = [column for column in names if column in ("processes", "ppn", "threads")]
        known = measurements_in(
            [folder / "autotuner" / file], parameters=parameters, responses=["time"], names=list(names)
        )
        cases += speedup_cases.in_files(
            _named(known, name), machine="autotuned", processes=processes, nodes="ceil(processes / ppn)"
        )
    return cases


def _named(known: Measurements, name: str) -> Measurements:
    """Return finite values of the only call path, under a name."""
    [item] = known.items
    values = {point: found for point, found in item.values.items() if np.all(np.isfinite(found))}
    return replace(known, items=(Measurement(name, item.metric, values),))


def markdown(rows: Sequence[Row]) -> str:
    """Return the tables as a page shows them."""
    parts = []
    for table in speedup_rows.tables(rows):
        header, *lines = table.lines
        shown = [header, ["---"] * len(header), *lines]
        parts += [f"{table.title}:\n", "\n".join(f"| {' | '.join(line)} |" for line in shown) + "\n"]
    return "\n".join([*parts, *(f"- {sentence}" for sentence in speedup_rows.failures(rows))])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=2026, help="of noise and fits (default 2026)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="with autotuner")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all rows")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="write figures as PNG")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="replace the block of this in a page")
    chosen = parser.parse_args(arguments)
    if chosen.write is not None and len(_BLOCK.findall(chosen.write.read_text())) != 1:
        parser.error(f"{chosen.write} has no single block <!-- speedup --> ... <!-- end of speedup -->")
    folder = chosen.data or (
        Path(os.environ["MEASUREMENT_DATA"]) if "MEASUREMENT_DATA" in os.environ else None
    )
    tables = compared(chosen.seed, folder)
    todo = [*tables, *(varied(chosen.seed) if chosen.figures is not None else ())]
    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("fits", total=len(todo))
        rows = list(
            speedup_study.run(todo, chosen.workers, lambda done, total: progress.update(bar, completed=done))
        )
    page = markdown(rows[: len(tables)])
    if chosen.json is not None:
        chosen.json.write_text(json.dumps({"rows": rows}, indent=1))
    if chosen.figures is not None:
        speedup_figures.write(rows[: len(tables)], chosen.figures)
        speedup_figures.write(rows[len(tables) :], chosen.figures)
    if chosen.write is not None:
        text = chosen.write.read_text()
        chosen.write.write_text(_BLOCK.sub(lambda match: f"{match[1]}\n{page}\n{match[2]}", text))
    print(page)


if __name__ == "__main__":
    main()
