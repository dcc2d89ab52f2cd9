"""Launch scripts of a program that need not exist, and of one that shows what reached it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from orchestrator.launch.script import Frame, launch_script
from orchestrator.types import Application, Resources
from tests.applications import demo

PLAIN = "{{prologue}}\n{{environment}}\nexec {{launcher}} {{command}}\n"
ONE = Resources(ranks=1)
# Prints its arguments and environment as JSON.
SHOW = f"""#!{sys.executable}
import json, os, sys
print(json.dumps({{"arguments": sys.argv[1:], "environment": dict(os.environ)}}))
"""


def program(arguments: list[str], environment: Mapping[str, str] | None = None) -> Application:
    return demo(arguments=arguments, environment=environment or {})


def script(
    arguments: list[str] | None = None, executable: str = "./app", frame: str = PLAIN, **changes: Any
) -> str:
    """Return a launch script; ``changes`` are of what a `Frame` has, or of the arguments."""
    of_frame = {item.name for item in fields(Frame)} & changes.keys()
    chosen: dict[str, Any] = {
        "application": program(arguments or []),
        "executable": executable,
        "settings": {},
        "resources": ONE,
        "launcher": None,
        "frame": Frame(
            **{"text": frame, "profiler": "stdout", **{name: changes.pop(name) for name in of_frame}}
        ),
    }
    return launch_script(**{**chosen, **changes})


def execute(text: str, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (directory / "run.sh").write_text(text)
    return subprocess.run(
        ["bash", "run.sh"],
        cwd=directory,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def shown(text: str, directory: Path, **environment: str) -> Any:
    process = execute(text, directory, **environment)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)
