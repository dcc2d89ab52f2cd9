"""Continue an interrupted or paused campaign, or a stopped one with changed rules (--set stop.budget=...).

A campaign that stopped because of failures continues with the rules that it has: failures are counted from
zero, and points that were given up are tried again.
"""

from __future__ import annotations

import argparse

from orchestrator.cli import common
from orchestrator.cli.run import add_cancel, drive
from orchestrator.control import existing, session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_directory(parser)
    common.add_overrides(parser)
    parser.add_argument(
        "--cluster",
        metavar="NAME",
        default="",
        help="continue on this cluster (ClusterName) although the campaign began on another one, which was "
        "renamed or has the same nodes",
    )
    add_cancel(parser)
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; 3 if the campaign was interrupted or paused again, 1 if it has measured nothing."""
    chosen = existing.load(arguments.directory, arguments.overrides, starts=True)
    hooks = session.Hooks(cancel_on_interrupt=arguments.cancel, again=True, cluster=arguments.cluster)
    return drive(chosen, arguments.directory, hooks, arguments.json)
