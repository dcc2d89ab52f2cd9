"""Whole campaigns by their stop rules: how accurate, how sure, and how much of the budget was used.

    python benchmarks/stop_rules.py synthetic --parameters 2 --noise 1 --functions 200 --seed 2027
    python benchmarks/stop_rules.py replayed FILE [FILE ...] --cores p

``synthetic`` draws functions of the normal form and rehearses a campaign on each: the loop, the limits and
the stop rules of real campaigns, with a budget in percent of the cost of all points with five runs.
``replayed`` rehearses a campaign on each group of a file of held-out corners: a JSON list of cases with
``id``, ``group``, ``parameters``, ``train`` and ``test``, as ``[[point, [repetitions]], ...]``. The program
uses only what campaigns of every version have, so it compares versions (run it with ``PYTHONPATH``).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from orchestrator.campaign import loader
from orchestrator.control import session
from orchestrator.evaluation.strategies.functions import draw
from orchestrator.evaluation.strategies.synthetic import SERIES
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.state import State
from orchestrator.types import Point

RUNS = 5  # per point, in the full cost
LEAST_SHARE = 0.01  # of the predicted time at P+, below which a call path is not relevant


@dataclass(frozen=True)
class Stand:
    """After a round: share of the budget used; mean width and error at P+, weighted by time, in percent."""

    used: float
    width: float | None
    error: float | None


@dataclass(frozen=True, kw_only=True)
class Result:
    """A campaign: its stop rule, the figures of its end, the most runs of one point, and its rounds."""

    name: str
    rule: str
    used: float
    rounds: int
    runs: int
    points: int
    repeated: int
    width: float | None
    error: float | None
    covered: float | None
    history: tuple[Stand, ...]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A campaign file as an object, and the true times of call paths at P+."""

    name: str
    document: dict[str, Any]
    truth: Mapping[str, float]


class Follow:
    """Listens to a campaign and notes how its models stand after every round."""

    def __init__(self, case: Case, directory: Path, budget: float):
        self._case, self._directory, self._budget = case, directory, budget
        self._pending = False
        self.history: list[Stand] = []
        self.last: tuple[float | None, float | None, float | None] = (None, None, None)

    def __call__(self, entry: Entry, state: State) -> None:
        if self._pending:  # the models of the round are published now
            self._note(state)
        self._pending = isinstance(entry.event, events.RoundCompleted)

    def _note(self, state: State) -> None:
        models = json.loads((self._directory / "models.json").read_text())["models"]
        self.last = width, error, _ = figures(models, self._case.truth)
        self.history.append(Stand(100 * state.spent / self._budget, width, error))


def figures(
    models: Iterable[Mapping[str, Any]], truth: Mapping[str, float]
) -> tuple[float | None, float | None, float | None]:
    """Return mean width, error and coverage over relevant call paths, weighted by true time, in percent."""
    found = {m["callpath"]: m["predictions"][0] for m in models if m["metric"] == "time" and m["predictions"]}
    total = sum(truth.values())
    width = error = held = weights = 0.0
    for callpath, seconds in truth.items():
        here = found.get(callpath)
        if seconds < LEAST_SHARE * total:
            continue
        if here is None or None in (here["value"], here["low"], here["high"]) or not here["value"]:
            return None, None, None
        weights += seconds
        width += seconds * (here["high"] - here["low"]) / here["value"]
        error += abs(here["value"] - seconds)
        held += seconds * (here["low"] <= seconds <= here["high"])
    return 100 * width / weights, 100 * error / weights, 100 * held / weights


def rehearse(case: Case) -> Result:
    rules = loader.loads(json.dumps(case.document), f"{case.name}.yaml", Path.cwd(), [])
    with tempfile.TemporaryDirectory() as parent:
        directory = Path(parent) / "campaign"
        follow = Follow(case, directory, rules.stop.budget)
        state = session.run(rules, directory, session.Hooks(listen=follow))
    measured = Counter(run.point for run, item in state.runs.items() if item.samples)
    width, error, covered = follow.last
    return Result(
        name=case.name,
        rule=state.stopped.rule if state.stopped else "",
        used=100 * state.spent / rules.stop.budget,
        rounds=state.rounds_completed,
        runs=sum(measured.values()),
        points=len(measured),
        repeated=max(measured.values(), default=0),
        width=width,
        error=error,
        covered=covered,
        history=tuple(follow.history),
    )


def document(
    parameters: Mapping[str, Sequence[float]],
    beyond: Mapping[str, float],
    cores: str,
    budget: float,
    executor: Mapping[str, Any],
    limit: str,
    chosen: argparse.Namespace,
    seed: int,
) -> dict[str, Any]:
    arguments = [f"{{{name}}}" for name in parameters]
    ranks = cores if cores == "1" else f"max(1, {cores})"
    strategy = {"name": chosen.strategy, "batch_size": chosen.batch}
    return {
        "name": "benchmark",
        "application": "generic",
        "program": {
            "arguments": arguments,
            "ranks": ranks,
            "output": [{"callpath": "main", "pattern": "t=(.*)"}],
        },
        "parameters": {name: {"values": list(values)} for name, values in parameters.items()},
        "evaluation_point": dict(beyond),
        "measure": {
            "time_limit": limit,
            "repetitions": {"initial": 1, "maximum": chosen.repetitions},
        },
        "strategy": strategy,
        "stop": {"budget": f"{budget:.12f} core-seconds", **dict(chosen.stop)},
        "executor": {"name": "simulated", "max_pending": 64, **executor},
        "seed": seed,
    }


def synthetic(chosen: argparse.Namespace) -> Iterator[Case]:
    series = SERIES[: chosen.parameters]
    parameters = [parameter for parameter, _ in series]
    beyond = {parameter.name: value for parameter, value in series}
    grids = [
        Point(tuple(zip(beyond, values, strict=True))) for values in product(*(p.values for p in parameters))
    ]
    for index in range(chosen.first, chosen.first + chosen.functions):
        function = draw(parameters, np.random.default_rng([chosen.seed, index]))
        full = RUNS * sum(point.number("a") * function(point) for point in grids)
        yield Case(
            name=f"{index}",
            document=document(
                {p.name: [float(v) for v in p.values] for p in parameters},
                beyond,
                "a",
                full * chosen.budget / 100,
                {"truth": {"main": function.text}, "noise": chosen.noise},
                f"1.5 * ({function.text})",
                chosen,
                index,
            ),
            truth={"main": function(Point.of(beyond))},
        )


def replayed(chosen: argparse.Namespace, folder: Path) -> Iterator[Case]:
    for file in chosen.files:
        groups: dict[str, list[dict[str, Any]]] = {}
        for case in json.loads(file.read_text()):
            key = case["id"] if chosen.alone else case["group"]
            groups.setdefault(key, []).append(case)
        for group, cases in groups.items():
            yield _replay(chosen, folder, f"{file.stem}-{group}".replace("/", "-"), cases)


def _replay(chosen: argparse.Namespace, folder: Path, name: str, cases: list[dict[str, Any]]) -> Case:
    names = cases[0]["parameters"]
    path = folder / f"{name}.jsonl"
    with path.open("w") as out:
        for case in cases:
            for point, values in case["train"]:
                for value in values:
                    line = {
                        "params": dict(zip(names, point, strict=True)),
                        "callpath": case["id"],
                        "metric": "time",
                        "value": value,
                    }
                    out.write(json.dumps(line) + "\n")
    train = [dict(zip(names, point, strict=True)) for point, _ in cases[0]["train"]]
    times = [sum(max(case["train"][k][1]) for case in cases) for k in range(len(train))]
    chosen.repetitions = min(len(values) for case in cases for _, values in case["train"])
    full = sum(
        chosen.repetitions * time * max(1, eval(chosen.cores, {}, dict(point)))
        for time, point in zip(times, train, strict=True)
    )
    corner = dict(zip(names, cases[0]["test"][0][0], strict=True))
    written = document(
        {n: sorted({point[n] for point in (*train, corner)}) for n in names},
        corner,
        chosen.cores,
        full * chosen.budget / 100,
        {"dataset": str(path)},
        f"{1.5 * max(times):.9f} s",
        chosen,
        0,
    )
    # Limits follow the models: one limit for all runs would reserve most of the budget for small ones.
    written["measure"]["limit_margin"] = 2.0
    written["constraints"] = [" or ".join(f"{n} != {value!r}" for n, value in corner.items())]
    return Case(
        name=name,
        document=written,
        truth={case["id"]: float(np.mean(case["test"][0][1])) for case in cases},
    )


def table(results: Sequence[Result], chosen: argparse.Namespace) -> str:
    def middle(values: Iterable[float | None], digits: int = 1) -> str:
        known = [value for value in values if value is not None]
        return f"{np.median(known):.{digits}f}" if known else "-"

    errors = [result.error for result in results]
    accurate = [100.0 * (e is not None and e <= chosen.tolerance) for e in errors]
    widths = [result.width for result in results]
    rules = Counter(result.rule for result in results)
    lines = [
        f"campaigns {len(results)}; stop rules: "
        + ", ".join(f"{rule} {number}" for rule, number in rules.most_common()),
        "| accurate % | median error % | mean of the 10 % largest errors % | median width % "
        "| wider than 20 % | interval holds the truth % | median used % "
        "| median rounds | median runs | most runs of a point |",
        "|---|---|---|---|---|---|---|---|---|---|",
        f"| {np.mean(accurate):.1f} | {middle(errors, 2)} | {worst(errors):.1f} | {middle(widths)} "
        f"| {100 * np.mean([w is None or w > 20 for w in widths]):.1f} "
        f"| {np.mean([r.covered or 0.0 for r in results]):.1f} | {middle(r.used for r in results)} "
        f"| {middle((float(r.rounds) for r in results), 0)} | {middle((float(r.runs) for r in results), 0)} "
        f"| {middle((float(r.repeated) for r in results), 0)} |",
        "",
        "| used of the budget | accurate % | median width % | campaigns still running |",
        "|---|---|---|---|",
    ]
    for share in (5, 10, 20, 30, 50, 75, 100):
        stands = [at(result, share) for result in results]
        known = [s for s in stands if s is not None]
        good = 100 * sum(s.error is not None and s.error <= chosen.tolerance for s in known) / len(results)
        going = sum(result.used > share for result in results)
        lines.append(f"| {share} % | {good:.1f} | {middle(s.width for s in known)} | {going} |")
    return "\n".join(lines)


def worst(errors: Sequence[float | None]) -> float:
    """Return the mean of the largest tenth of the errors; a campaign without a model counts as 100 %."""
    ranked = sorted((100.0 if error is None else error for error in errors), reverse=True)
    return float(np.mean(ranked[: max(1, len(ranked) // 10)]))


def at(result: Result, share: float) -> Stand | None:
    """Return how a campaign stood when it had used that share of its budget."""
    before = [stand for stand in result.history if stand.used <= share]
    return before[-1] if before else None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("synthetic", "replayed"))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--parameters", type=int, default=2)
    parser.add_argument("--noise", type=float, default=5.0, help="half width of the noise in percent")
    parser.add_argument("--functions", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=2027)
    parser.add_argument("--budget", type=float, default=20.0, help="percent of the full cost")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--strategy", default="information")
    parser.add_argument("--cores", default="1", help="expression in the parameters")
    parser.add_argument("--alone", action="store_true", help="a campaign for each case, not for each group")
    parser.add_argument("--tolerance", type=float, default=5.0)
    parser.add_argument("--stop", action="append", default=[], type=lambda text: tuple(text.split("=")))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="write every campaign's figures to this JSON file")
    chosen = parser.parse_intermixed_args(arguments)
    chosen.stop = [(key, json.loads(value) if value[0].isdigit() else value) for key, value in chosen.stop]
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(chosen.workers) as pool:
        make = synthetic(chosen) if chosen.what == "synthetic" else replayed(chosen, Path(folder))
        results = list(pool.map(rehearse, list(make)))
    if chosen.keep:
        chosen.keep.write_text(json.dumps([asdict(result) for result in results]))
    print(table(results, chosen))


if __name__ == "__main__":
    main()
