"""The words of the project as frozen dataclasses; everyone may import this module, it imports no one.

Units: seconds for durations, Unix seconds (UTC) for instants, core-seconds for costs inside the
program. Core-hours appear only where a human reads or writes a number.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar
from urllib.parse import quote

Value = int | float | str

# Call paths whose time is that of a whole run, in the files that name it so.
ROOTS = ("main", "main()")

_LONGEST_NAME = 255  # bytes of a file's name, on Linux
_READABLE = 200  # of those, where a digest must tell long names apart

RunKind = Literal["time", "effort"]


_GAP = re.compile(r"\n?\[\d+ bytes left out\]\n")


def left_out(number: int) -> str:
    """Return what stands in a text for the bytes of a file that were not read: see `gap_in`."""
    return f"\n[{number} bytes left out]\n"


def gap_in(text: str) -> re.Match[str] | None:
    """Return what stands for the bytes that were not read of a long file; None in the text of a whole one."""
    return _GAP.search(text)


def format_value(value: Value) -> str:
    """Shortest text that reads back as the same value (``64``, ``0.5``, ``DGZ``)."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def assigned(items: Iterable[tuple[str, Value]]) -> str:
    """Return names with their values as text: ``p=64, s=20``."""
    return ", ".join(f"{name}={format_value(value)}" for name, value in items)


def order_of(value: Value) -> tuple[bool, float | str]:
    """Return what values of a parameter are sorted by: numbers by size, before texts by the alphabet."""
    return (True, value) if isinstance(value, str) else (False, float(value))


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named execution parameter ``x_l`` with its ordered set of values.

    ``categorical`` values have no order or distance.
    """

    name: str
    values: tuple[Value, ...]
    categorical: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """A measurement point: one value for every parameter, in the order of the search space."""

    items: tuple[tuple[str, Value], ...]

    @classmethod
    def of(cls, mapping: Mapping[str, Value] | None = None, /, **values: Value) -> Point:
        """Build a point from a mapping or keywords: ``Point.of(p=64, s=20)``."""
        return cls(tuple({**(mapping or {}), **values}.items()))

    def __getitem__(self, name: str) -> Value:
        for key, value in self.items:
            if key == name:
                return value
        raise KeyError(name)

    def as_dict(self) -> dict[str, Value]:
        """Return the values by parameter name."""
        return dict(self.items)

    def number(self, name: str) -> float:
        """Return the value of a numeric parameter; raise ``TypeError`` for a categorical one."""
        value = self[name]
        if isinstance(value, str):
            raise TypeError(f"parameter {name} is categorical (value {value!r})")
        return float(value)

    @property
    def key(self) -> str:
        """Text that identifies the point and is safe as a directory name: ``p=64,s=20``.

        What is too long for one is cut and told apart by a digest.
        """
        text = ",".join(f"{quote(k, safe='')}={quote(format_value(v), safe='+')}" for k, v in self.items)
        if len(text) <= _LONGEST_NAME:
            return text
        return f"{text[:_READABLE]}~{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def order(self) -> tuple[tuple[bool, float | str], ...]:
        """What points of the same parameters are sorted by: their values."""
        return tuple(order_of(value) for _, value in self.items)

    def __str__(self) -> str:
        return f"P({assigned(self.items)})"


@dataclass(frozen=True, slots=True)
class Run:
    """One repetition (k = 1, 2, ...) of one point, of one kind."""

    point: Point
    kind: RunKind = "time"
    repetition: int = 1

    @property
    def id(self) -> str:
        """Identify the run within its campaign, as a relative path: ``p=64,s=20/time-1``."""
        return f"{self.point.key}/{self.kind}-{self.repetition}"

    def __str__(self) -> str:
        return f"{self.point} {self.kind}-{self.repetition}"


@dataclass(frozen=True, slots=True)
class Attempt:
    """The ``number``-th try (from 1) to execute a run. Every attempt is charged."""

    run: Run
    number: int = 1

    @property
    def id(self) -> str:
        """Identify the attempt within its campaign, as a relative path."""
        return f"{self.run.id}/attempt-{self.number}"

    def __str__(self) -> str:
        return f"{self.run} attempt-{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What one attempt occupies. ``cores`` is what is charged for; see `orchestrator.resources.resources`."""

    ranks: int
    threads: int = 1
    nodes: int = 1
    ranks_per_node: int = 1
    cores: int = 1
    gpus_per_node: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRequest:
    """Everything an executor needs to execute one attempt.

    Attributes
    ----------
    attempt
        Which one.
    name
        Unique over campaigns, and derived from campaign, run and attempt, so that a lost submission can be
        found again.
    directory
        Of the attempt's files.
    resources
        What it occupies.
    limit
        Seconds after which the attempt ends itself.
    script
        Content of the launch script.
    files
        Input files (name -> content), written into ``directory`` before the start.
    executable
        The file whose size and time of modification the attempt records.
    exclude
        Nodes not to use.
    nodelist
        Nodes to use; as many others beside them as it needs.
    placed
        Whether later runs may be asked onto its nodes, so that they must be known.
    memory
        Factor on the memory that the campaign asks for.
    pack
        Attempts that are submitted together with the same ``pack`` share an allocation, one after another.
        Empty: this one has its own.
    likely
        Seconds that it takes at most as far as is known; None where nothing is.
    begun
        Whether it was seen running before this controller began: it is not absent although its files are.
    """

    attempt: Attempt
    name: str
    directory: Path
    resources: Resources
    limit: float
    script: str
    files: Mapping[str, str] = field(default_factory=dict)
    executable: str = ""
    exclude: tuple[str, ...] = ()
    nodelist: tuple[str, ...] = ()
    placed: bool = False
    memory: float = 1.0
    pack: str = ""
    likely: float | None = None
    begun: bool = False


class AttemptState(StrEnum):
    """What an executor can report of an attempt."""

    ABSENT = "absent"  # certainly neither started nor queued; may be submitted (again)
    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"  # its own attempt.json says so: the only proof
    LOST = "lost"  # started or submitted, gone without proof; it will never finish
    UNKNOWN = "unknown"  # not known now (the scheduler does not answer): ask again


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """The content of ``attempt.json``. Instants are Unix seconds.

    Attributes
    ----------
    run, attempt
        Identifier of the run, and number of the attempt.
    host, pid
        Of the attempt's own process.
    started, finished
        When it began and ended; ``finished`` is None while it runs.
    exit_code
        Of the launch script; None while it runs.
    timed_out
        Whether the attempt was ended because of its limit.
    nodes
        That it ran on.
    cancelled
        Whether it was ended from outside.
    suspended
        Whether it was ended because it had been suspended: its time is not that of the program.
    allocated
        When the job began that the attempt ran in, if the job says so: the attempt is charged from then on.
    printed
        Bytes of its standard output at its end, as seen on its node; None in records of earlier versions.
    full
        Why nothing more could be written into its directory at its end; empty where it could.
    moved
        Whether its directory was moved while it ran: what named the directory by its path failed.
    load
        What else its CPUs did, as shares of their time: ``others`` (CPU time of other processes) and
        ``stolen`` (by a hypervisor), as far as they are known.
    executable
        The file that it started: ``path``, ``size`` and ``mtime_ns``, as far as they are known.
    """

    run: str
    attempt: int
    host: str
    pid: int
    started: float
    finished: float | None = None
    exit_code: int | None = None
    timed_out: bool = False
    nodes: tuple[str, ...] = ()
    cancelled: bool = False
    suspended: bool = False
    allocated: float | None = None
    printed: int | None = None
    full: str = ""
    moved: bool = False
    load: Mapping[str, float] = field(default_factory=dict)
    executable: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sample:
    """One value read from one run: a metric at a call path, with how ranks were aggregated.

    ``aggregate`` is ``"mean"``, ``"max"``, ``"min"``, ``"sum"`` over ranks, or ``"value"`` where the
    application gives a single number. Times in seconds. Call paths join regions with ``->``.
    """

    callpath: str
    metric: str
    value: float
    aggregate: str = "value"


@dataclass(frozen=True, slots=True)
class Observation:
    """What an executor reports of one attempt.

    Attributes
    ----------
    attempt, state
        Which one, and how it stands.
    handle
        Under which the executor, or its scheduler, knows it; empty while it was not submitted.
    record
        Its ``attempt.json``, as far as it is written.
    elapsed
        Seconds to charge, where the scheduler knows better than ``record``.
    reason
        Why it is in this state, for people.
    samples
        Values, from executors that produce them themselves (simulation).
    estimated
        Whether the scheduler should know ``elapsed`` better than is reported here, and may say so later.
    blamed
        Nodes that failed.
    out_of_memory
        Whether the attempt was ended for using too much memory.
    cores
        To charge, where they are not the ones that were asked for; on average over ``elapsed``.
    revoked
        Whether an absent attempt can never begin, because its claim was taken: its run needs another one.
    refused
        Whether a lost attempt was certainly never begun, because the executor does not take what it asks for.
    """

    attempt: Attempt
    state: AttemptState
    handle: str = ""
    _: KW_ONLY
    record: AttemptRecord | None = None
    elapsed: float | None = None
    reason: str = ""
    samples: tuple[Sample, ...] | None = None
    estimated: bool = False
    blamed: tuple[str, ...] = ()
    out_of_memory: bool = False
    cores: float | None = None
    revoked: bool = False
    refused: bool = False


class FailureClass(StrEnum):
    """Why an attempt failed; decides whether another attempt makes sense."""

    APPLICATION = "application"  # non-zero exit code, and no sign that anything else failed
    TIMEOUT = "timeout"
    MEMORY = "memory"  # ended for using more than it had asked for
    INFRASTRUCTURE = "infrastructure"  # Slurm, a node, a launcher or a file system failed, or refused it
    PARSE = "parse"  # output missing, unreadable, NaN or negative


@dataclass(frozen=True, slots=True)
class Measurement:
    """The values of one metric at one call path: per point, one value per repetition.

    ``origins`` names what repetitions may share, such as their job, where that is known: per point, one text
    per repetition, empty where one shares nothing.
    """

    callpath: str
    metric: str
    values: Mapping[Point, tuple[float, ...]]
    origins: Mapping[Point, tuple[str, ...]] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Measurements:
    """All measurements of a campaign or of files.

    ``parameters`` gives the order of coordinates. Those with texts as values are categorical, and those that
    are named in ``categorical`` although they have numbers. ``notes`` say what a reader had to assume.
    """

    parameters: tuple[str, ...]
    items: tuple[Measurement, ...]
    categorical: frozenset[str] = frozenset()
    notes: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Return every measured point once, in order of first appearance."""
        found: dict[Point, None] = {}
        last: tuple[Point, ...] = ()
        for item in self.items:
            here = tuple(item.values)
            if here != last:  # thousands of call paths mostly have the same points
                found.update(dict.fromkeys(here))
                last = here
        return tuple(found)

    @cached_property
    def _distinct(self) -> Mapping[str, tuple[Value, ...]]:
        found: dict[str, dict[Value, None]] = {name: {} for name in self.parameters}
        for point in self.points:
            for name, value in point.items:
                found.setdefault(name, {})[value] = None
        return {name: tuple(values) for name, values in found.items()}

    def values_of(self, name: str) -> tuple[Value, ...]:
        """Return every measured value of a parameter once, in order of first appearance."""
        return self._distinct[name]

    def is_categorical(self, name: str) -> bool:
        """Tell whether the values of a parameter are categories: texts, or numbers that stand for some."""
        return name in self._categories

    @cached_property
    def _categories(self) -> frozenset[str]:
        texts = {name for name, values in self._distinct.items() if any(isinstance(v, str) for v in values)}
        return self.categorical | texts

    def metrics(self) -> tuple[str, ...]:
        """Return every metric once, in order of first appearance."""
        return tuple(dict.fromkeys(item.metric for item in self.items))

    def split(self, metrics: Collection[str]) -> tuple[Measurements, Measurements]:
        """Return the measurements of some metrics, and those of all others."""
        some = tuple(item for item in self.items if item.metric in metrics)
        others = tuple(item for item in self.items if item.metric not in metrics)
        return replace(self, items=some), replace(self, items=others)


def _prints_nothing_known(texts: Mapping[str, str]) -> list[Sample]:
    raise ValueError("no times are known in its output: set measure.profiler to another one than stdout")


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An adapter: what the orchestrator must know of one application. Pure functions, no I/O.

    Attributes
    ----------
    name
        The word used in ``application:`` of a campaign file.
    description
        One line for ``orchestrator doctor`` and the documentation.
    parameters
        Every parameter that the adapter understands, with its meaning.
    required
        Those a campaign must vary or set under ``settings:``.
    ranks, threads
        MPI ranks and threads per rank at a point.
    arguments
        Command-line arguments at a point, for an application without a launch template; one list element
        per argument, never quoted.
    check
        Why the point is impossible, or None. Called before anything is spent.
    output
        Samples from the texts of the attempt (file name -> content; ``stdout`` and ``stderr`` are
        always there). Raises ``ValueError`` saying what is missing.
    files
        Input files (name -> content) to write into the attempt's directory.
    output_files
        Glob patterns, in the attempt's directory, of further texts that ``output`` wants.
    environment
        Variables to set for the application: the same everywhere, or a function of the values.
    values
        What the placeholders of its launch template stand for, besides the settings: defaults, and what
        follows from others (a grid of ranks).
    start
        Values of a first campaign, the last of each for the evaluation point; a single one is a setting.

    All functions but ``output`` take a mapping that merges the campaign's ``settings`` with the point.
    """

    name: str
    description: str
    parameters: Mapping[str, str]
    ranks: Callable[[Mapping[str, Value]], int]
    arguments: Callable[[Mapping[str, Value]], list[str]] = lambda settings: []
    output: Callable[[Mapping[str, str]], list[Sample]] = _prints_nothing_known
    required: tuple[str, ...] = ()
    threads: Callable[[Mapping[str, Value]], int] = lambda settings: 1
    check: Callable[[Mapping[str, Value]], str | None] = lambda settings: None
    files: Callable[[Mapping[str, Value]], Mapping[str, str]] = lambda settings: {}
    output_files: tuple[str, ...] = ()
    environment: Mapping[str, str] | Callable[[Mapping[str, Value]], Mapping[str, str]] = field(
        default_factory=dict
    )
    values: Callable[[Mapping[str, Value]], Mapping[str, Value]] = lambda settings: {}
    start: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)

    def variables(self, values: Mapping[str, Value]) -> Mapping[str, str]:
        """Return the variables to set for a run with these values."""
        return self.environment(values) if callable(self.environment) else self.environment


class _Labelled(Protocol):
    """What is of one metric at one call path: samples, models."""

    @property
    def callpath(self) -> str: ...

    @property
    def metric(self) -> str: ...


_Item = TypeVar("_Item", bound=_Labelled)


def by_callpath(items: Iterable[_Item]) -> dict[tuple[str, str], list[_Item]]:
    """Group samples or models by (call path, metric), keeping their order."""
    groups: dict[tuple[str, str], list[_Item]] = {}
    for item in items:
        groups.setdefault((item.callpath, item.metric), []).append(item)
    return groups
