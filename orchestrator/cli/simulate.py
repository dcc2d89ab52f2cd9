"""Rehearse a campaign: the same loop on a virtual clock, with queue delays, failures and noise.

Runs yield replayed measurements (--dataset) or stated functions of the parameters (--truth). Nothing is
launched and no time passes. Points that are not in the data set are left out of the search space. Without
--directory nothing is kept.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from orchestrator.api.running import rehearsal
from orchestrator.cli import common
from orchestrator.cli.run import add_directory, drive
from orchestrator.errors import CampaignError


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
        "--noise", type=float, metavar="PERCENT", help="multiplicative noise of stated functions"
    )
    parser.add_argument(
        "--failure-rate", type=float, metavar="SHARE", help="share of attempts that fail, 0..1"
    )
    parser.add_argument("--queue-delay", metavar="DURATION", help="mean time in the queue")
    add_directory(
        parser, "keep the rehearsal there, a campaign directory like any other (default: keep nothing)"
    )
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command. Without ``--directory`` the rehearsal's journal is thrown away."""
    chosen = common.read_campaign(
        arguments,
        tuple(
            rehearsal(
                arguments.dataset,
                _truth(arguments.truth),
                arguments.noise,
                arguments.failure_rate,
                arguments.queue_delay,
            )
        ),
    )
    if arguments.directory is not None:
        return drive(chosen, arguments.directory, arguments.json)
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as directory:
        return drive(chosen, Path(directory), arguments.json)


def _truth(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for text, (callpath, equals, expression) in zip(texts, pairs, strict=True):
        if not (callpath and equals and expression.strip()):
            raise CampaignError(f"--truth {text!r}: write CALLPATH=EXPRESSION")
    return {callpath.strip(): expression.strip() for callpath, _, expression in pairs}
