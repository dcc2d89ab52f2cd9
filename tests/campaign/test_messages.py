"""What is wrong in a campaign file is said with file, line, key, value and remedy, all at once."""

from __future__ import annotations

import re
import stat
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.campaign import loader
from orchestrator.campaign.messages import keys, places, sections_at
from orchestrator.campaign.schema import Document, SlurmOptions, json_schema
from orchestrator.errors import CampaignError

VALID = """\
name: lulesh-weak
application: lulesh
executable: 'true'
parameters:
  p: {values: [8, 27, 64]}
  s: {from: 10, to: 30, step: 5}
constraints: ["p * s**3 <= 4e6"]
evaluation_point: {p: 125, s: 35}
measure:
  profiler: stdout
  repetitions: {initial: 2, maximum: 10}
strategy: {name: gpr, batch_size: 4}
stop: {budget: 50 core-hours, patience: 3}
executor:
  name: slurm
  partition: debug
seed: 0
"""


def mistakes(text: str, *overrides: str) -> list[str]:
    with pytest.raises(CampaignError) as error:
        loader.loads(text, "f.yaml", overrides=overrides)
    return str(error.value).splitlines()


def test_the_example_is_valid() -> None:
    assert loader.loads(VALID).name == "lulesh-weak"


def golden() -> list[tuple[str, str, str]]:
    """Old text, new text, message."""
    text = (Path(__file__).parents[1] / "golden" / "campaign-mistakes.txt").read_text()
    blocks = [block.splitlines() for block in text.strip().split("\n\n")[1:]]
    changes = [(first.replace("\\n", "\n").split(" => "), message) for first, message in blocks]
    return [(old, new, message) for (old, new), message in changes]


@pytest.mark.parametrize(("old", "new", "message"), golden())
def test_one_mistake_is_one_line(old: str, new: str, message: str) -> None:
    assert VALID.count(old) == 1
    [found] = mistakes(VALID.replace(old, new))
    assert found == message or (message.endswith("...") and found.startswith(message[:-3]))


def test_required_keys_and_parameters() -> None:
    assert mistakes("seed: 1\n") == [
        "f.yaml:1: name: is required; add it",
        "f.yaml:1: application: is required; add it",
        "f.yaml:1: parameters: is required; add it",
        "f.yaml:1: stop: is required; add it",
        "f.yaml:1: executable: is required; give the path of the application's executable",
    ]
    [line] = mistakes(
        VALID.replace("  s: {from: 10, to: 30, step: 5}\n", "").replace(" * s**3", "").replace(", s: 35", "")
    )
    assert line.startswith("f.yaml:4: parameters: lulesh needs s (elements along")
    assert line.endswith("vary it or put it under settings")


def test_all_mistakes_are_reported_at_once_in_order_of_lines() -> None:
    text = (
        VALID.replace("executable", "exeutable")
        .replace("patience: 3", "patience: no")
        .replace("125, s: 35", "8, s: 10")
    )
    assert [line.split(": ", 2)[:2] for line in mistakes(text, "seed=x", "measure.profiler=cube")] == [
        ["f.yaml:3", "exeutable"],
        ["f.yaml:8", "evaluation_point"],
        ["f.yaml:13", "stop.patience"],
        ["--set measure.profiler=cube", "measure.profiler"],
        ["--set seed=x", "seed"],
    ]


SCHEMA = jsonschema.Draft202012Validator(json_schema())
PLACES = [path for path, _ in places(Document)]


_LISTS = (["output", "*"], ["by_size", "*"], ["metrics", "*"])


def _misspelt(key: str, kind: str, position: int, letter: str) -> str:
    position %= len(key)
    match kind:
        case "drop":
            return key[:position] + key[position + 1 :]
        case "double":
            return key[: position + 1] + key[position:]
        case "insert":
            return key[:position] + letter + key[position:]
        case "replace":
            return key[:position] + letter + key[position + 1 :]
        case _:
            return key[:position] + key[position : position + 2][::-1] + key[position + 2 :]


@given(
    st.sampled_from([path for path in PLACES if len(str(path[-1])) > 2]),
    st.sampled_from(["drop", "double", "insert", "replace", "swap"]),
    st.integers(0, 20),
    st.sampled_from("abcxyz_"),
)
def test_a_misspelt_key_is_named_with_a_known_one(
    path: tuple[str, ...], kind: str, position: int, letter: str
) -> None:
    *parents, key = path
    wrong = _misspelt(key, kind, position, letter)
    sections = sections_at(tuple(parents))
    assert sections
    if any(wrong in keys(section) for section in sections) or (
        key in ("name", "batch_size") and parents[:1] in (["strategy"], ["model"])
    ):
        return  # another key; options of strategies and modelers are tested with their factories
    data: Any = {wrong: None}
    for part in reversed(parents):
        data = [data] if part == "*" and parents[-2:] in _LISTS else {part: data}
    if len(parents) > 1 and parents[0] == "executor":
        data["executor"]["name"] = "slurm"  # which has every section within
    whole = yaml.safe_load(VALID)
    whole.pop(path[0], None)
    found = mistakes(yaml.safe_dump({**whole, **data}))
    hints = [line.partition(f"{wrong}: unknown key; did you mean ")[2] for line in found]
    known = {repr(name) for section in sections for name in keys(section)}
    assert any(hint.rstrip("?") in known for hint in hints)
    if any(hint == f"{key!r}?" for hint in hints):
        assert not any(line.endswith(f"{key}: is required; add it") for line in found)
    assert not SCHEMA.is_valid({**whole, **data})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.yaml:1: a campaign file is a mapping"),
        ("- a", "f.yaml:1: a campaign file is a mapping"),
        ("name: [a", "f.yaml:1: not valid YAML: expected ',' or ']'"),
        ("name: a\n\tseed: 1", "f.yaml:2: not valid YAML: found character '\\t' that cannot start any token"),
        ("name: a\n---\nname: b", "f.yaml:2: not valid YAML: but found another document"),
        ("name: *a", "f.yaml:1: not valid YAML: found undefined alias 'a'"),
        ("name: a\x00", "f.yaml:1: not valid YAML: unacceptable character"),
        ("a: " + "[" * 5000 + "]" * 5000, "f.yaml:1: nested too deeply"),
    ],
)
def test_what_is_not_yaml(text: str, message: str) -> None:
    assert mistakes(text)[0].startswith(message)


def test_aliases_within_aliases_do_not_fill_the_memory() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 40)]
    assert "more than" in mistakes("\n".join(lines))[0]
    assert "20 levels" in mistakes("a: &a [*a]")[0]


def test_variables_expand_or_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "debug")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("NOWHERE", raising=False)

    def partition(value: str) -> str | None:
        options = loader.loads(VALID.replace("partition: debug", f"partition: '{value}'")).executor
        assert isinstance(options, SlurmOptions)
        return options.partition

    assert partition("${WHERE}-${NOWHERE:-small}${NOWHERE:-}") == "debug-small"
    assert partition("${EMPTY:-small}") == "small"
    assert partition("$${WHERE} $WHERE $$") == "${WHERE} $WHERE $$"
    for value, message in (
        (
            "${NOWHERE}",
            "f.yaml:16: executor.partition: '${NOWHERE}': the variable NOWHERE is not set; export it",
        ),
        ("${EMPTY}", "f.yaml:16: executor.partition: '${EMPTY}': the variable EMPTY is empty; export it"),
        ("a ${1x} b", "f.yaml:16: executor.partition: '${1x}' names no variable; write ${NAME}"),
        ("${WHERE", "f.yaml:16: executor.partition: '${WHERE' names no variable; write ${NAME}"),
    ):
        [line] = mistakes(VALID.replace("partition: debug", f"partition: '{value}'"))
        assert line.startswith(message)
    [line] = mistakes(VALID.replace("'true'", "${NOWHERE}/bin/lulesh"))
    assert line.startswith("f.yaml:3: executable: '${NOWHERE}/bin/lulesh': the variable NOWHERE is not set")


def test_executables_are_searched_where_the_documentation_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def program(name: str, mode: int = stat.S_IRWXU) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(mode)
        return path

    def found(text: str) -> str:
        path = tmp_path / "campaigns" / "c.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(VALID.replace("'true'", text))
        return loader.load(path).executable

    beside, on_path, first = program("venv/tool"), program("path/other"), program("path/tool")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "python"))
    monkeypatch.setenv("PATH", f"{tmp_path}/missing:{tmp_path}/path")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    assert found("tool") == str(beside)
    assert found("other") == str(on_path)
    assert found("~/path/tool") == str(first)
    in_work, in_campaigns = program("work/run"), None
    assert found("./run") == str(in_work)
    in_campaigns = program("campaigns/run")
    assert found("./run") == str(in_campaigns)
    program("campaigns/data", stat.S_IRUSR)
    for text, message in (
        (
            "nothing",
            rf"executable: 'nothing' is neither in {tmp_path}/venv nor on PATH; correct it or set PATH",
        ),
        ("run", r"nor on PATH; for a file beside the campaign file write \./run"),
        ("./no", rf"'\./no' does not exist; tried {tmp_path}/campaigns/no and {tmp_path}/work/no"),
        ("./data", rf"cannot be executed: make it executable: chmod \+x {tmp_path}/campaigns/data"),
        (str(tmp_path), "cannot be executed: it is a folder"),
        ("''", "executable: is required"),
    ):
        with pytest.raises(CampaignError, match=rf"c\.yaml:3: executable: .*{message}|{message}"):
            found(text)


def test_datasets_and_templates_are_searched_beside_the_campaign_file(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("")
    (tmp_path / "my.sh").write_text("")
    path = tmp_path / "c.yaml"
    path.write_text(VALID)
    simulated = loader.load(path, ["executor={name: simulated, dataset: data.txt, template: my.sh}"])
    assert simulated.replayed == str(tmp_path / "data.txt")
    assert simulated.executor.template == str(tmp_path / "my.sh")
    assert loader.load(path, ["executor.template=slurm"]).executor.template == "slurm"
    with pytest.raises(
        CampaignError, match=rf"executor.dataset: 'no.txt' does not exist; tried {tmp_path}/no.txt"
    ):
        loader.load(path, ["executor={name: simulated, dataset: no.txt}"])
    with pytest.raises(CampaignError, match=r"executor.template: './no.sh' does not exist"):
        loader.load(path, ["executor.template=./no.sh"])


def test_launch_scripts_are_tried_before_anything_is_spent(tmp_path: Path) -> None:
    (tmp_path / "bad.sh").write_text("#!/bin/sh\n{{command}} {{rank}}\n")
    path = tmp_path / "c.yaml"
    path.write_text(VALID)
    for assignment, message in (
        (
            "executor.template=slrum",
            r"executor\.template: there is no frame 'slrum'; give a path or one of",
        ),
        (
            "executor.template=./bad.sh",
            rf"executor\.template: {tmp_path}/bad\.sh:2: unknown placeholder {{{{rank}}}}",
        ),
        (
            "executor.launcher=mpirun {rank}",
            r"executor\.launcher: '\{rank\}' in 'mpirun \{rank\}' is unknown; known",
        ),
        ("executor.launcher=mpirun '", r"executor\.launcher: .*No closing quotation"),
        ("executor.environment.OMP_NUM_THREADS=3", r"executor\.environment: OMP_NUM_THREADS=3, but the run"),
    ):
        with pytest.raises(CampaignError, match=rf"^(--set {re.escape(assignment)}|{path}:14): {message}"):
            loader.load(path, [assignment])
        assert loader.load(path, [assignment, "executor.name=simulated", "executor.truth={main: '1'}"])


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match=r"nothing\.yaml: cannot be read: No such file or directory"):
        loader.load(tmp_path / "nothing.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"name: \xe4\n")
    with pytest.raises(CampaignError, match=r"latin\.yaml: is not UTF-8 text \(byte 6\)"):
        loader.load(tmp_path / "latin.yaml")


def test_overrides_replace_values_as_if_they_stood_in_the_file() -> None:
    loaded = loader.loads(
        VALID,
        overrides=[
            "stop.budget=5 core-hours",
            "parameters.p.values=[1, 8]",
            "parameters.s=[10, 20]",
            "constraints.0=p < 9",
            "strategy=full",
            "strategy.batch_size=2",
            "executor.sbatch.mail-type=END",
            "retries.parse=3",
            "evaluation_point=",
        ],
    )
    text = VALID.replace("50 core-hours", "5 core-hours").replace("[8, 27, 64]", "[1, 8]")
    text = text.replace("{from: 10, to: 30, step: 5}", "[10, 20]").replace("p * s**3 <= 4e6", "p < 9")
    text = text.replace("name: gpr, batch_size: 4", "name: full, batch_size: 2")
    text = text.replace("evaluation_point: {p: 125, s: 35}\n", "")
    text = text.replace(
        "partition: debug", "partition: debug\n  sbatch: {mail-type: END}\nretries: {parse: 3}"
    )
    assert loaded == loader.loads(text)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("seed", "--set seed: write key.path=value"),
        ("=1", "--set =1: write key.path=value"),
        ("stop..budget=1", "--set stop..budget=1: write key.path=value"),
        ("seed.x=1", "--set seed.x=1: seed is 0, so seed.x cannot be set"),
        ("constraints.1=p<1", "--set constraints.1=p<1: constraints has only 1 items, counted from 0"),
        ("seed=[1", "--set seed=[1:1: not valid YAML"),
        ("seed={a: 1, a: 2}", "--set seed={a: 1, a: 2}: seed.a: is given twice"),
        ("stop.patienec=1", "--set stop.patienec=1: stop.patienec: unknown key; did you mean 'patience'?"),
        ("strategy=gqr", "--set strategy=gqr: strategy.name: unknown strategy; did you mean 'gpr'?"),
    ],
)
def test_mistakes_in_overrides_name_the_override(assignment: str, message: str) -> None:
    assert mistakes(VALID, assignment)[0].startswith(message)


@pytest.mark.parametrize(
    ("written", "value"),
    [("1e3", 1000.0), ("010", 10), ("0x10", 16), ("0o10", 8), ("1_000", 1000), ("-.5", -0.5),
     ("on", "on"), ("yes", "yes"), ("12:30", "12:30"), ("2024-01-01", "2024-01-01"),
     ("'1'", "1"), ("!!str 1", "1"), ("y", "y")],
)  # fmt: skip
def test_scalars_follow_yaml_1_2(written: str, value: object) -> None:
    head = "name: x\napplication: generic\nexecutable: 'true'\nprogram: {}\nmeasure: {profiler: time}\n"
    text = f"{head}parameters: {{no: [1, 2]}}\nstop: {{budget: 1}}\nsettings: {{on: {written}}}\n"
    loaded = loader.loads(text)
    assert loaded.settings == {"on": value}
    assert type(loaded.settings["on"]) is type(value)
    assert [item.name for item in loaded.parameters] == ["no"]


def test_messages_contain_no_jargon_of_the_validator() -> None:
    text = re.sub(r"(?m)^(\w+):.*", r"\1: [{}]", VALID)
    for line in mistakes(re.sub(r"(?m)^ .*\n", "", text)):
        assert "Input should" not in line
        assert "pydantic" not in line
