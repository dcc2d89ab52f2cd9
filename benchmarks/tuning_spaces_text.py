"""Tables of `tuning_spaces.py` as Markdown: a row per set and size, a column per modeler."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from pages import Block, as_list, as_markdown

from orchestrator.evaluation.models.fit import Row
from orchestrator.evaluation.models.table import Group, groups, seconds_text, size_text
from orchestrator.units import count

BLOCK = Block("tuning spaces")
_CHOICE = "auto"
_NEAR = 1.05  # of the smallest error: what the choice promises with thousands of points
_CLOSE = 1.1  # of the smallest error: a good model, which may be small
_WIDE = 100  # from which a width needs no decimals

Found = Mapping[str, Sequence[Row]]
"""Set -> rows of all modelers."""
Cell = Callable[[Group], str]


def markdown(found: Found, modelers: Sequence[str]) -> str:
    """Return everything that is reported, as a page shows it."""
    parts = [
        f"MLogQ, means over {_draws(found)} of the points; the smallest is bold:\n",
        _table(found, modelers, _error, best=True),
        "Size of the model as joblib writes it:\n",
        _table(found, modelers, lambda group: _shown(group, "bytes", size_text)),
        "CPU time of the fit, and of a prediction:\n",
        _table(found, modelers, _times),
        "Share of the test values in their 90 % intervals, and geometric mean of high/low:\n",
        _table(found, modelers, _interval),
        as_list([*_summary(found, modelers), *_failures(found)]),
    ]
    return "\n".join(part for part in parts if part)


def _draws(found: Found) -> str:
    """Return how many draws of the points a mean is over: of large sets there may be fewer."""
    numbers = Counter((name, row["modeler"], row["size"]) for name, rows in found.items() for row in rows)
    fewest, most = min(numbers.values(), default=0), max(numbers.values(), default=0)
    return count(most, "draw") if fewest == most else f"{fewest} to {count(most, 'draw')}"


def _table(found: Found, modelers: Sequence[str], cell: Cell, *, best: bool = False) -> str:
    ratio = best and _CHOICE in modelers and len(modelers) > 1
    header = ["set", "points", *(f"`{label}`" for label in modelers), *["of the best"] * ratio]
    lines = [header]
    for name, by_size in _arranged(found).items():
        for size, members in by_size.items():
            cells = {label: cell(members[label]) if label in members else "" for label in modelers}
            if best and len(members) > 1 and (winner := _winner(members)):
                cells[winner] = f"**{cells[winner]}**"
            lines.append([name, str(size), *cells.values(), *[_of_the_best(members)] * ratio])
    return as_markdown(lines)


def _arranged(found: Found) -> dict[str, dict[int, dict[str, Group]]]:
    """Return set -> size -> modeler -> its rows."""
    result: dict[str, dict[int, dict[str, Group]]] = {}
    for name, rows in found.items():
        for group in groups(rows):
            result.setdefault(name, {}).setdefault(group.size, {})[group.modeler] = group
    return result


def _winner(members: Mapping[str, Group]) -> str | None:
    """Return the modeler with the smallest error among those that predict everywhere."""
    errors = {label: group.mean("mlogq") for label, group in members.items() if not _share_left(group)}
    known = {label: error for label, error in errors.items() if error is not None}
    return min(known, key=lambda label: known[label]) if known else None


def _ratio(members: Mapping[str, Group]) -> float | None:
    """Return the error of the choice among families over that of the best other one."""
    others = {label: group for label, group in members.items() if label != _CHOICE}
    winner = _winner(others)
    own = members[_CHOICE].mean("mlogq") if _CHOICE in members else None
    best = others[winner].mean("mlogq") if winner else None
    return own / best if own is not None and best else None


def _of_the_best(members: Mapping[str, Group]) -> str:
    ratio = _ratio(members)
    return "" if ratio is None else f"{ratio:.2f}"


def _error(group: Group) -> str:
    error, left = group.mean("mlogq"), _share_left(group)
    text = "-" if error is None else f"{error:.3f}"
    return f"{text} ({100 * left:.1f} % not predicted)" if left and error is not None else text


def _share_left(group: Group) -> float:
    """Return the share of test points without a prediction."""
    shares = [row["unpredicted"] / row["test"] for row in group.fitted if row["unpredicted"]]
    return statistics.fmean(shares) if shares else 0.0


def _times(group: Group) -> str:
    fit, predict = (_shown(group, key, seconds_text) for key in ("fit_seconds", "predict_seconds"))
    return "-" if fit == "-" else f"{fit}, {predict}"


def _interval(group: Group) -> str:
    share = _shown(group, "coverage", lambda x: f"{100 * x:.0f} %")
    width = _shown(group, "width", lambda x: f"{x:.2f}" if x < _WIDE else f"{x:.0f}")
    return "-" if share == "-" else f"{share}, {width}"


def _shown(group: Group, key: str, show: Callable[[float], str]) -> str:
    value = group.mean(key)
    return "-" if value is None else show(value)


def _summary(found: Found, modelers: Sequence[str]) -> list[str]:
    """Return a sentence about the choice among families, and what each modeler does in all rows."""
    arranged = [members for by_size in _arranged(found).values() for members in by_size.values()]
    sentences = []
    ratios = [ratio for members in arranged if (ratio := _ratio(members)) is not None]
    if ratios:
        near = sum(ratio <= _NEAR for ratio in ratios)
        sentences.append(
            f"`{_CHOICE}` is at most {100 * (_NEAR - 1):.0f} % above the best other modeler in {near} of "
            f"{len(ratios)} rows; the largest ratio is {max(ratios):.2f}."
        )
    return [*sentences, *(_about(label, arranged) for label in modelers)]


def _about(label: str, arranged: Sequence[Mapping[str, Group]]) -> str:
    """Return how a modeler compares with the best one of each row, and how well its intervals hold."""
    near, sizes, shares = 0, [], []
    for members in arranged:
        winner = _winner(members)
        if winner is None or label not in members:
            continue
        own, best = (members[name].mean("mlogq") for name in (label, winner))
        own_size, size = (members[name].mean("bytes") for name in (label, winner))
        near += own is not None and best is not None and own <= _CLOSE * best
        if own_size is not None and size:
            sizes.append(own_size / size)
        if (share := members[label].mean("coverage")) is not None:
            shares.append(share)
    if not shares:
        return f"`{label}` has no model."
    within = sum(0.85 <= share <= 0.95 for share in shares)
    sentence = f"`{label}` is at most {100 * (_CLOSE - 1):.0f} % above the smallest error in {near} of "
    sentence += f"{len(arranged)} rows"
    if sizes:
        sentence += (
            f"; the median of its size is {_times_or_percent(statistics.median(sizes))} the best model's"
        )
    sentence += f". Its 90 % intervals hold {100 * min(shares):.0f} to {100 * max(shares):.0f} %"
    return f"{sentence}, 85 to 95 % in {within} of {len(shares)} rows."


def _times_or_percent(ratio: float) -> str:
    return f"{100 * ratio:.2g} % of" if ratio < 1 else f"{ratio:.3g} times"


def _failures(found: Found) -> list[str]:
    """Return a sentence per reason for which fits failed."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, rows in found.items():
        for row in rows:
            if row["failure"] is not None:
                where = f"{name} with {row['size']}"
                places = reasons.setdefault((row["modeler"], row["failure"]), [])
                if where not in places:
                    places.append(where)
    return [
        f"No model of `{label}`: {'; '.join(places)}: {reason}" for (label, reason), places in reasons.items()
    ]
