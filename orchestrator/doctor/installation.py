"""Is the orchestrator itself installed completely?"""

from __future__ import annotations

import importlib
import platform
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from orchestrator import __version__, registry
from orchestrator.doctor.check import Check, failed, missing, needed, ok, warning
from orchestrator.errors import CampaignError
from orchestrator.launch.script import data_directory
from orchestrator.units import count

DISTRIBUTION = registry.OURS
_EXTRAS = {
    "quickstart": "needed only for the campaign quickstart",
    "parquet": "needed only for export --format parquet",
}

Version = Callable[[str], str | None]


def checks() -> Iterator[Check]:
    """Check Python, packages and the parts of the installation."""
    try:
        ours = metadata.metadata(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        yield warning(
            "packages",
            f"{DISTRIBUTION} {__version__} is used without being installed, so versions are not checked",
            "pip install -e . in the clone",
        )
    else:
        required = [Requirement(text) for text in metadata.requires(DISTRIBUTION) or ()]
        yield from needed([python(platform.python_version(), ours["Requires-Python"] or "")])
        yield from needed([packages(required, installed_version)])
        yield from extras(required, installed_version)
    yield from needed([adapters(), data()])
    yield from plugins()


def installed_version(name: str) -> str | None:
    """Return the version of an installed distribution."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def python(version: str, wanted: str) -> Check:
    """Check the version of Python against what the distribution asks for."""
    if SpecifierSet(wanted).contains(version, prereleases=True):
        return ok("Python", version)
    remedy = f"use Python {wanted}: python3.11 -m venv ~/venv && ~/venv/bin/pip install {DISTRIBUTION}"
    return failed("Python", f"{version}, needs {wanted}", remedy)


def packages(required: Iterable[Requirement], version: Version) -> Check:
    """Check that every required package is there in a version that is new enough."""
    always = [item for item in required if item.marker is None or item.marker.evaluate({"extra": ""})]
    absent = list(_absent(always, version))
    if absent:
        return missing("packages", "; ".join(absent), _pip(absent))
    detail = f"{DISTRIBUTION} {__version__}, all {len(always)} required packages"
    return ok("packages", detail)


def extras(required: Iterable[Requirement], version: Version) -> Iterator[Check]:
    """Check what is needed for some features only."""
    listed = [item for item in required if item.marker is not None]
    for extra, purpose in _EXTRAS.items():
        chosen = [item for item in listed if item.marker and item.marker.evaluate({"extra": extra})]
        absent = list(_absent(chosen, version))
        if absent:
            remedy = f"pip install '{DISTRIBUTION}[{extra}]'"
            yield missing(f"extra {extra}", f"{'; '.join(absent)}; {purpose}", remedy)
        elif chosen:
            found = ", ".join(f"{item.name} {version(item.name)}" for item in chosen)
            yield ok(f"extra {extra}", found)


def _absent(required: Iterable[Requirement], version: Version) -> Iterator[str]:
    for item in required:
        found = version(item.name)
        if found is None:
            yield f"{item.name}{item.specifier} is not installed"
        elif not item.specifier.contains(found, prereleases=True):
            yield f"{item.name}{item.specifier} is required, {found} is installed"


def _pip(absent: Iterable[str]) -> str:
    wanted = " ".join(f"'{text.split()[0]}'" for text in absent)
    return f"pip install {wanted}"


def adapters() -> Check:
    """Check that the package ``adapters`` is ours, and every plug-in of the registry is there."""
    broken = []
    for kind, table in registry.TABLES.items():
        for name, target in table.items():
            try:
                registry.load(kind, name)
            except CampaignError as error:  # of all adapters alike: another distribution's package
                remedy = f"install {DISTRIBUTION} in an environment of its own"
                return failed("adapters", str(error), remedy)
            except (ImportError, AttributeError) as error:
                broken.append(f"{kind} {name} ({target}): {error}")
    if broken:
        remedy = f"pip install --force-reinstall {DISTRIBUTION}"
        return failed("plug-ins", "; ".join(broken), remedy)
    where = importlib.import_module("adapters").__path__[0]
    known = ", ".join(registry.names("application"))
    return ok("adapters", f"{known} (from {where})")


def plugins() -> Iterator[Check]:
    """List the plug-ins of other distributions; one that cannot be used is a warning: ours work without."""
    for found in registry.plugins():
        key, origin = f"{found.kind} {found.name}", f"{found.target} of {found.distribution}"
        if found.distribution == registry.OURS:
            continue
        if found.shadowed:
            remedy = "rename its entry point"
            yield warning(key, f"{origin} has the name of a part of {DISTRIBUTION}, which is used", remedy)
            continue
        try:
            registry.load(found.kind, found.name)
        except CampaignError as error:
            yield warning(key, str(error), "update or uninstall that distribution")
        else:
            yield ok(key, f"from {origin}")


def data() -> Check:
    """Check that launch scripts and ready campaigns are found."""
    try:
        scripts = len(list(data_directory("templates").rglob("*.sh")))
        campaigns = len(list(data_directory("campaigns").glob("*.yaml")))
    except CampaignError as error:
        remedy = f"pip install --force-reinstall {DISTRIBUTION}"
        return failed("data files", str(error), remedy)
    return ok("data files", f"{count(scripts, 'launch script')}, {count(campaigns, 'campaign')}")
