"""Modelers on tuning spaces: many parameters, categories, jumps, and thousands of measured configurations.

    python benchmarks/tuning_spaces.py [--data FOLDER] [--modeler auto --modeler learned:only=trees]
        [--sets gemm,kripke] [--sizes 512,2048] [--seeds 3] [--json OUT]
        [--write docs/evaluation/tuning-spaces.md]

FOLDER has the execution times of Hutter and Solomonik, High-Dimensional Performance Modeling via Tensor
Completion (`stampede2`), and those of two autotuned workflows (`autotuner`); default: $MEASUREMENT_DATA.
Sets that end in a parameter are extrapolations in it.

Every row is written to OUT when it is known. What OUT has already is not computed again, so the command can
be interrupted at any time, and continued, also with more sets, sizes, seeds or modelers. Small sizes of all
sets come first. A modeler that exceeds the time limit on a set is not asked for more points of it.

Errors of points, sizes and times are those of `orchestrator evaluate models`. A set with fewer points than a
size gives all it has.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tuning_spaces_text as text
from command import options
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from orchestrator import registry
from orchestrator.api.inputs import measurements_in
from orchestrator.evaluation.models import figures as models_figures
from orchestrator.evaluation.models import processes as models_processes
from orchestrator.evaluation.models import study as models_study
from orchestrator.evaluation.models.fit import Contender, Row, Task
from orchestrator.evaluation.models.samples import of_response
from orchestrator.evaluation.models.study import Study
from orchestrator.readers.reading import Reading
from orchestrator.storage import write_atomically
from orchestrator.types import Measurements

SIZES = (512, 2048, 8192, 32768)
SEEDS = 3
LIMIT = 1800.0  # seconds of a fit, by the clock: other work on the machine counts
LEFT_OUT = ("swc",)  # needs counted effort


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Where the samples of a set are; columns as `orchestrator.read` takes them.

    Without a ``test`` file and condition, a fifth of the points is held out, others for each seed.
    """

    train: str
    test: str | None = None
    parameters: tuple[str, ...]
    response: str
    names: tuple[str, ...] | None = None
    categorical: tuple[str, ...] = ()
    train_where: tuple[str, ...] = ()
    test_where: tuple[str, ...] = ()

    def study(self, folder: Path, contenders: Sequence[Contender], seeds: int) -> Study:
        """Read the samples."""
        return Study(
            train=self._read(folder / self.train),
            test=None if self.test is None else self._read(folder / self.test),
            source=self.train,
            test_source=self.test or self.train,
            train_where=self.train_where,
            test_where=self.test_where,
            seeds=seeds,
            contenders=contenders,
        )

    def _read(self, path: Path) -> Measurements:
        known = measurements_in(
            [path],
            Reading(
                parameters=self.parameters,
                responses=[self.response],
                names=self.names,
                categorical=self.categorical,
            ),
        )
        return of_response(known, None, str(path))


_GEMM = Space(
    train="stampede2/gemm/1-thread.csv",
    test="stampede2/gemm/1-thread_test.csv",
    parameters=("m", "n", "k"),
    response="avg",
)
_BCAST = Space(
    train="stampede2/bcast/kt1_st1.csv",
    test="stampede2/bcast/kt1_st1_test.csv",
    parameters=("msgsize", "ppn", "nnodes"),
    response="avg",
)
SPACES = {
    "gemm": _GEMM,
    "geqrf": Space(
        train="stampede2/geqrf/geqrf_kt0_st1_1threads.csv",
        test="stampede2/geqrf/1threads_test.csv",
        parameters=("m", "n"),
        response="avg",
    ),
    "bcast": _BCAST,
    "exafmm": Space(
        train="stampede2/exafmm/kt1.csv",
        test="stampede2/exafmm/kt1_nnodes1_test.csv",
        parameters=("2=ppn", "3=nthreads", "4=nbodies", "6=ncrit", "7=level", "8=order"),
        response="15=time",
    ),
    "kripke": Space(
        train="stampede2/kripke/kt0_nnodes1.csv",
        test="stampede2/kripke/kt0_nnodes1_test.csv",
        parameters=(
            *("2=ppn", "3=nthreads", "4=order", "5=ndirsets", "6=ngroupsets", "10=ngroups"),
            *("11=ndirections", "15=legendre_order", "16=solver"),
        ),
        response="25=time",
        categorical=("order", "solver"),
    ),
    "lammps": Space(
        train="autotuner/lammps.csv",
        names=("processes", "per_node", "threads", "every", "melting", "solid", "time"),
        parameters=("processes", "per_node", "threads"),
        response="time",
    ),
    "gray-scott": Space(
        train="autotuner/gray-scott.csv",
        names=("processes", "per_node", "edge", "steps", "time"),
        parameters=("processes", "per_node"),
        response="time",
    ),
    "gemm, m": replace(_GEMM, train_where=("m < 2048",), test_where=("m >= 2048",)),
    "bcast, nodes": replace(_BCAST, train_where=("nnodes <= 64",), test_where=("nnodes == 128",)),
}


class Store:
    """Rows per set, in a file that is replaced after every new row; without a file, in memory."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.rows: dict[str, dict[tuple[str, int, int], Row]] = {}
        if path is not None and path.exists():
            for entry in json.loads(path.read_text())["rows"]:
                self._put(entry.pop("set"), entry)

    def add(self, name: str, row: Row) -> None:
        self._put(name, row)
        if self.path is not None:
            rows = [{"set": key, **row} for key, found in self.rows.items() for row in found.values()]
            write_atomically(self.path, json.dumps({"rows": rows}, indent=1))

    def _put(self, name: str, row: Row) -> None:
        self.rows.setdefault(name, {})[row["modeler"], row["size"], row["seed"]] = row

    def drop_failures(self) -> None:
        for name, found in self.rows.items():
            self.rows[name] = {key: row for key, row in found.items() if row["failure"] is None}

    def of(self, name: str, wanted: set[tuple[str, int, int]]) -> list[Row]:
        """Return those rows of a set that are there."""
        return [row for key, row in self.rows.get(name, {}).items() if key in wanted]

    def too_slow(self, name: str, task: Task) -> bool:
        """Return whether a fit of fewer points has taken too long."""
        return any(
            models_processes.took_too_long(row)
            for (label, size, _), row in self.rows.get(name, {}).items()
            if label == task.contender.label and size < task.size
        )


def _key(task: Task) -> tuple[str, int, int]:
    return task.contender.label, task.size, task.seed


def computed(chosen: argparse.Namespace, store: Store) -> dict[str, list[Row]]:
    """Compute what is missing, and return the rows per set that were asked for."""
    contenders = [Contender.of(label) for label in chosen.modeler]
    wanted: dict[str, set[tuple[str, int, int]]] = {name: set() for name in chosen.sets}
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("reading", total=len(chosen.sizes) * len(chosen.sets))
        for size in sorted(chosen.sizes):
            for name in chosen.sets:
                progress.update(bar, description=f"{name}: {size}")
                tasks = _tasks(SPACES[name].study(chosen.data, contenders, chosen.seeds), size)
                wanted[name] |= {_key(task) for task in tasks}
                for row in _fitted(name, tasks, store, chosen):
                    store.add(name, row)
                progress.advance(bar)
    return {name: models_study.ordered(store.of(name, keys), chosen.modeler) for name, keys in wanted.items()}


def _tasks(study: Study, size: int) -> list[Task]:
    most = min(size, models_study.available(study))
    return models_study.tasks(replace(study, sizes=(most,)))


def _fitted(name: str, tasks: Sequence[Task], store: Store, chosen: argparse.Namespace) -> Iterator[Row]:
    missing = [
        task
        for task in tasks
        if _key(task) not in store.rows.get(name, {}) and not store.too_slow(name, task)
    ]
    with closing(models_processes.rows(missing, chosen.workers, chosen.limit)) as rows:
        yield from rows


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = options(__doc__)
    modelers = [name for name in registry.names("model") if name not in LEFT_OUT]
    parser.add_argument("--data", metavar="FOLDER", type=Path, help="with stampede2 and autotuner")
    parser.add_argument("--sets", type=_sets, default=list(SPACES), help=f"default: {'; '.join(SPACES)}")
    parser.add_argument(
        "--sizes", type=_sizes, default=SIZES, help=f"points to fit, default {','.join(map(str, SIZES))}"
    )
    parser.add_argument(
        "--modeler", action="append", help=f"with options as NAME:key=value; default: {', '.join(modelers)}"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"draws of the points (default {SEEDS})")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help=f"seconds of a fit at most (default {LIMIT:g})"
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="rows, kept and continued")
    parser.add_argument("--retry", action="store_true", help="compute rows of OUT that failed again")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="write figures as PNG")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="replace the block of this in a page")
    found = parser.parse_args(arguments)
    found.modeler = list(dict.fromkeys(found.modeler or modelers))
    if found.data is None:
        if "MEASUREMENT_DATA" not in os.environ:
            parser.error("give --data FOLDER, or set MEASUREMENT_DATA")
        found.data = Path(os.environ["MEASUREMENT_DATA"])
    if found.write is not None:
        text.BLOCK.check(found.write)  # before hours of fits
    return found


def _sets(names: str) -> list[str]:
    """Read names or starts of names: ``gemm`` is interpolation and extrapolation, ``gemm, m`` only that."""
    chosen: dict[str, Any] = {}
    for name in [names] if names in SPACES else filter(None, names.split(";" if ";" in names else ",")):
        found = [key for key in SPACES if key == name.strip() or key.startswith(f"{name.strip()}, ")]
        if not found:
            raise argparse.ArgumentTypeError(f"{name!r} is no set; there are {'; '.join(SPACES)}")
        chosen |= dict.fromkeys(found)
    return list(chosen)


def _sizes(values: str) -> list[int]:
    return sorted({int(value) for value in values.split(",")})


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = parsed(arguments)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes: they share the cores
    store = Store(chosen.json)
    if chosen.retry:
        store.drop_failures()
    found = computed(chosen, store)
    page = text.markdown(found, chosen.modeler)
    if chosen.figures is not None:
        models_figures.write(found, chosen.figures)
    if chosen.write is not None:
        text.BLOCK.rewrite(chosen.write, page)
    print(page)


if __name__ == "__main__":
    main()
