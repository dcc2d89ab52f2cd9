"""What the launch templates of the adapters make of a point."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from orchestrator.launch.script import template_of
from orchestrator.launch.template import Filled, Start, fill
from orchestrator.types import Application, Value


def filled(application: Application, settings: Mapping[str, Value]) -> Filled:
    template = template_of(application.name)
    assert template is not None
    return fill(
        template,
        {**settings, **application.values(settings)},
        Start(executable="program", launcher="launcher"),
    )


def arguments(application: Application, settings: Mapping[str, Value]) -> list[str]:
    """The words after the program, as the shell would pass them on; variables stay as they are."""
    text = filled(application, settings).command.replace("\\\n", " ")
    program, *words = shlex.split(text)
    assert program == "program"
    return words
