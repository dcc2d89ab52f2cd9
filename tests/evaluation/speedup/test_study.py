"""Which runs are fitted and tested, what contenders may see, and whether errors are computed right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orchestrator.errors import CampaignError, MeasurementError
from orchestrator.evaluation.speedup import cases as speedup_cases
from orchestrator.evaluation.speedup import contenders as speedup_contenders
from orchestrator.evaluation.speedup import figures as speedup_figures
from orchestrator.evaluation.speedup import rows as speedup_rows
from orchestrator.evaluation.speedup import study as speedup_study
from orchestrator.evaluation.speedup.contenders import Contender, Question
from orchestrator.evaluation.speedup.runs import Runs, Scaling, on_one_process, reference
from orchestrator.evaluation.speedup.study import Case, Row
from orchestrator.models.base import Floats

NODES, SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0), (100.0, 200.0, 400.0, 800.0)


def runs_by(fraction: float) -> Runs:
    """Return runs that follow Amdahl's law, one process per node; times are proportional to sizes."""
    size, nodes = (np.ravel(values) for values in np.meshgrid(SIZES, NODES, indexing="ij"))
    exact = size * (1 - fraction + fraction / nodes)
    return Runs(name="toy", nodes=nodes, per_node=np.ones(len(size)), size=size, seconds=exact, exact=exact)


def case(runs: Runs, scaling: Scaling = "strong", cutoff: float = 8, largest: float = 200) -> Case:
    return Case(machine="here", runs=runs, scaling=scaling, cutoff=cutoff, largest=largest)


def rows(one: Case, *names: str) -> dict[str, Row]:
    found = speedup_study.rows(speedup_study.tasks([one], names, seed=1), workers=1)
    return {row["contender"]: row for row in found}


@pytest.mark.parametrize("scaling", ["strong", "hybrid"])
def test_what_follows_the_law_is_predicted_by_every_variant_of_it(scaling: Scaling) -> None:
    names = ("aggregate", "optimal", "full-data", "noise", "network")
    found = rows(case(runs_by(0.99), scaling), *names)
    for name in names:
        assert found[name]["failure"] is None
        assert found[name]["relative_rmse"] == pytest.approx(0.0, abs=1e-3), name
    # Strong: N = 16 and 32 at four sizes; hybrid: at the three that are at least twice the smallest.
    assert found["aggregate"]["test"] == (8 if scaling == "strong" else 6)
    assert found["aggregate"]["train"] == 8  # N = 1, 2, 4, 8 at two sizes


def test_errors_are_those_of_speedups() -> None:
    """Times that are 10 % too long give speedups that are 1 / 1.1 of the measured ones."""
    runs = runs_by(0.9)
    [row] = rows(case(replace(runs, exact=1.1 * runs.exact)), "noise").values()
    measured = np.repeat([1 / (0.1 + 0.9 / 16), 1 / (0.1 + 0.9 / 32)], 4)
    assert row["relative_rmse"] == pytest.approx(1 - 1 / 1.1)
    assert row["rmse"] == pytest.approx(np.sqrt(np.mean((measured * (1 - 1 / 1.1)) ** 2)))
    assert row["relative_rse"] == pytest.approx([1 - 1 / 1.1] * 5)


def test_only_the_full_data_variant_and_the_optimal_one_see_what_they_may() -> None:
    """Large problems have another parallel fraction, which only runs of these problems show."""
    small, large = runs_by(0.9), runs_by(0.999)
    mixed = replace(small, seconds=np.where(small.size > 200, large.seconds, small.seconds))
    found = rows(case(mixed), "aggregate", "optimal", "full-data")
    for name in ("optimal", "full-data"):
        assert found[name]["relative_rmse"] == pytest.approx(0.0, abs=1e-3)
    assert found["aggregate"]["relative_rmse"] > 0.3  # type: ignore[operator]


def test_tested_runs_are_never_seen_by_others_than_the_full_data_variant() -> None:
    """Nonsense above the cut-off changes no prediction, only what it is compared with."""
    runs = runs_by(0.95)
    nonsense = replace(runs, seconds=np.where(runs.nodes > 8, 1000 * runs.seconds, runs.seconds))
    names = ("aggregate", "optimal", "forest", "oliveira", "pmnf:members=20")
    for (name, sane), other in zip(
        rows(case(runs), *names).items(), rows(case(nonsense), *names).values(), strict=True
    ):
        assert sane["failure"] is None
        error, of_nonsense = (np.array(item["relative_rse"][2]) for item in (sane, other))
        predicted = (1 + of_nonsense) / 1000  # over the sane speedup, of which the error has no sign
        assert np.abs(predicted - 1) == pytest.approx(error, abs=0.02), name


def test_oliveira_is_left_out_of_other_scaling_than_strong() -> None:
    todo = speedup_study.tasks([case(runs_by(0.9), "hybrid")], ("oliveira", "aggregate"), 0)
    assert [name for _, name, _ in todo] == ["aggregate"]


def test_a_contender_that_fails_says_why() -> None:
    runs = runs_by(0.9)
    [row] = rows(case(replace(runs, exact=np.full(len(runs), np.nan))), "noise").values()
    assert row["rmse"] is None and "simulated runs only" in str(row["failure"])
    assert "no model: noise, toy" in speedup_rows.text([row])


@pytest.mark.parametrize(
    ("cutoff", "largest", "what"),
    [
        (32, 800, "no strong scaling to test above 32"),
        (1, 800, "raise the cut-offs"),
        (8, 50, "raise the cut-offs"),
    ],
)
def test_cut_offs_that_leave_nothing(cutoff: float, largest: float, what: str) -> None:
    with pytest.raises(MeasurementError, match=what):
        speedup_study.tasks([case(runs_by(0.9), cutoff=cutoff, largest=largest)], ("aggregate",), 0)


def test_an_unknown_contender() -> None:
    with pytest.raises(CampaignError, match="unknown contender 'forrest': did you mean 'forest'"):
        speedup_contenders.contender("forrest")
    with pytest.raises(CampaignError, match="modeler 'pmnf' has no option 'what'"):
        speedup_contenders.contender("pmnf:what=1")


def test_speedups_are_relative_to_the_fewest_processes_where_no_run_has_one() -> None:
    runs = runs_by(0.9)
    several = runs.rows(runs.nodes > 1)
    one = on_one_process(several, several.seconds)
    assert one == pytest.approx({size: size * (0.1 + 0.45) for size in SIZES})
    hybrid = reference(several, "hybrid", one)
    assert np.array_equal(np.isnan(hybrid), several.size == 100)
    [row] = rows(case(several), "aggregate").values()
    assert row["relative_rmse"] == pytest.approx(0.0, abs=1e-3)


def test_sensitivity_varies_one_cut_off_at_a_time_and_tests_the_same_runs() -> None:
    varied = speedup_cases.sensitivity(case(runs_by(0.9)), (4, 16), (0.25, 0.5))
    assert [(one.cutoff, one.largest) for one in varied] == [(4, 200), (16, 200), (8, 200), (8, 400)]
    assert [one.beyond for one in varied] == [16, 16, 8, 8]
    unchanged = case(runs_by(0.9))
    assert speedup_cases.sensitivity(unchanged, (), ()) == [unchanged]


def test_shares_of_sizes_are_those_of_edges() -> None:
    """0.6 of the edge of LAMMPS's largest box is its median edge, and 0.216 of the elements."""
    [lammps] = speedup_cases.simulated(seed=0, machines=("GPU",), programs=("LAMMPS",), scalings=("strong",))
    [half, most] = speedup_cases.sensitivity(lammps, (), (0.5, 0.6))
    assert half.runs.size[half.runs.size <= half.largest].max() == 75**3
    assert most.largest == 90**3
    todo = speedup_study.tasks([half, most], ("aggregate",), 0)
    assert [row["size_share"] for row in speedup_study.rows(todo, 1)] == pytest.approx([0.5, 0.6])


def test_kinds_of_scaling_share_a_fit_that_does_not_depend_on_them(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = speedup_cases.simulated(seed=0, machines=("GPU",), programs=("MiniFE",))
    assert [one.scaling for one in cases] == ["strong", "hybrid"] and cases[0].runs is cases[1].runs
    fits: list[str] = []

    def counted(name: str) -> Contender:
        chosen = speedup_contenders.contender(name)

        def predict(question: Question, rng: np.random.Generator) -> Floats:
            fits.append(name)
            return chosen.predict(question, rng)

        return replace(chosen, predict=predict)

    todo = speedup_study.tasks(cases, ("aggregate", "pmnf:members=20"), 0)
    alone = [speedup_study.rows([task], 1)[0] for task in todo]
    monkeypatch.setattr("orchestrator.evaluation.speedup.study.contender", counted)
    together = speedup_study.rows(todo, 1)
    assert sorted(fits) == ["aggregate", "aggregate", "pmnf:members=20"]
    for one, other in zip(map(dict, alone), map(dict, together), strict=True):
        numbers = {key for key, value in one.items() if isinstance(value, float | list)}
        for key in numbers - {
            "seconds"
        }:  # but for rounding: matrices of more points are multiplied otherwise
            assert one[key] == pytest.approx(other[key], rel=1e-9), key
        assert {k: v for k, v in one.items() if k not in numbers} == {
            k: v for k, v in other.items() if k not in numbers
        }


def draws(*errors: float | None, program: str = "toy", cutoff: float = 8, share: float = 0.5) -> list[Row]:
    """Return a row of the network per draw; None is one without a model."""
    [case_row] = rows(case(runs_by(0.9)), "aggregate").values()
    place = {
        "program": program,
        "contender": "network",
        "cutoff": cutoff,
        "size_share": share,
        "beyond": 16.0,
    }
    return [
        {**case_row, **place, "seed": k, "rmse": 10.0, "relative_rmse": error}  # type: ignore[typeddict-item]
        if error is not None
        else {**case_row, **place, "seed": k, "rmse": None, "relative_rmse": None, "failure": "none"}  # type: ignore[typeddict-item]
        for k, error in enumerate(errors)
    ]


def test_a_cell_has_the_median_of_draws_and_the_smallest_and_largest() -> None:
    [table] = speedup_rows.tables([*draws(0.5, 0.1, 0.2), *draws(0.3, None, program="other")])
    assert table.lines == (("model", "toy", "other"), ("network", "10 (0.2, 0.1 to 0.5)", "10 (0.3)"))
    [nothing] = speedup_rows.tables(draws(None, None))
    assert nothing.lines[1] == ("network", "-")


def test_sensitivity_has_a_line_per_value_and_a_number_per_program() -> None:
    varied = [
        *(row for cutoff in (4, 8) for row in draws(1 / cutoff, program="a", cutoff=cutoff)),
        *draws(0.4, 0.6, 0.5, program="b", cutoff=8),
        *draws(0.7, program="b", cutoff=4),
    ]
    [table] = speedup_rows.sensitivity(varied)
    assert table.title == "here, strong scaling, relative errors of a, b"
    assert table.lines == (
        ("fitted up to", "network"),
        ("c_f = 4", "0.25, 0.70"),
        ("c_f = 8", "0.12, 0.50"),
    )
    assert speedup_rows.sensitivity(draws(0.5)) == []


def test_a_figure_of_sensitivity_has_a_panel_per_contender_and_setup(tmp_path: Path) -> None:
    varied = [row for cutoff in (4, 8) for row in draws(1 / cutoff, 2 / cutoff, cutoff=cutoff)]
    written = speedup_figures.write_sensitivity(varied, tmp_path)
    assert [path.name for path in written] == ["speedup-cutoff.png"]
    assert written[0].read_bytes().startswith(b"\x89PNG")
    assert speedup_figures.write_sensitivity(draws(0.5), tmp_path) == []


def test_the_simulated_cases_are_the_papers_tables() -> None:
    cases = speedup_cases.simulated(seed=0, scalings=("strong", "hybrid", "weak"))
    places = list(dict.fromkeys((one.machine, one.scaling, one.runs.levels) for one in cases))
    assert places == [
        *(("CPU", "strong", 1), ("GPU", "strong", 1), ("CPU", "hybrid", 1), ("GPU", "hybrid", 1)),
        *(("CPU", "weak", 1), ("GPU", "weak", 1), ("CPU", "strong", 2), ("CPU", "hybrid", 2)),
    ]
    assert {one.cutoff for one in cases if one.runs.levels == 1} == {100, 10}
    assert {one.cutoff for one in cases if one.runs.levels == 2} == {500}
    first = cases[0]
    assert first.largest == 3500**2  # the median edge of Beatnik, section 4.1
