"""What squeue and sacct print, and what they never should."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.executors.slurm.commands import CommandFailed, Job, parse_accounting, parse_queue

QUEUE = """\
1|0|mo|COMPLETED|1795180449|1795180451|n[1-2]|2|None
1|1|mo|RUNNING|1795180449|1826716449|n1|2|None
1|2|mo|CANCELLED|1795180452|1795180453||1|None
2|N/A|held|CANCELLED|1795180453|1795180453||1|JobHeldUser
3|3|late|PENDING|N/A|N/A||1|Nodes required are DOWN|DRAINED
"""
ACCOUNTING = """\
1_0|mo|COMPLETED|2|n[1-2]|2|2026-11-20T12:00:00
1_1|mo|RUNNING|6|n1|2|Unknown
1_2|mo|CANCELLED by 0|1|None assigned|0|2026-11-20T12:00:00
8_[0,2-4,6%2]|q1|CANCELLED by 0|0|None assigned|0|2026-11-20T12:00:00
9_[0-6:3]|q2|PENDING|0|None assigned|0|Unknown
12|other|FAILED|4|n1|2|2026-11-20T12:00:00
1_0|mo|REQUEUED|30|n3|2|2026-11-20T12:00:00
"""


def test_the_queue_is_read() -> None:
    began: dict[str, Any] = {"started": 1795180449, "reason": "None", "cpus": 2}
    assert parse_queue(QUEUE) == [
        Job(name="mo", number=1, index=0, state="COMPLETED", elapsed=2, nodes="n[1-2]", **began),
        Job(name="mo", number=1, index=1, state="RUNNING", nodes="n1", **began),
        Job(name="mo", number=1, index=2, state="CANCELLED", elapsed=0, reason="None"),
        Job(name="held", number=2, index=None, state="CANCELLED", elapsed=0, reason="JobHeldUser"),
        Job(name="late", number=3, index=3, state="PENDING", reason="Nodes required are DOWN|DRAINED"),
    ]


def test_a_job_whose_time_limit_somebody_lifted_has_no_end() -> None:
    [job] = parse_queue("1|0|mo|RUNNING|1795180449|NONE|n1|2|None")
    assert (job.started, job.elapsed) == (1795180449, None)


def test_accounting_is_read() -> None:
    jobs = parse_accounting(ACCOUNTING)
    assert [(job.number, job.index, job.elapsed) for job in jobs] == [
        (1, 0, 2),
        (1, 1, None),
        (1, 2, 0),  # one second between two clocks, but never a node
        *[(8, index, 0) for index in (0, 2, 3, 4, 6)],
        *[(9, index, None) for index in (0, 3, 6)],
        (12, None, 4),
        (1, 0, 30),
    ]


def test_no_job_costs_less_than_nothing() -> None:
    """The clock of slurmctld was set back while it ran."""
    [job] = parse_queue("1|0|mo|NODE_FAIL|1795180449|1795173300|n1|2|None")
    assert job.elapsed == 0


@pytest.mark.parametrize("parse", [parse_queue, parse_accounting])
@given(text=st.text())
def test_any_text_is_read_or_refused(parse: Callable[[str], list[Job]], text: str) -> None:
    try:
        jobs = parse(text)
    except CommandFailed as error:
        assert "printed" in str(error)
    else:
        assert all(job.name in text and job.state in text for job in jobs)
        assert not jobs or "|" in text


@pytest.mark.parametrize(
    "row", ["COMPLETED|3|n1|1|Unknown", "COMPLETED|0|None assigned|0|2026-11-20T12:00:00"]
)
def test_a_job_has_not_ended_before_accounting_knows_all_of_it(row: str) -> None:
    """A slurmctld that was restarted tells the state first: seconds until now, or none, are not the last."""
    [job] = parse_accounting(f"1_0|mo|{row}")
    assert (job.state, job.elapsed) == ("COMPLETING", None)


@given(st.data())
def test_a_row_that_was_cut_is_never_read_as_another_job(data: st.DataObject) -> None:
    line = data.draw(st.sampled_from(ACCOUNTING.splitlines()))
    cut = line[: data.draw(st.integers(1, line.rindex("|")))]
    with pytest.raises(CommandFailed):
        parse_accounting(cut)


@pytest.mark.parametrize("indices", ["[0-99999999999]", "[1-", "[a]", "[0-3:0]", "[]", "x", "1_2"])
def test_impossible_indices_are_refused(indices: str) -> None:
    with pytest.raises(CommandFailed):
        parse_accounting(f"5_{indices}|mo|PENDING|0|None assigned|0|Unknown")
