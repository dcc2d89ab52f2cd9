"""Campaign files: what they load as, and that saved ones load as the same campaign."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic.fields import FieldInfo

from orchestrator import registry
from orchestrator.campaign import loader
from orchestrator.campaign.messages import places
from orchestrator.campaign.schema import Document, Section, json_schema
from orchestrator.errors import CampaignError
from orchestrator.types import FailureClass, Point

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "campaign-file.md"
MINIMAL = """\
name: x
application: lulesh
executable: 'true'
parameters: {p: [1, 8], s: [10, 15]}
stop: {budget: 1}
"""


def examples() -> list[str]:
    """The complete campaigns in the documentation."""
    blocks = DOCUMENTATION.read_text().split("```yaml\n")[1:]
    return [text for block in blocks if (text := block.partition("```")[0]).startswith("name:")]


@pytest.fixture(params=range(len(examples())))
def example(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LULESH", sys.executable)
    program = tmp_path / "stencil"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = tmp_path / "campaign.yaml"
    path.write_text(examples()[request.param])
    return path


def test_documented_campaigns_load_and_satisfy_the_schema(example: Path) -> None:
    loaded = loader.load(example)
    validator = jsonschema.Draft202012Validator(json_schema())
    validator.validate(yaml.safe_load(example.read_text()))
    validator.validate(dict(loaded.raw))


def test_a_saved_campaign_loads_as_the_same_campaign(example: Path, tmp_path: Path) -> None:
    loaded = loader.load(example)
    saved = tmp_path / "elsewhere" / "campaign.yaml"
    saved.parent.mkdir()
    saved.write_text(loader.dump(loaded))
    again = loader.load(saved)
    assert again == loaded
    assert loader.dump(again) == loader.dump(loaded)
    assert json.loads(json.dumps(loaded.raw)) == loaded.raw


def test_reports_need_no_file_of_the_machine_that_measured(example: Path) -> None:
    loaded = loader.load(example, ["executor.template=null"])
    text = loader.dump(loaded).replace(loaded.executable or "no path", "/gone/program")
    path = example.with_name("gone.yaml")
    path.write_text(text.replace("template: null", "template: /gone/script.sh"))
    elsewhere = loader.load(path, starts=False)
    assert elsewhere.parameters == loaded.parameters
    assert elsewhere.executor.template == "/gone/script.sh"
    with pytest.raises(CampaignError, match=r"executor.template: '/gone/script.sh' does not exist"):
        loader.load(path)


def test_a_campaign_has_resolved_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LULESH", sys.executable)
    loaded = loader.loads(examples()[0])
    assert loaded.executable == sys.executable
    assert [(item.name, item.values) for item in loaded.parameters] == [
        ("p", (8, 27, 64, 125)),
        ("s", (10, 15, 20, 25, 30)),
    ]
    assert loaded.evaluation_point == Point.of(p=216, s=35)
    assert loaded.stop.budget == 50 * 3600
    assert loaded.stop.wall_time == 12 * 3600
    assert loaded.retries == {
        FailureClass.INFRASTRUCTURE: 2,
        FailureClass.TIMEOUT: 1,
        FailureClass.MEMORY: 2,
        FailureClass.APPLICATION: 1,
        FailureClass.PARSE: 0,
    }
    assert loaded.values(Point.of(p=8, s=10)) == {"i": 20, "p": 8, "s": 10}
    assert loaded.application_spec.name == "lulesh"
    assert loaded.expression("p * s + i")({"p": 8, "s": 10, "i": 20}) == 100


def test_parameters_keep_the_order_of_the_file_and_points_follow_it() -> None:
    text = MINIMAL.replace("{p: [1, 8], s: [10, 15]}", "{s: [15, 10], p: [8, 1]}")
    loaded = loader.loads(text + "evaluation_point: {p: 27, s: 20.0}\nexecutor: slurm\n")
    assert [item.name for item in loaded.parameters] == ["s", "p"]
    assert loaded.evaluation_point is not None
    assert loaded.evaluation_point.items == (("s", 20), ("p", 27))
    assert loaded.evaluation_point.key == "s=20,p=27"


def test_times_are_durations_or_expressions() -> None:
    head = MINIMAL + "executor: slurm\nmeasure: "
    point = Point.of(p=8, s=10)
    loaded = loader.loads(head + "{time_limit: 5 min, expected_time: 2 + s / p}\n")
    assert loaded.time_limit(point) == 300
    assert loaded.expected_time(point) == 2 + 10 / 8
    assert loader.loads(head + "{time_limit: 90}").time_limit(point) == 90
    assert loader.loads(MINIMAL).time_limit(point) is None
    with pytest.raises(
        CampaignError, match=r"measure.time_limit: 12 - s gives -3 s at P\(p=1, s=15\); it must be"
    ):
        loader.loads(head + "{time_limit: 12 - s}")
    with pytest.raises(CampaignError, match=r"measure.time_limit: '12:30' may mean minutes or hours"):
        loader.loads(head + "{time_limit: 12:30}")
    with pytest.raises(CampaignError, match=r"measure.expected_time: .*unknown name 'q'"):
        loader.loads(head + "{expected_time: 12 * q}")


def test_validation_needs_an_evaluation_point_that_can_be_measured() -> None:
    text = MINIMAL + "evaluation_point: {p: 27, s: 20}\nvalidate: true\nexecutor: slurm\n"
    assert loader.loads(text).validate is True
    with pytest.raises(CampaignError, match=r"validate: needs an evaluation_point to measure"):
        loader.loads(text, overrides=["evaluation_point="])
    with pytest.raises(CampaignError, match=r"validate: P\(p=27, s=20\) cannot be measured: .* 8 slots"):
        loader.loads(text, overrides=["executor={name: local, slots: 8}"])
    with pytest.raises(CampaignError, match=r"measure.time_limit: 18 - s gives -2 s at P\(p=27, s=20\)"):
        loader.loads(text, overrides=["measure.time_limit=18 - s"])


def test_short_forms_equal_long_forms() -> None:
    long = (
        MINIMAL.replace("[1, 8]", "{values: [1, 8]}")
        + "strategy: {name: full}\nmodel: {name: pmnf}\nexecutor: {name: slurm}\n"
    )
    assert loader.loads(MINIMAL + "strategy: full\nmodel: pmnf\nexecutor: slurm\n") == loader.loads(long)


def test_swc_takes_the_options_of_the_normal_form() -> None:
    loaded = loader.loads(MINIMAL + "model: {name: swc, trust: 0.8, members: 300}\n")
    assert loaded.model.options == {"trust": 0.8, "members": 300}


def test_options_go_to_the_factory() -> None:
    loaded = loader.loads(MINIMAL + "strategy: {name: gpr, batch_size: 2, cost_weight: 2}\n")
    assert loaded.strategy.options == {"cost_weight": 2}
    registry.load("strategy", "gpr")(**loaded.strategy.options)
    with pytest.raises(
        CampaignError, match=r"strategy.cost_weigth: .* has no option.*did you mean 'cost_weight'\?"
    ):
        loader.loads(MINIMAL + "strategy: {name: gpr, cost_weigth: 2}\n")
    with pytest.raises(CampaignError, match=r"strategy.batch_sise: .*did you mean 'batch_size'\?"):
        loader.loads(MINIMAL + "strategy: {name: gpr, batch_sise: 2}\n")
    with pytest.raises(CampaignError, match=r"strategy.cost_weight: .*valid number.*'2'"):
        loader.loads(MINIMAL + "strategy: {name: gpr, cost_weight: '2'}\n")
    with pytest.raises(CampaignError, match=r"model.membres: .*did you mean 'members'\?"):
        loader.loads(MINIMAL + "model: {name: pmnf, membres: 2}\n")


def test_rehearsals_need_neither_executable_nor_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LULESH", raising=False)
    text = examples()[0].replace("name: slurm", "name: simulated\n  truth: {main: 's**3 / p'}")
    text = text.replace("  partition: debug\n", "")
    loaded = loader.loads(text)
    assert loaded.executable == "${LULESH}"
    assert loader.loads(loader.dump(loaded)) == loaded
    with pytest.raises(CampaignError, match=r"executor: the simulated executor needs executor.truth, "):
        loader.loads(text, overrides=["executor.truth={}"])
    with pytest.raises(CampaignError, match=r"executor.truth.main: .*unknown name 'q'"):
        loader.loads(text, overrides=["executor.truth.main=q"])


PITFALLS = (
    "1e3", "on", "12:30", "010", "0x1f", "1_0", ".inf", "~", "null", "2024-01-01", "${A}", "$${B", "$A",
    "<<", "=", "#x", "'", '"', "%", "@", "`", "*", "&", "!", "|", ">", "-", "?", ":", "",
)  # fmt: skip
SCALARS = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12),
    st.sampled_from([" x ", "x\n", "\t", "- a", "a: b", "!!str 1", "\x85", *PITFALLS]),
)
NAMES = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
NUMBERS = st.one_of(st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False))
OPTIONS = st.none() | st.sampled_from(["1G", "a b", "it's", "$x"])


@st.composite
def raw_campaigns(draw: st.DrawFn) -> dict[str, Any]:
    values = draw(st.lists(st.integers(1, 1000), min_size=1, max_size=4, unique=True))
    sizes = draw(st.sampled_from([{"from": 0.1, "to": 0.5, "step": 0.1}, {"values": ["a", "on", "1e3"]}]))
    text = draw(SCALARS).replace("{", "(").replace("}", ")")
    seconds = draw(st.floats(0.1, 1e6))
    metrics = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    settings = st.dictionaries(NAMES.map("set_{}".format), st.one_of(NUMBERS, SCALARS), max_size=3)
    return {
        "name": draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)),
        "application": "generic",
        "executable": "true",
        "settings": draw(settings),
        "program": {"arguments": ["{p}"], "files": {"in": text}},
        "parameters": {"p": {"values": values}, "q": sizes},
        "measure": {"profiler": "scorep", "time_limit": seconds, "metrics": metrics},
        "stop": {"budget": draw(st.floats(1e-3, 1e9)), "wall_time": seconds},
        "executor": {
            "name": "slurm",
            "prologue": draw(st.lists(SCALARS, max_size=3)),
            "environment": draw(st.dictionaries(NAMES, SCALARS, max_size=2)),
            "sbatch": draw(st.dictionaries(st.sampled_from(["mem", "mail_type"]), OPTIONS)),
        },
        "seed": draw(st.integers(0, 2**64)),
    }


@given(raw_campaigns())
def test_any_campaign_survives_dumping_and_loading(raw: dict[str, Any]) -> None:
    text = yaml.safe_dump(raw, default_style='"').replace("${", "$${")
    loaded = loader.loads(text)
    assert dict(loaded.settings) == raw["settings"]
    assert list(loaded.executor.prologue) == raw["executor"]["prologue"]
    assert loader.loads(loader.dump(loaded)) == loaded
    assert json.loads(json.dumps(loaded.raw)) == loaded.raw


@given(st.text(alphabet="ab:[]{}-,'\"#&*!|> \n0.$", max_size=60))
def test_any_text_is_a_campaign_or_an_error_with_file_and_line(text: str) -> None:
    with pytest.raises(CampaignError, match=r"^f\.yaml:"):
        loader.loads(text, "f.yaml")


def rows() -> dict[str, str]:
    """Key -> default, from the table of the documentation."""
    cells = [line.split(" | ") for line in DOCUMENTATION.read_text().splitlines() if line.startswith("| `")]
    return {row[0].strip("| `"): row[1].strip("`") for row in cells}


def written(field: FieldInfo) -> str:
    """The default of a key, as it stands in the documentation."""
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    match default:
        case None:
            return "none"
        case Section():
            return "see below"
        case bool():
            return str(default).lower()
        case tuple():
            return f"[{', '.join(str(getattr(item, 'name', item)) for item in default)}]"
        case _:
            return str(default) or '""'


def test_the_documentation_names_every_key_with_its_default() -> None:
    wanted = {".".join(map(str, path)): written(field) for path, field in places(Document)}
    wanted["executor.slots"] = "cores of this machine"
    assert rows() == wanted
