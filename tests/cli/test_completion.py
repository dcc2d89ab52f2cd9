from __future__ import annotations

import shutil
import subprocess

import pytest

from orchestrator.cli.main import COMMANDS
from tests.cli.running import run


def completed(*words: str) -> list[str]:
    """What bash offers for the last of some words."""
    script = run("completion", "bash").out
    line = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _orchestrator\n"
    ask += "printf '%s\\n' \"${COMPREPLY[@]}\""
    return subprocess.run(
        ["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True
    ).stdout.split()


def test_bash_completes_commands_options_and_files() -> None:
    assert completed("orchestrator", "st") == ["status"]
    assert completed("orchestrator", "") == list(COMMANDS)
    assert completed("orchestrator", "runs", "--s") == ["--state", "--sort"]
    assert completed("orchestrator", "status", "/etc/host") and completed("orchestrator", "no", "--x") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_in_every_script_and_the_shell_reads_it(shell: str) -> None:
    script = run("completion", shell).out
    assert all(name in script for name in COMMANDS) and ("--where" in script or "-l where" in script)
    if shutil.which(shell):
        check = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True)
        assert check.returncode == 0 and not check.stderr
