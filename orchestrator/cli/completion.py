"""Print a script that completes commands, options and files in a shell: for bash, zsh or fish.

bash: source <(orchestrator completion bash), in ~/.bashrc; zsh: the same with zsh, in ~/.zshrc, after
compinit; fish: orchestrator completion fish | source, in ~/.config/fish/config.fish.
"""

from __future__ import annotations

import argparse
import shlex
from importlib import import_module

from orchestrator.cli.main import COMMANDS

_BASH = """\
_orchestrator() {{
    local command=${{COMP_WORDS[1]}} word=${{COMP_WORDS[COMP_CWORD]}} words=
    if [[ $COMP_CWORD -eq 1 ]]; then
        words={commands}
    elif [[ $word == -* ]]; then
        case $command in
{cases}
        esac
    fi
    COMPREPLY=()
    if [[ -n $words ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    else
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}}
complete -F _orchestrator orchestrator
"""
_ZSH = """\
_orchestrator() {{
    local -a names words
    names=({commands})
    if (( CURRENT == 2 )); then
        _describe command names
    elif [[ $words[CURRENT] == -* || $PREFIX == -* ]]; then
        case $words[2] in
{cases}
        esac
    else
        _files
    fi
}}
compdef _orchestrator orchestrator
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments.shell](), end="")
    return 0


def options() -> dict[str, list[tuple[str, str]]]:
    """Return the long options of every command, each with its help."""
    return {name: _options_of(name) for name in COMMANDS}


def _options_of(command: str) -> list[tuple[str, str]]:
    parser = argparse.ArgumentParser(prog=command)
    import_module(f"orchestrator.cli.{command}").add_arguments(parser)
    return [
        (text, (action.help or "").partition(";")[0] % vars(action) if action.help else "")
        for action in parser._actions
        for text in action.option_strings
        if text.startswith("--")
    ]


def _bash() -> str:
    cases = "\n".join(
        f"            {name}) words={shlex.quote(' '.join(text for text, _ in found))} ;;"
        for name, found in options().items()
    )
    return _BASH.format(commands=shlex.quote(" ".join(COMMANDS)), cases=cases)


def _zsh() -> str:
    names = " ".join(shlex.quote(f"{name}:{text}") for name, text in COMMANDS.items())
    cases = "\n".join(
        f"            {name}) compadd -- {' '.join(text for text, _ in found)} ;;"
        for name, found in options().items()
    )
    return _ZSH.format(commands=names, cases=cases)


def _fish() -> str:
    lines = [
        f"complete -c orchestrator -n __fish_use_subcommand -f -a {name} -d {shlex.quote(text)}"
        for name, text in COMMANDS.items()
    ]
    lines += [
        f"complete -c orchestrator -n '__fish_seen_subcommand_from {name}' -l {text[2:]} "
        f"-d {_fish_text(help_)}"
        for name, found in options().items()
        for text, help_ in found
    ]
    return "\n".join(lines) + "\n"


def _fish_text(text: str) -> str:
    """Return a text as one word of fish, which knows other escapes than the shell."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
