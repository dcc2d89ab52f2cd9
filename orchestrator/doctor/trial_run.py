"""One run at the smallest point, executed exactly as a campaign would. The run is charged."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import SlurmOptions
from orchestrator.campaign.yaml import dump
from orchestrator.control import session
from orchestrator.control.assembly import Assembly, assemble
from orchestrator.control.attempts import RUNS
from orchestrator.doctor.check import Check, failed, ok, warning
from orchestrator.doctor.probe import Probe
from orchestrator.errors import OrchestratorError
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.state import RunState, RunStatus, State
from orchestrator.report import dossier
from orchestrator.types import Point, Run
from orchestrator.units import campaign_unit, format_cost

_LIMIT = 600.0  # seconds, where the campaign states no limit of its own


def smallest(built: Assembly) -> Point:
    """Return the point with the fewest cores, and among these the one with the lowest expected cost."""
    costs = built.expected_costs(())
    return min(built.space.some(), key=lambda point: (built.cores(point), costs([point])[0]))


def checks(chosen: Campaign, directory: Path, probe: Probe, interrupted: Callable[[], bool]) -> list[Check]:
    """Run the smallest point once, in a directory of its own beside the campaign's.

    That directory is removed if all went well, and kept to look at if not.
    """
    point = smallest(assemble(chosen))
    single = one_run(chosen, point)
    parent = next(path for path in directory.absolute().parents if path.is_dir())
    folder = Path(tempfile.mkdtemp(prefix=f"{directory.name}.try-", dir=parent))
    try:
        state = session.run(single, folder, session.Hooks(interrupted=interrupted, cancel_on_interrupt=True))
    except OrchestratorError as error:
        return [failed("one run", f"{point}: {error}", f"see {folder}")]
    outcome = _outcome(state, Run(point), folder)
    found = [outcome]
    if single.executor.name == "slurm":
        found += _allocated(single, folder, point, probe)
    if all(check.remedy == "" for check in found):
        shutil.rmtree(folder, ignore_errors=True)
    return found


def one_run(chosen: Campaign, point: Point) -> Campaign:
    """Return a campaign that measures one point once, and otherwise like ``chosen``."""
    raw: dict[str, Any] = dict(chosen.raw)
    kinds = {item.name: "categorical" if item.categorical else None for item in chosen.parameters}
    raw["parameters"] = {
        name: {"values": [value]} | ({"type": kinds[name]} if kinds[name] else {})
        for name, value in point.as_dict().items()
    }
    limit = chosen.time_limit(point) or _LIMIT
    raw["measure"] = {**raw["measure"], "repetitions": {"initial": 1, "maximum": 1}, "time_limit": limit}
    raw |= {"strategy": {"name": "full", "batch_size": 1}, "evaluation_point": None, "validate": False}
    raw |= {"retries": dict.fromkeys(raw["retries"], 0), "notify": None}
    return loader.loads(dump(raw), "one run")


def _outcome(state: State, run: Run, folder: Path) -> Check:
    item = state.runs.get(run, RunState())
    if item.status is RunStatus.MEASURED:
        values = sum(len(by_path) for by_path in item.samples.values())
        charged = f"{item.elapsed:.4g} s, {format_cost(item.cost, campaign_unit(state.campaign))} charged"
        return ok("one run", f"{run.point}: {values} values in {charged}")
    reason = item.reason or (state.stopped.detail if state.stopped else "interrupted")
    return failed("one run", f"{run.point}: {reason}", f"see {folder / RUNS / run.id}")


def _allocated(chosen: Campaign, folder: Path, point: Point, probe: Probe) -> list[Check]:
    """Compare the cores that Slurm allocated with those that are counted."""
    found = dossier.document(folder, read(folder / FILE_NAME), Run(point).id)
    job = next((item["handle"] for item in found["attempts"] if item.get("handle")), "")
    query = ["sacct", "--allocations", "--noheader", "--parsable2", f"--jobs={job}", "--format=AllocCPUS"]
    answer = probe.ask(query) if job else None
    numbers = [int(line) for line in answer.output.split() if line.isdecimal()] if answer else []
    options = chosen.executor
    bills_nodes = isinstance(options, SlurmOptions) and options.billing == "nodes"
    return compared(numbers[0], assemble(chosen).cores(point), bills_nodes) if numbers else []


def compared(allocated: int, counted: int, bills_nodes: bool) -> list[Check]:
    """Return what is wrong with the cores of a run that are counted, by those that Slurm allocated.

    Where the campaign says that whole nodes are charged, Slurm may allocate fewer.
    """
    if allocated in (0, counted) or (bills_nodes and allocated < counted):
        return []
    detail = f"Slurm allocated {allocated} CPUs to a run, but {counted} cores are counted"
    remedy = "if the site charges for them: set executor.billing: nodes and cores_per_node, or exclusive"
    return [warning("billing", detail, remedy)]
