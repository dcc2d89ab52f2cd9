"""``orchestrator compare``: two files, two categories, two campaigns; exit codes and files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.cli.running import LOCAL, SIMULATED, run, start, write_campaign
from tests.models.comparison.campaigns import Factor, measured


def write(path: Path, seed: int, factor: Factor = lambda p, n: 1.0, blocks: float = 0.0) -> Path:
    """Write measurements as JSON Lines; with ``blocks`` a count per second without noise."""
    rows = []
    for item in measured(np.random.default_rng(seed), factor=factor, noise=0.02, callpaths=2).items:
        for point, values in item.values.items():
            where = {"params": point.as_dict(), "callpath": item.callpath}
            rows.append({**where, "metric": "time", "value": list(values)})
            if blocks:
                count = round(blocks * (1 + 0.01 * point.number("n") * point.number("p") ** 0.5))
                rows.append({**where, "metric": "basic_blocks", "value": [count, count]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path / "a.jsonl", 1), write(tmp_path / "b.jsonl", 2, lambda p, n: 1.3)


def test_rows_as_json(files: tuple[Path, Path]) -> None:
    found = run("compare", *files, "--modeler", "none", "--json")
    assert found.code == 0
    document = found.document
    assert document["points"] == [{"p": 64, "n": 40}]
    assert [row["callpath"] for row in document["rows"]] == ["main->f0", "main->f1"]
    for row in document["rows"]:
        assert row["low"] < 1.3 < row["high"]
        assert row["low"] < row["ratio"] < row["high"]
        assert row["probability"] > 0.95
        assert row["false_discovery_rate"] < 0.05
        assert row["pairs"] == 20
    contents = next(item for item in document["facts"] if item["label"] == "content")
    assert contents["same"] is False
    assert document["notes"] == []


def test_the_same_values_twice_are_noted(files: tuple[Path, Path]) -> None:
    found = run("compare", files[0], files[0], "--modeler", "none", "--json")
    assert found.code == 0
    assert found.document["notes"] == ["A and B hold the same values: check the paths if they are to differ"]


@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize(("limit", "code"), [("1.1", 1), ("2", 0)])
def test_a_reader_that_leaves_early_does_not_change_the_exit_code(
    files: tuple[Path, Path], form: tuple[str, ...], limit: str, code: int
) -> None:
    arguments = ("compare", *files, "--modeler", "none", *form, "--fail-if", f"ratio > {limit}")
    process = start(*map(str, arguments))
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=300) == code


def test_a_condition_that_holds_is_exit_code_1(files: tuple[Path, Path], tmp_path: Path) -> None:
    report, page = tmp_path / "report.xml", tmp_path / "page.html"
    arguments = ("compare", *files, "--modeler", "none", "--junit", report, "--html", page)
    found = run(*arguments, "--fail-if", "ratio > 1.1 with 95 %", "--callpath", "f0")
    assert found.code == 1
    assert "FAILED: ratio > 1.1 with 95 %: main->f0 time" in found.out
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert suite.find("testcase/failure") is not None
    assert "b.jsonl against a.jsonl at p = 64, n = 40" in page.read_text()
    passed = run(*arguments, "--fail-if", "ratio > 2 with 95 %")
    assert passed.code == 0
    assert "passed: ratio > 2 with 95 %" in passed.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--fail-if", "slower than 10 %"), "write 'ratio > 1.1 with 95 %'"),
        (("--fail-if", "theory > 0.1"), "--against-theory"),
        (("--against-theory", "nothing=p"), "no such call path"),
        (("--predict", "p=4"), "lacks n"),
        (("--metric", "energy"), "both have the metrics time"),
        (("--callpath", "g"), "in none of the 2 call paths"),
        (("--between", "n=10,20"), "within one input"),
    ],
)
def test_wrong_usage_is_exit_code_2(
    files: tuple[Path, Path], arguments: tuple[str, ...], message: str
) -> None:
    found = run("compare", *files, "--modeler", "none", *arguments)
    assert found.code == 2
    assert message in found.err


@pytest.mark.parametrize("option", ["--junit", "--html"])
def test_what_is_compared_is_never_written_over(files: tuple[Path, Path], option: str) -> None:
    before = files[1].read_text()
    found = run("compare", *files, "--modeler", "none", option, files[1])
    assert (found.code, f"{option} {files[1]} is an input" in found.err) == (2, True)
    assert files[1].read_text() == before


def test_one_input_is_wrong_usage(files: tuple[Path, Path]) -> None:
    found = run("compare", files[0])
    assert found.code == 2
    assert "give two, A and B" in found.err


def test_counts_tell_work_from_speed(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", 1, blocks=1e6)
    slower = write(tmp_path / "slower.jsonl", 2, lambda p, n: 1.3, blocks=1e6)
    more = write(tmp_path / "more.jsonl", 3, lambda p, n: 1.3, blocks=1.3e6)
    for path, expected in ((slower, ["speed"]), (more, ["work"])):
        rows = run("compare", a, path, "--modeler", "none", "--json").document["rows"]
        assert [row["work"]["changed"] for row in rows] == [expected] * 2


def test_counts_are_exact_and_those_of_a_time_are_of_all_that_it_includes(tmp_path: Path) -> None:
    """A timer around a function that does more work times more work, too."""
    rng = np.random.default_rng(5)
    for name, factor in (("a", 1.0), ("b", 1.3)):
        rows = ["n,callpath,metric,value"]
        for n in (10, 20, 30, 40):
            own, part = n**3, factor * n**3
            rows += [f"{n},main,basic_blocks,{own}", f"{n},main->f,basic_blocks,{part}"]
            for noise in rng.normal(1e-6, 1e-8, 3):
                rows += [f"{n},main,time,{noise * (own + part)}", f"{n},main->f,time,{noise * part}"]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    found = run("compare", *files, "--parameters", "n", "--modeler", "none", "--json").document["rows"]
    for row, ratio in zip(found, (1.15, 1.3), strict=True):
        assert row["work"]["changed"] == ["work"]
        amount = row["work"]["amount"]
        assert [amount["low"], amount["high"]] == pytest.approx([ratio, ratio], rel=1e-3)


def test_counts_that_are_not_compared_are_named(tmp_path: Path) -> None:
    files = (tmp_path / "a.csv", tmp_path / "b.csv")
    for digit, path in enumerate(files):
        rows = [f"{n},main,{n}.5{digit},{7 * n}" for n in (1, 2, 4, 8, 16)]
        path.write_text("\n".join(["n,callpath,time,calls", *rows]) + "\n")
    found = run("compare", *files, "--modeler", "none", "--json").document
    assert [row["metric"] for row in found["rows"]] == ["time"]
    assert "counts are compared where they are asked for: --metric calls" in found["notes"]
    found = run("compare", *files, "--modeler", "none", "--json", "--metric", "calls").document
    assert [row["metric"] for row in found["rows"]] == ["calls"]
    assert not any("counts are compared" in note for note in found["notes"])


def test_categories_of_one_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    rows = ["p,n,solver,time"]
    for solver, factor in (("cg", 1.0), ("gmres", 1.25)):
        for point, values in measured(rng, noise=0.02).items[0].values.items():
            rows += [f"{point['p']},{point['n']},{solver},{factor * value}" for value in values]
    path = tmp_path / "both.csv"
    path.write_text("\n".join(rows) + "\n")
    arguments = ("--parameters", "p,n,solver", "--modeler", "none")
    found = run("compare", path, "--between", "solver=cg,gmres", *arguments, "--json")
    (row,) = found.document["rows"]
    assert row["low"] < 1.25 < row["high"]
    assert {"label": "solver", "a": "cg", "b": "gmres", "same": False} in found.document["facts"]
    wrong = run("compare", path, "--between", "solver=cg,lu", *arguments)
    assert wrong.code == 2
    assert "not lu" in wrong.err


def test_campaigns_with_their_formulas_and_a_stated_law(tmp_path: Path) -> None:
    """Another program that grows with the square: exact times, so that both formulas are known."""
    directories = []
    for name, number in (("linear", "$1.5"), ("square", "$(($1 * $1)).5")):
        folder = tmp_path / name
        folder.mkdir()
        program = f'#!/bin/sh\necho "time: {number} s"\n'
        campaign = write_campaign(folder, LOCAL, program)
        assert run("run", campaign, "--directory", folder / "d").code == 0
        directories.append(folder / "d")
    found = run(
        "compare", *directories, "--metric", "time", "--json",
        "--against-theory", "main=n", "--fail-if", "theory > 0.5",
    )  # fmt: skip
    assert found.code == 1
    (row,) = found.document["rows"]
    assert row["predictions"][0]["point"] == {"n": 8}
    (growth,) = row["growth"]
    assert growth["faster"] == "b"
    assert growth["exponent_deviation"] == pytest.approx(1.0, abs=0.3)
    assert row["theory"][0]["a"]["deviation"] == pytest.approx(0.0, abs=0.1)
    facts = {item["label"]: item for item in found.document["facts"]}
    assert facts["executable"]["same"] is False
    assert facts["controller"]["same"] is True


def test_two_campaigns_are_compared_by_the_models_that_their_status_shows(tmp_path: Path) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    for number, directory in enumerate(directories):
        folder = tmp_path / str(number)
        folder.mkdir()
        text = SIMULATED.replace("seed: 3", f"seed: {number}\nmodel: {{name: extra-p}}")
        run("run", write_campaign(folder, text, None), "--directory", directory)
    command = ("compare", *map(str, directories), "--metric", "time", "--json")
    (row,) = run(*command).document["rows"]
    for side, directory in zip("ab", directories, strict=True):
        shown = run("status", directory, "--json").document["models"]
        assert row["expression"][side] == next(m["expression"] for m in shown if m["callpath"] == "main")
    (other,) = run("compare", *directories, "--metric", "time", "--json", "--modeler", "curves").document[
        "rows"
    ]
    assert other["expression"]["a"] != row["expression"]["a"]


def test_a_campaign_measures_two_executables(tmp_path: Path) -> None:
    """Doubled runs, each once, the charges of both; then compared by the campaign's own names."""
    text = LOCAL.replace(
        "program:", "compare: {with: ./square.sh, names: [linear, square]}\nprogram:"
    ).replace("model: pmnf", "model: extra-p")
    campaign = write_campaign(tmp_path, text)
    other = tmp_path / "square.sh"
    other.write_text('#!/bin/sh\necho "time: $(($1 * $1)).5 s"\n')
    other.chmod(0o755)
    assert run("run", campaign, "--directory", tmp_path / "d").code == 0
    entries = [json.loads(line) for line in (tmp_path / "d" / "journal.jsonl").read_text().splitlines()]
    finished = [entry["data"]["attempt"] for entry in entries if entry["event"] == "attempt_finished"]
    runs = [(item["point"]["n"], item["repetition"], item["point"]["variant"]) for item in finished]
    assert len(set(runs)) == len(runs)
    assert {run[:2] for run in runs if run[2] == "linear"} == {run[:2] for run in runs if run[2] == "square"}
    for first, second in zip(runs[::2], runs[1::2], strict=True):
        assert first[:2] == second[:2], "neighbours"
    found = run("compare", tmp_path / "d", "--metric", "time", "--modeler", "none", "--json").document
    (row,) = found["rows"]
    assert row["growth"][0]["exponent"] == pytest.approx(1.0, abs=0.4)
    facts = {item["label"]: item for item in found["facts"]}
    assert (facts["variant"]["a"], facts["variant"]["b"]) == ("linear", "square")
    assert facts["executable"]["b"].endswith("square.sh")
    assert found["names"] == {"a": "linear", "b": "square"}
    head = run("report", tmp_path / "d", "--json").document["head"]["facts"]
    measured = {item["label"]: Path(item["value"]).name for item in head if "Executable" in item["label"]}
    assert measured == {"Executable linear": "program.sh", "Executable square": "square.sh"}
    (by_its_model,) = run("compare", tmp_path / "d", "--metric", "time", "--json").document["rows"]
    models = run("status", tmp_path / "d", "--json").document["models"]
    for side, variant in (("a", "linear"), ("b", "square")):
        mine = [m for m in models if m["callpath"] == "main" and m["category"] == {"variant": variant}]
        assert [by_its_model["expression"][side]] == [m["expression"] for m in mine], "as status shows it"
    shown = run("compare", tmp_path / "d", "--metric", "time", "--modeler", "pmnf").out
    assert "square / linear at P(n=8)" in shown
    assert "B / A" not in shown


def write_categories(path: Path, seed: int, factor: float, beside: int = 0) -> Path:
    """Write times of two solvers at 12 points each; ``beside`` moves all points."""
    rng = np.random.default_rng(seed)
    lines = [
        f"{n + beside},{m},{solver},{factor * level * n**1.5 * m * np.exp(0.02 * rng.standard_normal())}"
        for n in (10, 20, 40, 80)
        for m in (3, 5, 9)
        for solver, level in (("cg", 1), ("lu", 2))
    ]
    path.write_text("n,m,solver,time\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("modeler", ["pmnf", "auto", "cpr", "splines"])
def test_categories_are_compared_by_every_family(tmp_path: Path, modeler: str) -> None:
    """Also by those that have one model for all categories: pairs are in categories, such a model is not."""
    a = write_categories(tmp_path / "a.csv", 1, 1.0)
    b = write_categories(tmp_path / "b.csv", 2, 1.2)
    columns = ("--parameters", "n,m,solver", "--response", "time", "--modeler", modeler, "--json")
    paired = run("compare", a, b, *columns).document
    assert {row["category"]["solver"] for row in paired["rows"]} == {"cg", "lu"}
    assert all(row["low"] < 1.2 < row["high"] and row["pairs"] == 12 for row in paired["rows"])
    assert paired["points"] == [{"n": 80, "m": 9, "solver": "cg"}]
    apart = run("compare", a, write_categories(tmp_path / "c.csv", 3, 1.3, beside=1), *columns).document
    assert all(1.15 < row["ratio"] < 1.4 for row in apart["rows"])


def test_the_heading_names_no_category_where_rows_have_several(tmp_path: Path) -> None:
    a = write_categories(tmp_path / "a.csv", 1, 1.0)
    b = write_categories(tmp_path / "b.csv", 2, 1.2)
    columns = ("--parameters", "n,m,solver", "--response", "time", "--modeler", "none")
    assert "B / A at P(n=80, m=9) " in run("compare", a, b, *columns).out
    stated = run("compare", a, b, *columns, "--predict", "n=80,m=9,solver=lu").out
    assert "B / A at P(n=80, m=9, solver=lu) " in stated


def test_categories_with_commas_are_compared(tmp_path: Path) -> None:
    lines = [f'{n},"{v}",{n * t}' for n in (1, 2, 4, 8) for v, t in (("-O2,-g", 2), ("-O3", 1))]
    path = tmp_path / "a.csv"
    path.write_text("n,flags,time\n" + "\n".join(lines) + "\n")
    arguments = ("compare", path, "--parameters", "n,flags", "--response", "time", "--modeler", "none")
    found = run(*arguments, "--between", "flags=-O3, -O2,-g", "--json")
    assert found.code == 0, found.err
    assert found.document["names"] == {"a": "-O3", "b": "-O2,-g"}
    assert found.document["facts"][0] == {"label": "flags", "a": "-O3", "b": "-O2,-g", "same": False}
    wrong = run(*arguments, "--between", "flags=-O3,-O2,-O1")
    assert wrong.code == 2 and "two of the values of flags: -O2,-g, -O3" in wrong.err


def test_pairs_say_of_growth_also_where_the_point_is_of_another_category(tmp_path: Path) -> None:
    files = [write_categories(tmp_path / f"{name}.csv", seed, 1.3) for seed, name in enumerate("ab")]
    columns = ("--parameters", "n,m,solver", "--response", "time", "--modeler", "none")
    rows = run("compare", *files, *columns, "--predict", "n=80,m=9,solver=cg", "--json").document["rows"]
    assert {row["category"]["solver"]: row["ratio"] is None for row in rows} == {"cg": False, "lu": True}
    assert rows[1]["sentence"] == "the ratio is wanted for another category; ask for P(n=80, m=9, solver=lu)"
    assert all(item["probability"] < 0.5 for row in rows for item in row["growth"])


def test_nothing_is_said_of_growth_in_a_parameter_that_varies_nowhere(tmp_path: Path) -> None:
    """One set with one process, one with two: how either grows with p is unknown, not alike."""
    paths = [tmp_path / f"{p}.csv" for p in (1, 2)]
    for p, path in enumerate(paths, 1):
        rows = [f"{p},{n},{n * (1 + 0.01 * k) / p}" for n in (100, 200, 400, 800, 1600) for k in range(3)]
        path.write_text("\n".join(["p,n,time", *rows]))
    (row,) = run("compare", *paths, "--parameters", "p,n", "--json").document["rows"]
    assert [item["parameter"] for item in row["growth"]] == ["n"]


def test_inputs_that_differ_in_categories_only(tmp_path: Path) -> None:
    paths = []
    for name, factor in {"a": 1.0, "b": 1.5}.items():
        lines = [
            f"{kind},{base * factor * (1 + 0.01 * k)}"
            for kind, base in {"gcc": 2.0, "clang": 1.5}.items()
            for k in range(4)
        ]
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text("\n".join(["compiler,time", *lines]))
    found = run("compare", *paths, "--parameters", "compiler", "--json").document
    assert [row["ratio"] for row in found["rows"]] == pytest.approx([1.5, 1.5], rel=0.02)


def table(path: str, **columns: Sequence[float]) -> Path:
    each = [(name, *pair) for name, values in columns.items() for pair in zip(SIZES, values, strict=True)]
    rows = [f"{n},{name},{value}" for name, n, value in each]
    file = Path(path)
    file.write_text("n,callpath,time\n" + "\n".join(rows) + "\n")
    return file


SIZES = (1, 2, 4, 8, 16)
SAME = (1.0, 2.0, 4.0, 8.0, 16.0)
ZERO = (0.0,) * len(SIZES)


@pytest.mark.parametrize("modeler", ["none", "pmnf"])
def test_a_condition_that_cannot_be_checked_does_not_pass(modeler: str) -> None:
    """What appears out of nothing has no ratio: a green light would be false."""
    before, after = table("a.csv", main=SAME, new=ZERO), table("b.csv", main=SAME, new=SAME)
    found = run("compare", before, after, "--modeler", modeler, "--fail-if", "ratio > 1.1 with 95 %")
    assert found.code == 1, found.out
    text = " ".join(found.out.split())
    assert (
        "NOT CHECKED: ratio > 1.1 with 95 %: new time (every value of A is zero, negative or missing)" in text
    )
    assert "passed" not in text
    shown = run("compare", before, after, "--modeler", modeler, "--callpath", "main", "--fail-if", "change")
    assert (shown.code, "passed: change holds for none of 1 call path" in shown.out) == (0, True)


@pytest.mark.parametrize(("sides", "lacking"), [(("a.csv", "b.csv"), "A"), (("b.csv", "a.csv"), "B")])
def test_a_call_path_of_one_of_both_is_not_checked(sides: tuple[str, str], lacking: str) -> None:
    """Profiles have no line for what was never called: a new function must not pass unseen."""
    tiny = tuple(1e-4 * value for value in SAME)
    table("a.csv", main=SAME)
    table("b.csv", main=SAME, new=SAME, little=tiny)
    options = ("--modeler", "none", "--fail-if", "ratio > 1.1 with 95 %")
    found = run("compare", *sides, *options, "--junit", "found.xml")
    assert found.code == 1, found.out
    assert f"NOT CHECKED: ratio > 1.1 with 95 %: new time ({lacking} has no such call path)" in found.out
    assert 'errors="1"' in Path("found.xml").read_text()
    assert run("compare", *sides, *options, "--callpath", "main").code == 0


def test_what_is_zero_in_both_or_nearly_is_equal() -> None:
    tiny = tuple(1e-4 * value for value in SAME)
    before, after = (
        table("a.csv", main=SAME, idle=ZERO, some=ZERO),
        table("b.csv", main=SAME, idle=ZERO, some=tiny),
    )
    found = run("compare", before, after, "--modeler", "none", "--fail-if", "change", "--json")
    assert (found.code, found.document["not_compared"]) == (0, [])


def test_a_theory_without_a_formula_to_compare_is_not_checked(files: tuple[Path, Path]) -> None:
    stated = ("--against-theory", "main->f0=p", "--fail-if", "theory > 0.5")
    found = run("compare", *files, "--modeler", "none", *stated, "--json")
    (verdict,) = found.document["conditions"]
    assert (found.code, verdict["checked"]) == (1, 0)
    assert verdict["not_checked"] == ["main->f0 time (the model of B is no formula)"]
