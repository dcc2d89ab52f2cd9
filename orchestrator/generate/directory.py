"""Write generated programs: sources, Makefile, manifest, and a campaign for each of them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import yaml

from orchestrator.errors import CampaignError
from orchestrator.generate import manifest, program
from orchestrator.generate.complexity import RANKS, Function
from orchestrator.generate.manifest import Manifest, callpaths
from orchestrator.generate.population import Range

_VALUES = 5  # per parameter (section V-A4)


def write(directory: Path, content: Manifest) -> list[Path]:
    """Write everything that is needed to build, run and check the programs; return the files.

    Raises
    ------
    CampaignError
        When the directory holds other files: generated programs are never mixed.
    """
    if directory.exists() and any(directory.iterdir()):
        raise CampaignError(f"{directory} is not empty: name a new directory, or remove it first")
    files = {program.HEADER: program.header(), "Makefile": program.makefile(tuple(content.programs))}
    files[manifest.NAME] = json.dumps(manifest.document(content), indent=1) + "\n"
    for name, functions in content.programs.items():
        files[f"{name}.cpp"] = program.source(functions, content.range)
        files[f"{name}.yaml"] = campaign(directory, name, functions, content)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CampaignError(f"cannot write {directory}: {error.strerror}") from error
    return [directory / name for name in files]


def campaign(directory: Path, name: str, functions: tuple[Function, ...], content: Manifest) -> str:
    """Return a campaign file that measures a program over its range, one step beyond as evaluation point."""
    values = series(content.range)
    others = [key for key in content.range.parameters if key != RANKS]
    output = [
        {"callpath": path, "pattern": f"^{re.escape(path)}\\ttime\\t(\\S+)"}
        for function in functions
        for path in callpaths(function)
    ]
    document = {
        "name": name,
        "application": "generic",
        "executable": str((directory / name).resolve()),
        "program": {"arguments": [f"{{{key}}}" for key in others], "ranks": RANKS, "output": output},
        "parameters": {key: {"values": list(found[:-1])} for key, found in values.items()},
        "evaluation_point": {key: found[-1] for key, found in values.items()},
        "stop": {"budget": "1 core-hours"},
        "seed": content.seed,
    }
    return yaml.safe_dump(document, sort_keys=False, width=10_000)


def series(range_: Range) -> dict[str, tuple[int, ...]]:
    """Return five values per parameter, and the next beyond: ranks doubling, others in equal steps (V-B).

    Where ranks cannot double four times within the range, they grow in equal steps, too. A parameter whose
    range is one value has that and its double.
    """
    found: dict[str, tuple[int, ...]] = {}
    for name in range_.parameters:
        low, high = range_.smallest[name], range_.largest[name]
        if high == low:
            found[name] = (round(low), round(2 * low))
        elif name == RANKS and high >= low * 2 ** (_VALUES - 1):
            found[name] = tuple(round(low * 2**k) for k in range(_VALUES + 1))
        else:
            step = (high - low) / (_VALUES - 1)
            found[name] = tuple(dict.fromkeys(round(low + step * k) for k in range(_VALUES + 1)))
    return found


def build(directory: Path, needs: str = "mpicxx") -> None:
    """Build with ``make``, which needs what ``needs`` says.

    Raises
    ------
    CampaignError
        When there is no make or compiler, or the build fails, with the end of its messages.
    """
    try:
        done = subprocess.run(["make"], cwd=directory, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CampaignError(f"cannot run make: {error.strerror}; install make and an MPI compiler") from error
    if done.returncode:
        tail = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise CampaignError(
            f"make failed in {directory}:\n{tail}\nit needs {needs}; then: make -C {directory}"
        )
