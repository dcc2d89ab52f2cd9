"""First drafts of a campaign, with comments: what `orchestrator init` writes. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from orchestrator.errors import CampaignError
from orchestrator.readers.printed_line import Candidate
from orchestrator.types import Application, Value, format_value

_MANY = 4  # parameters from which on a space may be one of options
_WIDTH = 32  # of keys and values before a comment
_FURTHER = (
    "further times, shorter in that run; communication is hardly there on the fewest ranks, and grows: take "
    "away the # in front of what you want modelled"
)
_ROWS = (
    "one item reads all rows of a table, also those that only other runs have, and their counts: see "
    "'A table of timers' in docs/applications.md"
)
MOST_READ = 12  # times in the output of a program; what else it printed is a comment


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What a campaign file is made from."""

    # name, application, executable: as in the campaign file.
    name: str
    application: str
    executable: str
    template: str = ""  # name of the template beside it, or empty
    # By parameter: the values to vary, and last the one of the evaluation point. A single value is a setting.
    values: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    meanings: Mapping[str, str] = field(default_factory=dict)  # of parameters, for comments
    further: Sequence[str] = ()  # names of parameters that are not set, which have defaults
    # ranks, threads: the expressions ``program.ranks`` and ``program.threads`` of a program without adapter.
    ranks: str = "1"
    threads: str = "1"
    # Items of ``program.output``; None: an adapter reads the output.
    output: tuple[Candidate, ...] | None = None
    executor: str = "local"  # ``local`` or ``slurm``; ``slots``: cores of this machine
    slots: int = 1
    # partition, cores_per_node: the default partition of the Slurm and the cores of its nodes; empty and 0
    # where they are not known.
    partition: str = ""
    cores_per_node: int = 0
    budget: float = 1.0  # in core-hours
    tried: str = ""  # what one run showed, for a comment
    seconds: float = 0.0  # how long that run, of the smallest point, took
    copied: Sequence[str] = ()  # files that the template copies into the directory of every run
    beyond: bool = False  # whether a run at the evaluation point needs more cores than this machine has
    # Whether the best of the options is wanted, and not how times grow: without an evaluation point.
    tuning: bool = False

    @property
    def varied(self) -> dict[str, tuple[Value, ...]]:
        """The parameters that vary, each with its values and last that of the evaluation point."""
        return {name: values for name, values in self.values.items() if len(values) > 1}

    @property
    def _are_texts(self) -> list[bool]:
        """Whether each of the values that vary is a text."""
        return [isinstance(value, str) for values in self.varied.values() for value in values]

    @property
    def of_options(self) -> bool:
        """Whether it looks like a tuning space: texts among the values, or many parameters."""
        return any(self._are_texts) or len(self.varied) >= _MANY

    @property
    def evaluation_point(self) -> dict[str, Value]:
        """Where the models must hold: empty for a tuning space, and for categories alone."""
        if self.tuning or all(self._are_texts):
            return {}
        return {name: values[-1] for name, values in self.varied.items()}


def fitting(draft: Draft, spec: Application, cores: int) -> Draft:
    """Return a draft without the values at which one run needs more cores than there are.

    Where one value is left of a parameter, it becomes a setting; else the next value is that of the
    evaluation point. The smallest point must fit.
    """
    smallest = {name: values[0] for name, values in draft.values.items()}

    def fits(name: str, value: Value) -> bool:
        point = {**smallest, name: value}
        return spec.check(point) is not None or spec.ranks(point) * spec.threads(point) <= cores

    kept: dict[str, tuple[Value, ...]] = {}
    for name, values in draft.values.items():
        possible = tuple(value for value in values[:-1] if fits(name, value)) or values[:1]
        beyond = values[values.index(possible[-1]) + 1 :][:1]
        kept[name] = (*possible, *beyond) if len(possible) > 1 else possible[:1]
    return replace(draft, values=kept)


def campaign_of(draft: Draft) -> str:
    """Return the text of a campaign file."""
    varied = draft.varied
    settings = {name: values[0] for name, values in draft.values.items() if len(values) == 1}
    lines = [
        f"# orchestrator plan {draft.name}.yaml    shows what is measured first, and what it costs",
        f"# orchestrator run {draft.name}.yaml     measures",
        f"name: {draft.name}",
        f"application: {draft.application}",
        _commented(f"executable: {_text(draft.executable)}", "the program; see the template"),
    ]
    if draft.template:
        lines.append(_commented(f"template: ./{draft.template}", "how it is started: edit it"))
    if settings:
        lines += ["settings:", *(_item(name, f"{_text(value)}", draft) for name, value in settings.items())]
    lines += _program(draft)
    lines.append("parameters:")
    lines += [
        _item(name, f"[{', '.join(map(_text, values[:-1]))}]", draft) for name, values in varied.items()
    ]
    if draft.further:
        lines.append(f"# Further parameters, with defaults: {', '.join(draft.further)}. See the template.")
    lines += _evaluation_point(draft)
    lines += _measure(draft)
    lines += [
        _commented(f"strategy: {'active' if draft.tuning else 'information'}", "what to measure next"),
        "stop:",
        _commented(f"  budget: {draft.budget:.3g} core-hours", "never exceeded"),
        _commented("  patience: 3", "rounds without gain"),
        *_executor(draft),
        "seed: 1",
    ]
    return "\n".join(lines) + "\n"


def _evaluation_point(draft: Draft) -> list[str]:
    point = ", ".join(f"{name}: {_text(value)}" for name, value in draft.evaluation_point.items())
    if not point:
        return []
    why = "where the models must hold"
    chosen = [name for name, value in draft.evaluation_point.items() if isinstance(value, str)]
    if chosen:
        why += f": choose {' and '.join(chosen)}"
    if draft.beyond:
        why += f"{';' if chosen else ':'} not to be measured on {draft.slots} cores (no validate: true)"
    return [_commented(f"evaluation_point: {{{point}}}", why)]


def _program(draft: Draft) -> list[str]:
    if draft.output is None:
        return []
    lines = ["program:", _commented(f"  ranks: {_text(draft.ranks)}", "MPI ranks, an expression")]
    if draft.threads != "1":
        lines.append(
            _commented(f"  threads: {_text(draft.threads)}", "OpenMP threads of a rank, an expression")
        )
    if not draft.output:
        return [*lines, "  # output: what to read from the output; found none, so the whole run is timed"]
    lines.append(_commented("  output:", "found in the output of one run: keep what is right"))
    # Another solver has other timers, and programs leave out short rows of their tables: a run without
    # those of the first one is no failure.
    chosen = any(isinstance(value, str) for values in draft.varied.values() for value in values)
    for number, item in enumerate(draft.output):
        parts = [f"callpath: {_text(item.callpath)}", f"pattern: {_single(item.pattern)}"]
        parts += [f"file: {_single(item.file)}"] if item.file != "stdout" else []
        parts += [f"scale: {item.scale:g}"] if item.scale != 1 else []
        parts += [f"aggregate: {item.aggregate}"] if item.aggregate != "last" else []
        parts += [f'thousands: "{item.thousands}"'] if item.thousands else []
        parts += ["optional: true"] if number and (chosen or item.optional) else []
        entry = f"- {{{', '.join(parts)}}}"
        if number < MOST_READ:
            lines += [f"    # {item.line[:90]}", f"    {entry}"]
        else:
            lines += [f"    # {_FURTHER}", f"    # {_ROWS}"] if number == MOST_READ else []
            lines.append(f"    # {entry}")
    return lines


def _measure(draft: Draft) -> list[str]:
    profiler = "time" if draft.output == () else "stdout"
    repetitions = "{initial: 1, maximum: 3}" if draft.tuning else "{initial: 2, maximum: 5}"
    lines = [
        "measure:",
        _commented(f"  profiler: {profiler}", "or scorep, caliper, mpi, time: see the template"),
        _commented(f"  repetitions: {repetitions}", "runs of one point"),
    ]
    if not draft.tried:
        return lines
    # Options of one problem, such as the sizes of blocks: a run takes no longer the larger they are.
    factors = [] if draft.tuning else _in_proportion(draft)
    estimate = f"  # expected_time: {' * '.join([f'{draft.seconds:.3g}', *factors])}"
    how = "correct it" if draft.tuning else "say how it grows"
    return [*lines, f"  # {draft.tried}", _commented(estimate, f"s; {how}: plan needs an estimate")]


def _in_proportion(draft: Draft) -> list[str]:
    """Return the factors of an estimate that grows in proportion to what is no number of processes."""
    processes = set(re.findall(r"\w+", f"{draft.ranks} {draft.threads}"))
    factors = []
    for name, values in draft.varied.items():
        sizes = [value for value in values[:-1] if not isinstance(value, str)]
        if name not in processes and len(sizes) == len(values) - 1 and min(sizes) > 0:
            factors.append(name if min(sizes) == 1 else f"{name} / {format_value(min(sizes))}")
    return factors


def _executor(draft: Draft) -> list[str]:
    if draft.executor == "slurm":
        cores = f"  cores_per_node: {draft.cores_per_node}"
        return [
            "executor:",
            "  name: slurm",
            f"  # partition: {draft.partition or 'standard'}",
            *([_commented(cores, f"of {draft.partition}, as sinfo reports")] if draft.cores_per_node else []),
            "  # account: myproject",
        ]
    return [
        "executor:",
        "  name: local",
        _commented(f"  slots: {draft.slots}", "cores of this machine to use"),
    ]


def _item(name: str, value: str, draft: Draft) -> str:
    return _commented(f"  {name}: {value}", draft.meanings.get(name, ""))


def _commented(text: str, comment: str) -> str:
    return f"{text.ljust(_WIDTH)}  # {comment}" if comment else text


def _text(value: Value) -> str:
    """Return a value as YAML: numbers as they are, texts quoted unless they are plain words."""
    if not isinstance(value, str):
        return format_value(value)
    return (
        value if re.fullmatch(r"[A-Za-z_./$][\w./${}:>-]*", value) else json.dumps(value, ensure_ascii=False)
    )


def _single(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def next_value(values: Sequence[Value]) -> Value:
    """Return the value one step beyond the last: the same factor or step as before.

    Raises
    ------
    CampaignError
        For texts, and for fewer than two values.
    """
    numbers = [value for value in values if not isinstance(value, str)]
    if len(numbers) < 2 or len(numbers) < len(values):
        raise CampaignError(f"{', '.join(map(str, values))}: give at least two numbers to vary")
    steps = {_round(after - before) for before, after in pairwise(numbers)}
    last, before = numbers[-1], numbers[-2]
    if len(steps) == 1 or not before:
        return _round(last + (last - before))
    factor = last / before
    beyond = last * factor
    return int(beyond) if isinstance(last, int) and beyond == int(beyond) else _round(last + (last - before))


def _round(number: float) -> float:
    """Round to 12 digits: 0.1 and 0.2 are followed by 0.3."""
    return number if isinstance(number, int) else float(f"{number:.12g}")
