"""An attempt prepared in a directory of its own, for tests of the process that owns it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.executors.attempt import directory as files
from orchestrator.types import AttemptRequest
from tests.executors.under_test import ExecutorUnderTest, assert_nothing_lives, local

Prepared = Callable[..., AttemptRequest]


@pytest.fixture
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ExecutorUnderTest]:
    """Local executors; whatever was started must have ended after the test."""
    under_test = local(request, tmp_path / "campaign")
    yield under_test
    assert_nothing_lives(under_test.directory)


@pytest.fixture
def prepared(machine: ExecutorUnderTest) -> Prepared:
    """Describe an attempt and write its directory, without an executor."""

    def prepare(script: str = "true\n", limit: float = 60.0) -> AttemptRequest:
        request = machine.request(script, limit)
        files.prepare(request)
        return request

    return prepare
