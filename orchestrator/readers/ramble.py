"""Results of a Ramble workspace: figures of merit of experiments (``ramble workspace analyze -f json``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from orchestrator.errors import ReadError
from orchestrator.readers.entries import SECONDS, Entry, assemble, is_number, number, timed
from orchestrator.readers.json_parts import object_in, objects_in, parsed
from orchestrator.readers.settings import Settings, differing, follows, point_of
from orchestrator.types import Measurements

LATEST = "results.latest.json"
MARK = '"RAMBLE_STATUS"'
"""What tells such a file from other JSON."""

# What Ramble itself sets in every experiment.
_OF_RAMBLE = re.compile(
    r"(application|workload|experiment|simplified|repeat|workspace|license|env)_|"
    r".*_(dir|path|file|namespace|index|command)$|log_file|batch_submit|execute_experiment|experiments_file"
)
Part = Mapping[str, object]
"""A JSON object."""

_RESOURCES = ("n_ranks", "n_nodes", "processes_per_node", "n_threads")


def results_in(folder: Path) -> Path | None:
    """Return the results of a workspace: the latest, or else the last by name; None where there are none."""
    candidates = (folder / LATEST, *sorted(folder.glob("results.*.json"), reverse=True))
    return next((path for path in candidates if path.is_file()), None)


def read(text: str, source: str, parameters: Sequence[str] | None = None) -> Measurements:
    """Read the figures of merit of all successful experiments.

    The call path is ``application.workload``, and below it the context, where a figure has one; the metric is
    the figure's name. Figures that are no numbers are left out, those with a unit of time are in seconds. Of
    repeated experiments every repetition counts, and their summary does not.

    Parameters
    ----------
    text, source
        The file's content and name.
    parameters
        Variables that are the parameters. Without them all variables in which the experiments differ, of
        those that always change together the first; numbers of ranks, nodes and threads last, and only where
        no other of these says the same.

    Raises
    ------
    ReadError
        For what is no such file, no successful experiment, and no or unknown parameters.
    """
    experiments = [item for item in _experiments(text, source) if _counts(item)]
    if not experiments:
        raise ReadError(f"{source}: no experiment with RAMBLE_STATUS SUCCESS")
    settings = [_settings(item, _where(item, source)) for item in experiments]
    names = tuple(parameters) if parameters is not None else _parameters(experiments[0], settings, source)
    if not names:
        raise ReadError(f"{source}: the experiments differ in no variable; name some with --parameters")
    entries = (
        entry
        for item, known in zip(experiments, settings, strict=True)
        for entry in _entries(item, known, names, _where(item, source))
    )
    return assemble(names, entries, source)


def _experiments(text: str, source: str) -> Sequence[Part]:
    return objects_in(parsed(text, source), "experiments", f"{source}: not the results of a Ramble workspace")


def _where(item: Part, source: str) -> str:
    return f"{source}: experiment {item.get('name')}"


def _counts(item: Part) -> bool:
    """Tell whether an experiment ran by itself and succeeded: one with repetitions is their summary."""
    return item.get("RAMBLE_STATUS") == "SUCCESS" and not item.get("N_REPEATS")


def _settings(item: Part, where: str) -> Settings:
    """Return the variables of an experiment: its own, and the resources that Ramble lists beside them."""
    own = object_in(item, "RAMBLE_VARIABLES", where) if item.get("RAMBLE_VARIABLES") else {}
    resources = {name: item[name] for name in _RESOURCES if name in item}
    return {name: str(value) for name, value in {**own, **resources}.items()}


def _parameters(first: Part, settings: Sequence[Settings], source: str) -> tuple[str, ...]:
    is_raw = bool(first.get("RAMBLE_RAW_VARIABLES"))
    raw = object_in(first, "RAMBLE_RAW_VARIABLES", _where(first, source)) if is_raw else {}

    def is_given(name: str) -> bool:
        """Whether the user gave a value, not an expression; what Ramble computes is no text."""
        value = raw.get(name, settings[0][name])
        return isinstance(value, str) and "{" not in value

    own = [name for name in settings[0] if not _OF_RAMBLE.match(name) and name not in _RESOURCES]
    resources = [name for name in _RESOURCES if name in settings[0]]
    ordered = sorted([*own, *resources], key=lambda name: not is_given(name))
    candidates = differing(settings, ordered)
    return tuple(
        name
        for place, name in enumerate(candidates)
        if is_given(name) or not any(follows(settings, name, other) for other in candidates[:place])
    )


def _entries(item: Part, known: Settings, names: Sequence[str], where: str) -> Iterator[Entry]:
    point = point_of(known, names, where, "variable")
    base = f"{item.get('application_name')}.{item.get('workload_name')}"
    for context in objects_in(item, "CONTEXTS", where) if item.get("CONTEXTS") else ():
        title = context.get("display_name") or context.get("name")
        callpath = base if context.get("name") == "null" else f"{base}->{title}"
        for figure in objects_in(context, "foms", where) if context.get("foms") else ():
            text = str(figure.get("value")).strip()
            if not is_number(text):
                continue
            value, metric = float(number(text, where)), _metric(figure)
            if (unit := SECONDS.get(str(figure.get("units", "")).strip())) is not None:
                value, metric = value * unit, timed(metric)[0]
            yield Entry(where=where, callpath=callpath, metric=metric, point=point, values=(value,))


def _metric(figure: Part) -> str:
    """Return a figure's name, with that of the modifier that adds it."""
    name = str(figure.get("name"))
    return f"{figure.get('origin')}::{name}" if figure.get("origin_type") == "modifier" else name
