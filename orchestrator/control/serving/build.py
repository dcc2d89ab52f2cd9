"""Print the report of the campaign directory that is the only argument; at low priority, for the server."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from orchestrator.errors import OrchestratorError

_PRIORITY = 10  # a report can wait; what is measured on this machine cannot


def main() -> int:
    """Print the page, or one line about what is wrong."""
    os.nice(_PRIORITY)
    from orchestrator.control.reporting import report

    try:
        page = report(Path(sys.argv[1]))
    except OrchestratorError as error:
        print(error, file=sys.stderr)
        return 1
    sys.stdout.buffer.write(page.encode(errors="replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
