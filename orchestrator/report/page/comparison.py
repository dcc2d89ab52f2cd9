"""The document of the page that shows a comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from orchestrator import __version__
from orchestrator.report.comparison import label_of


def document(found: Mapping[str, Any], names: tuple[str, str]) -> dict[str, Any]:
    """Return the document for `orchestrator.report.page.render.page`.

    Parameters
    ----------
    found
        From `orchestrator.report.comparison.document`, with ``facts``.
    names
        What A and B are called.
    """
    first, second = names
    rows = [{**row, "callpath": label_of(row).removesuffix(f" {row['metric']}")} for row in found["rows"]]
    failed = [
        f"failed: {item['condition']}: {', '.join(item['failed'])}"
        for item in found["conditions"]
        if item["failed"]
    ]
    where = ", ".join(f"{name} = {value}" for name, value in found["points"][0].items())
    return {
        "schema": 1,
        "kind": "comparison",
        "title": f"{second} against {first} at {where}",
        "generated": datetime.now(UTC).isoformat(timespec="seconds"),
        "program": f"orchestrator {__version__}",
        "head": {"facts": [], "answer": None, "warnings": [*failed, *found["notes"]]},
        "parameters": [],
        "grid": {"names": [], "shape": []},
        "callpaths": [],
        "comparison": {"names": list(names), "facts": found["facts"], "rows": rows},
        "downloads": [
            {
                "name": "comparison.json",
                "type": "application/json",
                "text": json.dumps(found, indent=1, allow_nan=False),
            }
        ],
    }
