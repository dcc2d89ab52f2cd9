"""Results of a comparison as JUnit XML, which systems for continuous integration show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from orchestrator.report.comparison import label_of
from orchestrator.report.comparison_text import percent, ratio_of

_SUITE = "orchestrator compare"


def junit(compared: Mapping[str, Any]) -> str:
    """Return a test suite of a document of `orchestrator.report.comparison`.

    It has a test case per call path and metric, failed where a condition is. What cannot be compared though
    it was measured in both is an error, as nothing says that it is as before.
    """
    rows, ratio = compared["rows"], ratio_of(compared["names"])
    failed = [row for row in rows if any(item["failed"] for item in row["checks"])]
    unknown = {label_of(item): item["reason"] for item in compared["not_compared"]}
    skipped = [row for row in rows if row["ratio"] is None and label_of(row) not in unknown]
    counts = {
        "tests": len({*map(label_of, rows), *unknown}),
        "failures": len(failed),
        "errors": len(unknown),
        "skipped": len(skipped),
    }
    attributes = {"name": _SUITE, **{key: str(count) for key, count in counts.items()}}
    suite = ElementTree.Element("testsuite", attributes)
    for row in rows:
        case = ElementTree.SubElement(suite, "testcase", {"classname": _SUITE, "name": label_of(row)})
        for item in row["checks"]:
            if item["failed"]:
                probability = item["probability"]
                sure = "" if probability is None else f" (probability {percent(probability)})"
                message = f"{item['condition']}{sure}"
                failure = ElementTree.SubElement(case, "failure", {"message": message, "type": "comparison"})
                failure.text = _details(row, ratio)
        if reason := unknown.pop(label_of(row), ""):
            ElementTree.SubElement(case, "error", {"message": reason, "type": "comparison"})
        elif row["ratio"] is None:
            ElementTree.SubElement(case, "skipped", {"message": row["sentence"]})
        ElementTree.SubElement(case, "system-out").text = _details(row, ratio)
    for label, reason in unknown.items():
        case = ElementTree.SubElement(suite, "testcase", {"classname": _SUITE, "name": label})
        ElementTree.SubElement(case, "error", {"message": reason, "type": "comparison"})
    suites = ElementTree.Element("testsuites", dict(attributes))
    suites.append(suite)
    ElementTree.indent(suites)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"
    )


def _details(row: Mapping[str, Any], ratio: str) -> str:
    if row["ratio"] is None:
        return str(row["sentence"])
    interval = "" if row["low"] is None or row["high"] is None else f" [{row['low']:.4g}, {row['high']:.4g}]"
    return f"{ratio} = {row['ratio']:.4g}{interval}: {row['sentence']}"
