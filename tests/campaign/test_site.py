"""Site files: where they are found, what they fill in, and how their mistakes are told."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import LocalOptions, SlurmOptions
from orchestrator.control import assembly, attempts
from orchestrator.errors import CampaignError
from orchestrator.executors.slurm.options import JobOptions
from orchestrator.types import Point

CAMPAIGN = """\
name: demo
application: generic
executable: /bin/true
program: {{arguments: ["{{p}}"], ranks: p, output: [{{callpath: main, pattern: "t=(.*)"}}]}}
parameters: {{p: [1, 48, 96, 256]}}
stop: {{budget: 100000}}
{rest}
"""


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No site file of the person who runs the tests counts."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("ORCHESTRATOR_SITE", raising=False)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def load(folder: Path, rest: str, *overrides: str) -> Campaign:
    return loader.load(write(folder / "campaign.yaml", CAMPAIGN.format(rest=rest)), overrides)


def mistakes(folder: Path, rest: str, *overrides: str) -> list[str]:
    with pytest.raises(CampaignError) as error:
        load(folder, rest, *overrides)
    return str(error.value).replace(f"{folder}/", "").splitlines()


def on_slurm(campaign: Campaign) -> SlurmOptions:
    """Return the executor's options of a campaign that runs on Slurm."""
    assert isinstance(campaign.executor, SlurmOptions)
    return campaign.executor


# --- what it fills in -----------------------------------------------------------------------------------


def test_a_site_fills_in_what_the_campaign_does_not_say(tmp_path: Path) -> None:
    site = write(tmp_path / "site.yaml", "account: p1\nqos: long\nmodules: [gcc/12]\nexclusive: true\n")
    loaded = load(tmp_path, "site: site.yaml\nexecutor: {name: slurm, qos: short}")
    options = on_slurm(loaded)
    assert (options.account, options.qos, options.modules, options.exclusive) == (
        "p1",
        "short",
        ("gcc/12",),
        True,
    )
    assert loaded.site == str(site)


def test_mappings_are_joined_and_lists_replaced(tmp_path: Path) -> None:
    write(tmp_path / "s.yaml", "environment: {A: 1, B: 2}\nsbatch: {mem: 1G}\nprologue: [one, two]\n")
    executor = "{name: slurm, environment: {B: 3}, sbatch: {switches: 1}, prologue: [three]}"
    options = on_slurm(load(tmp_path, f"site: s.yaml\nexecutor: {executor}"))
    assert options.environment == {"A": "1", "B": "3"}
    assert options.sbatch == {"mem": "1G", "switches": "1"}
    assert options.prologue == ("three",)


def test_a_site_that_is_named_chooses_the_executor(tmp_path: Path) -> None:
    write(tmp_path / "s.yaml", "partition: big\n")
    assert load(tmp_path, "site: s.yaml").executor.name == "slurm"
    write(tmp_path / "s.yaml", "name: local\nslots: 512\n")
    options = load(tmp_path, "site: s.yaml").executor
    assert isinstance(options, LocalOptions) and options.slots == 512


def test_a_site_does_not_concern_another_executor(tmp_path: Path) -> None:
    write(tmp_path / "s.yaml", "launcher: srun\nprologue: [module load x]\nnonsense: 1\n")
    loaded = load(tmp_path, "site: s.yaml\nexecutor: slurm", "executor.name=local", "executor.slots=512")
    assert (loaded.executor.launcher, loaded.executor.prologue, loaded.site) == (None, (), "")


@pytest.mark.parametrize("own", ["partition: fast", "by_size: [{partition: fast}]"])
def test_one_partition_replaces_several_and_the_other_way_round(tmp_path: Path, own: str) -> None:
    write(
        tmp_path / "s.yaml",
        "by_size: [{partition: a, up_to: 4}, {partition: b}]\n" if "s:" not in own else "partition: a\n",
    )
    options = on_slurm(load(tmp_path, f"site: s.yaml\nexecutor: {{name: slurm, {own}}}"))
    assert (options.partition, [item.partition for item in options.by_size]) in (
        ("fast", []),
        (None, ["fast"]),
    )


def test_the_dumped_campaign_needs_no_site_and_is_not_changed_by_one(tmp_path: Path) -> None:
    site = write(tmp_path / "s.yaml", "account: p1\nenvironment: {A: 1}\n")
    loaded = load(tmp_path, "site: s.yaml\nexecutor: slurm")
    site.write_text("qos: other\nenvironment: {C: 1}\n")
    again = write(tmp_path / "dumped.yaml", loader.dump(loaded))
    assert loader.load(again) == loaded
    site.unlink()
    os.environ["ORCHESTRATOR_SITE"] = "nowhere"
    try:
        assert loader.load(again) == loaded
    finally:
        del os.environ["ORCHESTRATOR_SITE"]


def test_a_template_is_found_beside_the_site_file(tmp_path: Path) -> None:
    write(tmp_path / "etc" / "s.yaml", "template: own.sh\n")
    own = write(tmp_path / "etc" / "own.sh", "{{prologue}}\n{{environment}}\nsrun {{command}}\n")
    assert load(tmp_path, "site: etc/s.yaml").executor.template == str(own)
    write(tmp_path / "etc" / "s.yaml", "template: slurm\n")
    assert load(tmp_path, "site: etc/s.yaml").executor.template == "slurm"


# --- where it is found ----------------------------------------------------------------------------------


def test_a_name_leads_to_the_configuration_folder(tmp_path: Path) -> None:
    write(tmp_path / "config/measurement-orchestrator/sites/lab.yaml", "account: lab\n")
    assert on_slurm(load(tmp_path, "site: lab")).account == "lab"
    (line,) = mistakes(tmp_path, "site: lub")
    assert line.startswith(
        "campaign.yaml:7: site: no site 'lub'; tried config/measurement-orchestrator/sites/lub.yaml"
    )


def test_the_variable_counts_where_the_campaign_names_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHESTRATOR_SITE", str(write(tmp_path / "a.yaml", "account: a\n")))
    write(tmp_path / "config/measurement-orchestrator/site.yaml", "account: b\n")
    assert on_slurm(load(tmp_path, "executor: slurm")).account == "a"
    monkeypatch.delenv("ORCHESTRATOR_SITE")
    assert on_slurm(load(tmp_path, "executor: slurm")).account == "b"
    assert on_slurm(load(tmp_path, "executor: slurm\nsite: none")).account is None
    assert load(tmp_path, "executor: {slots: 512}").site == "", (
        "what is not named is only for its own executor"
    )


def test_a_variable_that_leads_nowhere_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRATOR_SITE", "/no/such.yaml")
    assert "(from the variable ORCHESTRATOR_SITE)" in mistakes(tmp_path, "executor: slurm")[0]


# --- mistakes -------------------------------------------------------------------------------------------


def test_mistakes_of_both_files_are_reported_together_in_their_own_lines(tmp_path: Path) -> None:
    write(
        tmp_path / "s.yaml", "acount: p1\nqos: ${NO_SUCH_VARIABLE}\nbilling: sockets\nmodules: gcc\nqos: x\n"
    )
    unset = "the variable NO_SUCH_VARIABLE is not set; export it, or write ${NO_SUCH_VARIABLE:-default}"
    assert mistakes(tmp_path, "site: s.yaml\nseed: -1\nexecutor: {max_pending: 0}") == [
        "campaign.yaml:8: seed: must be at least 0 (value: -1)",
        "campaign.yaml:9: executor.max_pending: must be at least 1 (value: 0)",
        "s.yaml:1: executor.acount: unknown key; did you mean 'account'?",
        "s.yaml:2: executor.qos: is given twice, in lines 2 and 5; remove one",
        f"s.yaml:2: executor.qos: '${{NO_SUCH_VARIABLE}}': {unset}",
        's.yaml:3: executor.billing: unknown value; known: cores, nodes (value: "sockets")',
        's.yaml:4: executor.modules: must be a list such as [a, b] (value: "gcc")',
    ]


def test_what_the_campaign_replaces_cannot_be_wrong(tmp_path: Path) -> None:
    write(tmp_path / "s.yaml", "account: ${NO_SUCH_VARIABLE}\nbilling: 7\n")
    executor = "{name: slurm, account: mine, billing: nodes, cores_per_node: 256}"
    assert on_slurm(load(tmp_path, f"site: s.yaml\nexecutor: {executor}")).account == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", "site: s.yaml:1: a site file is a mapping"),
        ("a: [\n", "site: s.yaml:2: not valid YAML"),
        ("executor: {account: x}\n", "s.yaml:1: executor.executor: unknown key"),
        (
            "partition: a\nby_size: [{partition: b}]\n",
            "s.yaml:2: executor.by_size: executor.partition is given, too",
        ),
        ("by_size: [{partition: b}, {partition: c, up_to: 4}]\n", "executor.by_size: up_to must grow"),
        ("template: ./none.sh\n", "s.yaml:1: executor.template: 'none.sh' does not exist"),
        (
            "qos: x\nsbatch: {mem: 1G, time: 5}\n",
            "s.yaml:2: executor.sbatch.time: 'time' is chosen by the executor",
        ),
        (
            "sbatch:\n  gpus-per-node: 4\n",
            "s.yaml:2: executor.sbatch.gpus-per-node: write executor.gpus_per_node",
        ),
    ],
)
def test_a_bad_site_file(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path / "s.yaml", text)
    found = mistakes(tmp_path, "site: s.yaml")
    assert any(message in line for line in found), found


# --- partitions by size -----------------------------------------------------------------------------------

SIZES = """\
cores_per_node: 48
billing: nodes
qos: normal
by_size:
  - {partition: small, up_to: 48}
  - {partition: wide, up_to: 192, cores_per_node: 64, qos: big, constraint: amd}
"""


def job(loaded: Campaign, p: int) -> tuple[Any, ...]:
    resources = assembly.assemble(loaded).resources(Point.of(p=p))
    options = loaded.executor.model_dump()
    chosen = JobOptions(**{name: options[name] for name in JobOptions.__slots__}).fitting(resources)
    return chosen.partition, chosen.qos, chosen.constraint, resources.nodes, resources.cores


def test_a_run_goes_to_the_first_partition_that_takes_it(tmp_path: Path) -> None:
    write(tmp_path / "s.yaml", SIZES)
    loaded = load(tmp_path, "site: s.yaml")
    assert job(loaded, 1) == ("small", "normal", None, 1, 48)
    assert job(loaded, 48) == ("small", "normal", None, 1, 48)
    assert job(loaded, 96) == ("wide", "big", "amd", 2, 128)


def test_what_no_partition_takes_is_not_in_the_search_space(tmp_path: Path) -> None:
    write(tmp_path / "s.yaml", SIZES)
    built = assembly.assemble(load(tmp_path, "site: s.yaml"))
    assert [point["p"] for point in built.space] == [1, 48, 96]
    with pytest.raises(ValueError, match=r"256 cores are more than the 192 of the last of executor.by_size"):
        built.resources(Point.of(p=256))


# --- the documentation ------------------------------------------------------------------------------------

DOCUMENT = (Path(__file__).parents[2] / "docs" / "sites.md").read_text()


def test_the_site_of_the_documentation_is_valid(tmp_path: Path) -> None:
    site, sited = re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
    write(tmp_path / "lichtenberg.yaml", site)
    options = on_slurm(load(tmp_path, sited.partition("\n")[2].replace("name: lulesh-weak\n", "")))
    assert (options.account, options.qos, options.max_pending) == ("p0020", "long", 32)
    assert [item.partition for item in options.by_size] == ["small", "wide"]


def test_the_launch_script_of_the_documentation_has_a_place_for_everything(tmp_path: Path) -> None:
    (line,) = re.findall(r"^    (\{\{exec\}\}.*)$", DOCUMENT, re.MULTILINE)
    write(tmp_path / "own.sh", f"{{{{prologue}}}}\n{{{{environment}}}}\n{line}\n")
    write(tmp_path / "s.yaml", "template: own.sh\nepilogue: [date]\nmodules: [gcc]\n")
    loaded = load(tmp_path, "site: s.yaml")
    built = assembly.assemble(loaded)
    text = attempts.script(built, *_first(built))
    assert "\nexit " in text and "module load gcc" in text


def _first(built: assembly.Assembly) -> tuple[Any, ...]:
    point = next(iter(built.space))
    return point, built.resources(point)
