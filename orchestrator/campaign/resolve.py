"""What sections of a campaign file stand for: values of parameters, files on this machine, effort runs."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from orchestrator import expressions
from orchestrator.campaign.schema import Compare, Measure, ModelChoice, Values
from orchestrator.campaign.yaml import Problem, Tree
from orchestrator.types import Parameter, Point, Value, format_value
from orchestrator.units import did_you_mean

MOST_VALUES = 10**6


def parameter(name: str, section: Values, settings: Mapping[str, Value]) -> Parameter:
    """Return a parameter with its values: numbers ascending, categories in the order given.

    Raises
    ------
    ValueError
        Saying which key is wrong, and the remedy.
    ExpressionError
        If the constraint is malformed.
    """
    listed = _range(section) if section.values is None else _list(section)
    categorical = section.type == "categorical" or any(isinstance(value, str) for value in listed)
    values = _categories(listed, section.type) if categorical else _numbers(listed, section)
    if section.constraint is not None:
        values = _satisfying(name, values, section.constraint, settings)
    return Parameter(name, values, categorical)


def _list(section: Values) -> tuple[Value, ...]:
    ranged = {"from": section.from_, "to": section.to, "step": section.step, "factor": section.factor}
    for key, value in ranged.items():
        if value is not None:
            raise ValueError(f"has both values and {key}; a range has no values, a list no {key}")
    return section.values or ()


def _categories(listed: tuple[Value, ...], kind: str | None) -> tuple[Value, ...]:
    if kind not in (None, "categorical"):
        raise ValueError(f"type {kind} does not fit text values; drop it, or write the values without quotes")
    if len({isinstance(value, str) for value in listed}) > 1:
        raise ValueError("values mix text and numbers; quote all of them or none")
    _refuse_duplicates(listed)
    return listed


def _numbers(listed: tuple[Value, ...], section: Values) -> tuple[Value, ...]:
    numbers = [value for value in listed if not isinstance(value, str)]
    if not numbers:
        raise ValueError("values is empty; list at least one value")
    whole = all(number == int(number) for number in numbers)
    if section.type == "integer" and not whole:
        if section.factor is None:
            broken = next(number for number in numbers if number != int(number))
            raise ValueError(f"type is integer, but {broken} is not a whole number")
        numbers = list(dict.fromkeys(round(number) for number in numbers))
        whole = True
    _refuse_duplicates(numbers)
    if whole and section.type != "float":
        return tuple(sorted(int(number) for number in numbers))
    return tuple(sorted(float(number) for number in numbers))


def _refuse_duplicates(values: tuple[Value, ...] | list[int | float]) -> None:
    seen: set[Value] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"values has {format_value(value)} twice; remove one")
        seen.add(value)


def _range(section: Values) -> tuple[Value, ...]:
    low, high, step, factor = section.from_, section.to, section.step, section.factor
    if low is None or high is None:
        raise ValueError("needs either values: [...], or from: and to: with step: or factor:")
    if step is not None and factor is not None:
        raise ValueError(f"has both step {step} and factor {factor}; keep one")
    if high < low:
        raise ValueError(f"from {low} is greater than to {high}; swap them")
    if factor is None:
        return tuple(_steps(low, high, 1 if step is None else step))
    return tuple(_powers(low, high, factor))


def _steps(low: float, high: float, step: float) -> Iterator[int | float]:
    """Exact multiples of the step as it is written: 0.1 three times is 0.3, not 0.30000000000000004."""
    if step <= 0:
        raise ValueError(f"step {step} must be positive")
    first, width = Decimal(repr(low)), Decimal(repr(step))
    count = int((Decimal(repr(high)) - first) / width) + 1
    _refuse_more_than_most(count)
    if isinstance(low, int) and isinstance(step, int):
        yield from range(low, low + count * step, step)
        return
    for index in range(count):
        yield _plain(first + index * width)


def _powers(low: float, high: float, factor: float) -> Iterator[int | float]:
    """Rounded to 12 digits, so that a factor of 1.4142135623730951 meets the whole numbers."""
    if factor <= 1 or low <= 0:
        raise ValueError(f"factor {factor} must be greater than 1, and from {low} greater than 0")
    _refuse_more_than_most(math.log(high / low) / math.log(factor))
    number, index = low, 0
    while number <= high:
        yield number
        index += 1
        exact = Decimal(repr(low)) * Decimal(repr(factor)) ** index
        number = _plain(exact) if isinstance(low, int) and isinstance(factor, int) else float(f"{exact:.12g}")


def _plain(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


def _refuse_more_than_most(count: float) -> None:
    if count > MOST_VALUES:
        raise ValueError(
            f"the range has {count:.3g} values, at most {MOST_VALUES} are possible; use a wider step"
        )


def _satisfying(
    name: str, values: tuple[Value, ...], constraint: str, settings: Mapping[str, Value]
) -> tuple[Value, ...]:
    known = {**settings, name: values[0]}
    texts = [key for key, value in known.items() if isinstance(value, str)]
    holds = expressions.parse(constraint, known, texts)
    if holds.kind != "truth":
        raise ValueError(f"constraint {constraint!r} is neither true nor false; write a comparison")
    kept = tuple(value for value in values if holds({**settings, name: value}))
    if not kept:
        bounds = f"{format_value(values[0])} .. {format_value(values[-1])}"
        raise ValueError(f"constraint {constraint!r} excludes all {len(values)} values {bounds}; relax it")
    return kept


def evaluation_point(given: Mapping[str, Value], parameters: Sequence[Parameter]) -> Point:
    """Return P₊ in the order of the parameters.

    Raises
    ------
    ValueError
        For a missing or unknown parameter, or a value of the wrong kind.
    """
    names = [item.name for item in parameters]
    for name in given:
        if name not in names:
            raise ValueError(f"unknown parameter {name!r}; {did_you_mean(name, names)}")
    missing = [name for name in names if name not in given]
    if missing:
        raise ValueError(f"lacks a value for {', '.join(missing)}; it needs one for every parameter")
    return Point(tuple((item.name, _coordinate(item, given[item.name])) for item in parameters))


def _coordinate(item: Parameter, value: Value) -> Value:
    if item.categorical:
        if value not in item.values:
            known = ", ".join(format_value(known) for known in item.values)
            raise ValueError(
                f"{item.name}: {value!r} is none of the categories {known}; models exist only for those"
            )
        return value
    if isinstance(value, str):
        raise ValueError(f"{item.name}: {value!r} is text; write a number without quotes")
    return (
        int(value) if value == int(value) and all(isinstance(known, int) for known in item.values) else value
    )


def is_path(template: str, base: Path) -> bool:
    """Whether a template is meant as a file, not as the name of one that comes with the program."""
    return os.sep in template or (base / template).is_file()


def is_text(template: str) -> bool:
    """Whether a launch template is given by its text, not by its file or name."""
    return "\n" in template


def executable(text: str, base: Path) -> str:
    """Return the absolute path of a program.

    A bare name is looked for beside Python's own executable (a virtual environment's ``bin``), then on
    PATH; a relative path from ``base``, then from the working directory.

    Raises
    ------
    ValueError
        Naming what was tried.
    """
    if not text:
        raise ValueError("is required; give the path of the application's executable")
    path = Path(os.path.expanduser(text))  # noqa: PTH111 (Path.expanduser raises for an unknown user)
    bare = os.sep not in text
    if bare:
        on_path = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
        folders = [Path(sys.executable).parent, *map(Path, on_path)]
    else:
        folders = list(dict.fromkeys([base, Path.cwd()]))
    tried = [Path(os.path.abspath(folder / path)) for folder in folders]  # noqa: PTH100 (keeps symbolic links)
    for candidate in tried:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return _utf8(candidate)
    present = next((candidate for candidate in tried if candidate.exists()), None)
    if present is not None:
        remedy = "it is a folder" if present.is_dir() else f"make it executable: chmod +x {present}"
        raise ValueError(f"{text!r} cannot be executed: {remedy}")
    if bare:
        beside = f"; for a file beside the campaign file write ./{text}" if (base / text).exists() else ""
        raise ValueError(f"{text!r} is neither in {folders[0]} nor on PATH{beside}; correct it or set PATH")
    raise ValueError(f"{text!r} does not exist; tried {' and '.join(map(str, dict.fromkeys(tried)))}")


def _utf8(path: Path) -> str:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ValueError(f"{str(path)!r} is not valid UTF-8; rename the file or its folder") from None
    return str(path)


def file(text: str, base: Path) -> str:
    """Return the absolute path of a file, relative to ``base`` or the working directory.

    Raises
    ------
    ValueError
        Naming what was tried.
    """
    path = Path(os.path.expanduser(text))  # noqa: PTH111 (as above)
    tried = [Path(os.path.abspath(folder / path)) for folder in (base, Path.cwd())]  # noqa: PTH100 (as above)
    for candidate in tried:
        if candidate.exists():
            return _utf8(candidate)
    raise ValueError(f"{text!r} does not exist; tried {' and '.join(map(str, dict.fromkeys(tried)))}")


def folder(text: str, base: Path) -> str:
    """Return the absolute path of a folder relative to ``base``; it need not be there."""
    return os.path.abspath(base / os.path.expanduser(text))  # noqa: PTH100, PTH111 (as above)


EFFORT_KEY = ("measure", "effort")
EFFORT_SUFFIX = "-effort"
EFFORT_METRICS = ("visits", "basic_blocks", "bytes_sent", "bytes_received", "communicator_size")
"""What effort runs are read for. Times measured in them are those of counting."""

BUILD_WITH_COUNTERS = 'CXX="$(orchestrator effort compiler mpicxx)" make'


_ELF = b"\x7fELF"
_COUNTERS = b"liborchestrator-effort.so"


def resolved_effort(measure: Measure, program: str, base: Path, tree: Tree) -> Measure:
    """Return the section with the effort runs' executable and template as absolute paths.

    ``effort: true`` means the program beside the campaign's executable whose name ends in ``-effort``.
    """
    effort = measure.effort
    if effort is None:
        return measure
    update: dict[str, str] = {}
    try:
        wanted = effort.executable or _beside(program)
        update["executable"] = executable(wanted, base)
    except ValueError as error:
        tree.problems.append(
            Problem((*EFFORT_KEY, "executable") if effort.executable else EFFORT_KEY, str(error))
        )
    if effort.template is not None and is_path(effort.template, base):
        try:
            update["template"] = file(effort.template, base)
        except ValueError as error:
            tree.problems.append(Problem((*EFFORT_KEY, "template"), str(error)))
    return measure.model_copy(update={"effort": effort.model_copy(update=update)})


def compared(section: Compare, measure: Measure, base: Path, tree: Tree) -> Compare:
    """Return the section with absolute paths of the other executable, and of the one that counts effort."""
    update: dict[str, str] = {}
    key = "with"
    try:
        update["with_"] = executable(section.with_, base)
        if measure.effort is not None:
            key = "effort"
            update["effort"] = executable(section.effort or _beside(update["with_"]), base)
    except ValueError as error:
        tree.problems.append(Problem(("compare", key), str(error)))
    return section.model_copy(update=update)


def effort_defaults(
    measure: Measure, model: ModelChoice, written: Mapping[str, Any]
) -> tuple[Measure, ModelChoice]:
    """Return the defaults of a campaign that counts effort, where ``written`` does not say otherwise.

    The modeler is the one that knows priors, and a point is timed once: the paper's section V-A.4, "a single
    noise-sensitive measurement per configuration".
    """
    if "model" not in written:
        model = ModelChoice(name="swc")
    section = written.get("measure")
    repetitions = section.get("repetitions") if isinstance(section, Mapping) else None
    if not isinstance(repetitions, Mapping) or "initial" not in repetitions:
        once = measure.repetitions.model_copy(update={"initial": 1})
        measure = measure.model_copy(update={"repetitions": once})
    return measure, model


def _beside(executable: str) -> str:
    path = f"{executable}{EFFORT_SUFFIX}"
    if not executable or Path(path).is_file():
        return path
    raise ValueError(
        f"there is no {path}: times and effort need a build each. Build that one with "
        f"{BUILD_WITH_COUNTERS}, or name it under measure.effort.executable; see docs/effort.md"
    )


def is_instrumented(path: Path) -> bool:
    """Return whether a program is linked with the counters' library; scripts are assumed to start one."""
    try:
        content = path.read_bytes()
    except OSError:
        return True  # another check reports what is wrong with the file
    return not content.startswith(_ELF) or _COUNTERS in content


def counts_for_sure(path: Path) -> bool:
    """Return whether a file is a program, not a script, that is linked with the counters' library."""
    return is_instrumented(path) and path.read_bytes().startswith(_ELF)
