"""The document of the page that shows a comparison."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from orchestrator.models.base import Model
from orchestrator.models.comparison.pairs import Aligned
from orchestrator.report.comparison import SURE, label_of
from orchestrator.report.comparison_facts import shown
from orchestrator.report.page.document import frame, nothing
from orchestrator.report.page.sides import sides


def document(
    compared: Mapping[str, Any],
    names: tuple[str, str],
    both: Aligned,
    models: tuple[Sequence[Model], Sequence[Model]],
) -> dict[str, Any]:
    """Return the document for `orchestrator.report.page.render.page`.

    Parameters
    ----------
    compared
        From `orchestrator.report.comparison.document`, with ``facts``.
    names
        What A and B are called.
    both, models
        What was measured, and the models of A and of B; they may be empty.
    """
    first, second = names
    ordered = sorted(compared["rows"], key=_interest)
    labels = [label_of(row).removesuffix(f" {row['metric']}") for row in ordered]
    rows = [{**row, "callpath": label} for row, label in zip(ordered, labels, strict=True)]
    failed = [
        f"{word}: {item['condition']}: {', '.join(item[key])}"
        for word, key in (("failed", "failed"), ("not checked", "not_checked"))
        for item in compared["conditions"]
        if item[key]
    ]
    where = ", ".join(f"{name} = {value}" for name, value in compared["points"][0].items())
    generated = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        **frame("comparison", f"{second} against {first} at {where}", generated),
        **nothing(),
        "head": {"facts": [], "answer": None, "warnings": [*failed, *compared["notes"]]},
        "comparison": {
            "names": list(names),
            "facts": shown(compared["facts"]),
            "rows": rows,
            **sides(ordered, both, models, compared["points"][0]),
        },
        "downloads": [
            {
                "name": "comparison.json",
                "type": "application/json",
                "text": json.dumps(compared, indent=1, allow_nan=False),
            }
        ],
    }


def _interest(row: Mapping[str, Any]) -> tuple[bool, float]:
    """Return what orders call paths: certain changes first, then by the size of the change."""
    ratio = row["ratio"]
    is_sure = row["probability"] is not None and row["probability"] >= SURE
    return not is_sure, -abs(math.log(ratio)) if ratio else 0.0
