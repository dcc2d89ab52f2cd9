"""Extrapolation on measured data: models against held-out far corners, beside simple and known methods.

    python benchmarks/far_corner.py [--cases FOLDER] [--modeler pmnf --modeler auto] [--write PAGE | --lines]
    python benchmarks/far_corner.py [--lines] FILE ...

FOLDER has a JSON list of cases per set: what models are fitted to, what was measured beyond, and predictions
of other methods there (default: far-corner in $MEASUREMENT_DATA). Cases of one group are fitted together.

Errors are against the mean measured at each held-out point. MLogQ is the mean absolute log error (5 where
nothing usable is predicted). *Median of six* is the unweighted median of the logarithms of v1, Extra-P,
ridge2, power law, end slope and GP. Intervals are of the true mean, and of as many runs as were held out.
Widths are geometric means of high/low (at most e^5). A conformal interval around the median of six has the
90 % quantile q of its absolute log errors in the other cases of the set: the width is exp(2q).

With --lines models are fitted to what a campaign begins with: points of a line per parameter through the
smallest values, and one point per two parameters.

FILE is any measured data that ``orchestrator model`` reads: all points with the largest value of any
parameter are left out, and the point with the largest values of all is predicted.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

import far_corner_text as text
from command import options
from far_corner_cases import Answer, Case, answers, groups, of_file, on_lines, options_for, stored
from far_corner_scores import Row, Scores, rows, scores
from pages import Block, Cells, as_list, as_markdown
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from orchestrator import registry

_WIDTH = 240  # of tables in files and pipes
DEFAULT = "default"  # the modeler that the product takes where none is named


def ask(
    pool: ProcessPoolExecutor, sets: Mapping[str, Sequence[Case]], modeler: str, screen: Console
) -> dict[str, list[Row]]:
    """Fit all groups of all sets in the processes of a pool; return the scored points per set."""
    name = None if modeler == DEFAULT else modeler
    asked: dict[str, list[tuple[list[int], Future[list[list[Answer | None]]]]]] = {
        key: [
            (group, pool.submit(answers, [cases[k] for k in group], name, options_for(key, name)))
            for group in groups(cases)
        ]
        for key, cases in sets.items()
    }
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    result = {}
    with Progress(*columns, console=screen) as progress:
        bar = progress.add_task(modeler, total=sum(map(len, asked.values())))
        for key, waiting in asked.items():
            progress.update(bar, description=f"{modeler}: {key}")
            found: list[list[Answer | None]] = [[] for _ in sets[key]]
            for group, future in waiting:
                for position, said in zip(group, future.result(), strict=True):
                    found[position] = said
                progress.advance(bar)
            result[key] = rows(sets[key], found)
    return result


def markdown(modeler: str, found: Mapping[str, Scores], worst: Cells) -> str:
    """Return everything that is reported of a modeler, as a page shows it."""
    parts = [
        f"`--modeler {modeler}`:\n",
        as_markdown(text.accuracy(found)),
        as_list(text.summary(found)),
        as_markdown(text.intervals(found)),
        f"The {len(worst) - 1} worst cases; steps of what was measured along each parameter, and beyond:\n"
        "↘ falls, → flat, ↗ rises, ↑ rises faster than the 1.5th power:\n",
        as_markdown(worst),
    ]
    return "\n".join(part for part in parts if part.strip())


def show(
    modeler: str, found: Mapping[str, Scores], worst: Sequence[tuple[str, Row]], screen: Console
) -> None:
    """Print everything that is reported of a modeler, and the measured values of the worst cases."""
    screen.print(text.as_table(text.accuracy(found), f"{modeler}: accuracy"))
    screen.print(text.as_table(text.intervals(found), f"{modeler}: intervals"))
    screen.print(text.as_table(text.worst_table(worst), f"{modeler}: the {len(worst)} worst cases"))
    for name, row in worst:
        for line in text.values_text(name, row):
            screen.print(line, markup=False, highlight=False)
    for sentence in text.summary(found):
        screen.print(sentence, markup=False, highlight=False)


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("files", metavar="FILE", nargs="*", type=Path)
    parser.add_argument("--cases", metavar="FOLDER", type=Path, help="sets of cases")
    parser.add_argument(
        "--only", nargs="*", default=[], help="only sets with one of these texts in their name"
    )
    parser.add_argument("--points", type=int, default=40, help="test points per case, at most (default 40)")
    parser.add_argument(
        "--lines", action="store_true", help="fit what a campaign begins with: lines, and a point per two"
    )
    parser.add_argument("--metric", default="time", help="what is modelled of FILE (default time)")
    parser.add_argument("--modeler", action="append", choices=(DEFAULT, *registry.names("model")))
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument(
        "--worst", type=int, default=10, help="how many of the worst cases to list (default 10)"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write all scores there, per modeler and set"
    )
    parser.add_argument("--markdown", action="store_true", help="print tables as pages show them")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="replace the block of each modeler in a page"
    )
    found = parser.parse_args(arguments)
    if found.lines and found.write:
        parser.error("--write replaces figures of models fitted to all points: not with --lines")
    if found.cases is None and not found.files:
        if "MEASUREMENT_DATA" not in os.environ:
            parser.error("name FILEs, or --cases FOLDER, or set MEASUREMENT_DATA to the folder of far-corner")
        found.cases = Path(os.environ["MEASUREMENT_DATA"], "far-corner")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = parsed(arguments)
    sets = {path.stem: of_file(path, chosen.metric) for path in chosen.files}
    if chosen.cases is not None:
        sets |= stored(chosen.cases, chosen.only, chosen.points)
    if chosen.lines:
        sets = {name: few for name, cases in sets.items() if (few := on_lines(cases))}
    if not sets:
        raise SystemExit(f"no set in {chosen.cases} has any of {chosen.only} in its name")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes of the pool: they share the cores
    screen, document = Console(width=None if sys.stdout.isatty() else _WIDTH), {}
    with ProcessPoolExecutor(chosen.workers, multiprocessing.get_context("spawn")) as pool:
        for modeler in chosen.modeler or [DEFAULT]:
            found = ask(pool, sets, modeler, Console(stderr=True))
            scored = {name: scores(known) for name, known in found.items()}
            document[modeler] = {name: asdict(item) for name, item in scored.items()}
            worst = text.worst(found, chosen.worst)
            page = markdown(modeler, scored, text.worst_table(worst))
            if chosen.write:
                Block(f"far corner: {modeler}", "far corner").rewrite(chosen.write, page)
            if chosen.markdown:
                print(page)
            else:
                show(modeler, scored, worst, screen)
            for path in chosen.files:
                if path.stem in found:
                    print(as_markdown(text.regions_table(found[path.stem])))
    if chosen.json:
        chosen.json.write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
