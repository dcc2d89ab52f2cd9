"""Check whether a campaign can run here, and say what is missing and how to get it.

Without a campaign: the installation, this machine (cores, MPI, compilers, Score-P) and Slurm. With one, also
its file, executable, launcher, first round and directory, and whatever it and its site file say of the
cluster. Nothing is started but programs that print their version, and modules loaded for a moment, unless
--try asks for one run; exit code 0 means that nothing needed is missing.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from functools import partial
from typing import Any

from rich.table import Table
from rich.text import Text

from orchestrator.api.campaign_paths import campaign_path
from orchestrator.api.running import interruptible
from orchestrator.cli import common
from orchestrator.cli.pipes import reader_may_leave
from orchestrator.cli.run import add_directory
from orchestrator.doctor import examination
from orchestrator.doctor.check import Check, Status
from orchestrator.doctor.examination import Group
from orchestrator.doctor.probe import here
from orchestrator.errors import CampaignError
from orchestrator.report import tables

_STYLES = {Status.OK: "green", Status.WARNING: "yellow", Status.MISSING: "dim", Status.FAILED: "red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_campaign(parser, optional=True)
    add_directory(parser)
    parser.add_argument(
        "--try",
        action="store_true",
        dest="try_one",
        help="then run the smallest point once, as the campaign would; this is charged",
    )
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; 1 if something needed is missing."""
    load = None
    if arguments.campaign is not None:
        campaign_path(arguments.campaign)  # a file that is not there is a mistake of the command line
        load = partial(common.read_campaign, arguments)
    if arguments.try_one and load is None:
        raise CampaignError("--try needs a campaign: orchestrator doctor CAMPAIGN.yaml --try")
    groups = []
    console = tables.console(highlight=False)
    with interruptible() if arguments.try_one else nullcontext() as interrupted:
        for group in examination.examine(load, arguments.directory, here(), interrupted):
            groups.append(group)
            if not arguments.json:
                with reader_may_leave():
                    console.print(f"\n{group.title}", style="bold")
                    console.print(render(group))
    faults = examination.prevented(groups)
    with reader_may_leave():
        if arguments.json:
            common.print_json(document(groups))
        elif faults:
            console.print(f"\nneeded, but missing or broken: {', '.join(fault.name for fault in faults)}")
        else:
            console.print("\nnothing needed is missing")
    return 1 if faults else 0


def document(groups: list[Group]) -> dict[str, Any]:
    """Return the results, JSON-ready."""
    return {
        "ok": not examination.prevented(groups),
        "checks": [
            {
                "group": group.title,
                "name": check.name,
                "status": str(check.status),
                "detail": check.detail,
                "remedy": check.remedy,
                "needed": check.needed,
            }
            for group in groups
            for check in group.checks
        ],
    }


def render(group: Group) -> Table:
    """Return a table of a group's checks, with their remedies."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, width in (("status", 7), ("name", 15)):
        table.add_column(name, min_width=width, no_wrap=True)
    table.add_column("detail", overflow="fold")
    for check in group.checks:
        table.add_row(_status(check), Text(check.name), _text(check))
    return table


def _status(check: Check) -> Text:
    return Text(str(check.status), style="bold red" if check.prevents else _STYLES[check.status])


def _text(check: Check) -> Text:
    if check.status is Status.OK or not check.remedy:
        return Text(check.detail)
    return Text.assemble(check.detail, "\n", ("-> " + check.remedy, "cyan"))
