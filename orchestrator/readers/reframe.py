"""ReFrame's run reports: performance values of its tests (``reframe -r --report-file=report.json``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.errors import ReadError
from orchestrator.readers.entries import SECONDS, Entry, assemble, finite, timed
from orchestrator.readers.json_parts import object_in, objects_in, parsed
from orchestrator.readers.settings import Settings, differing, point_of
from orchestrator.types import Measurements

MARKS = ('"session_info"', '"testcases"')
"""What tells such a file from other JSON."""

Part = Mapping[str, object]
"""A JSON object."""

_PASSED = ("pass", "success")
_PARAMETER = re.compile(r"%([\w.]+)=(\S+)")  # of `work %n=4 %layout=DGZ`
_FIELDS = ("num_tasks", "num_tasks_per_node", "num_cpus_per_task", "partition", "environ", "system")


def read(text: str, source: str, parameters: Sequence[str] | None = None) -> Measurements:
    """Read the performance values of all test cases that passed.

    The call path is the test's name without parameters, the metric the performance variable. Values with a
    unit of time are in seconds. Further runs of a test case are repetitions.

    Parameters
    ----------
    text, source
        The file's content and name.
    parameters
        What the parameters are: parameters of the tests, or their fields (``num_tasks``). Without them all
        parameters of the tests in which the test cases differ, then those of partition, environment and
        system; where there is none of these, the number of tasks.

    Raises
    ------
    ReadError
        For what is no such report, no performance value of a passed test case, no or unknown parameters.
    """
    cases = [item for item in _cases(text, source) if _passed(item) and item.get("perfvalues")]
    if not cases:
        raise ReadError(f"{source}: no performance value of a test case that passed")
    settings = [_settings(item, _where(item, source)) for item in cases]
    names = tuple(parameters) if parameters is not None else _parameters(settings)
    if not names:
        raise ReadError(f"{source}: the test cases differ in no parameter; name fields with --parameters")
    entries = (
        entry
        for item, known in zip(cases, settings, strict=True)
        for entry in _entries(item, known, names, _where(item, source))
    )
    return assemble(names, entries, source)


def _cases(text: str, source: str) -> list[Part]:
    where = f"{source}: not a run report of ReFrame"
    runs = objects_in(parsed(text, source), "runs", where)
    return [item for run in runs for item in objects_in(run, "testcases", where)]


def _title(item: Part) -> str:
    return str(item.get("display_name") or item.get("name"))


def _where(item: Part, source: str) -> str:
    return f"{source}: test case {_title(item)}"


def _passed(item: Part) -> bool:
    return item.get("result") in _PASSED and not item.get("fail_phase")


def _settings(item: Part, where: str) -> Settings:
    own = object_in(item, "check_params", where) if item.get("check_params") else {}
    given = {**dict(_PARAMETER.findall(_title(item))), **{name: str(value) for name, value in own.items()}}
    fields = {name: str(item[name]) for name in _FIELDS if item.get(name) is not None}
    return {**fields, **given}


def _parameters(settings: Sequence[Settings]) -> tuple[str, ...]:
    own = [name for name in settings[0] if name not in _FIELDS]
    platform = [name for name in ("partition", "environ", "system") if name in settings[0]]
    return differing(settings, [*own, *platform]) or differing(settings, _FIELDS)


def _entries(item: Part, known: Settings, names: Sequence[str], where: str) -> Iterator[Entry]:
    point = point_of(known, names, where, "parameter")
    for name, record in object_in(item, "perfvalues", where).items():
        if not isinstance(record, list) or len(record) < 5 or record[0] is None:
            continue  # the extraction of this value failed
        value, metric = finite(record[0], f"{where}: {name}"), name.rpartition(":")[2]
        if (unit := SECONDS.get(str(record[4]).strip())) is not None:
            value, metric = value * unit, timed(metric)[0]
        callpath = _title(item).partition(" ")[0]
        yield Entry(where=where, callpath=callpath, metric=metric, point=point, values=(value,))
