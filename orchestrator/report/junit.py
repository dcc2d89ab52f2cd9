"""Results of a comparison as JUnit XML, which systems for continuous integration show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from orchestrator.report.comparison import label_of


def junit(found: Mapping[str, Any], name: str) -> str:
    """Return a test suite: a test case per call path and metric, failed where a condition is.

    Parameters
    ----------
    found
        The document of `orchestrator.report.comparison`.
    name
        Of the suite.
    """
    rows = found["rows"]
    failed = [row for row in rows if any(item["failed"] for item in row["checks"])]
    skipped = [row for row in rows if row["ratio"] is None]
    counts = {"tests": len(rows), "failures": len(failed), "errors": 0, "skipped": len(skipped)}
    attributes = {"name": name, **{key: str(count) for key, count in counts.items()}}
    suite = ElementTree.Element("testsuite", attributes)
    for row in rows:
        case = ElementTree.SubElement(suite, "testcase", {"classname": name, "name": label_of(row)})
        for item in row["checks"]:
            if item["failed"]:
                probability = item["probability"]
                sure = "" if probability is None else f" (probability {100 * probability:.1f} %)"
                message = f"{item['condition']}{sure}"
                failure = ElementTree.SubElement(case, "failure", {"message": message, "type": "comparison"})
                failure.text = _details(row)
        if row["ratio"] is None:
            ElementTree.SubElement(case, "skipped", {"message": row["sentence"]})
        ElementTree.SubElement(case, "system-out").text = _details(row)
    suites = ElementTree.Element("testsuites", dict(attributes))
    suites.append(suite)
    ElementTree.indent(suites)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"
    )


def _details(row: Mapping[str, Any]) -> str:
    if row["ratio"] is None:
        return str(row["sentence"])
    interval = "" if row["low"] is None or row["high"] is None else f" [{row['low']:.4g}, {row['high']:.4g}]"
    return f"B / A = {row['ratio']:.4g}{interval}: {row['sentence']}"
