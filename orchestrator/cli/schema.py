"""Print the JSON schema of campaign files, for editors and validators."""

from __future__ import annotations

import argparse

from orchestrator.campaign.schema import json_schema
from orchestrator.cli.common import print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(arguments: argparse.Namespace) -> int:
    """Print the schema."""
    print_json(json_schema())
    return 0
