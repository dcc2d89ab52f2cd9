"""Documents for the page: that of a simulated campaign, and those of measurements by stated laws."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from orchestrator import registry
from orchestrator.control import reporting
from orchestrator.models.base import Floats
from orchestrator.models.comparison.pairs import aligned
from orchestrator.report import comparison as report_comparison
from orchestrator.report import comparison_facts
from orchestrator.report.page import comparison as page_comparison
from orchestrator.report.page import document as page_document
from orchestrator.report.page.subject import Subject
from orchestrator.types import Measurement, Measurements, Point
from tests.cli.running import run

HOSTILE = '<img src=x onerror="window.hacked=1">&amp;</script><script>window.hacked=2</script>'
TYPES = "(Domain&, const double*)"
P, N = (8, 16, 32, 64, 128, 256), (10, 15, 20, 25, 30)
Law = Callable[[Any, Any], Any]
PARTS = {
    f"step->void CalcForceForNodes{TYPES}": "0.2 + 4e-4 * n**3",
    "step->CalcQForElems": "0.06 + 1.5e-4 * n**3 * p**0.1",
    "step->MPI_Waitall": "0.04 + 2e-3 * n * p**0.5",
    "CalcTimeConstraints": "0.03 + 3e-5 * n**3 + 0.035 * log2(p)**2",
    "CalcTimeConstraints->MPI_Allreduce": "0.01 + 0.035 * log2(p)**2",
    HOSTILE: "0.03",
}
CAMPAIGN = {
    "name": "lulesh-weak",
    "application": "generic",
    "program": {"arguments": ["{p}"], "ranks": "p", "output": [{"callpath": "main", "pattern": "t=(.*)"}]},
    "parameters": {"p": list(P), "n": list(N)},
    "constraints": ["p * n <= 6000"],
    "evaluation_point": {"p": 1024, "n": 40},
    "measure": {"time_limit": "10 min", "expected_time": "10 s"},
    "model": {"name": "pmnf"},
    "strategy": {"name": "cpf", "batch_size": 4},
    "stop": {"budget": "100 core-hours", "rule": "smape", "patience": 1},
    "executor": {
        "name": "simulated",
        "failure_rate": 0.15,
        "noise": 4,
        "truth": {
            "main": "0.5 + 6e-4 * n**3 * p**0.1 + 2e-3 * n * p**0.5 + 0.035 * log2(p)**2",
            "main->step": "0.3 + 5.5e-4 * n**3 * p**0.1 + 2e-3 * n * p**0.5",
            **{f"main->{name}": law for name, law in PARTS.items()},
        },
    },
    "retries": {"application": 0},
    "validate": True,
    "seed": 2,
}


def packed(values: Iterable[float]) -> str:
    return base64.b64encode(np.asarray(list(values), dtype="<f4").tobytes()).decode()


def unpacked(text: str) -> Floats:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float64)


def named(document: dict[str, Any], end: str) -> dict[str, Any]:
    """Return the first call path whose name ends so."""
    found: dict[str, Any] = next(item for item in document["callpaths"] if item["name"].endswith(end))
    return found


def campaign() -> dict[str, Any]:
    """Return the document of a campaign with every section; what a simulation cannot give is added."""
    document: dict[str, Any] = json.loads(_of_campaign())
    waiting, reduction = named(document, "MPI_Waitall"), named(document, "MPI_Allreduce")
    for item in (waiting, reduction):
        item |= {"badges": ["noisy"], "notes": ["Two runs differ by 60 %."], "outliers": [5]}
    waiting["curves"][0]["change_points"] = [128]
    hostile = named(document, HOSTILE)
    hostile["mathml"] = hostile["mathml"].replace("</mrow>", "<script>window.hacked=3</script></mrow>")
    nodes = [f"node00{k}" for k in range(6)]
    for index, attempt in enumerate(document["attempts"]):
        attempt["node"] = nodes[index % len(nodes)]
    for item in document["failures"]:
        item["files"] = f"runs/{item['run']}/attempt-{item['attempt']}"
    [node] = document["noise"]["nodes"]
    document["noise"]["nodes"] = [node | {"node": name} for name in nodes]
    effort = _effort(named(document, TYPES)["id"], waiting["id"])
    return document | {"effort": effort, "priors": _priors(document["lines"][0], waiting["id"])}


@cache
def _of_campaign() -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "campaign.yaml")
        file.write_text(json.dumps(CAMPAIGN))
        ran = run("run", file, "--directory", file.with_suffix(""))
        assert ran.code == 0, ran.err
        return json.dumps(reporting.document(file.with_suffix("")))


@cache
def large(callpaths: int) -> dict[str, Any]:
    """Return the document of measurements with many call paths, as deep as those of real programs."""
    rng = np.random.default_rng(1)
    laws: dict[str, Law] = {"main": lambda p, n: 1e3 + 0 * p}
    names = list(laws)
    for index in range(1, callpaths):
        parent = names[0 if index < 20 else int(rng.integers(0, index))]
        names.append(f"{parent}->call_{index}"[-240:])
        laws[names[-1]] = partial(_law, float(rng.lognormal(-3, 1.5)), float(rng.choice([0, 0.5, 1])))
    return _of_measurements(_measured(laws, [Point.of(p=p, n=n) for p in P for n in N]))


def _law(factor: float, exponent: float, p: float, n: float) -> float:
    return float(factor * (1 + n * p**exponent))


def _of_measurements(known: Measurements) -> dict[str, Any]:
    subject = Subject(known=known, models=registry.load("model", "pmnf")()(known), point=None)
    return page_document.of_measurements(
        subject, title="measured", generated="2026-11-23T17:00:00Z", sources=[], modeler="pmnf"
    )


def _measured(laws: Mapping[str, Law], points: list[Point], seed: int = 1) -> Measurements:
    """Return two runs with 2 % noise at every point."""
    rng = np.random.default_rng(seed)
    items = tuple(
        Measurement(
            name,
            "time",
            {at: tuple(law(at["p"], at["n"]) * np.exp(0.02 * rng.standard_normal(2))) for at in points},
        )
        for name, law in laws.items()
    )
    return Measurements(("p", "n"), items)


def comparison() -> dict[str, Any]:
    """Return the document of two campaigns compared: one kernel became slower, one faster."""
    document: dict[str, Any] = json.loads(_of_comparison())
    return document


@cache
def _of_comparison() -> str:
    points = [Point.of(p=p, n=n) for p in P for n in (10, 20)]

    def side(changes: dict[int, float], seed: int) -> Measurements:
        names = [f"main->step->kernel_{index}" for index in range(12)]
        names[5] = f"main->{HOSTILE}"
        laws = {name: partial(_law, changes.get(index, 1.0), 0.5) for index, name in enumerate(names)}
        return _measured(laws, points, seed)

    both = aligned(side({}, 3), side({0: 1.5, 7: 0.8}, 4))
    models = tuple(registry.load("model", "pmnf")()(known) for known in (both.first, both.second))
    facts = comparison_facts.side_by_side({"compiler": "gcc 13.2"}, {"compiler": "gcc 14.1"})
    question = report_comparison.Question(points=[Point.of(p=4096, n=20)])
    found = report_comparison.document(both, (models[0], models[1]), question) | {"facts": facts}
    return json.dumps(page_comparison.document(found, ("v1.2", "v1.3"), both, (models[0], models[1])))


def _effort(counted: int, waiting: int) -> dict[str, Any]:
    """Return effort counted in one call path, and another that waits longer than counts explain."""
    pairs = [
        {
            "point": {"p": p, "n": n},
            "seconds": 4e-3 * n**3 * (1.01 if p > 16 else 1.0),
            "counts": {"loops": 50 * n**3, "bytes": 8 * n**2 * p},
        }
        for p in P
        for n in N
    ]
    rows = [
        {
            "point": {"p": p, "n": 30},
            "seconds": 0.4 + 0.6 * np.sqrt(p),
            "explained": 2.1,
            "waiting": 0.6 * np.sqrt(p) - 1.7,
            "share": 1 - 2.1 / (0.4 + 0.6 * np.sqrt(p)),
            "clear": p > 8,
            "predicted": p == 4096,
        }
        for p in (8, 64, 256, 4096)
    ]
    text = (
        "At P(p=256, n=30) counts explain 2.1 s of 10 s: 79 % is waiting, or a cost that counts do not show."
    )
    waits = {"id": waiting, "counts": ["waitall bytes_received"], "noise": 0.04, "rows": rows, "text": text}
    return {"callpaths": [{"id": counted, "pairs": pairs}], "waiting": [waits]}


def _priors(line: dict[str, Any], changed: int) -> dict[str, Any]:
    """Return what priors changed: one call path, drawn along a line."""
    values = 0.1 * np.sqrt(line["x"])
    without = {
        "expression": "0.8 + 0.03 n p^(1/2)",
        "growth": [{"parameter": "p", "text": "p**(1/2)", "exponent": 0.5, "log": 0.0, "kind": "terms"}],
        "value": 3.2,
        "low": 2.0,
        "high": 5.1,
        "curves": [
            {
                "line": 0,
                "value": packed(values),
                "low": packed(0.5 * values),
                "high": packed(1.6 * values),
                "change_points": [],
            }
        ],
    }
    aided = without | {"expression": "0.4 + 0.02 n p^(1/2)", "value": 2.7, "curves": None}
    item = {
        "id": changed,
        "without": without,
        "with": aided,
        "text": "prediction at P(p=1024, n=40) 17 % lower",
        "why": ["structure as in lulesh-2023 (weight 0.93)"],
    }
    return {"sources": ["counted effort", "the earlier campaign lulesh-2023"], "callpaths": [item]}


def bare() -> dict[str, Any]:
    """Return the document of measurements of one parameter, without anything that may be absent."""
    points = {Point.of(p=p): (2.0 * p,) for p in P}
    document = _of_measurements(Measurements(("p",), (Measurement("main", "time", points),)))
    [item] = document["callpaths"]
    nothing = packed([np.nan] * document["grid"]["shape"][0])
    item |= {"low": nothing, "high": nothing, "curves": [], "measured": None, "predicted_at_runs": None}
    return document | {"runs": None, "lines": [], "whole": [], "parts": [], "noise": None, "downloads": []}
