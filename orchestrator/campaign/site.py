"""A site file: what campaigns on one cluster have in common. It fills in what a campaign does not say.

A site file holds keys of a campaign's ``executor`` section. They are merged into the data of the campaign
before it is validated, each with its own place, so that all mistakes in both files are reported at once. One
key more, ``campaigns``, names the folder with links to all campaigns.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestrator.campaign import yaml
from orchestrator.campaign.paths import find_file, is_path
from orchestrator.campaign.yaml import Problem, Tree
from orchestrator.errors import CampaignError
from orchestrator.storage import YAML_SUFFIXES

NONE = "none"
VARIABLE = "ORCHESTRATOR_SITE"
_FOLDER = "measurement-orchestrator"
_STORE = "campaigns"
_EITHER = ({"partition", "by_size"},)  # keys of which a campaign's one replaces a site's other


def apply(tree: Tree, base: Path, environment: Mapping[str, str]) -> str:
    """Merge the site that a campaign names, or else the user's, into a campaign's data.

    Parameters
    ----------
    tree
        The campaign, with its variables expanded; its ``site`` becomes ``none``, as all is then said.
    base
        The folder that a relative path of the site file starts from.
    environment
        Variables, ``ORCHESTRATOR_SITE`` among them.

    Returns
    -------
    str
        The path of the site file, or an empty text if none was merged.
    """
    named = tree.data.get("site")
    tree.data = {**tree.data, "site": NONE}
    if named is not None and not isinstance(named, str):
        tree.problems.append(Problem(("site",), "must be the name or path of a site file, or none"))
        return ""
    try:
        path = find(named, base, environment)
        site = _read(path, environment) if path else None
    except CampaignError as error:
        tree.problems.append(Problem(("site",), str(error)))
        return ""
    if path is None or site is None or not _concerns(site, tree.data.get("executor"), named is not None):
        return ""
    _merge(site, path, tree)
    return str(path)


def campaigns(environment: Mapping[str, str]) -> Path | None:
    """Return the folder that the user's site file names for links to campaigns; None if it names none.

    A relative path starts from the site file.

    Raises
    ------
    CampaignError
        If the site file cannot be read, or names no path.
    """
    path = find(None, Path(), environment)
    named = _read(path, environment).data.get(_STORE) if path is not None else None
    if path is None or named is None:
        return None
    if not isinstance(named, str) or not named:
        raise CampaignError(f"{path}: {_STORE} is {named!r}: give the path of a folder")
    return path.parent / Path(named).expanduser()


def find(named: str | None, base: Path, environment: Mapping[str, str]) -> Path | None:
    """Return the path of the site file to use, or None.

    A name is looked for in ``sites/`` of the configuration folders; without one the variable
    ``ORCHESTRATOR_SITE`` counts, then ``site.yaml`` in those folders.

    Raises
    ------
    CampaignError
        If the file that was named is not there, saying what was tried.
    """
    wanted = named if named is not None else environment.get(VARIABLE) or None
    folders = list(_folders(environment))
    if wanted is None:
        return next((path for folder in folders if (path := folder / "site.yaml").is_file()), None)
    if wanted == NONE:
        return None
    origin = "" if named is not None else f" (from the variable {VARIABLE})"
    if os.sep in wanted or wanted.endswith(YAML_SUFFIXES):
        try:
            return Path(find_file(wanted, base))
        except ValueError as error:
            raise CampaignError(f"{error}{origin}") from None
    tried = [folder / "sites" / f"{wanted}.yaml" for folder in folders]
    file = next((path for path in tried if path.is_file()), None)
    if file is None:
        listed = " and ".join(map(str, tried))
        raise CampaignError(
            f"no site {wanted!r}{origin}; tried {listed}; for a file beside the campaign: {wanted}.yaml"
        )
    return file


def _folders(environment: Mapping[str, str]) -> Iterator[Path]:
    """Configuration folders of the user and of the system."""
    own = environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111 (never raises)
    yield Path(own) / _FOLDER
    yield Path("/etc") / _FOLDER


def _read(path: Path, environment: Mapping[str, str]) -> Tree:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CampaignError(f"{path} cannot be read: {error}") from None
    site = yaml.parse(text, str(path), "a site file is a mapping of keys to values, such as 'account: p0020'")
    yaml.expand(site, environment)
    return site


def _concerns(site: Tree, executor: Any, explicit: bool) -> bool:
    """Tell whether a site is for the executor of the campaign; one that is named may choose it."""
    chosen = executor.get("name") if isinstance(executor, dict) else executor
    return explicit if chosen is None else bool(chosen == site.data.get("name", "slurm"))


def _merge(site: Tree, path: Path, tree: Tree) -> None:
    own = tree.data.get("executor")
    own = {"name": own} if isinstance(own, str) else own
    if own is not None and not isinstance(own, dict):
        return  # which the validation will say
    own = own or {}
    hidden = {other for group in _EITHER for key in group & own.keys() for other in group - {key}}
    shared = {key: value for key, value in site.data.items() if key not in hidden | {_STORE}}
    shared.setdefault("name", "slurm")
    tree.data["executor"] = _joined(own, _anchored(shared, path.parent))
    tree.places.setdefault(("executor",), f"{path}:1")
    for place, line in site.places.items():
        if place and place[0] != _STORE:
            tree.places.setdefault(("executor", *place), f"{path}:{line}")
    problems = (
        problem for problem in site.problems if not problem.path or problem.path[0] not in {*own, *hidden}
    )
    tree.problems += [Problem(("executor", *problem.path), problem.text) for problem in problems]


def _joined(own: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return both, where a campaign's own value wins; mappings (variables, options) are joined key by key."""
    both = {**shared, **own}
    for key in own.keys() & shared.keys():
        if isinstance(own[key], dict) and isinstance(shared[key], dict):
            both[key] = {**shared[key], **own[key]}
    return both


def _anchored(shared: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the keys with a relative path of a launch script made absolute: it starts from the site file."""
    template = shared.get("template")
    if isinstance(template, str) and is_path(template, folder):
        return {**shared, "template": str(folder / Path(template).expanduser())}
    return shared
