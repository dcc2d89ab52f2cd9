"""Show where a campaign stands: runs, core-hours, models, why points were chosen, what was given up.

With --run: everything known of one run, its attempts with script, nodes, modules, environment and executable.
"""

from __future__ import annotations

import argparse

from orchestrator.cli import common, watch
from orchestrator.journal.replay import garbage_collection_off


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_directory(parser)
    parser.add_argument("--watch", action="store_true", help="follow it on a full screen: orchestrator watch")
    watch.add_interval(parser)
    parser.add_argument(
        "--fit",
        action="store_true",
        help="fit the models now, which may take minutes, where the published ones are not of this state",
    )
    parser.add_argument(
        "--run",
        metavar="ID",
        help="one run instead: its id, such as p=64,s=20/time-1, or the path of its directory",
    )
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; also while a controller is running."""
    if arguments.watch:
        return watch.watch(arguments.directory, arguments.interval)
    with garbage_collection_off():
        return _one_run(arguments) if arguments.run is not None else _status(arguments)


def _status(arguments: argparse.Namespace) -> int:
    from orchestrator.control import overview

    document = overview.status_in(arguments.directory, fit=arguments.fit)
    if arguments.json:
        common.print_json(document)
        return 0
    from orchestrator.report import status_text

    status_text.print_status(document, arguments.directory)
    return 0


def _one_run(arguments: argparse.Namespace) -> int:
    from orchestrator.report import dossier

    document = dossier.document_in(arguments.directory, arguments.run)
    if arguments.json:
        common.print_json(document)
    else:
        from orchestrator.report import dossier_text, tables

        tables.console().print(dossier_text.render(document), soft_wrap=True)
    return 0
