"""The help texts in ``docs/commands.md``: ``python -m tests.cli.commands_document`` renews them there."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from orchestrator.cli.main import COMMANDS
from tests.cli.running import run

PATH = Path(__file__).parents[2] / "docs" / "commands.md"
COLUMNS = "100"
_BLOCK = re.compile(r"(<!-- help: (?P<command>[\w ]*) -->\n```text\n).*?(```\n)", re.DOTALL)


def help_text(command: str) -> str:
    """Return what ``orchestrator COMMAND --help`` prints, without the exit codes that all have in common."""
    text = run(*command.split(), "--help").out
    return text.split("\nexit codes:")[0].rstrip() + "\n"


def regenerated(document: str) -> str:
    """Return the document with the present help texts, and a section for every command that had none."""
    for command, purpose in COMMANDS.items():
        if f"<!-- help: {command} -->" not in document:
            start = f"\n## {command}\n\n{purpose[0].upper()}{purpose[1:]}.\n\n"
            example = f"```console\n$ orchestrator {command} --help\n```\n\n"
            document += f"{start}{example}<!-- help: {command} -->\n```text\n```\n"
    return _BLOCK.sub(lambda match: match[1] + help_text(match["command"]) + match[3], document)


def main() -> int:
    """Rewrite the document, for a terminal of `COLUMNS` columns."""
    os.environ["COLUMNS"] = COLUMNS
    PATH.write_text(regenerated(PATH.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
