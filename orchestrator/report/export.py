"""Measurements for other tools: lossless, with every repetition."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator

import pandas as pd

from orchestrator.errors import OrchestratorError
from orchestrator.types import Measurements, Value

FORMATS = ("extrap-jsonl", "csv", "parquet")
COLUMNS = ("callpath", "metric", "repetition", "value")


def export(measurements: Measurements, file_format: str) -> bytes:
    """Return the content of a file in one of `FORMATS`.

    Raises
    ------
    OrchestratorError
        For an unknown format, without measurements, for a value that is not finite, for a parameter
        whose name is taken by a column, and for Parquet without pyarrow.
    """
    if file_format == "extrap-jsonl":
        return json_lines(measurements).encode()
    if file_format == "csv":
        return table(measurements).encode()
    if file_format == "parquet":
        return parquet(measurements)
    raise OrchestratorError(f"unknown export format {file_format!r}: known are {', '.join(FORMATS)}")


def json_lines(measurements: Measurements) -> str:
    """Return Extra-P's JSON Lines: one line per call path, metric and point, with all repetitions.

    Extra-P itself loads only files where every call path has every point.
    """
    lines = [
        json.dumps(
            {
                "params": point.as_dict(),
                "callpath": item.callpath,
                "metric": item.metric,
                "value": [_finite(value, f"{item.metric} at {item.callpath}, {point}") for value in values],
            },
            ensure_ascii=False,
        )
        for item in _some(measurements).items
        for point, values in item.values.items()
    ]
    return "".join(f"{line}\n" for line in lines)


def table(measurements: Measurements) -> str:
    """Return CSV with one row per value: the parameters, callpath, metric, repetition, value."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*_parameters(measurements), *COLUMNS])
    writer.writerows(_rows(measurements))
    return stream.getvalue()


def parquet(measurements: Measurements) -> bytes:
    """Return a Parquet file with the columns of `table`; needs pyarrow."""
    frame = pd.DataFrame(_rows(measurements), columns=[*_parameters(measurements), *COLUMNS])
    stream = io.BytesIO()
    try:
        frame.to_parquet(stream, engine="pyarrow", index=False)
    except ImportError as error:
        raise OrchestratorError(
            "writing Parquet needs pyarrow: pip install 'measurement-orchestrator[parquet]'"
        ) from error
    return stream.getvalue()


def _some(measurements: Measurements) -> Measurements:
    if not measurements.items:
        raise OrchestratorError("nothing to export: no measurements yet")
    return measurements


def _parameters(measurements: Measurements) -> tuple[str, ...]:
    taken = [name for name in measurements.parameters if name in COLUMNS]
    if taken:
        raise OrchestratorError(
            f"parameter {', '.join(taken)} is named like a column; export extrap-jsonl instead"
        )
    return measurements.parameters


def _rows(measurements: Measurements) -> Iterator[tuple[Value, ...]]:
    for item in _some(measurements).items:
        for point, values in item.values.items():
            coordinates = tuple(point[name] for name in measurements.parameters)
            for repetition, value in enumerate(values, start=1):
                where = f"{item.metric} at {item.callpath}, {point}"
                yield (*coordinates, item.callpath, item.metric, repetition, _finite(value, where))


def _finite(value: float, where: str) -> float:
    if not math.isfinite(value):
        raise OrchestratorError(f"cannot export {value} ({where}): not a number that other tools can read")
    return float(value)
