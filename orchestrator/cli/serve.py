"""Show campaigns in a browser, live: a list, where each stands, its report. Read-only, on this machine only.

The address that is printed holds a token: who knows it can read, nobody can change anything. From another
machine: ssh -L PORT:127.0.0.1:PORT HOST, then open the address there.
"""

from __future__ import annotations

import argparse
import socket
import sys
from pathlib import Path

from orchestrator.api.campaign_paths import campaign_directory
from orchestrator.cli import common

_LAST_PORT = 65535


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "directories",
        metavar="DIR",
        nargs="*",
        type=campaign_directory,
        default=[Path()],
        help="campaign directories, or folders with campaigns up to two levels below (default: here)",
    )
    parser.add_argument(
        "--port", type=_port, metavar="N", help="default: 8765, or a free one; 0: any that is free"
    )
    common.add_json(parser)


def _port(text: str) -> int:
    found = common.whole(0)(text)
    if found > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 0 to {_LAST_PORT}")
    return found


def run(arguments: argparse.Namespace) -> int:
    """Run the command until Ctrl-C; it only reads, also while controllers are running."""
    from orchestrator.control.serving.server import serve

    def ready(address: str, port: int) -> None:
        if arguments.json:
            common.print_json({"address": address, "port": port})
            sys.stdout.flush()
        else:
            print(address, flush=True)
            host = socket.gethostname()
            print(f"from another machine: ssh -L {port}:127.0.0.1:{port} {host}", file=sys.stderr)
            print("Ctrl-C ends it", file=sys.stderr)

    serve(arguments.directories, arguments.port, ready)
    return 0
