"""Measurements for other tools: lossless, with every repetition."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from orchestrator.errors import OrchestratorError
from orchestrator.types import Measurements, Value

if TYPE_CHECKING:  # imported where a table is written: Extra-P's format needs none
    import pandas as pd

FORMATS = ("extrap-jsonl", "csv", "parquet")
COLUMNS = ("callpath", "metric", "repetition", "value")


def export(measurements: Measurements, file_format: str) -> bytes:
    """Return the content of a file in one of `FORMATS`.

    Raises
    ------
    OrchestratorError
        For an unknown format, without measurements, for a value that is not finite, and for a parameter
        that has the name of a column.
    """
    if not measurements.items:
        raise OrchestratorError("nothing to export: no measurements yet")
    for item in measurements.items:
        for point, values in item.values.items():
            if bad := [value for value in values if not math.isfinite(value)]:
                where = f"({item.metric} at {item.callpath}, {point})"
                raise OrchestratorError(
                    f"cannot export {bad[0]} {where}: not a number that other tools can read"
                )
    if file_format == "extrap-jsonl":
        return _json_lines(measurements).encode()
    if file_format == "csv":
        # Objects keep whole numbers whole in a column that has others, too.
        return _table(measurements, dtype="object").to_csv(index=False, lineterminator="\n").encode()
    if file_format == "parquet":
        stream = io.BytesIO()
        _table(measurements).to_parquet(stream, engine="pyarrow", index=False)
        return stream.getvalue()
    raise OrchestratorError(f"unknown export format {file_format!r}: known are {', '.join(FORMATS)}")


def _json_lines(measurements: Measurements) -> str:
    """Return Extra-P's JSON Lines: one line per call path, metric and point, with all repetitions.

    Extra-P itself loads only files where every call path has every point.
    """
    lines = [
        json.dumps(
            {
                "params": point.as_dict(),
                "callpath": item.callpath,
                "metric": item.metric,
                "value": list(map(float, values)),
            },
            ensure_ascii=False,
        )
        for item in measurements.items
        for point, values in item.values.items()
    ]
    return "".join(f"{line}\n" for line in lines)


def rows(measurements: Measurements) -> Iterator[tuple[Value, ...]]:
    """Yield one row per value: those of the parameters, then those of `COLUMNS`."""
    for item in measurements.items:
        for point, values in item.values.items():
            coordinates = tuple(point[name] for name in measurements.parameters)
            for repetition, value in enumerate(values, start=1):
                yield (*coordinates, item.callpath, item.metric, repetition, float(value))


def _table(measurements: Measurements, dtype: str | None = None) -> pd.DataFrame:
    import pandas as pd

    taken = [name for name in measurements.parameters if name in COLUMNS]
    if taken:
        raise OrchestratorError(
            f"parameter {', '.join(taken)} is named like a column; export extrap-jsonl instead"
        )
    return pd.DataFrame(rows(measurements), columns=[*measurements.parameters, *COLUMNS], dtype=dtype)
