"""Speedups on more processes and larger problems than were fitted: the tables of docs/evaluation/speedup.md.

    python benchmarks/speedup.py [--seeds 3] [--quick] [--workers N] [--json OUT] [--figures DIR]
        [--data FOLDER] [--write docs/evaluation/speedup.md]

Runs are those of a simulated cluster, of programs measured on one machine (`speedup_measured.csv` beside
this file), and of two autotuned workflows in FOLDER/autotuner (default: $MEASUREMENT_DATA; left out where
there is no such folder). What is compared, and how, is that of `orchestrator evaluate speedup`. Simulated
runs have other noise for every seed, and models that are fitted at random are fitted again. Figures are like
2 to 6 of Alasandagutti et al., Grey-Box Machine Learning Prediction of Parallel Application Scaling.

A line is written to OUT for every row when it is known, and what OUT has is not computed again. In the end
standard error has the CPU time of all fits by contender.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
from command import options
from pages import Block, as_markdown
from rich.console import Console
from rich.progress import Progress

from orchestrator.api.inputs import measurements_in
from orchestrator.evaluation.speedup import cases as speedup_cases
from orchestrator.evaluation.speedup import figures as speedup_figures
from orchestrator.evaluation.speedup import rows as speedup_rows
from orchestrator.evaluation.speedup import study as speedup_study
from orchestrator.evaluation.speedup.contenders import SIMULATED, STANDARD, contender
from orchestrator.evaluation.speedup.study import Case, Row, Task
from orchestrator.readers.reading import Reading
from orchestrator.types import Measurement, Measurements

MEASURED = Path(__file__).with_name("speedup_measured.csv")
MACHINE = "two cores"
CUTOFF = 8  # processes of the measured programs that are fitted
VARIED = ("network", "oliveira", "pmnf")
CUTOFFS = {
    ("CPU", 1): (25, 50, 100, 150, 200),
    ("GPU", 1): (4, 6, 10, 20),
    ("CPU", 2): (125, 250, 500, 1000),
}
SHARES = (0.2, 0.3, 0.4, 0.5, 0.6)
AUTOTUNED = {
    "LAMMPS": (
        "lammps.csv",
        ("processes", "ppn", "threads", "every", "melting", "solid", "time"),
        "processes * threads",
    ),
    "Gray-Scott": ("gray-scott.csv", ("processes", "ppn", "edge", "steps", "time"), "processes"),
}
_BLOCK = Block("speedup")


def compared(seeds: Sequence[int], data: Path | None, quick: bool) -> list[Task]:
    """Return the tasks of the tables; quickly without the choice among all families."""
    simulated, standard = (_without(names) if quick else list(names) for names in (SIMULATED, STANDARD))
    drawn = [name for name in standard if contender(name).random]
    measurements = [*measured(), *autotuned(data)]
    found: list[Task] = []
    for seed in seeds:
        first = seed == seeds[0]
        cases = speedup_cases.simulated(seed=seed, scalings=("strong", "hybrid", "weak"))
        found += speedup_study.tasks(cases, simulated, seed)
        found += speedup_study.tasks(measurements, standard if first else drawn, seed)
    return found


def _without(names: Sequence[str]) -> list[str]:
    return [name for name in names if name != "auto"]


def varied(seeds: Sequence[int]) -> list[Task]:
    """Return the tasks of the sensitivity to the cut-offs, figures 4 to 6."""
    found: list[Task] = []
    for seed in seeds:
        for case in speedup_cases.simulated(seed=seed, scalings=("strong",)):
            cutoffs = CUTOFFS[case.machine, case.runs.levels]
            found += speedup_study.tasks(speedup_cases.sensitivity(case, cutoffs, SHARES), VARIED, seed)
    return found


def measured() -> list[Case]:
    """Return the programs that were measured on one machine."""
    known = measurements_in([MEASURED], Reading(parameters=["p", "n"], responses=["time"]))
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
            [folder / "autotuner" / file],
            Reading(parameters=parameters, responses=["time"], names=list(names)),
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


def computed(todo: Sequence[Task], path: Path | None, workers: int) -> list[Row]:
    """Return the rows of tasks; those of ``path`` are not computed again, and others are added to it.

    The choice among all families, which takes longest, comes last.
    """
    known = _rows_of(path) if path is not None and path.exists() else {}
    missing = [task for task in todo if _key(task) not in known]
    missing.sort(key=lambda task: (task[1] == "auto", task[0].scaling == "weak"))
    with ExitStack() as stack:
        file = stack.enter_context(path.open("a", encoding="utf-8")) if path is not None else None
        progress = stack.enter_context(Progress(console=Console(stderr=True)))
        bar = progress.add_task("fits", total=len(missing))
        for task, row in speedup_study.run(missing, workers):
            known[_key(task)] = row
            progress.advance(bar)
            if file is not None:
                print(json.dumps([_key(task), row]), file=file, flush=True)
    return [known[_key(task)] for task in todo]


def _rows_of(path: Path) -> dict[str, Row]:
    """Return the rows of a file, without a last line that was not written to its end."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return dict(json.loads(line) for line in lines if line.endswith("\n"))


def _key(task: Task) -> str:
    case, name, seed = task
    place = (case.machine, case.runs.name, case.scaling, case.runs.levels, len(case.runs))
    return " ".join(map(str, (*place, case.cutoff, case.largest, case.beyond, name, seed)))


def markdown(rows: Sequence[Row], sensitivity: Sequence[Row]) -> str:
    """Return the tables as a page shows them."""
    parts = []
    for table in (*speedup_rows.tables(rows), *speedup_rows.sensitivity(sensitivity)):
        parts += [f"{table.title}:\n", as_markdown(table.lines)]
    failures = speedup_rows.failures([*rows, *sensitivity])
    return "\n".join([*parts, *(f"- {sentence}" for sentence in failures)])


def times(rows: Sequence[Row]) -> str:
    """Return the CPU time of all fits; kinds of scaling that share one count once."""
    fits = {
        (row["contender"], row["machine"], row["program"], row["seed"], row["cutoff"], row["seconds"])
        for row in rows
    }
    total: dict[str, float] = {}
    for name, *_, seconds in fits:
        total[name] = total.get(name, 0.0) + seconds
    parts = [f"{name} {total[name]:.0f} s" for name in sorted(total, key=lambda name: -total[name])]
    return f"CPU time: {sum(total.values()) / 60:.0f} min, of it {', '.join(parts)}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="draws of noise (default 3)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--quick", action="store_true", help="without `auto`, which takes minutes")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="with autotuner")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all rows, a line for each")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="write figures as PNG")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="replace the block of this in a page")
    chosen = parser.parse_args(arguments)
    if chosen.write is not None:
        _BLOCK.check(chosen.write)  # before hours of fits
    folder = chosen.data or (
        Path(os.environ["MEASUREMENT_DATA"]) if "MEASUREMENT_DATA" in os.environ else None
    )
    seeds = range(chosen.seeds)
    tables, others = compared(seeds, folder, chosen.quick), varied(seeds)
    rows = computed([*tables, *others], chosen.json, chosen.workers)
    shown, sensitivity = rows[: len(tables)], rows[len(tables) :]
    page = markdown(shown, sensitivity)
    if chosen.figures is not None:
        speedup_figures.write(shown, chosen.figures)
        speedup_figures.write_sensitivity(sensitivity, chosen.figures)
    if chosen.write is not None:
        _BLOCK.rewrite(chosen.write, page)
    print(page)
    print(times(rows), file=sys.stderr)


if __name__ == "__main__":
    main()
