"""What to measure next for existing measurements; measurements for other tools."""

import io
import json
import random
from pathlib import Path

import pytest
import yaml

from tests.cli.running import LOCAL, SIMULATED, run, write_campaign

POINTS = [(p, s) for p in (1, 2, 4, 8, 16) for s in (10, 20, 30, 40, 50)]


@pytest.fixture
def measured() -> Path:
    """A table that lacks the dearest point of its grid; times are 0.1 + 1e-3 p s."""
    rows = [f"{p},{s},main,time,{0.1 + 1e-3 * p * s}" for p, s in POINTS[:-1] for _ in range(2)]
    path = Path("measured.csv")
    path.write_text("p,s,callpath,metric,value\n" + "\n".join(rows) + "\n")
    return path


def test_the_metric_that_is_the_time_can_be_named(measured: Path) -> None:
    """A rate beside the time must not count as seconds."""
    lines = measured.read_text().splitlines()
    rates = [",".join([*line.split(",")[:3], "rate", "1e6"]) for line in lines[1:]]
    Path("both.csv").write_text("\n".join([*lines, *rates]).replace(",time,", ",Total time,") + "\n")
    options = ("--processes", "p", "--values", "p=64")
    assert suggested(Path("both.csv"), *options, "--time", "Total time") == suggested(measured, *options)
    at = ("suggest", "both.csv", "--at", "p=32,s=60", "--budget", "1 core-hour")
    assert "note: no metric is called time" in run(*at).err
    wrong = run(*at, "--time", "seconds")
    assert (wrong.code, "the inputs have the metrics Total time, rate" in wrong.err) == (2, True)


def test_a_single_metric_counts_as_seconds_with_a_note(measured: Path) -> None:
    """Costs were predicted from an energy without a word."""
    Path("energy.csv").write_text(measured.read_text().replace(",time,", ",energy,"))
    at = ("suggest", "energy.csv", "--at", "p=32,s=60", "--budget", "1 core-hour", "--modeler", "pmnf")
    said = "note: no metric is called time: costs are predicted as if energy were in seconds; --time names"
    assert said in run(*at).err
    assert "note: no metric" not in run(*at, "--time", "energy").err


def test_another_metric_than_time_can_be_the_time_beside_it(measured: Path) -> None:
    """It was refused, with a message that lists it among the metrics there are."""
    lines = measured.read_text().splitlines()
    cpu = [",".join([*line.split(",")[:3], "time", "1e6"]) for line in lines[1:]]
    options = ("--processes", "p", "--values", "p=64")
    for name in ("wall", "elapsed"):
        Path("both.csv").write_text("\n".join([*lines, *cpu]).replace(",time,0", f",{name},0") + "\n")
        assert suggested(Path("both.csv"), *options, "--time", name) == suggested(measured, *options)
    exported = [line.replace("main,time", "(run),elapsed") for line in lines[1:]]
    Path("exported.csv").write_text("\n".join([*lines, *exported]) + "\n")
    found = suggested(Path("exported.csv"), *options, "--time", "elapsed")
    assert found and found == suggested(Path("exported.csv"), *options)


def test_suggestions_become_experiments_of_ramble(measured: Path) -> None:
    options = ("--at", "p=32,s=60", "--budget", "1 core-hour", "--values", "p=64", "--points", "2")
    result = run("suggest", measured, *options, "--format", "ramble")
    assert result.code == 0, result.err
    found = yaml.safe_load(result.out)["experiments"]
    points = {tuple(dict(item["point"]).values()) for item in suggested(measured, *options[4:])}  # type: ignore[call-overload]
    variables = [item["variables"] for item in found.values()]
    assert {
        (int(p), int(s)) for item in variables for p, s in zip(item["p"], item["s"], strict=True)
    } == points
    nothing = run("suggest", measured, *options[:2], "--budget", "0.0001 core-seconds", "--format", "ramble")
    assert yaml.safe_load(nothing.out) is None or "experiments" in nothing.out


def suggested(path: Path, *options: str) -> list[dict[str, object]]:
    result = run("suggest", path, "--at", "p=32,s=60", "--budget", "1 core-hour", *options, "--json")
    assert result.code == 0, result.err
    found: list[dict[str, object]] = result.document["suggestions"]
    return found


def test_points_are_suggested_with_cost_and_reason(measured: Path) -> None:
    found = suggested(measured, "--processes", "p", "--values", "p=64")
    assert 0 < len(found) <= 4
    for item in found:
        assert set(item) == {"point", "repetitions", "cost", "reason"}
        assert item["reason"]
    assert len(suggested(measured, "--values", "p=64", "--points", "2")) <= 2


def test_suggestions_satisfy_constraints(measured: Path) -> None:
    found = suggested(measured, "--values", "p=64,128", "--constraint", "p * s >= 640", "--points", "10")
    assert found
    for item in found:
        point = item["point"]
        assert isinstance(point, dict)
        assert point["p"] * point["s"] >= 640


def test_samples_of_a_tuning_space_have_more_combinations_than_are_looked_at() -> None:
    """40 random values of five parameters have 10^8 combinations; points have measured or given values."""
    rng = random.Random(1)
    names = ("a", "b", "c", "d", "e")
    drawn = [tuple(rng.uniform(1, 100) for _ in names) for _ in range(40)]
    rows = [
        f"{k},{','.join(f'{x:.2f}' for x in point)},{0.1 + 0.01 * point[0]}" for k, point in enumerate(drawn)
    ]
    Path("samples.csv").write_text("\n".join([f"{','.join(names)},time", *rows]) + "\n")
    at = ",".join(f"{name}=200" for name in names)
    result = run(
        *("suggest", "samples.csv", "--response", "time", "--at", at, "--budget", "1 core-hour"),
        *("--strategy", "random", "--values", "a=300", "--constraint", "a >= 200", "--json"),
    )
    assert result.code == 0, result.err
    found = [item["point"] for item in result.document["suggestions"]]
    assert found
    for point in found:
        assert point["a"] == 300
        for name, column in zip(names[1:], list(zip(*drawn, strict=True))[1:], strict=True):
            assert point[name] in [float(f"{x:.2f}") for x in column]


def test_costs_are_those_that_the_modeler_expects(measured: Path) -> None:
    options = ("--processes", "p", "--values", "p=64,128", "--strategy", "full")
    cost = {str(item["point"]): item["cost"] for item in suggested(measured, *options)}
    other = suggested(measured, *options, "--modeler", "cpr", "--option", "combine=true")
    assert {str(item["point"]) for item in other} == set(cost)
    assert any(item["cost"] != cost[str(item["point"])] for item in other)


def test_a_campaign_directory_is_modelled_as_the_campaign_does() -> None:
    write_campaign(Path.cwd(), SIMULATED + "model: {name: extra-p}\n", None)
    run("run", "campaign.yaml")

    def costs(*options: str) -> dict[str, object]:
        at = ("--at", "p=216,s=35", "--budget", "9 core-hours", "--strategy", "full", "--values", "s=40")
        found = run("suggest", "rehearsal", *at, "--points", "99", *options, "--json").document
        return {str(item["point"]): item["cost"] for item in found["suggestions"]}

    assert costs() == costs("--modeler", "extra-p") != costs("--modeler", "auto")


def test_a_campaign_knows_where_its_models_must_hold(measured: Path) -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    question = ("suggest", "rehearsal", "--budget", "9 core-hours", "--json")
    assert run(*question).document == run(*question, "--at", "p=216,s=35").document
    missing = run("suggest", measured, "--budget", "9 core-hours")
    assert (missing.code, "error: where must models hold? Name it, such as --at" in missing.err) == (2, True)


def test_a_campaign_knows_what_is_left_to_spend(measured: Path) -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    left = run("status", "rehearsal", "--json").document["cost"]["left"]
    question = ("suggest", "rehearsal", "--json")
    assert run(*question).document == run(*question, "--budget", f"{left} core-hours").document
    missing = run("suggest", measured, "--at", "p=32,s=60")
    assert (missing.code, "error: what may be spent? Name it, such as --budget" in missing.err) == (2, True)


def test_without_models_every_suggestion_says_why() -> None:
    Path("sizes.csv").write_text("k,s,time\n1,10,1\n2,10,2\n4,10,4\n")
    at = ("suggest", "sizes.csv", "--parameters", "k,s", "--at", "k=16,s=40", "--budget", "1 core-hour")
    found = run(*at, "--values", "s=20,30", "--modeler", "speedup", "--json").document["suggestions"]
    assert found
    assert all(
        "; no models: no name says which parameter counts processes" in item["reason"] for item in found
    )


def test_nothing_is_suggested_for_values_that_are_all_negative() -> None:
    rows = [f"{p},{s},{-1 - p * s}" for p, s in POINTS]
    Path("negative.csv").write_text("p,s,time\n" + "\n".join(rows) + "\n")
    options = ("--parameters", "p,s", "--at", "p=32,s=60", "--budget", "1 core-hour")
    result = run("suggest", "negative.csv", *options)
    assert (result.code, result.out) == (1, "")
    assert "no usable measurement: every value of time is negative or missing" in result.err


@pytest.mark.parametrize("budget", ["0", "-1", "0 core-hours"])
def test_a_budget_is_greater_than_nothing(measured: Path, budget: str) -> None:
    result = run("suggest", measured, "--at", "p=32,s=60", "--budget", budget)
    assert (result.code, "must be greater than 0" in result.err) == (2, True)


def test_the_budget_is_not_blamed_where_all_points_have_their_repetitions() -> None:
    rows = [f"{n},{n / 100 + k / 1000}" for n in (10, 20, 30, 40, 50) for k in range(12)]
    Path("often.csv").write_text("n,time\n" + "\n".join(rows) + "\n")
    found = run("suggest", "often.csv", "--parameters", "n", "--at", "n=60", "--budget", "1 core-hour")
    assert found.out.startswith("nothing left to measure: every point has been repeated often enough, or")


def test_where_no_run_fits_the_budget_the_cheapest_is_named(measured: Path) -> None:
    """The cheapest point, p=1 and s=10, takes 0.11 s."""
    asked = ("suggest", measured, "--at", "p=32,s=60", "--budget", "0.01 core-seconds")
    result = run(*asked)
    assert result.code == 0
    assert result.out.startswith(
        "no run fits the budget: the cheapest, at P(p=1, s=10), is expected to cost 0.1"
    )
    assert result.out.endswith(" core-seconds\n")
    found = run(*asked, "--json").document
    assert found["suggestions"] == [] and 0.1 < 3600 * found["cheapest"] < 0.12
    assert run(*asked[:-1], "1 core-hour", "--json").document["cheapest"] is None


def test_a_suggestion_for_humans(measured: Path) -> None:
    result = run("suggest", measured, "--at", "p=32,s=60", "--budget", "1 core-hour")
    assert result.code == 0
    assert "core-hours" in result.out
    assert "P(p=" in result.out
    assert " of 1 core-hours. Suggest again" in result.out


def test_where_only_measured_points_are_repeated_further_values_are_named(measured: Path) -> None:
    full = measured.read_text() + "16,50,main,time,0.9\n"
    for text, named in ((full, True), (measured.read_text(), False)):
        measured.write_text(text)
        said = run("suggest", measured, "--at", "p=32,s=60", "--budget", "1 core-hour").out
        assert ("measured before; further values may help (--values NAME=V,V)" in said) is named


def test_costs_are_in_the_unit_of_the_budget(measured: Path) -> None:
    asked = ("suggest", measured, "--at", "p=32,s=60", "--values", "p=64", "--budget", "3600 core-seconds")
    for form in ((), ("--format", "ramble")):
        said = run(*asked, *form).out
        assert "core-seconds" in said and "core-hours" not in said


@pytest.mark.parametrize(
    ("option", "value", "mistake"),
    [
        ("--budget", "much", "much"),
        ("--at", "p=32", "lacks s"),
        ("--at", "p=32,ss=60", "point 'p=32,ss=60': unknown parameter 'ss'; did you mean 's'?"),
        ("--at", "p=32,q=60", "point 'p=32,q=60': unknown parameter 'q'; known: p, s"),
        ("--at", "p=32,60", "give each of p, s once, like p=16,s=40"),
        ("--at", "p=32,p=64", "give each of p, s once, like p=16,s=40"),
        ("--at", "p=-32,s=60", "p=-32: "),
        ("--at", "p=32,s=0", "s=0: "),
        ("--values", "q=3", "q=3"),
        ("--values", "p=abc", "--values p=abc: p is a number"),
        ("--values", "p=64,inf", "--values p=inf: p is a number"),
        ("--values", "p=64,", "--values p=: p is a number"),
        ("--values", "p=-5", "--values p=-5: "),
        ("--values", "p=0", "--values p=0: "),
        ("--constraint", "p *", "--constraint: expression 'p *'"),
        (
            "--constraint",
            "log(p - 1) > 0",
            "--constraint: expression 'log(p - 1) > 0' cannot be evaluated at p=1",
        ),
        ("--constraint", "p > 99", "no point satisfies the constraints"),
        ("--processes", "q", "--processes: expression 'q'"),
        ("--processes", "0 - p", "--processes '0 - p' gives -1 at P(p=1, s=10)"),
        ("--processes", "16 - p", "--processes '16 - p' gives 0 at P(p=16, s=10)"),
        ("--modeler", "cprr", "invalid choice: 'cprr'"),
        ("--option", "rank=1", "modeler 'auto' has no option 'rank'"),
        ("--points", "0", "argument --points: '0' is not a whole number from 1"),
        ("--points", "-1", "argument --points: '-1' is not a whole number from 1"),
        ("--seed", "-1", "argument --seed: '-1' is not a whole number from 0"),
    ],
)
def test_wrong_usage(measured: Path, option: str, value: str, mistake: str) -> None:
    options = {"--at": "p=32,s=60", "--budget": "1 core-hour", option: value}
    result = run("suggest", measured, *(word for pair in options.items() for word in pair))
    assert result.code == 2, result.err
    assert mistake in result.err
    assert "Traceback" not in result.err


def with_durations(path: Path, factor: float) -> Path:
    """Add durations of whole runs to a table: ``factor`` times as long as the time of its call path."""
    header, *rows = path.read_text().splitlines()
    fields = [row.split(",") for row in rows]
    more = [f"{p},{s},(run),elapsed,{factor * float(value)}" for p, s, _, _, value in fields]
    path.write_text("\n".join([header, *rows, *more]) + "\n")
    return path


def test_a_run_costs_what_it_takes_as_a_whole(measured: Path) -> None:
    def price(*options: str) -> float:
        options = ("--constraint", "p == 16 and s == 50", *options)
        (item,) = suggested(measured, *options)
        return float(str(item["cost"])) / int(str(item["repetitions"]))

    assert price() == pytest.approx(0.9 / 3600, rel=0.02)
    with_durations(measured, 100)
    assert price() == pytest.approx(90 / 3600, rel=0.02)
    assert price("--processes", "p") == pytest.approx(16 * 90 / 3600, rel=0.02)


def test_a_category_may_be_new_and_in_constraints() -> None:
    rows = [
        f"{n},{solver},{n * factor}" for n in (1, 2, 4, 8, 16) for solver, factor in (("cg", 1), ("lu", 3))
    ]
    Path("table.csv").write_text("n,solver,time\n" + "\n".join(rows) + "\n")
    result = run(
        *("suggest", "table.csv", "--parameters", "n,solver", "--at", "n=64,solver=lu", "--json"),
        *("--budget", "1 core-hour", "--values", "solver=qr", "--constraint", "solver == 'qr'"),
    )
    assert result.code == 0, result.err
    assert {item["point"]["solver"] for item in result.document["suggestions"]} == {"qr"}


def test_every_category_has_its_own_cost() -> None:
    rows = [
        f"{n},{solver},main,{0.1 * n * factor}"
        for n in (1, 2, 4, 8, 16)
        for solver, factor in (("cg", 1), ("lu", 30))
    ]
    Path("table.csv").write_text("n,solver,callpath,time\n" + "\n".join(rows) + "\n")

    def price(solver: str) -> float:
        result = run(
            *("suggest", "table.csv", "--parameters", "n,solver", "--at", "n=64,solver=cg", "--json"),
            *("--budget", "1 core-hour", "--constraint", f"solver == '{solver}' and n == 16"),
        )
        assert result.code == 0, result.err
        (item,) = result.document["suggestions"]
        return float(3600 * item["cost"] / item["repetitions"])

    assert price("cg") == pytest.approx(1.6, rel=0.05)
    assert price("lu") == pytest.approx(48, rel=0.05)


SLEEPER = """\
#!/bin/sh
sleep 0.2
echo "time: 0.00$1 s"
"""
TWO_CORES = LOCAL.replace('arguments: ["{n}"]', 'arguments: ["{n}"]\n  threads: 2').replace(
    "slots: 1", "slots: 2"
)


@pytest.mark.slow
def test_the_runs_of_a_campaign_cost_their_durations_on_its_cores() -> None:
    write_campaign(Path.cwd(), TWO_CORES.replace("n: [1, 2, 3, 4, 5]", "n: [1, 2, 3, 4, 5, 6]"), SLEEPER)
    assert run("run", "campaign.yaml").code == 0
    question = ("suggest", "tiny", "--at", "n=8", "--budget", "1 core-hour")

    def price(*options: str) -> float:
        result = run(*question, *options, "--json")
        assert result.code == 0, result.err
        item = result.document["suggestions"][0]
        return float(3600 * item["cost"] / item["repetitions"])

    assert 2 * 0.2 <= price() < 2 * 0.8
    assert price() == pytest.approx(2 * price("--processes", "1"))


def test_what_a_campaign_cannot_measure_is_not_suggested() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    question = ("suggest", "rehearsal", "--at", "p=216,s=35", "--budget", "1 core-hour", "--json")
    result = run(*question, "--values", "p=100")  # LULESH needs a cube of ranks
    assert result.code == 2
    assert "--values p=100: the campaign cannot measure there: " in result.err
    assert run(*question, "--values", "p=343").code == 0
    assert run(*question, "--values", "p=100", "--processes", "p").code == 0


def test_a_campaign_that_has_measured_nothing() -> None:
    write_campaign(Path.cwd(), LOCAL, "#!/bin/sh\nexit 1\n")
    run("run", "campaign.yaml")
    result = run("suggest", "tiny", "--at", "n=8", "--budget", "1 core-hour")
    assert (result.code, result.err) == (1, "error: tiny: the campaign has no measurements yet\n")


def test_every_repetition_is_exported() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    status = run("run", "campaign.yaml", "--json").document
    header, *rows = run("export", "rehearsal", "--format", "csv").out.splitlines()
    assert header == "p,s,callpath,metric,repetition,value"
    assert len([row for row in rows if ",main,time," in row]) == status["runs"]["measured"]
    lines = [
        json.loads(line) for line in run("export", "rehearsal", "--format", "extrap-jsonl").out.splitlines()
    ]
    assert all(set(line) == {"params", "callpath", "metric", "value"} for line in lines)


def test_an_export_never_replaces_what_it_reads(measured: Path) -> None:
    before = measured.read_bytes()
    refused = run("export", measured, "--format", "extrap-jsonl", "--output", "./measured.csv")
    assert refused.code == 2 and "is an input, which it would replace" in refused.err
    assert measured.read_bytes() == before


def test_parquet_is_exported() -> None:
    import pandas as pd

    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    assert run("export", "rehearsal", "--format", "parquet", "--output", "x.parquet").code == 0
    table = pd.read_csv(io.StringIO(run("export", "rehearsal", "--format", "csv").out))
    assert len(pd.read_parquet("x.parquet")) == len(table)


def test_an_output_that_cannot_be_written() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    result = run("export", "rehearsal", "--format", "csv", "--output", "no/such/folder.csv")
    assert result.code == 2
    assert "no/such/folder.csv" in result.err


def test_an_unknown_format_is_wrong_usage() -> None:
    assert run("export", "x", "--format", "xml").code == 2
