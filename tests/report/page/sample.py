"""Documents for the page, made from stated laws: small ones to look at closely, large ones for its limits."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from orchestrator.models.base import Floats

HOSTILE = '<img src=x onerror="window.hacked=1">&amp;</script><script>window.hacked=2</script>'
P = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
N = [10, 15, 20, 25, 30, 35, 40]
MEASURED_P, MEASURED_N = P[:6], N[:5]
PROCESSES = {
    "name": "p",
    "kind": "number",
    "stops": P,
    "measured": MEASURED_P,
    "default": 4096,
    "processes": True,
    "logarithmic": True,
}
Law = Callable[[Any, Any], Any]

TREE = "main->LagrangeLeapFrog"
# name, parent's index, law of p and n in seconds, formula, what it grows as with p
LAWS: list[tuple[str, int | None, Law, str, tuple[str, float, int]]] = [
    ("main", None, lambda p, n: 0.0 * p, "", ("", 0, 0)),
    (TREE, 0, lambda p, n: 0.0 * p, "", ("", 0, 0)),
    (
        f"{TREE}->void CalcForceForNodes(Domain&, const double*)",
        1,
        lambda p, n: 2 + 4e-3 * n**3 + 0 * p,
        "2 + 0.004 n^3",
        ("1", 0, 0),
    ),
    (
        f"{TREE}->CalcQForElems",
        1,
        lambda p, n: 0.6 + 1.5e-3 * n**3 * p**0.1,
        "0.6 + 0.0015 n^3 p^(1/10)",
        ("p^(1/10)", 0.1, 0),
    ),
    (
        f"{TREE}->MPI_Waitall",
        1,
        lambda p, n: 0.4 + 0.02 * n * np.sqrt(p),
        "0.4 + 0.02 n p^(1/2)",
        ("p^(1/2)", 0.5, 0),
    ),
    ("main->CalcTimeConstraints", 0, lambda p, n: 0.2 + 3e-4 * n**3 + 0 * p, "0.2 + 0.0003 n^3", ("1", 0, 0)),
    (
        "main->CalcTimeConstraints->MPI_Allreduce",
        5,
        lambda p, n: 0.1 + 0.35 * np.log2(p) ** 2 + 0 * n,
        "0.1 + 0.35 log2(p)^2",
        ("log(p)^2", 0, 2),
    ),
    ("main->InitMesh", 0, lambda p, n: 1.2 + 0.01 * p + 0 * n, "1.2 + 0.01 p", ("p", 1, 0)),
    (f"main->{HOSTILE}", 0, lambda p, n: 0.3 + 0 * p * n, "0.3", ("1", 0, 0)),
]


def packed(values: Iterable[float]) -> str:
    return base64.b64encode(np.asarray(list(values), dtype="<f4").tobytes()).decode()


def unpacked(text: str) -> Floats:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float64)


def campaign(seed: int = 1) -> dict[str, Any]:
    """Return the document of a campaign with every section."""
    rng = np.random.default_rng(seed)
    laws = _inclusive()
    grid = list(itertools.product(P, N))
    at_p_plus = [float(law(4096, 40)) for law in laws]
    runs = _runs()
    document = {
        "schema": 1,
        "kind": "campaign",
        "title": "lulesh-weak",
        "generated": "2026-11-23T17:00:00Z",
        "program": "orchestrator 0.1.0",
        "head": _head(at_p_plus),
        "parameters": [
            PROCESSES,
            {
                "name": "n",
                "kind": "number",
                "stops": N,
                "measured": MEASURED_N,
                "default": 40,
                "processes": False,
                "logarithmic": False,
            },
        ],
        "grid": {"names": ["p", "n"], "shape": [len(P), len(N)]},
        "runs": runs,
        "lines": [{"parameter": "p", "at": {"n": 40}, "x": [float(x) for x in np.geomspace(8, 4096, 60)]}],
        "whole": [0],
        "parts": [1, 5, 7, 8],
        "callpaths": [_callpath(index, law, grid, runs, rng) for index, law in enumerate(laws)],
        "speedup": _speedup(laws[0]),
        "points": _points(),
        "rounds": _rounds(),
        "alternatives": [
            {"text": "All 30 points of the measured grid, once each", "core_hours": 212.4},
            {"text": "One run at P+ (p = 4096, n = 40), without a model", "core_hours": 391.0},
        ],
        **_history(rng),
        "effort": _effort(rng),
        "priors": _priors(laws[4]),
        "downloads": [
            {"name": "campaign.yaml", "type": "text/yaml", "text": "name: lulesh-weak\n"},
            {"name": "measurements.csv", "type": "text/csv", "text": "p,n,time\n8,10,7.4\n"},
            {
                "name": "models.tex",
                "type": "text/x-tex",
                "text": None,
                "note": "orchestrator model DIR --format latex",
            },
        ],
        "comparison": None,
    }
    return document


def large(callpaths: int, seed: int = 1) -> dict[str, Any]:
    """Return a document with many call paths, as deep and as full as those of real programs."""
    document = campaign(seed)
    rng = np.random.default_rng(seed)
    grid = list(itertools.product(P, N))
    first = len(LAWS)
    for index in range(first, callpaths):
        law = _scaled(LAWS[index % 6 + 2][2], float(rng.lognormal(-3, 1.5)))
        item = _callpath(index % first, law, grid, document["runs"], rng)
        parent = 0 if index < first + 20 else int(rng.integers(first, index))
        item |= {
            "id": index,
            "parent": parent,
            "name": f"{document['callpaths'][parent]['name']}->call_{index}"[-240:],
        }
        document["callpaths"].append(item)
    return document


def comparison() -> dict[str, Any]:
    """Return the document of two campaigns compared."""
    rng = np.random.default_rng(3)
    rows = []
    for index in range(40):
        change = {0: 1.31, 3: 1.12, 7: 0.86}.get(index, 1.0)
        ratio, width = change * rng.lognormal(0, 0.015), rng.uniform(1.02, 1.08)
        rows.append(
            {
                "callpath": f"main->{HOSTILE}" if index == 5 else f"main->step->kernel_{index}",
                "metric": "time",
                "ratio": ratio,
                "low": ratio / width,
                "high": ratio * width,
                "probability": 0.999 if change != 1 else float(rng.uniform(0.1, 0.9)),
                "sentence": "It grows faster: p^(1/2) instead of log(p)."
                if index == 0
                else "No change beyond noise.",
            }
        )
    facts = [
        {"label": "Compiler", "a": "gcc 13.2", "b": "gcc 14.1"},
        {"label": "Machine", "a": "cluster", "b": "cluster"},
    ]
    return {
        "schema": 1,
        "kind": "comparison",
        "title": "v1.3 against v1.2",
        "generated": "2026-11-23T17:00:00Z",
        "program": "orchestrator 0.1.0",
        "head": {"facts": [], "answer": None, "warnings": []},
        "parameters": [],
        "grid": {"names": [], "shape": []},
        "callpaths": [],
        "downloads": [],
        "comparison": {"names": ["v1.2", "v1.3"], "facts": facts, "rows": rows, **_sides(rows, rng)},
    }


def _sides(rows: list[dict[str, Any]], rng: np.random.Generator) -> dict[str, Any]:
    """Return the curves and runs of both sides of the first call paths."""
    points = [{"p": p, "n": n} for p in MEASURED_P for n in (10, 20) for _ in range(2)]
    at = np.array([[point["p"], point["n"]] for point in points], dtype=float)
    x = np.geomspace(8, 4096, 40)
    law = LAWS[4][2]

    def side(factor: float) -> dict[str, Any]:
        noisy = factor * law(at[:, 0], at[:, 1]) * rng.lognormal(0, 0.03, len(points))
        values = factor * law(x, 20)
        return {"expression": "", "measured": packed(noisy), "curves": [_curve(values, 0.9, 1.1)]}

    return {
        "parameters": [PROCESSES],
        "lines": [{"parameter": "p", "at": {"n": 20}, "x": x.tolist()}],
        "points": [points, points],
        "pairs": [[side(1.0), side(row["ratio"])] for row in rows[:10]],
    }


def _scaled(law: Law, factor: float) -> Law:
    return lambda p, n: factor * law(p, n)


def _inclusive() -> list[Law]:
    """Laws of call paths with everything that they call."""

    def below(index: int) -> Law:
        children = [child for child, law in enumerate(LAWS) if law[1] == index]
        return lambda p, n: LAWS[index][2](p, n) + sum(below(child)(p, n) for child in children)

    return [below(index) for index in range(len(LAWS))]


def _head(values: list[float]) -> dict[str, Any]:
    parts = [
        {
            "callpath": LAWS[index][0],
            "share": values[index] / values[0],
            "value": values[index],
            "low": 0.93 * values[index],
            "high": 1.08 * values[index],
        }
        for index in (2, 3, 4, 7, 6, 5)
    ]
    facts = [
        ("Application", "lulesh 2.0", "executable 9f31c2ab, git 4be21d7"),
        ("Where", "cluster, partition compute", "node001 – node016"),
        ("When", "23 November 2026", "from 09:12 to 15:40"),
        ("Cost", "187.4 core-hours", "of a budget of 200"),
        ("Runs", "64 measured, 3 failed", "24 points"),
        ("Stopped because", "three rounds without improvement", None),
        ("Versions", "Open MPI 4.1.4, gcc 12.2", "Score-P 8.4"),
        ("Program", "orchestrator 0.1.0", None),
    ]
    return {
        "facts": [{"label": label, "value": value, "detail": detail} for label, value, detail in facts],
        "answer": {
            "point": {"p": 4096, "n": 40},
            "metric": "time",
            "unit": "s",
            "callpath": "main",
            "value": values[0],
            "low": 0.93 * values[0],
            "high": 1.08 * values[0],
            "cost": {"core_hours": values[0] * 4096 / 3600},
            "sentence": "Extrapolated 16 times beyond the largest measured p.",
            "parts": sorted(parts, key=lambda part: -part["share"]),
        },
        "warnings": [
            "p = 4096 is 16 times the largest measured value: the interval trusts the form of the model.",
            "MPI_Allreduce was measured on one node only up to p = 32.",
        ],
    }


def _runs() -> list[dict[str, Any]]:
    places = [
        (p, n)
        for p in MEASURED_P
        for n in MEASURED_N
        if (P.index(p) + N.index(n)) % 2 == 0 or n == 10 or p == 8
    ]
    runs = [
        {
            "point": {"p": p, "n": n},
            "id": f"{p}-{n}-{k}",
            "validation": False,
            "node": f"node{k:03d}",
            "t": 60.0 * k,
        }
        for p, n in places
        for k in (1, 2)
    ]
    return [
        *runs,
        {"point": {"p": 256, "n": 30}, "id": "check", "validation": True, "node": "node001", "t": None},
    ]


def _callpath(
    index: int, law: Law, grid: list[tuple[int, int]], runs: list[dict[str, Any]], rng: np.random.Generator
) -> dict[str, Any]:
    name, parent, _, text, (growth, exponent, log) = LAWS[index]
    values = np.array([float(law(p, n)) for p, n in grid])
    width = np.array([1.04 + 0.02 * P.index(p) for p, _ in grid])
    exact = np.array([float(law(run["point"]["p"], run["point"]["n"])) for run in runs])
    measured = exact * rng.lognormal(0, 0.04, len(runs))
    measured[5] *= 1.6
    curve = np.array([float(law(x, 40)) for x in np.geomspace(8, 4096, 60)])
    growths = (
        [{"parameter": "p", "text": growth, "exponent": exponent, "log": log, "kind": "terms"}]
        if growth
        else []
    )
    return {
        "id": index,
        "name": name,
        "parent": parent,
        "mpi": "MPI_" in name,
        "metric": "time",
        "unit": "s",
        "category": {},
        "expression": text,
        "mathml": _mathml(text),
        "latex": text,
        "python": text,
        "c": text,
        "notes": ["Two runs differ by 60 %."] if index in (4, 6) else [],
        "badges": ["noisy"] if index in (4, 6) else [],
        "smape": 3.1 + index,
        "noise": 0.04,
        "growth": growths,
        "value": packed(values),
        "low": packed(values / width),
        "high": packed(values * width),
        "measured": packed(measured),
        "outliers": [5],
        "predicted_at_runs": packed(exact),
        "exclusive": False,
        "curves": [
            {
                "line": 0,
                "value": packed(curve),
                "low": packed(curve / 1.1),
                "high": packed(curve * 1.1),
                "change_points": [128] if index == 4 else [],
            }
        ],
    }


def _mathml(text: str) -> str | None:
    if not text:
        return None
    kind = {True: "mn", False: "mi"}
    words = [(kind[word[0].isdigit()] if word != "+" else "mo", word) for word in text.split()]
    inner = "".join(f"<{tag}>{word}</{tag}>" for tag, word in words)
    return f"<math><mrow>{inner}<script>window.hacked=3</script></mrow></math>"


def _speedup(law: Law) -> dict[str, Any]:
    def about(value: float) -> dict[str, float]:
        return {"value": value, "low": value / 1.1, "high": value * 1.1}

    first = law(8, 30)
    curve = [
        {
            "processes": p,
            "seconds": about(law(p, 30)),
            "speedup": about(first / law(p, 30) * p / 8),
            "efficiency": about(first / law(p, 30)),
            "core_hours": about(law(p, 30) * p / 3600),
        }
        for p in P
    ]
    sentences = ["Efficiency falls below 50 % at p = 700 (500 – 1 100)."]
    return {
        "text": "Weak scaling: the work per process stays the same.",
        "parameter": "p",
        "callpaths": [{"id": 0, "curve": curve, "limit": None, "sentences": sentences}],
    }


def _points() -> list[dict[str, Any]]:
    def state(p: int, n: int) -> str:
        if p * n > 30000:
            return "infeasible"
        if p > 256 or n > 30:
            return "next" if (p, n) == (512, 20) else "not chosen"
        return (
            "failed"
            if (p, n) == (128, 30)
            else "measured"
            if (P.index(p) + N.index(n)) % 2 == 0
            else "rejected"
        )

    why = {
        "measured": "Largest gain per core-hour in round 2.",
        "infeasible": "A run would take longer than the time limit.",
        "rejected": "Little gain for its cost.",
        "not chosen": "never chosen",
        "next": "Would halve the uncertainty at P+.",
        "failed": "Out of memory.",
    }
    return [
        {
            "point": {"p": p, "n": n},
            "state": state(p, n),
            "cost": None if state(p, n) == "not chosen" else p * (2 + 4e-3 * n**3) / 3600,
            "runs": 2 if state(p, n) == "measured" else 0,
            "round": 2 if state(p, n) == "measured" else None,
            "reason": why[state(p, n)],
        }
        for p in P
        for n in N
    ]


def _rounds() -> list[dict[str, Any]]:
    spent, width = [24.0, 51, 83, 118, 150, 187.4], [61.0, 34, 19, 11, 10.6, 10.8]
    return [
        {
            "round": index,
            "spent": cost,
            "uncertainty_percent": part,
            "points": 4,
            "improved": index < 5,
            "sentence": f"Round {index}: four points at large p, because p dominates the uncertainty.",
        }
        for index, (cost, part) in enumerate(zip(spent, width, strict=True), 1)
    ]


def _history(rng: np.random.Generator) -> dict[str, Any]:
    attempts: list[dict[str, Any]] = []
    free = dict.fromkeys((f"node{index:03d}" for index in range(1, 7)), 0.0)
    for index in range(67):
        node = min(free, key=lambda name: free[name])
        queued = free[node] + float(rng.uniform(0, 60))
        started = queued + float(rng.exponential(90))
        finished = started + float(rng.uniform(120, 900))
        failed = index in (11, 30, 52)
        free[node] = finished
        attempts.append(
            {
                "run": f"r{index}",
                "attempt": 1,
                "kind": "time",
                "node": node,
                "queued": queued,
                "started": started,
                "finished": finished,
                "state": "failed" if failed else "measured",
                "charge": (finished - started) / 200,
                "reason": "out of memory" if failed else None,
                "files": f"runs/r{index}/1",
            }
        )
    ended = sorted(attempts, key=lambda item: float(item["finished"]))
    spent = np.cumsum([item["charge"] for item in ended])
    nodes = [
        {"node": name, "percent": 3.0 + index, "median_ratio": 1.0 + 0.01 * index, "runs": 11}
        for index, name in enumerate(free)
    ]
    return {
        "attempts": attempts,
        "ledger": {
            "unit": "core-hours",
            "time": [item["finished"] for item in ended],
            "spent": list(spent),
            "reserved": [12.0 if index < 60 else 0.0 for index in range(len(ended))],
            "budget": [180.0 if index < 30 else 220.0 for index in range(len(ended))],
        },
        "noise": {
            "points": [
                {"point": {"p": p, "n": 10}, "percent": 2.0 + index, "runs": 2}
                for index, p in enumerate(MEASURED_P)
            ],
            "nodes": nodes,
            "drift": "No drift: runs are as fast at the end as at the start.",
            "hours": [{"t": item["started"], "ratio": float(rng.lognormal(0, 0.04))} for item in attempts],
        },
        "failures": [
            {
                "run": item["run"],
                "attempt": 1,
                "node": item["node"],
                "class": "memory",
                "reason": item["reason"],
                "charge": item["charge"],
                "outcome": "given up",
                "files": item["files"],
            }
            for item in attempts
            if item["state"] == "failed"
        ],
        "unmeasured": [
            {"run": "r30", "outcome": "given up", "charge": 2.1, "reason": "out of memory (1 attempt)"},
            {"run": "r68", "outcome": "skipped", "charge": 0.0, "reason": "the budget does not hold it"},
        ],
    }


def _effort(rng: np.random.Generator) -> dict[str, Any]:
    pairs = [
        {
            "point": {"p": p, "n": n},
            "seconds": 4e-3 * n**3 * float(rng.lognormal(0, 0.04)),
            "counts": {"loops": 50 * n**3, "bytes": 8 * n**2 * p},
        }
        for p in MEASURED_P
        for n in MEASURED_N
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
    waiting = {"id": 4, "counts": ["waitall bytes_received"], "noise": 0.04, "rows": rows, "text": text}
    return {"callpaths": [{"id": 2, "pairs": pairs}], "waiting": [waiting]}


def _priors(law: Law) -> dict[str, Any]:
    """Return what priors changed: one call path."""
    x = np.geomspace(8, 4096, 60)
    values = 1.2 * law(x, 40)
    without = {
        "expression": "0.8 + 0.03 n p^(1/2)",
        "growth": [{"parameter": "p", "text": "p**(1/2)", "exponent": 0.5, "log": 0.0, "kind": "terms"}],
        "value": 1.2 * float(law(4096, 40)),
        "low": 0.7 * float(law(4096, 40)),
        "high": 1.9 * float(law(4096, 40)),
        "curves": [_curve(values, 0.5, 1.6)],
    }
    aided = {**without, "expression": "0.4 + 0.02 n p^(1/2)", "value": float(law(4096, 40)), "curves": None}
    text = "prediction at P(p=4096, n=40) 17 % lower"
    return {
        "sources": ["counted effort", "the earlier campaign lulesh-2023"],
        "callpaths": [
            {
                "id": 4,
                "without": without,
                "with": aided,
                "text": text,
                "why": ["structure as in lulesh-2023 (weight 0.93)"],
            }
        ],
    }


def _curve(values: Any, low: float, high: float) -> dict[str, Any]:
    bands = {"value": packed(values), "low": packed(low * values), "high": packed(high * values)}
    return {"line": 0, **bands, "change_points": []}


def bare() -> dict[str, Any]:
    """Return the document of measurements of one parameter, without anything that may be absent."""
    document = campaign()
    grid = [float(law) for law in P]
    item = {
        "id": 0,
        "name": "main",
        "parent": None,
        "mpi": False,
        "metric": "time",
        "unit": "s",
        "category": {},
        "expression": "2 p",
        "notes": [],
        "badges": [],
        "growth": [],
        "value": packed(grid),
        "low": packed([np.nan] * len(P)),
        "high": packed([np.nan] * len(P)),
        "measured": None,
        "outliers": [],
        "predicted_at_runs": None,
        "curves": [],
        "exclusive": False,
    }
    absent = (
        "speedup",
        "points",
        "rounds",
        "alternatives",
        "attempts",
        "ledger",
        "noise",
        "failures",
        "unmeasured",
        "effort",
        "priors",
    )
    return (
        document
        | dict.fromkeys(absent)
        | {
            "kind": "measurements",
            "head": {"facts": [], "answer": None, "warnings": []},
            "runs": None,
            "lines": [],
            "whole": [],
            "parts": [],
            "parameters": [document["parameters"][0] | {"processes": False}],
            "grid": {"names": ["p"], "shape": [len(P)]},
            "callpaths": [item],
            "downloads": [],
        }
    )
