"""Caliper profiles: samples per call path, aggregated over ranks.

Two kinds of profile are read. ``spot`` and what is like it aggregate over ranks before they write; their
attributes are the operations over ranks (``min``, ``max``, ``avg``, ``sum``) on a quantity. Others, such as
``hatchet-region-profile``, write a record per call path and rank.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from orchestrator.errors import ReadError
from orchestrator.readers.base import reads
from orchestrator.readers.cali import Contents, Record, read_cali
from orchestrator.readers.entries import SECONDS
from orchestrator.readers.profile_files import DEPTH, only_one, over_ranks, without_called
from orchestrator.readers.stdout import text_of
from orchestrator.types import Application, Sample

SUFFIX = ".cali"
TIME, VISITS = "time", "visits"
OUTSIDE = "(outside regions)"
"""The call path of what happened in no annotated region."""

RANK, RANKS = "mpi.rank", "mpi.world.size"

_OVER_RANKS = {"min": "min", "max": "max", "avg": "mean", "sum": "sum"}
_ONE = "value"  # of a single process, which aggregated over nothing
_LINEAR = ("mean", "sum", _ONE)
_SUMS_IN_A_RANK = ("sum", "max")  # what a rank's own value may be; its mean or minimum over visits is none
_MODIFIERS = ("inclusive", "scale")
_COUNTS = ("rc.count", "count")
_CHANNEL, _PROFILE = "spot.channel", "regionprofile"
_ORDER = "aggregate.slot"  # where a region appeared first: no measurement
_DIGITS = 4e-6  # relative error of a quotient of values, which Caliper writes with six digits
_ROUNDING = 1e-5  # of an inclusive time, from which others of six digits were taken

_ERROR = re.compile(r"^== CALIPER: .*\berror\b.*$", re.MULTILINE | re.IGNORECASE)

Regions = tuple[str, ...]
Lanes = dict[str, float]
"""Values of one quantity at one call path: by aggregate over ranks, or by rank."""


class Quantity(NamedTuple):
    """What is measured, with or without called regions."""

    metric: str
    inclusive: bool


class Attribute(NamedTuple):
    """What an attribute of a file holds: the quantity, the aggregate ("" for one rank's), the scale."""

    quantity: Quantity
    aggregate: str
    scale: float


Table = dict[Quantity, dict[Regions, Lanes]]


@reads(f"*{SUFFIX}")
def read(directory: Path, application: Application, inclusive: bool = False) -> list[Sample]:
    """Return the samples of the one Caliper profile below ``directory``; see `samples`.

    Raises
    ------
    ReadError
        Where there is no profile, or more than one, or a truncated or damaged one.
    """
    remedy = _complaint(directory) or (
        "was the program built with Caliper and its annotations, and did it end normally (with MPI, "
        "profiles are written by MPI_Finalize)?"
    )
    return profile(only_one(directory, SUFFIX, DEPTH, remedy), inclusive)


def _complaint(directory: Path) -> str:
    """Return the error that Caliper printed in an attempt's directory, and the remedy; empty without one."""
    for path in (directory / "stderr", directory / "stdout"):
        if path.is_file() and (found := _ERROR.search(text_of(path))):
            return (
                f"{path.name} says: {found[0].strip()[:200]}; executor.environment may have another "
                "CALI_CONFIG, such as 'spot(output=caliper.cali,time.exclusive,region.count)' for a Caliper "
                "built without MPI, which measures runs of one rank only"
            )
    return ""


def profile(path: Path, inclusive: bool = False) -> list[Sample]:
    """Read a profile into samples; raises as `orchestrator.readers.cali.read_cali` and `samples`."""
    return samples(read_cali(path), str(path), inclusive)


def samples(contents: Contents, source: str, inclusive: bool) -> list[Sample]:
    """Return samples of every metric at every call path.

    A call path joins the names of its nested regions by ``->``, MPI operations included. `TIME` is in
    seconds, `VISITS` counts how often a region was entered; other metrics keep Caliper's name. Aggregates
    are over all ranks: one that never entered a region has zero there.

    Parameters
    ----------
    contents
        What a file holds.
    source
        Its name, for messages.
    inclusive
        Whether times include those of the regions called from the call path; by default not. Times that
        the file has in the other form only are converted; from aggregates that gives ``mean`` and ``sum``.

    Raises
    ------
    ReadError
        For a profile without values of regions, and for values that are not finite or negative.
    """
    records = [item for item in contents.records if item.values.get(_CHANNEL, _PROFILE) == _PROFILE]
    by_rank = any(RANK in item.values for item in records)
    table = _table(records, contents.units, by_rank, source)
    if not any(path for paths in table.values() for path in paths):
        raise ReadError(
            f"{source}: the profile holds no values of regions; it needs a configuration such as "
            "CALI_CONFIG='spot(output=profile.cali,time.exclusive)'"
        )
    ranks = _ranks(contents, records, table, by_rank)
    _count_absent(table, ranks, by_rank)
    _convert(table, by_rank)
    return [
        Sample(
            "->".join(path) or OUTSIDE, quantity.metric, _checked(value, path, quantity, source), aggregate
        )
        for quantity in _chosen(table, inclusive)
        for path, lanes in table[quantity].items()
        for aggregate, value in (over_ranks(list(lanes.values())) if by_rank else lanes).items()
    ]


def attribute(name: str, unit: str, by_rank: bool) -> Attribute | None:
    """Return what an attribute holds by its name, or None for one that is no measurement.

    Caliper puts operations before a quantity, the last one first: ``avg#inclusive#sum#time.duration`` is the
    mean over ranks of the inclusive sum within a rank.
    """
    *operations, base = name.split("#")
    steps = [word for word in operations if word not in _MODIFIERS]
    if not steps and base in _COUNTS:
        steps = ["sum"]
    if base == _ORDER or not steps or any(word not in _OVER_RANKS for word in steps):
        return None
    over_ranks = not by_rank and (len(steps) > 1 or (len(operations) > 1 and operations[0] == steps[0]))
    if not over_ranks and steps[-1] not in _SUMS_IN_A_RANK:
        return None
    aggregate = _OVER_RANKS[steps[0]] if over_ranks else ""
    inclusive = "inclusive" in operations
    if base in _COUNTS:
        return Attribute(Quantity(VISITS, inclusive), aggregate, 1.0)
    if not base.startswith("time.duration"):
        return Attribute(Quantity(base, inclusive), aggregate, 1.0)
    nanoseconds = base.endswith(".ns") and "scale" not in operations
    return Attribute(Quantity(TIME, inclusive), aggregate, SECONDS.get(unit, 1e-9 if nanoseconds else 1.0))


def _table(records: Iterable[Record], units: Mapping[str, str], by_rank: bool, source: str) -> Table:
    """Collect the values by quantity and call path; records of one call path add up."""
    table: Table = defaultdict(dict)
    known: dict[str, Attribute | None] = {}
    for record in records:
        for name, text in record.values.items():
            if name not in known:
                known[name] = attribute(name, units.get(name, ""), by_rank)
            held = known[name]
            if held is None:
                continue
            lane = record.values.get(RANK, _ONE) if not held.aggregate else held.aggregate
            lanes = table[held.quantity].setdefault(record.path, {})
            lanes[lane] = lanes.get(lane, 0.0) + held.scale * _number(text, name, record.path, source)
    return table


def _number(text: str, name: str, path: Regions, source: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ReadError(f"{source}: {name} is {text!r} at {'->'.join(path) or OUTSIDE}: not a finite number")
    return value


def _convert(table: Table, by_rank: bool) -> None:
    """Add exclusive times where there are only inclusive ones, and the other way round."""
    own, whole = Quantity(TIME, inclusive=False), Quantity(TIME, inclusive=True)
    if whole in table and own not in table:
        table[own] = without_called(_convertible(table[whole], by_rank), _ROUNDING)
    elif own in table and whole not in table:
        table[whole] = _with_called(_convertible(table[own], by_rank))


def _convertible(values: Mapping[Regions, Lanes], by_rank: bool) -> dict[Regions, Lanes]:
    """Return the values that sums and differences of regions can be made of: no extremes over ranks."""
    return {
        path: {lane: value for lane, value in lanes.items() if by_rank or lane in _LINEAR}
        for path, lanes in values.items()
    }


def _with_called(own: Mapping[Regions, Lanes]) -> dict[Regions, Lanes]:
    whole = {path: dict(lanes) for path, lanes in own.items()}
    for path, lanes in own.items():
        for depth in range(1, len(path)):
            caller = whole.get(path[:depth], {})
            for lane in caller:
                caller[lane] += lanes.get(lane, 0.0)
    return whole


def _chosen(table: Table, inclusive: bool) -> list[Quantity]:
    """Return the quantities to report: each metric in the wanted form, or in the only one there is."""
    metrics = dict.fromkeys(quantity.metric for quantity in table)
    wanted = [(Quantity(name, inclusive), Quantity(name, not inclusive)) for name in metrics]
    return [first if first in table else second for first, second in wanted]


def _ranks(contents: Contents, records: Iterable[Record], table: Table, by_rank: bool) -> int:
    """Return the number of ranks: as the file says, or else those that it has values of."""
    stated = contents.globals.get(RANKS, "")
    if by_rank:
        seen = len({item.values[RANK] for item in records if RANK in item.values})
    else:
        seen = max((_present(lanes) for paths in table.values() for lanes in paths.values()), default=1)
    return int(stated) if stated.isdecimal() and int(stated) else seen


def _present(lanes: Lanes) -> int:
    """Return how many ranks have entered a region: Caliper's mean is over these only."""
    mean, total = lanes.get("mean", 0.0), lanes.get("sum", 0.0)
    return round(total / mean) if mean > 0 and math.isfinite(total / mean) else 1


def _count_absent(table: Table, ranks: int, by_rank: bool) -> None:
    """Count ranks that never entered a region as zero there, as other profiles do."""
    for lanes in (lanes for paths in table.values() for lanes in paths.values()):
        if by_rank:
            lanes.update({f"absent {number}": 0.0 for number in range(ranks - len(lanes))})
        elif "mean" in lanes and "sum" in lanes and ranks - _present(lanes) > _DIGITS * ranks:
            lanes["mean"] = lanes["sum"] / ranks
            lanes.update({"min": 0.0} if "min" in lanes else {})


def _checked(value: float, path: Regions, quantity: Quantity, source: str) -> float:
    if value < 0:
        raise ReadError(
            f"{source}: {quantity.metric} is {value} at {'->'.join(path) or OUTSIDE}: not a possible value"
        )
    return value
