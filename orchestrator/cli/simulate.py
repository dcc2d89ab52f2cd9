"""Rehearse a campaign: the same loop on a virtual clock, with queue delays, failures and noise.

Nothing is launched, no time passes, and no program is needed. What runs yield is, in this order: what is
stated here or in the campaign file (--truth, --dataset, --models); the models of what the campaign has
measured already; measure.expected_time; an assumed run time. The rehearsal says which. Points that are not in
a data set are left out of the search space. Without --directory nothing is kept.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from orchestrator.api import campaign_paths, running
from orchestrator.cli import common
from orchestrator.cli.pipes import reader_may_leave
from orchestrator.cli.run import add_directory
from orchestrator.control import outcome, overview
from orchestrator.control.rehearsal import Options, Rehearsal, prepare
from orchestrator.errors import CampaignError
from orchestrator.report import advice, rehearsal_text, status_text, tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_campaign(parser)
    parser.add_argument("--dataset", metavar="FILE", type=Path, help="replay these measurements")
    parser.add_argument(
        "--truth",
        metavar="CALLPATH=EXPRESSION",
        action="append",
        default=[],
        help="seconds of a call path in terms of the parameters, e.g. 'main=1e-6*n*log2(p)' (repeatable); "
        "like --dataset, instead of what the campaign file says",
    )
    parser.add_argument(
        "--models",
        metavar="DIR",
        type=Path,
        help="the models of the campaign in this directory say what runs yield",
    )
    parser.add_argument(
        "--noise",
        type=float,
        metavar="PERCENT",
        help="noise of times that are not replayed (default 5; of models: as measured)",
    )
    parser.add_argument(
        "--failure-rate", type=float, metavar="SHARE", help="share of attempts that fail, 0..1"
    )
    parser.add_argument(
        "--fails-where",
        metavar="CONDITION",
        help="where every run fails, e.g. 'n >= 300': the campaign has to find out",
    )
    parser.add_argument("--queue-delay", metavar="DURATION", help="mean time in the queue")
    add_directory(
        parser, "keep the rehearsal there, a campaign directory like any other (default: keep nothing)"
    )
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; 3 if it was interrupted or paused, 1 if the rehearsal measured nothing.

    Without ``--directory`` the rehearsal's journal is thrown away.
    """
    options = Options(
        dataset=arguments.dataset,
        truth=_truth(arguments.truth),
        models=arguments.models,
        noise=arguments.noise,
        failure_rate=arguments.failure_rate,
        fails_where=arguments.fails_where,
        queue_delay=arguments.queue_delay,
    )
    chosen = prepare(campaign_paths.campaign_path(arguments.campaign), arguments.overrides, options)
    if arguments.directory is not None:
        return _rehearse(chosen, arguments.directory, arguments.json, kept=True)
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as directory:
        return _rehearse(chosen, Path(directory), arguments.json, kept=False)


def _rehearse(chosen: Rehearsal, directory: Path, as_json: bool, *, kept: bool) -> int:
    """Rehearse with a progress display; print the status at the end, and what it would have cost.

    ``kept``: the directory stays, so that the rehearsal can be continued.
    """
    for line in (f"truth: {chosen.truth}", *chosen.notes):
        print(line, file=sys.stderr)
    state = running.drive(chosen.campaign, directory, progress=True)
    document = overview.status_of(chosen.campaign, state)
    document["rehearsal"] = outcome.document(chosen, state, document["models"])
    with reader_may_leave():
        if as_json:
            common.print_json(document)
        else:
            status_text.print_status(document)
            tables.console().print(rehearsal_text.render(document["rehearsal"]))
    if why := advice.nothing_measured(state):
        print(f"error: {why}", file=sys.stderr)
        return 1
    if state.stopped is not None:
        return 0
    if state.paused is not None:
        print(f"paused: {state.paused.rule} ({state.paused.detail})", file=sys.stderr)
        how = advice.to_continue(state, directory)
    else:
        print("interrupted", file=sys.stderr)
        how = f"continue with: orchestrator resume {directory}"
    print(how if kept else "the rehearsal is thrown away; --directory keeps it", file=sys.stderr)
    return 3


def _truth(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for text, (callpath, equals, expression) in zip(texts, pairs, strict=True):
        if not (callpath and equals and expression.strip()):
            raise CampaignError(f"--truth {text!r}: write CALLPATH=EXPRESSION")
    return {callpath.strip(): expression.strip() for callpath, _, expression in pairs}
