"""Models of measurements in every format that ``model`` reads, with predictions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import LOCAL, SIMULATED, Result, run, start, write_campaign
from tests.readers.cubex_files import Cubex, Node, Stored

SIZES = (4, 8, 16, 32, 64)


def seconds(n: float) -> float:
    """The truth in every file."""
    return 0.5 + 0.25 * n


def text(folder: Path) -> list[Path]:
    points = " ".join(f"({n})" for n in SIZES)
    data = "".join(f"DATA {seconds(n)} {seconds(n)}\n" for n in SIZES)
    path = folder / "measured.txt"
    path.write_text(f"PARAMETER n\nPOINTS {points}\nREGION main\nMETRIC time\n{data}")
    return [path]


def json_lines(folder: Path) -> list[Path]:
    path = folder / "measured.jsonl"
    rows = [
        {"params": {"n": n}, "callpath": "main", "metric": "time", "value": [seconds(n)] * 2} for n in SIZES
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [path]


def csv(folder: Path) -> list[Path]:
    path = folder / "measured.csv"
    rows = [f"{n},main,time,{repetition},{seconds(n)}" for n in SIZES for repetition in (1, 2)]
    path.write_text("n,callpath,metric,repetition,value\n" + "\n".join(rows) + "\n")
    return [path]


def several_files(folder: Path) -> list[Path]:
    (path,) = csv(folder)
    header, *rows = path.read_text().splitlines()
    parts = [folder / "a.csv", folder / "b.csv"]
    for part, half in zip(parts, (rows[::2], rows[1::2]), strict=True):
        part.write_text("\n".join([header, *half]) + "\n")
    return parts


def cube(folder: Path) -> list[Path]:
    for n in SIZES:
        for repetition in (1, 2):
            profile = folder / "profiles" / f"app.n{n}.r{repetition}" / "profile.cubex"
            profile.parent.mkdir(parents=True)
            stored = Stored("time", {0: [seconds(n), seconds(n)]}, "INCLUSIVE", "DOUBLE", "sec")
            profile.write_bytes(Cubex([Node("main")], [stored], threads=(1, 1)).content())
    return [folder / "profiles"]


FORMATS: tuple[Callable[[Path], list[Path]], ...] = (text, json_lines, csv, several_files, cube)


@pytest.mark.parametrize("write", FORMATS)
def test_a_model_of_every_format(write: Callable[[Path], list[Path]]) -> None:
    result = run("model", *write(Path.cwd()), "--predict", "n=1024", "--predict", "n=128", "--json")
    assert result.code == 0, result.err
    (model,) = result.document["models"]
    assert set(model) >= {"callpath", "metric", "expression", "terms", "smape", "predictions"}
    assert (model["callpath"], model["metric"]) == ("main", "time")
    assert "n" in model["expression"]
    assert [set(term) for term in model["terms"]] == [{"coefficient", "factors"}] * len(model["terms"])
    assert model["smape"] < 0.1
    far, near = model["predictions"]
    assert far["point"] == {"n": 1024}
    for prediction in (far, near):
        truth = seconds(prediction["point"]["n"])
        assert prediction["value"] == pytest.approx(truth, rel=0.01)
        assert prediction["low"] <= prediction["value"] <= prediction["high"]


@pytest.mark.parametrize("write", FORMATS)
def test_text_for_humans_shows_expression_and_predictions(write: Callable[[Path], list[Path]]) -> None:
    result = run("model", *write(Path.cwd()), "--predict", "n=1024", "--predict", "n=128")
    assert result.code == 0
    assert "P(n=1024)" in result.out
    assert "n=128" in result.out
    assert "256.5" in result.out
    assert "32.5" in result.out


@pytest.mark.parametrize("unit", ["[cells]", "[/node]", "[bold]"])
def test_brackets_in_names_are_shown(unit: str) -> None:
    rows = "".join(f"{n},{seconds(n)}\n" for n in SIZES)
    Path("measured.csv").write_text(f"n {unit},time\n{rows}")
    result = run("model", "measured.csv", "--response", "time", "--predict", f"n {unit}=1024")
    assert (result.code, f"P(n {unit}=1024)" in result.out) == (0, True)
    compared = run("compare", "measured.csv", "measured.csv", "--response", "time", "--modeler", "none")
    assert (compared.code, f"P(n {unit}=64)" in compared.out) == (0, True)


def test_a_prediction_far_beyond_the_measurements_says_so() -> None:
    near, far, below = (run("model", *csv(Path.cwd()), "--predict", f"n={n}") for n in (128, 1280, 1))
    assert "so far beyond" not in near.out
    assert "note: P(n=1280) has n=1280, 20 times the largest measured value 64: no run shows" in far.out
    assert "note: P(n=1) has n=1, 1/4 of the smallest measured value 4: no run shows" in below.out


@pytest.mark.parametrize("kind", ["", "model: {name: pmnf, members: 5}\n"])
def test_a_campaign_directory_gives_the_models_of_its_status(kind: str) -> None:
    write_campaign(Path.cwd(), SIMULATED + kind, None)
    status = run("run", "campaign.yaml", "--json").document
    models = run("model", "rehearsal", "--predict", "p=216,s=35", "--json").document["models"]
    assert models == status["models"]


def test_options_are_added_to_those_of_the_campaign_and_another_modeler_replaces_it() -> None:
    write_campaign(Path.cwd(), SIMULATED + "model: {name: pmnf, members: 5}\n", None)
    run("run", "campaign.yaml")
    run("export", "rehearsal", "--format", "csv", "--output", "exported.csv")

    def models(path: str, *options: str) -> object:
        return run("model", path, "--predict", "p=216,s=35", *options, "--json").document["models"]

    two = ("--option", "members=2")
    assert models("rehearsal", *two) == models("exported.csv", "--modeler", "pmnf", *two)
    assert models("rehearsal", *two) != models("rehearsal")
    assert models("rehearsal", "--modeler", "cpr") == models("exported.csv", "--modeler", "cpr")
    wrong = run("model", "rehearsal", "--option", "rank=2")
    assert (wrong.code, "model 'pmnf' has no option 'rank'" in wrong.err) == (2, True)


def test_what_a_campaign_exports_is_modelled_alike(tmp_path: Path) -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    expected = run("model", "rehearsal", "--json").document
    for form in ("extrap-jsonl", "csv"):
        path = tmp_path / form
        assert run("export", "rehearsal", "--format", form, "--output", path).code == 0
        assert path.read_text() == run("export", "rehearsal", "--format", form).out
        assert run("model", path, "--json").document == expected


def test_metrics_and_call_paths_are_selected() -> None:
    path = Path("measured.csv")
    rows = [
        f"{n},{where},{what},{n}"
        for n in SIZES
        for where in ("main", "main->solve")
        for what in ("time", "bytes")
    ]
    path.write_text("n,callpath,metric,value\n" + "\n".join(rows) + "\n")
    every = run("model", path, "--json").document["models"]
    assert len(every) == 4
    chosen = run("model", path, "--metric", "bytes", "--callpath", "solve", "--json").document["models"]
    assert [(item["callpath"], item["metric"]) for item in chosen] == [("main->solve", "bytes")]
    nothing = run("model", path, "--metric", "visits", "--json")
    assert nothing.code == 2
    assert "bytes" in nothing.err
    misspelt = run("model", path, "--metric", "bytes", "--metric", "tmie")
    assert (misspelt.code, "no measurements of tmie" in misspelt.err) == (2, True)


def varied(folder: Path) -> Path:
    """Write a table of three call paths whose repetitions differ, each by a share of its own."""
    shares = {"main->compute": 0.001, "main->exchange": 0.3, "main->init": 0.05}
    path = folder / "varied.csv"
    rows = [
        f"{n},{where},time,{k},{(seconds(n) + n**1.5) * (1 + share * sign)}"
        for n in SIZES
        for where, share in shares.items()
        for k, sign in enumerate((1, -1, 0.3), start=1)
    ]
    path.write_text("n,callpath,metric,repetition,value\n" + "\n".join(rows) + "\n")
    return path


def test_what_is_shown_does_not_change_the_models() -> None:
    path = varied(Path.cwd())
    every = run("model", path, "--predict", "n=128", "--json").document["models"]
    for where in ("compute", "exchange", "init"):
        shown = run("model", path, "--predict", "n=128", "--callpath", where, "--json").document["models"]
        assert shown == [item for item in every if where in item["callpath"]]
        assert len(shown) == 1


def test_call_paths_that_are_not_there_are_named_with_some_that_are() -> None:
    result = refused(str(varied(Path.cwd())), "--callpath", "init", "--callpath", "nosuch")
    assert result.code == 2
    assert "--callpath 'nosuch' is in none of the 3 call paths: main->compute, main->exchange," in result.err


def test_a_shown_call_path_without_a_usable_value() -> None:
    rows = [f"{n},{where},{value}" for n in SIZES for where, value in (("main", n), ("broken", -1))]
    Path("measured.csv").write_text("n,callpath,value\n" + "\n".join(rows) + "\n")
    result = refused("measured.csv", "--callpath", "broken")
    assert result.code == 1
    assert "every value of broken is missing, negative or not finite" in result.err


@pytest.mark.slow
def test_a_long_list_of_models_ends_quietly_with_its_reader() -> None:
    rows = [f"{n},region{number},{n}" for n in SIZES for number in range(300)]
    Path("measured.csv").write_text("n,callpath,value\n" + "\n".join(rows) + "\n")
    process = start("model", "measured.csv")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=300) == 0


@pytest.mark.slow
def test_names_that_the_terminal_cannot_show() -> None:
    Path("measured.csv").write_text("n,callpath,value\n" + "".join(f"{n},größe,{n}\n" for n in SIZES))
    process = start("model", "measured.csv", environment={"PYTHONIOENCODING": "ascii"})
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "gr\\xf6\\xdfe" in out


def refused(*arguments: str) -> Result:
    result = run("model", *arguments)
    assert result.out == ""
    assert "Traceback" not in result.err
    return result


@pytest.mark.parametrize("point", ["n", "n=", "n=1,n=2", "m=4", "n=4,m=4", ""])
def test_a_point_that_does_not_fit(point: str) -> None:
    csv(Path.cwd())
    result = refused("measured.csv", "--predict", point)
    assert result.code == 2
    assert "n" in result.err


@pytest.mark.parametrize("value", ["many", "nan", "inf"])
def test_a_prediction_needs_a_number(value: str) -> None:
    csv(Path.cwd())
    result = refused("measured.csv", "--predict", f"n={value}")
    assert result.code == 2
    assert value in result.err


@pytest.mark.parametrize("value", ["-4", "0", "-1e-9", "1" + 400 * "0"])
def test_a_prediction_where_models_make_no_sense(value: str) -> None:
    csv(Path.cwd())
    result = refused("measured.csv", "--predict", f"n={value}")
    assert result.code == 2
    assert f"n={value}: " in result.err


def test_zero_is_predicted_where_zero_was_measured() -> None:
    rows = [f"{n},main,{seconds(n)}" for n in (0, *SIZES)]
    Path("measured.csv").write_text("n,callpath,value\n" + "\n".join(rows) + "\n")
    (model,) = run("model", "measured.csv", "--predict", "n=0", "--json").document["models"]
    assert model["predictions"][0]["value"] == pytest.approx(0.5, rel=0.01)


@pytest.mark.filterwarnings("error")
def test_a_prediction_beyond_all_numbers_is_a_dash_with_its_reason() -> None:
    path = varied(Path.cwd())
    result = run("model", path, "--predict", "n=1e300", "--predict", "n=64", "--callpath", "init")
    assert result.code == 0
    assert result.err == ""
    assert "note: main->init time: at n=1e+300 the prediction is not a finite number" in result.out
    assert "at n=64 the" not in result.out


@pytest.mark.filterwarnings("error")
def test_an_interval_without_a_finite_end_is_told_from_a_prediction_without_a_number() -> None:
    Path("one.csv").write_text("p,time\n8,1.0\n8,1.1\n")
    result = run("model", "one.csv", "--parameters", "p", "--predict", "p=1e300", "--predict", "p=9")
    assert result.err == ""
    assert "time: at p=1e+300 an interval has no finite end" in " ".join(result.out.split())
    assert "at p=9 an" not in result.out and "is not a finite number" not in result.out


def test_tables_name_the_metrics_whose_predictions_are_far_from_their_expressions() -> None:
    rows = "".join(f"{p},{100 * p / (1 + 0.02 * p):.4g},{0.1 * p}\n" for p in (1, 2, 4, 8, 16, 32, 64))
    Path("rates.csv").write_text(f"p,rate,time\n{rows}")
    result = run("model", "rates.csv", "--parameters", "p", "--modeler", "curves", "--predict", "p=1e5")
    assert "as other curves are possible, too: <root> rate" in " ".join(result.out.split())


def test_notes_that_many_call_paths_share_are_one_line() -> None:
    rows = "".join(f"{n},f{k},{k + 1 + n * k % 3}\n" for n in (1, 2) for k in range(20))
    Path("many.csv").write_text(f"n,callpath,value\n{rows}")
    notes = [line for line in run("model", "many.csv").out.split("note: ")[1:] if "noise is a guess" in line]
    assert [note.split(":")[0] for note in notes] == ["f0 <default> and 19 others"]
    assert "note: all notes of a call path: --callpath NAME" in run("model", "many.csv").out
    alone = run("model", "many.csv", "--callpath", "f7").out
    assert "note: f7 <default>: no point was repeated: the noise is a guess" in " ".join(alone.split())


def test_a_category_may_have_commas() -> None:
    rows = [f'{n},"{name}",{seconds(n * k)}' for n in SIZES for k, name in ((1, "cg, fast"), (10, "cg"))]
    Path("measured.csv").write_text("n,solver,time\n" + "\n".join(rows) + "\n")
    for point in ("n=100,solver=cg, fast", "solver=cg, fast, n=100"):
        result = run("model", "measured.csv", "--parameters", "n,solver", "--predict", point, "--json")
        assert result.code == 0, result.err
        models = {
            item["category"]["solver"]: item["predictions"][0]["value"] for item in result.document["models"]
        }
        assert models == {"cg": None, "cg, fast": pytest.approx(seconds(100), rel=0.02)}


def test_values_below_zero_are_predicted_where_such_were_measured() -> None:
    rows = [f"{t},{10 + 0.1 * t}" for t in (-40, -20, 0, 20, 40) for _ in range(2)]
    Path("measured.csv").write_text("temperature,time\n" + "\n".join(rows) + "\n")
    table = ("measured.csv", "--parameters", "temperature", "--json")
    (model,) = run("model", *table, "--predict", "temperature=-30").document["models"]
    assert model["predictions"][0]["value"] == pytest.approx(7, rel=0.1)


def test_a_category_is_predicted_only_if_it_was_measured() -> None:
    rows = [
        f"{n},{solver},{seconds(n * factor)}" for n in SIZES for solver, factor in (("cg", 1), ("lu", 10))
    ]
    Path("measured.csv").write_text("n,solver,time\n" + "\n".join(rows) + "\n")
    table = ("measured.csv", "--parameters", "n, solver")
    known = run("model", *table, "--predict", "n=100,solver=lu", "--json")
    assert known.code == 0, known.err
    found = {item["category"]["solver"]: item["predictions"][0]["value"] for item in known.document["models"]}
    assert found["cg"] is None
    assert found["lu"] == pytest.approx(seconds(1000), rel=0.02)
    text = run("model", *table, "--predict", "n=9,solver=lu", "--predict", "n=100,solver=lu").out
    assert "[solver=lu]" in text
    assert "[solver=cg] time at n=100, solver=lu: -\n" in text
    result = refused(*table, "--predict", "n=100,solver=qr")
    assert result.code == 2
    assert "cg, lu" in result.err


@pytest.mark.parametrize(
    "content", ["", "hello\n", "PARAMETER n\nPOINTS (1)\nREGION main\nMETRIC time\nDATA x\n"]
)
def test_a_file_that_holds_no_measurements(content: str) -> None:
    Path("file.txt").write_text(content)
    result = refused("file.txt")
    assert result.code == 1
    assert "file.txt" in result.err


@pytest.mark.parametrize(
    ("header", "options", "reason"),
    [
        ("p,s,time", (), "which columns are parameters?"),
        ("p,s,time", ("--parameters", "q"), "no column for parameter q"),
        ("p,s,time", ("--response", "time", "--parameters", "p,time"), "cannot be both"),
        ("p,s", (), "so it is not known which is which"),
    ],
)
def test_columns_that_options_must_tell_are_wrong_usage(
    header: str, options: tuple[str, ...], reason: str
) -> None:
    Path("table.csv").write_text(f"{header}\n1.5,2,3\n2,2,4\n")
    result = refused("table.csv", *options)
    assert (result.code, reason in result.err) == (2, True), result.err


def test_a_file_that_is_missing() -> None:
    result = refused("missing.txt")
    assert result.code == 2
    assert "missing.txt" in result.err


def test_a_campaign_directory_stands_alone() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    csv(Path.cwd())
    result = refused("rehearsal", "measured.csv")
    assert result.code == 2
    assert "export" in result.err


def test_options_of_files_that_a_campaign_directory_cannot_use_are_named() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    plain, told = run("model", "rehearsal"), run("model", "rehearsal", "--parameters", "n", "--inclusive")
    assert (told.code, told.out) == (0, plain.out)
    assert "note: rehearsal takes no --parameters, --inclusive: its journal says" in told.err
    assert "takes no" not in plain.err


def test_a_campaign_that_has_measured_nothing() -> None:
    write_campaign(Path.cwd(), LOCAL, "#!/bin/sh\nexit 1\n")
    run("run", "campaign.yaml")
    exported = run("export", "tiny", "--format", "csv")
    result = refused("tiny")
    assert (result.code, result.err) == (1, "error: tiny: the campaign has no measurements yet\n")
    assert exported.code == result.code


def test_intervals_of_several_levels_of_both_kinds() -> None:
    noisy = Path("noisy.csv")
    rows = [f"{n},main,time,{k},{seconds(n) * (0.95 + 0.05 * k)}" for n in SIZES for k in (0, 1, 2)]
    noisy.write_text("n,callpath,metric,repetition,value\n" + "\n".join(rows) + "\n")
    options = ("model", noisy, "--predict", "n=128", "--interval", "50,90,97.5")
    result = run(*options, "--json")
    assert result.code == 0, result.err
    (prediction,) = result.document["models"][0]["predictions"]
    found = {(item["level"], item["kind"]): (item["low"], item["high"]) for item in prediction["intervals"]}
    assert list(found) == [(level, kind) for level in (50, 90, 97.5) for kind in ("mean", "measured")]
    assert found[90, "mean"] == (prediction["low"], prediction["high"])
    for kind in ("mean", "measured"):
        ends = [found[level, kind] for level in (97.5, 90, 50)]
        assert ends == sorted(ends, key=lambda pair: pair[0] - pair[1])
    many = run(*options, "--runs", "1000000", "--json").document["models"][0]["predictions"][0]["intervals"]
    assert many[1]["high"] == pytest.approx(found[50, "mean"][1], rel=1e-3)
    assert found[50, "measured"][1] > 1.005 * found[50, "mean"][1]
    shown = run(*options).out
    assert "97.5 %" in shown and "the true mean" in shown and "one further run" in shown
    assert "intervals" not in run(*options[:-2], "--json").document["models"][0]["predictions"][0]


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ("0.9", "0.9 is no level of an interval: give percentages from 1 to below 100, such as 90"),
        ("50,100", "100 is no level of an interval"),
        ("nan", "nan is no level of an interval"),
        ("50,many", "'50,many' are no levels in percent, such as 50,80,95"),
        ("", "'' are no levels in percent"),
    ],
)
def test_impossible_levels_are_wrong_usage(levels: str, said: str) -> None:
    result = run("model", *csv(Path.cwd()), "--predict", "n=128", "--interval", levels)
    assert result.code == 2
    assert said in " ".join(result.err.split())


def test_intervals_need_a_point() -> None:
    result = run("model", *csv(Path.cwd()), "--interval", "50")
    assert result.code == 2
    assert "--predict" in result.err


def test_a_parameter_with_one_value_may_be_left_out_of_a_point() -> None:
    rows = [f"{n},cloud,0,main,time,{seconds(n)}" for n in SIZES]
    Path("measured.csv").write_text("n,machine,gpus,callpath,metric,value\n" + "\n".join(rows) + "\n")
    result = run("model", "measured.csv", "--modeler", "pmnf", "--predict", "n=128", "--json")
    assert result.code == 0, result.err
    (prediction,) = json.loads(result.out)["models"][0]["predictions"]
    assert prediction["point"] == {"n": 128, "machine": "cloud", "gpus": 0}
    result = run("model", "measured.csv", "--modeler", "pmnf", "--predict", "gpus=0")
    assert "lacks n" in result.err and "machine" not in result.err
