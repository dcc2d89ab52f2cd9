"""A comparison as tables for humans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from orchestrator.report.callpath_names import named
from orchestrator.report.comparison_facts import shown
from orchestrator.report.models_document import SHORTENED, label
from orchestrator.report.tables import titled
from orchestrator.types import Point
from orchestrator.units import count

Names = Mapping[str, str]
"""What A and B are called, by ``a`` and ``b``."""
_DASH = "-"
_LIKELY = 0.5  # probability below which a change of growth is not told as one


def facts_table(facts: Sequence[Mapping[str, Any]], names: Names) -> Table:
    """Return where A and B come from; what differs is marked. ``names``: what they are called."""
    table = titled("where they come from", ("", names["a"], names["b"], "differs"))
    for item in shown(facts):
        sides = (item[side] or _DASH for side in "ab")
        table.add_row(*map(Text, (item["label"], *sides, "" if item["same"] else "yes")))
    return table


def ratios_table(rows: Sequence[Mapping[str, Any]], where: Mapping[str, Any], names: Names) -> Table:
    """Return ratios, the most probable changes first."""
    ratio = ratio_of(names)
    texts, figures = ("call path", "metric", ratio, "90 % interval"), ("changed", "false alarms")
    table = titled(f"{ratio} at {_place(rows, where)}", texts, figures)
    table.add_column("what changed", overflow="fold")
    for row in sorted(named(rows), key=lambda row: -(row["probability"] or 0.0)):
        table.add_row(
            *map(
                Text,
                (
                    label(row),
                    row["metric"],
                    _number(row["ratio"]),
                    _interval(row),
                    percent(row["probability"]),
                    percent(row["false_discovery_rate"]),
                    row["sentence"],
                ),
            )
        )
    return table


def _place(rows: Sequence[Mapping[str, Any]], where: Mapping[str, Any]) -> str:
    """Return the point of the ratios, without the categories in which rows differ: labels say these."""
    points = [row["predictions"][0]["point"] for row in rows if row["predictions"]]
    common = {name: value for name, value in where.items() if all(point[name] == value for point in points)}
    return str(Point.of(common)) if common else "the point of each row"


def further_points(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the ratios at all points but the first."""
    for row in named(rows):
        for item in row["predictions"][1:]:
            place = Point.of(item["point"])
            yield f"{label(row)} {row['metric']} at {place}: {_number(item['ratio'])} {_interval(item)}"


def growth_table(rows: Sequence[Mapping[str, Any]], names: Names) -> Table | None:
    """Return how both grow where their models are formulas; None where none are."""
    table = titled("expressions", ("call path", "metric", names["a"], names["b"], "growth"))
    for row in named(rows):
        a, b = (row["short"][side] or row["expression"][side] for side in ("a", "b"))
        if a is None or b is None:
            continue
        if any(row["short"].values()):
            table.caption = SHORTENED
        table.add_row(*map(Text, (label(row), row["metric"], a, b, "; ".join(_growths(row, names)))))
    return table if table.row_count else None


def work_table(rows: Sequence[Mapping[str, Any]], names: Names) -> Table | None:
    """Return whether work or its speed changed; None where nothing was counted in both."""
    ratio = ratio_of(names)
    columns = ("call path", "count", f"counts {ratio}", "changed", f"time per count {ratio}", "changed")
    table = titled("work and its speed", columns)
    for row in named(rows):
        if (work := row["work"]) is None:
            continue
        cells = [
            text
            for part in (work["amount"], work["speed"])
            for text in (f"{_number(part['ratio'])} {_interval(part)}", percent(part["probability"]))
        ]
        table.add_row(*map(Text, (label(row), work["count"], *cells)))
    return table if table.row_count else None


def theory_lines(rows: Sequence[Mapping[str, Any]], names: Names) -> Iterator[str]:
    """Yield how far models are from stated laws."""
    for row in named(rows):
        for item in row["theory"] or ():
            sides = [
                f"{names[side]} {_exponents(known)} (deviation {known['deviation']:.3g}"
                f"{', grows faster' if known['faster'] else ''})"
                for side in ("a", "b")
                if (known := item[side]) is not None
            ]
            stated = _exponents(item["stated"])
            text = "; ".join(sides) or "no formulas to compare"
            yield f"{label(row)} in {item['parameter']}: stated {stated}; {text}"


def verdict_lines(conditions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield whether conditions hold, and where."""
    for item in conditions:
        if item["failed"]:
            yield f"FAILED: {item['condition']}: {', '.join(item['failed'])}"
        if item["not_checked"]:
            yield f"NOT CHECKED: {item['condition']}: {', '.join(item['not_checked'])}"
        elif not item["failed"]:
            yield f"passed: {item['condition']} holds for none of {count(item['checked'], 'call path')}"


def ratio_of(names: Names) -> str:
    """Return what the ratio is called: ``B / A``."""
    return f"{names['b']} / {names['a']}"


def percent(share: float | None) -> str:
    """Return a probability in percent, never rounded to certainty."""
    if share is None:
        return _DASH
    if share > 0.999:
        return "> 99.9 %"
    return "< 0.1 %" if share < 0.001 else f"{100 * share:.1f} %"


def _growths(row: Mapping[str, Any], names: Names) -> Iterator[str]:
    """Yield how growth differs in every parameter: as pairs say, where there are any, else by the forms."""
    for item in row["growth"]:
        sure, faster, forms = item.get("probability"), item["faster"], item["a"] is not None
        if faster is None and (forms or sure is None):
            yield f"{item['parameter']}: {'alike' if forms else 'not known'}"
            continue
        if sure is not None and sure < _LIKELY:
            unseen = f"no change of growth to be seen (probability {percent(sure)})"
            yield f"{item['parameter']}: {unseen}{'; the forms differ by chance' if forms else ''}"
            continue
        shown = f"{_exponents(item['a'])} -> {_exponents(item['b'])}" if forms else ""
        if not forms or (sure is not None and (item["high"] < 0 if faster == "b" else item["low"] > 0)):
            # Forms of few points differ by chance; the ratio at common points does not.
            faster = "b" if item["exponent"] > 0 else "a"
            shown = f"{ratio_of(names)} grows by ^{item['exponent']:.2g} {_interval(item)}"
            shown += ", unlike the forms" if forms else ""
        text = f"{item['parameter']}: {names[faster]} grows faster, {shown}"
        yield text if sure is None else f"{text} (probability that growth changed: {percent(sure)})"


def _exponents(known: Mapping[str, float]) -> str:
    power, logarithm = known["exponent"], known["log_exponent"]
    return f"^{power:.3g}" + (f" log^{logarithm:.3g}" if logarithm else "")


def _number(value: float | None) -> str:
    return _DASH if value is None else f"{value:.4g}"


def _interval(known: Mapping[str, Any]) -> str:
    if known["low"] is None or known["high"] is None:
        return _DASH
    return f"[{known['low']:.4g}, {known['high']:.4g}]"
