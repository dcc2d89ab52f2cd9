"""Hypothesis strategies: what can go wrong in a campaign."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tests.slurm.faulty.campaigns import Scenario
from tests.slurm.faulty.faults import COMMAND_FAULTS, JOB_FAULTS, MOMENTS, SITE, Fault

RICH = 20000.0  # core-seconds that pay for everything
HOURS = 3 * 3600.0


def _command_fault(command: str) -> st.SearchStrategy[Fault]:
    return st.builds(
        Fault,
        what=st.sampled_from(COMMAND_FAULTS[command]),
        command=st.just(command),
        begin=st.integers(0, 600).map(float),
        # Most last for seconds or minutes; some for hours.
        seconds=st.one_of(st.integers(1, 300), st.integers(300, 1800), st.just(HOURS)).map(float),
        value=st.integers(1, 900).map(float),
    )


def _job_fault() -> st.SearchStrategy[Fault]:
    return st.builds(
        Fault,
        what=st.sampled_from(JOB_FAULTS),
        ordinal=st.integers(1, 8),
        value=st.integers(0, 25).map(float),
    )


_DAEMONS = ("controller away", "controller killed", "controller hangs", "accounting away", "both away")
_CLOCKS = ("controller's clock", "nodes' clocks", "our clock")
_FILES = ("files late", "output late", "signs late")


def _daemon_fault() -> st.SearchStrategy[Fault]:
    return st.builds(
        Fault,
        what=st.sampled_from(_DAEMONS),
        command=st.just(SITE),
        moment=st.sampled_from(["", *MOMENTS]),
        ordinal=st.integers(1, 4),
        begin=st.integers(0, 600).map(float),
        seconds=st.one_of(
            st.integers(1, 60), st.integers(60, 300), st.integers(300, 3600), st.just(HOURS)
        ).map(float),
        value=st.integers(0, 10).map(float),
    )


def _clock_fault() -> st.SearchStrategy[Fault]:
    return st.builds(
        Fault,
        what=st.sampled_from(_CLOCKS),
        command=st.just(SITE),
        moment=st.sampled_from(["", *MOMENTS]),
        ordinal=st.integers(1, 4),
        begin=st.integers(0, 600).map(float),
        seconds=st.just(0.0),
        value=st.sampled_from([-7200.0, -600.0, -60.0, -3.0, 3.0, 60.0, 600.0, 7200.0]),
    )


def _file_fault() -> st.SearchStrategy[Fault]:
    return st.builds(
        Fault,
        what=st.sampled_from(_FILES),
        command=st.just(SITE),
        begin=st.integers(0, 300).map(float),
        seconds=st.integers(60, 3600).map(float),
        value=st.one_of(st.integers(1, 25), st.integers(26, 300)).map(float),
    )


def scenarios() -> st.SearchStrategy[Scenario]:
    """Return campaigns with up to seven faults and up to three dying controllers."""
    site = st.one_of(_daemon_fault(), _daemon_fault(), _clock_fault(), _file_fault())
    command = st.sampled_from([*COMMAND_FAULTS, "sbatch", "squeue", "sacct"]).flatmap(_command_fault)
    return st.builds(
        Scenario,
        faults=st.lists(st.one_of(command, _job_fault(), site), max_size=7).map(tuple),
        kills=st.lists(st.integers(1, 80), max_size=3, unique=True).map(sorted).map(tuple),
        away=st.sampled_from([1.0, 60.0, 900.0, 7200.0]),
        budget=st.sampled_from([1500.0, 2500.0, RICH]),
        max_pending=st.integers(1, 6),
        seed=st.integers(0, 50),
        queue_delay=st.sampled_from([0.0, 30.0, 400.0]),
        accounting=st.sampled_from([True, True, True, False]),
        array_size=st.sampled_from([1001, 1001, 2]),
        submit_limit=st.sampled_from([None, None, 1, 3]),
        pack=st.sampled_from([1, 1, 2, 3, 8]),
        repetitions=st.sampled_from(["any", "any", "spread", "together"]),
        srun=st.booleans(),
    ).flatmap(_completed)


def _completed(scenario: Scenario) -> st.SearchStrategy[Scenario]:
    """Let some sites allocate twice what is asked for, which nobody knows before the first job."""
    if scenario.pack == 1:
        scenario = replace(scenario, repetitions="any")
    if scenario.budget < RICH or not scenario.accounting:
        return st.just(scenario)
    return st.sampled_from([1, 1, 2]).map(lambda factor: replace(scenario, allocation=factor))
