"""Campaign file -> validated `Campaign`. Everything wrong in a file is reported at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator.campaign import effort, partition, paths, schema, values
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.fields import READ
from orchestrator.campaign.messages import validate
from orchestrator.campaign.schema import (
    Compare,
    Document,
    ExecutorOptions,
    Measure,
    Notify,
    Priors,
    SimulatedOptions,
)
from orchestrator.campaign.site import apply
from orchestrator.campaign.validation import checks
from orchestrator.campaign.yaml import Path as KeyPath
from orchestrator.campaign.yaml import Problem, Tree, expand, override, parse
from orchestrator.campaign.yaml import dump as dump_yaml
from orchestrator.errors import CampaignError, ExpressionError
from orchestrator.executors.simulated import dataset
from orchestrator.types import Parameter, Point, Value

_STARTING: tuple[KeyPath, ...] = (
    ("executable",),
    *(("compare", key) for key in ("with", "effort")),
    ("template",),
    ("version_arguments",),
    ("program", "environment"),
    *(("measure", "effort", key) for key in ("executable", "template", "environment")),
    *(("executor", key) for key in ("launcher", "modules", "prologue", "epilogue", "environment")),
)
"""Keys that say how a program is started."""


CAMPAIGN_FILE = "campaign.yaml"
"""The campaign file of a campaign directory."""


def load(path: Path, overrides: Sequence[str] = (), *, starts: bool = True) -> Campaign:
    """Read a campaign file.

    Parameters
    ----------
    path
        YAML file; relative paths in it start from its folder.
    overrides
        ``key.path=value`` texts, each value in YAML, applied in order.
    starts
        False where nothing will be started (reports, predictions): executable, data set and launch script
        need not be on this machine.

    Raises
    ------
    CampaignError
        With one line per mistake: file, line, key, value and the remedy.
    """
    return _load(path, overrides, starts, saved=False)


def of_directory(directory: Path, overrides: Sequence[str] = (), *, starts: bool = False) -> Campaign:
    """Read the file of a campaign directory; parameters and errors as of `load`.

    An earlier version may have written it: keys of executors that it does not use are ignored. Unless
    something ``starts``, plug-ins that it names need not be installed: see `Campaign.missing`.
    """
    return _load(directory / CAMPAIGN_FILE, overrides, starts, saved=True)


def _load(path: Path, overrides: Sequence[str], starts: bool, saved: bool) -> Campaign:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CampaignError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CampaignError(f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    return loads(text, str(path), path.absolute().parent, overrides, starts=starts, saved=saved)


def peek(path: Path, overrides: Sequence[str]) -> Mapping[str, Any]:
    """Return what a campaign file says, with the overrides and before any check; what is wrong stays so."""
    try:
        tree = parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError):
        return {}  # `load` reports it
    for assignment in overrides:
        override(tree, assignment)
    expand(tree, os.environ)
    return tree.data


def loads(
    text: str,
    source: str = "campaign",
    base_directory: Path | None = None,
    overrides: Sequence[str] = (),
    *,
    starts: bool = True,
    saved: bool = False,
) -> Campaign:
    """Parse the text of a campaign file; ``source`` is what errors call it. See `load`."""
    base = base_directory or Path.cwd()
    tree = parse(text, source)
    if saved and isinstance(tree.data.get("executor"), dict):
        tree.data["executor"] = schema.without_other_executors(tree.data["executor"])
    former = _executor_name(tree)
    _keep_unit(tree, overrides, saved)
    for assignment in overrides:
        override(tree, assignment)
    expand(tree, os.environ)
    partition.resolve(tree, lambda: _on_cluster(tree, former, base))
    _switch_executor(tree, former)
    site = apply(tree, base, os.environ)
    _add_variant(tree)
    read = saved and not starts
    document, broken, problems = validate(tree.data, READ if read else None)
    known = {problem.path for problem in tree.problems}
    tree.problems += [problem for problem in problems if problem.path not in known]
    campaign = replace(_resolve(document, broken, base if starts else None, tree), site=site)
    not_checked = broken | tree.blocked() | (frozenset() if starts else {"executor", checks.START})
    missing = campaign.missing.keys() if read else frozenset()
    if "application" not in missing:  # it says which names there are
        tree.problems += checks.check(campaign, not_checked | missing)
    if tree.problems:
        problems = sorted(dict.fromkeys(tree.problems), key=tree.line)
        raise CampaignError("\n".join(tree.render(problem) for problem in problems))
    return campaign


def _add_variant(tree: Tree) -> None:
    """Make a parameter of the executables that are compared; P₊ is of the other one, if it does not say."""
    section, parameters = tree.data.get("compare"), tree.data.get("parameters")
    if not isinstance(section, dict) or not isinstance(parameters, dict):
        return
    names = section.get("names", Compare.model_fields["names"].default)
    if schema.VARIANT not in parameters and isinstance(names, tuple) and len(names) == 2:
        values = {"values": names, "type": "categorical"}
        tree.data["parameters"] = {**parameters, schema.VARIANT: values}
        point = tree.data.get("evaluation_point")
        if isinstance(point, dict):
            tree.data["evaluation_point"] = {schema.VARIANT: names[1], **point}


def _keep_unit(tree: Tree, overrides: Sequence[str], saved: bool) -> None:
    """Let another budget bring its own unit. Saved budgets are in core-seconds, whatever the user wrote."""
    stop = tree.data.get("stop")
    if not isinstance(stop, dict):
        return
    if any(assignment.partition("=")[0].strip() == "stop.budget" for assignment in overrides):
        tree.data["stop"] = {key: value for key, value in stop.items() if key != "unit"}
    elif saved:
        tree.data["stop"] = {"unit": "core-hours", **stop}


def _on_cluster(tree: Tree, former: object, base: Path) -> Mapping[str, Any]:
    """Return the ``executor`` section that is written, with its site, also where a rehearsal replaces it."""
    written = tree.data.get("executor")
    section = {**written, "name": former} if isinstance(written, dict) else {"name": former}
    alone = Tree(tree.source, {**tree.data, "executor": section})
    if former == "local" and not isinstance(written, dict):
        alone.data.pop("executor")  # the site may choose it
    apply(alone, base, os.environ)
    found = alone.data.get("executor")
    return found if isinstance(found, dict) else {}


def _executor_name(tree: Tree) -> object:
    """Return the name of the executor as the tree has it, variables expanded."""
    section = tree.data.get("executor")
    name = section.get("name", "local") if isinstance(section, dict) else section
    alone = Tree(tree.source, {"name": name})
    expand(alone, os.environ)
    return alone.data["name"] or "local"


def _switch_executor(tree: Tree, former: object) -> None:
    """Where an override chose another executor, drop the keys of the file that only the former one has."""
    section, name = tree.data.get("executor"), _executor_name(tree)
    if name == former or not isinstance(section, dict):
        return
    own, dropped = schema.executor_keys(name), schema.executor_keys(former)
    if former not in schema.EXECUTORS:
        dropped = frozenset(section)
    in_file = {key for key in section if isinstance(tree.places.get(("executor", key)), int)}
    gone = (dropped & in_file) - own
    tree.data["executor"] = {key: value for key, value in section.items() if key not in gone}
    lost = {("executor", key) for key in gone}
    tree.problems = [problem for problem in tree.problems if problem.path[:2] not in lost]


def _resolve(document: Document, broken: frozenset[str], base: Path | None, tree: Tree) -> Campaign:
    """Look up what the document names, files only with a ``base``; what is missing becomes a problem."""
    settings = {} if "settings" in broken else document.settings
    parameters = () if "parameters" in broken else _parameters(document, settings, tree)
    point = _evaluation_point(document, parameters, tree)
    template, template_source = _template(document.template, base or Path.cwd(), tree)
    executor = document.executor if base is None else _executor(document.executor, base, tree)
    programs = _programs(document, broken, None if _is_rehearsal(tree) else base, tree)
    resolved = {
        **programs,
        "executor": executor,
        "settings": settings,
        "notify": _notify(document.notify, base, tree) if document.notify and base else document.notify,
        "validate_": document.validate_ and _can_validate(point, parameters, executor, programs["measure"]),
        "template": template,
        "priors": document.priors if base is None else _priors(document.priors, base),
    }
    campaign = _campaign(document.model_copy(update=resolved), parameters, point)
    return replace(campaign, template_source=template_source)


def _is_rehearsal(tree: Tree) -> bool:
    """Return whether the file, with overrides, names the executor that starts nothing."""
    written = tree.data.get("executor")
    return (written.get("name") if isinstance(written, dict) else written) == "simulated"


def _programs(document: Document, broken: frozenset[str], base: Path | None, tree: Tree) -> dict[str, Any]:
    """Return the sections that name programs, with their paths; without a ``base`` none is looked up.

    What counts effort brings defaults of what is measured and modelled.
    """
    executable, compare, measure = document.executable, document.compare, document.measure
    if base is None:
        tree.problems = [problem for problem in tree.problems if not _only_for_starting(problem.path)]
    else:
        if "executable" not in broken | tree.blocked():
            executable = _found(paths.find_executable, executable, base, ("executable",), tree)
        if compare is not None:
            compare = effort.compared(compare, measure, base, tree)
        measure = effort.resolved(measure, executable, base, tree)
    model = document.model
    if measure.effort is not None:
        measure, model = effort.defaults(measure, model, tree.data)
    return {"executable": executable, "compare": compare, "measure": measure, "model": model}


def _can_validate(
    point: Point | None, parameters: Sequence[Parameter], executor: ExecutorOptions, measure: Measure
) -> bool:
    """Return whether a run at the evaluation point can yield values: a data set may not have the point."""
    if point is None:  # which the checks will say
        return True
    replayed = executor.dataset if isinstance(executor, SimulatedOptions) else None
    why_not_replayed = dataset.check(replayed, [item.name for item in parameters], measure.measured)
    return why_not_replayed(point.as_dict()) is None


def _priors(priors: Priors, base: Path) -> Priors:
    campaigns = tuple(paths.absolute_folder(text, base) for text in priors.campaigns)
    return priors.model_copy(update={"campaigns": campaigns})


def _campaign(document: Document, parameters: tuple[Parameter, ...], point: Point | None) -> Campaign:
    return Campaign(
        name=document.name,
        application=document.application,
        executable=document.executable,
        compare=document.compare,
        settings=document.settings,
        template=document.template,
        program=document.program,
        parameters=parameters,
        constraints=document.constraints,
        resources=document.resources,
        evaluation_point=point,
        measure=document.measure,
        strategy=document.strategy,
        model=document.model,
        priors=document.priors,
        stop=document.stop,
        executor=document.executor,
        retries=document.retries.by_class(),
        notify=document.notify,
        seed=document.seed,
        validate=document.validate_,
        version_arguments=document.version_arguments,
        raw=_raw(document),
    )


def _only_for_starting(path: KeyPath) -> bool:
    """Whether a key says how a program is started. A rehearsal starts none, so it works without its files."""
    return any(path[: len(key)] == key for key in _STARTING)


def _parameters(document: Document, settings: Mapping[str, Value], tree: Tree) -> tuple[Parameter, ...]:
    result = []
    for name, section in document.parameters.items():
        try:
            result.append(values.parameter(name, section, settings))
        except (ValueError, ExpressionError) as error:
            tree.problems.append(Problem(("parameters", name), str(error)))
    return tuple(result)


def _executor(executor: ExecutorOptions, base: Path, tree: Tree) -> ExecutorOptions:
    update = {}
    if isinstance(executor, SimulatedOptions):
        for key in ("dataset", "models"):
            if (named := getattr(executor, key)) is not None:
                update[key] = _found(paths.find_file, named, base, ("executor", key), tree)
    if executor.template is not None and paths.is_path(executor.template, base):
        update["template"] = _found(paths.find_file, executor.template, base, ("executor", "template"), tree)
    return executor.model_copy(update=update)


def _template(template: str | None, base: Path, tree: Tree) -> tuple[str | None, str]:
    """Return the text of the launch template, and its file. The text becomes part of the campaign.

    So a campaign directory does not depend on a file that may be edited. A template that cannot be read is a
    problem, and left out.
    """
    if template is None or paths.is_text(template) or not paths.is_path(template, base):
        return template, "template"
    try:
        path = Path(paths.find_file(template, base))
        return path.read_text(encoding="utf-8").rstrip("\n") + "\n", str(path)
    except (OSError, ValueError) as error:
        tree.problems.append(Problem(("template",), f"{template} cannot be read as UTF-8 text: {error}"))
        return None, "template"


def _notify(notify: Notify, base: Path, tree: Tree) -> Notify:
    program = _found(paths.find_executable, notify.command[0], base, ("notify", "command"), tree)
    return notify.model_copy(update={"command": (program, *notify.command[1:])})


def _found(find: Callable[[str, Path], str], text: str, base: Path, key: tuple[str, ...], tree: Tree) -> str:
    try:
        return find(text, base)
    except ValueError as error:
        tree.problems.append(Problem(key, str(error)))
        return text


def _evaluation_point(document: Document, parameters: tuple[Parameter, ...], tree: Tree) -> Point | None:
    given = document.evaluation_point
    if given is None or len(parameters) < len(document.parameters):
        return None
    try:
        return values.evaluation_point(given, parameters)
    except ValueError as error:
        tree.problems.append(Problem(("evaluation_point",), str(error)))
        return None


def _raw(document: Document) -> dict[str, Any]:
    raw = document.model_dump(mode="json", by_alias=True)
    for name, section in raw["parameters"].items():
        raw["parameters"][name] = {key: value for key, value in section.items() if value is not None}
    return raw


def normalised(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``raw`` of a campaign that an earlier version journaled, with the defaults of new keys."""
    try:
        parsed = _as_parsed(raw)
        executor = schema.without_other_executors(parsed["executor"])
        return _raw(Document.model_validate({**parsed, "executor": executor}, context=READ))
    except (ValidationError, KeyError):  # it has keys that this version does not know: then they differ
        return dict(raw)


def _as_parsed(data: Any) -> Any:
    """Return JSON's lists as the tuples that a YAML file is parsed to."""
    if isinstance(data, Mapping):
        return {key: _as_parsed(value) for key, value in data.items()}
    return tuple(map(_as_parsed, data)) if isinstance(data, list | tuple) else data


def dump(campaign: Campaign) -> str:
    """Return the campaign as YAML with every default written out; loads as an equal campaign."""
    return dump_yaml(campaign.raw)
