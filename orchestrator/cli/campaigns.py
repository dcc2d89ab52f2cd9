"""List your campaigns: where each stands, what it cost, where it is; or find those that are like another one.

Nothing is listed before `orchestrator campaigns --keep`. From then on every campaign that starts is linked in
a folder: the one that the site file names (`campaigns: FOLDER`), or ~/.local/share/orchestrator/campaigns.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.cli import common
from orchestrator.errors import CampaignError

if TYPE_CHECKING:
    from rich.table import Table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--keep",
        metavar="DIR",
        nargs="*",
        type=Path,
        help="list campaigns from now on, and these directories at once",
    )
    parser.add_argument(
        "--like",
        metavar="CAMPAIGN",
        help="only those of the same program, with parameters in common; a directory, a file, or a name",
    )
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; it reads campaigns, also while controllers are running."""
    from orchestrator.control import store
    from orchestrator.journal.file import require_campaign

    folder = store.folder(os.environ)
    if arguments.keep is not None:
        for directory in arguments.keep:
            require_campaign(directory)
        store.create(folder)
        for directory in arguments.keep:
            if (why := store.add(directory, os.environ)) is not None:
                raise CampaignError(f"{directory}: {why}")
    elif not folder.is_dir():
        raise CampaignError(
            f"no campaigns are listed: there is no {folder}; to begin: orchestrator campaigns --keep"
        )
    rows = store.listed(folder)
    if arguments.like is not None:
        rows = store.alike(rows, _asked(arguments.like))
    if arguments.json:
        common.print_json({"folder": str(folder), "campaigns": rows})
    else:
        _print(rows, folder)
    return 0


def _asked(text: str) -> dict[str, Any]:
    """Return what a campaign asks for, from its directory, its file, or its name."""
    from orchestrator.api.campaign_paths import campaign_path
    from orchestrator.campaign import loader
    from orchestrator.control import existing, store

    begun = Path(text).is_dir()
    found = existing.load(Path(text)) if begun else loader.load(campaign_path(text), starts=False)
    parameters = [item.name for item in found.parameters]
    return store.asked(
        {"application": found.application, "executable": found.executable, "parameters": parameters}
    )


def _print(rows: list[dict[str, Any]], folder: Path) -> None:
    from orchestrator.report import tables
    from orchestrator.units import count

    if rows:
        tables.console().print(_table(rows))
    print(f"{count(len(rows), 'campaign')} in {folder}")


def _table(rows: list[dict[str, Any]]) -> Table:
    from rich.text import Text

    from orchestrator.report.tables import titled
    from orchestrator.report.wording import last_event

    table = titled()
    for name in ("campaign", "application", "parameters", "state"):
        table.add_column(name)
    table.add_column("core-hours", justify="right", no_wrap=True)
    table.add_column("last event", no_wrap=True)
    table.add_column("directory", overflow="fold")
    for row in rows:
        spent = f"{row['spent']:.4g} of {row['budget']:.4g}" if "spent" in row else ""
        cells = [row["name"], row.get("application", ""), ", ".join(row.get("parameters", ())), row["state"]]
        last = last_event(row["last"], row["virtual"]) if "virtual" in row else (row["last"] or "")
        table.add_row(*map(Text, [*cells, spent, last, row["directory"]]))
    return table
