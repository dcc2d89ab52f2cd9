"""``orchestrator evaluate models``: modelers on measured samples, over the number of training points."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Generator
from pathlib import Path

from orchestrator.cli import common, inputs
from orchestrator.errors import CampaignError
from orchestrator.evaluation.models import processes as models_processes
from orchestrator.evaluation.models import study as models_study
from orchestrator.evaluation.models.fit import Contender, Row, Task
from orchestrator.evaluation.models.samples import of_response
from orchestrator.evaluation.models.study import Study
from orchestrator.evaluation.models.table import table
from orchestrator.evaluation.parallel import Advance
from orchestrator.types import Measurements
from orchestrator.units import parse_duration

_HOUR = 3600.0
_MODELER = "auto"
_JOBS = Path("evaluation-jobs")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-command's arguments."""
    _add_samples(parser.add_argument)
    inputs.add_columns(parser)
    _add_protocol(parser.add_argument)
    _add_execution(parser.add_argument)
    common.add_json(parser)


def _add_samples(add: Callable[..., object]) -> None:
    add(
        "--train",
        metavar="FILE",
        nargs="+",
        type=Path,
        required=True,
        help="measured samples to fit: a table (CSV, Parquet), or all that `orchestrator model` reads",
    )
    add("--test", metavar="FILE", nargs="+", type=Path, help="held-out samples; without, some of --train")
    add("--callpath", metavar="NAME", help="call path to model; not needed if there is one")


def _add_protocol(add: Callable[..., object]) -> None:
    share = common.number("a share between 0 and 1", lambda x: 0 < x < 1)
    add(
        "--modeler",
        metavar="NAME",
        action="append",
        help=f"with options as pmnf:members=50,wide=false (values are YAML); repeatable; default {_MODELER}",
    )
    add(
        "--sizes",
        metavar="NUMBERS",
        type=_sizes,
        default=(),
        help="points to fit, drawn at random, the same for all modelers and smaller sets within larger "
        "ones: 512,2048; default: all",
    )
    add("--seeds", metavar="N", type=common.whole(1), default=1, help="repetitions of the draw (default 1)")
    add("--where", metavar="EXPRESSION", action="append", default=[], help="of all points: 'm > 32'")
    add(
        "--train-where",
        metavar="EXPRESSION",
        action="append",
        default=[],
        help="of points to fit: 'm < 2048' (repeatable: all must hold)",
    )
    add(
        "--test-where",
        metavar="EXPRESSION",
        action="append",
        default=[],
        help="of test points: 'm >= 2048'; without --test these are taken from --train",
    )
    add(
        "--test-share",
        metavar="SHARE",
        type=share,
        default=models_study.SHARE,
        help=f"of points held out at random, others for each seed, without --test and --test-where "
        f"(default {models_study.SHARE:g})",
    )


def _add_execution(add: Callable[..., object]) -> None:
    add(
        "--time-limit",
        metavar="DURATION",
        type=_duration,
        default=_HOUR,
        help="a fit that takes longer is given up (default 1 h)",
    )
    common.add_workers(add)
    add("--executor", choices=("local", "slurm"), default="local", help="where to fit (default local)")
    add("--partition", metavar="NAME", help="of Slurm jobs, one per fit")
    add(
        "--sbatch",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="further option of sbatch: account=project, mem=8G, or a flag: exclusive (repeatable)",
    )
    add("--jobs", metavar="N", type=common.whole(1), default=256, help="most jobs at a time (default 256)")
    add(
        "--job-files",
        metavar="DIR",
        type=Path,
        default=_JOBS,
        help=f"of Slurm jobs, on a file system that all nodes see (default {_JOBS})",
    )
    common.add_figures(add)


def run(arguments: argparse.Namespace, advance: Advance) -> int:
    """Run the sub-command."""
    study = _study(arguments)
    tasks = models_study.tasks(study)
    overlap = models_study.overlap(study)
    notes = [f"{overlap} points to fit are test points, too, and were left out"] * bool(overlap)
    scored: list[Row] = []
    advance(0, len(tasks))
    with contextlib.closing(_fitted(arguments, tasks)) as rows:
        for row in rows:
            scored.append(row)
            advance(len(scored), len(tasks))
    scored = models_study.ordered(scored, [item.label for item in study.contenders])
    if arguments.figures is not None:
        from orchestrator.evaluation.models import figures as models_figures

        models_figures.write({study.train.items[0].metric: scored}, arguments.figures)
    if arguments.json:
        common.print_json({"rows": scored, "notes": notes})
    else:
        print("\n".join([table(scored), *(f"note: {note}" for note in notes)]))
    return 0


def _study(arguments: argparse.Namespace) -> Study:
    contenders = [Contender.of(text) for text in dict.fromkeys(arguments.modeler or [_MODELER])]
    train, source = _samples(arguments, arguments.train)
    test, test_source = None, source
    if arguments.test is not None:
        test, test_source = _samples(arguments, arguments.test)
    return Study(
        train=train,
        test=test,
        share=arguments.test_share,
        source=source,
        test_source=test_source,
        where=arguments.where,
        train_where=arguments.train_where,
        test_where=arguments.test_where,
        sizes=arguments.sizes,
        seeds=arguments.seeds,
        contenders=contenders,
    )


def _samples(arguments: argparse.Namespace, paths: list[Path]) -> tuple[Measurements, str]:
    """Return the samples of files, and what to call them in errors."""
    source = ", ".join(map(str, paths))
    known = inputs.read_files(arguments, paths)
    return of_response(known, arguments.callpath, source), source


def _fitted(arguments: argparse.Namespace, tasks: list[Task]) -> Generator[Row]:
    """Yield rows as fits end."""
    if arguments.executor == "local":
        if arguments.partition or arguments.sbatch:
            raise CampaignError("--partition and --sbatch are for --executor slurm")
        yield from models_processes.rows(tasks, arguments.workers, arguments.time_limit)
        return
    from orchestrator.evaluation.models import slurm as models_slurm  # submitit is needed for jobs only

    named = {"partition": arguments.partition} if arguments.partition else {}
    jobs = models_slurm.Jobs(
        folder=arguments.job_files,
        limit=arguments.time_limit,
        at_once=arguments.jobs,
        sbatch=dict(_option(text) for text in arguments.sbatch) | named,
    )
    yield from models_slurm.rows(tasks, jobs)


def _option(text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    return key.strip().lstrip("-"), value.strip()


def _sizes(text: str) -> tuple[int, ...]:
    """Read ``512,2048``."""
    read = common.whole(1)
    return tuple(read(part.strip()) for part in text.split(","))


def _duration(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time to fit anything; write for example 10 min")
    return seconds
