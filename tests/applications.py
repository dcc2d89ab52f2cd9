"""An adapter of a program of which tests need little."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.types import Application


def demo(ranks: int = 1, arguments: Sequence[str] = (), **further: Any) -> Application:
    """Return an adapter whose output has no samples; ``further`` are other fields of it."""
    fields = {"output": lambda texts: [], **further}
    return Application(
        name="demo",
        description="",
        parameters={},
        ranks=lambda settings: ranks,
        arguments=lambda settings: list(arguments),
        **fields,
    )
