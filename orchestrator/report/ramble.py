"""Points to measure next as experiments of a Ramble workspace: variables, iterated over together by zips."""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from orchestrator.strategies.base import Choice
from orchestrator.types import Point, format_value

ZIP = "points"


def experiments(choices: Sequence[Choice]) -> str:
    """Return choices, each with a reason on one line, as YAML to insert below a workload in ``ramble.yaml``.

    Ramble knows repetitions per experiment, so there is one for each number of them.
    """
    by_repetitions: dict[int, list[Point]] = {}
    for item in choices:
        by_repetitions.setdefault(item.repetitions, []).append(item.point)
    named = {
        _name(points[0], repetitions): _experiment(points, repetitions)
        for repetitions, points in by_repetitions.items()
    }
    comments = [
        "# Insert below a workload of ramble.yaml. Where none of n_ranks, n_nodes and processes_per_node is",
        "# a variable here, define them from these variables.",
        *(f"# {item.point.key} ({item.repetitions}): {item.reason}" for item in choices),
    ]
    text = yaml.safe_dump({"experiments": named}, sort_keys=False, default_flow_style=None, width=100)
    return "\n".join([*comments, text])


def _name(point: Point, repetitions: int) -> str:
    """Return the name of experiments, which Ramble completes by the variables' values."""
    return "_".join(["next", f"x{repetitions}", *(f"{{{name}}}" for name in point.as_dict())])


def _experiment(points: Sequence[Point], repetitions: int) -> dict[str, object]:
    names = list(points[0].as_dict())
    found: dict[str, object] = {"n_repeats": str(repetitions)} if repetitions > 1 else {}
    found["variables"] = {name: [format_value(point[name]) for point in points] for name in names}
    found["zips"] = {ZIP: names}
    return found
