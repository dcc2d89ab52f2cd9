"""Plug-ins by kind and name: our own from tables, those of other distributions from their entry points.

A part of ours is one file and one line in `TABLES`. Another distribution declares an entry point in the group
of the kind (`GROUPS`), such as ``orchestrator.strategies``, with the name that campaign files use. A name of
ours always means our own part: an entry point with that name is not used, and ``orchestrator doctor`` warns.

The attributes are: a function that builds an executor, a reader function, a modeler factory, a strategy
factory, an `Application`. Factories take the keyword options of the campaign file.
"""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from orchestrator.errors import CampaignError, ModelError
from orchestrator.guards import guarded
from orchestrator.types import Application
from orchestrator.units import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OURS = "measurement-orchestrator"
"""The name of this distribution."""

GROUPS = MappingProxyType(
    {
        "executor": "orchestrator.executors",
        "reader": "orchestrator.readers",
        "model": "orchestrator.models",
        "strategy": "orchestrator.strategies",
        "application": "orchestrator.applications",
    }
)
"""The group of entry points of every kind of plug-in."""

TABLES = MappingProxyType(
    {
        "executor": {
            "local": "orchestrator.executors.local.executor:build",
            "slurm": "orchestrator.executors.slurm.executor:build",
            "simulated": "orchestrator.executors.simulated.executor:build",
        },
        "reader": {
            "stdout": "orchestrator.readers.stdout:read",
            "scorep": "orchestrator.readers.scorep:read",
            "time": "orchestrator.readers.time:read",
            "effort": "orchestrator.readers.effort:read",
            "caliper": "orchestrator.readers.caliper:read",
            "mpi": "orchestrator.readers.mpi_time:read",
            "hpctoolkit": "orchestrator.readers.hatchet:hpctoolkit",
            "tau": "orchestrator.readers.hatchet:tau",
        },
        "model": {
            "auto": "orchestrator.models.selection:modeler",
            "pmnf": "orchestrator.models.pmnf.modeler:modeler",
            "swc": "orchestrator.models.swc.modeler:modeler",
            "curves": "orchestrator.models.curves.modeler:modeler",
            "formulas": "orchestrator.models.formulas:modeler",
            "cpr": "orchestrator.models.cpr.modeler:modeler",
            "learned": "orchestrator.models.learned.modeler:modeler",
            "extra-p": "orchestrator.models.extrap.modeler:modeler",
            "speedup": "orchestrator.models.speedup.modeler:modeler",
            "splines": "orchestrator.models.splines.modeler:modeler",
        },
        "strategy": {
            "full": "orchestrator.strategies.full:strategy",
            "cpf": "orchestrator.strategies.cpf:strategy",
            "random": "orchestrator.strategies.random:strategy",
            "sample": "orchestrator.strategies.sample:strategy",
            "active": "orchestrator.strategies.active:strategy",
            "grid": "orchestrator.strategies.grid:strategy",
            "gpr": "orchestrator.strategies.gpr:strategy",
            "information": "orchestrator.strategies.information.strategy:strategy",
            "hybrid": "orchestrator.strategies.hybrid:strategy",
            "bayesian": "orchestrator.strategies.bayesian:strategy",
        },
        "application": {
            "amg": "adapters.amg:APPLICATION",
            "beatnik": "adapters.beatnik:APPLICATION",
            "exafmm": "adapters.exafmm:APPLICATION",
            "fastest": "adapters.fastest:APPLICATION",
            "fiesta": "adapters.fiesta:APPLICATION",
            "hpl": "adapters.hpl:APPLICATION",
            "kripke": "adapters.kripke:APPLICATION",
            "kripke-1.1": "adapters.kripke:APPLICATION_1_1",
            "lammps": "adapters.lammps:APPLICATION",
            "lulesh": "adapters.lulesh:APPLICATION",
            "minife": "adapters.minife:APPLICATION",
            "mpi-kernel": "adapters.mpi_kernel:APPLICATION",
            "quicksilver": "adapters.quicksilver:APPLICATION",
            "relearn": "adapters.relearn:APPLICATION",
            "smg2000": "adapters.smg2000:APPLICATION",
        },
    }
)
"""Our own parts: kind -> name -> ``module:attribute``."""


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """A part that was found, not imported yet.

    Attributes
    ----------
    kind, name
        What it is, and how campaign files call it.
    target
        Where it is: ``module:attribute``.
    distribution
        Name and version of the distribution that declares it; the name alone for our own.
    shadowed
        Whether another part is used instead, because it has the same name and is ours.
    """

    kind: str
    name: str
    target: str
    distribution: str
    shadowed: bool = False


def plugins() -> tuple[Plugin, ...]:
    """Return every part of every kind, our own first, without importing any."""
    own = [
        Plugin(kind=kind, name=name, target=target, distribution=OURS)
        for kind, table in TABLES.items()
        for name, target in table.items()
    ]
    others = [
        Plugin(
            kind=kind,
            name=entry.name,
            target=entry.value,
            distribution=_distribution(entry),
            shadowed=entry.name in TABLES[kind],
        )
        for kind in TABLES
        for entry in entry_points_of(kind)
    ]
    return (*own, *sorted(others, key=lambda found: (found.kind, found.name, found.distribution)))


def names(kind: str) -> tuple[str, ...]:
    """Return the names of a kind of plug-in, sorted."""
    return tuple(sorted({*TABLES[kind], *(entry.name for entry in entry_points_of(kind))}))


def knows(kind: str, name: str) -> bool:
    """Return whether there is a plug-in of a kind with a name."""
    return name in TABLES[kind] or name in names(kind)


def hint(name: str, known: Sequence[str]) -> str:
    """Return a hint about an unknown plug-in, which may be one of a distribution that is not installed."""
    text = did_you_mean(name, known)
    return text if text.startswith("did you mean") else f"{text}; or install the distribution that brings it"


def why_missing(kind: str, name: str) -> str | None:
    """Return why a plug-in of another distribution cannot be used; None where it can, or is ours."""
    if name in TABLES[kind]:
        return None
    try:
        load(kind, name)
    except CampaignError as error:
        return str(error)
    return None


def load(kind: str, name: str) -> Any:
    """Import a plug-in by kind and name.

    Raises
    ------
    CampaignError
        For an unknown name, with the closest known one. For a plug-in of another distribution that cannot be
        imported, or that another one declares, too, naming the distribution. When the package ``adapters``
        that Python finds belongs to another distribution.
    """
    if not isinstance(name, str):
        raise CampaignError(f"{kind} {name!r} is no name: give one of {', '.join(names(kind))}")
    if name not in TABLES[kind]:
        return _load_from_entry_point(kind, name)
    module_name, attribute = TABLES[kind][name].split(":")
    if module_name.startswith("adapters."):
        _check_adapters_are_ours()
    return getattr(importlib.import_module(module_name), attribute)


def build(kind: str, name: str, options: Mapping[str, Any], *, called: str = "") -> Any:
    """Import a factory by kind and name, and return what it makes with these options.

    Messages say what it is as ``called``, the kind unless given.

    Raises
    ------
    CampaignError
        As `load`, and for options that the factory does not take.
    """
    factory = load(kind, name)
    what = f"{called or kind} {name!r}"
    if problems := [text for _, text in wrong_options(factory, what, options)]:
        raise CampaignError("; ".join(problems))
    try:
        return factory(**options)
    except (TypeError, ValueError, ModelError) as error:
        raise CampaignError(f"{what}: {error}") from error


def wrong_options(
    factory: Callable[..., Any], what: str, options: Mapping[str, Any], further: Sequence[str] = ()
) -> Iterator[tuple[str, str]]:
    """Yield every option that a factory does not take, by name or by type, and a sentence about it.

    Parameters
    ----------
    factory, what
        Who takes the options, and how sentences call it.
    options
        As users wrote them.
    further
        Names that stand beside its options, which may have been meant.
    """
    if not options:
        return
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, ValidationError

    parameters = inspect.signature(factory).parameters.values()
    passes_on = any(item.kind is item.VAR_KEYWORD for item in parameters)
    known = [item.name for item in parameters if item.kind not in (item.VAR_KEYWORD, item.VAR_POSITIONAL)]
    hints = _type_hints(factory)
    for option, value in options.items():
        if option not in known:
            if not passes_on:
                hint = did_you_mean(option, [*further, *known])
                yield option, f"{what} has no option {option!r}; {hint}"
            continue
        try:
            _check_type(hints.get(option, Any), value)
        except (PydanticSchemaGenerationError, PydanticUserError):
            continue  # a type that only the factory itself can check
        except ValidationError as error:
            yield option, f"{what}, option {option}: {error.errors()[0]['msg']} (value: {value!r})"


def _check_type(wanted: Any, value: Any) -> None:
    from pydantic import ConfigDict, TypeAdapter

    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    plain = value.__index__() if is_whole else value  # whole numbers of numpy are as good
    TypeAdapter(wanted, config=ConfigDict(strict=True)).validate_python(plain)


def _type_hints(factory: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(factory)
    except NameError:  # types imported for type checkers only
        return {}


@cache
def entry_points_of(kind: str) -> tuple[EntryPoint, ...]:
    """Return what other distributions declare; a distribution that is found twice counts once."""
    from importlib.metadata import entry_points

    declared = entry_points(group=GROUPS[kind])
    return tuple({(entry.name, entry.value, _distribution(entry)): entry for entry in declared}.values())


def _distribution(entry: EntryPoint) -> str:
    return "an unknown distribution" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"


def _load_from_entry_point(kind: str, name: str) -> Any:
    found = [entry for entry in entry_points_of(kind) if entry.name == name]
    if not found:
        raise CampaignError(f"unknown {kind} {name!r}: {hint(name, names(kind))}")
    if len(found) > 1:
        raise CampaignError(
            f"the {kind} {name!r} is declared by {' and by '.join(map(_distribution, found))}: uninstall one"
        )
    [entry] = found
    origin = f"the {kind} {name!r} of {_distribution(entry)} ({entry.value})"
    try:
        part = entry.load()
    except (Exception, SystemExit) as error:
        raise CampaignError(
            f"{origin} cannot be imported: {type(error).__name__}: {error}; "
            "update or uninstall that distribution"
        ) from error
    fits = isinstance(part, Application) if kind == "application" else callable(part)
    if not fits:
        wanted = "an orchestrator.types.Application" if kind == "application" else "a function"
        raise CampaignError(f"{origin} is {type(part).__name__}, not {wanted}: correct its entry point")
    return guarded(kind, part, origin)


def _check_adapters_are_ours() -> None:
    package = importlib.import_module("adapters")
    origin = Path(package.__file__ or "").parent
    if not getattr(package, "MEASUREMENT_ORCHESTRATOR", False):
        raise CampaignError(
            f"the package 'adapters' imported from {origin} is not ours but another distribution's; "
            "install measurement-orchestrator in an environment of its own"
        )
