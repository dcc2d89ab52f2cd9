"""The list of campaigns: kept only on request, found by program and parameters."""

import errno
import os
from pathlib import Path

import pytest

from orchestrator.control import store
from tests.cli.running import LOCAL, PROGRAM, run, write_campaign

OTHER = LOCAL.replace("name: tiny", "name: other").replace("n: [1, 2, 3, 4, 5]", "m: [1, 2, 3]")
OTHER = OTHER.replace("{n: 8}", "{m: 8}").replace('"{n}"', '"{m}"')


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("ORCHESTRATOR_SITE", raising=False)
    return tmp_path


def names(*options: str) -> list[str]:
    return [row["name"] for row in run("campaigns", *options, "--json").document["campaigns"]]


def started(text: str = LOCAL, directory: str = "tiny") -> None:
    write_campaign(Path.cwd(), text, PROGRAM)
    done = run("run", "campaign.yaml", "--directory", directory)
    assert done.code == 0, done.err


@pytest.mark.slow
def test_nothing_is_listed_before_it_is_asked_for(home: Path) -> None:
    started()
    assert not (home / "data").exists()
    found = run("campaigns")
    assert found.code == 2 and "orchestrator campaigns --keep" in found.err


@pytest.mark.slow
def test_a_campaign_that_the_user_has_linked_under_another_name_is_not_linked_again(home: Path) -> None:
    assert run("campaigns", "--keep").code == 0
    (home / "data/orchestrator/campaigns/mine").symlink_to("../../../work/tiny")
    started()
    assert [path.name for path in (home / "data/orchestrator/campaigns").iterdir()] == ["mine"]


@pytest.mark.slow
def test_campaigns_are_listed_from_then_on_and_older_ones_on_request() -> None:
    started(directory="older")
    assert run("campaigns", "--keep").code == 0
    assert names() == []
    started(directory="newer")
    assert names() == ["tiny"]
    assert names("--keep", "older") == ["tiny", "tiny"]
    assert names("--keep", "older") == ["tiny", "tiny"]  # not twice
    [newest, oldest] = run("campaigns", "--json").document["campaigns"]
    assert Path(newest["directory"]).name == "newer" and Path(oldest["directory"]).name == "older"
    assert newest["state"] == "stopped" and newest["spent"] > 0 and newest["parameters"] == ["n"]
    text = run("campaigns").out
    assert "generic" in text and "stopped" in text and "2 campaigns" in text


@pytest.mark.slow
def test_those_like_another_have_its_program_and_some_of_its_parameters() -> None:
    run("campaigns", "--keep")
    started()
    started(OTHER, "other")
    write_campaign(Path.cwd(), LOCAL, PROGRAM)
    assert names("--like", "campaign.yaml") == ["tiny"]
    assert names("--like", "other") == ["other"]
    Path("campaign.yaml").write_text(LOCAL.replace("./program.sh", "./another.sh"))
    assert names("--like", "campaign.yaml") == []


@pytest.mark.slow
def test_rehearsals_are_not_listed_and_deleted_campaigns_are_gone() -> None:
    run("campaigns", "--keep")
    started()
    assert run("simulate", "campaign.yaml", "--directory", "rehearsal", "--truth", "main=n").code == 0
    assert names() == ["tiny"]
    Path("tiny").rename("moved")
    [row] = run("campaigns", "--json").document["campaigns"]
    assert row["state"] == "gone"


@pytest.mark.slow
def test_a_site_file_names_the_folder(home: Path) -> None:
    site = home / "config" / "measurement-orchestrator" / "site.yaml"
    site.parent.mkdir(parents=True)
    site.write_text("name: local\ncampaigns: all\n")
    assert run("campaigns", "--keep").code == 0
    started()
    assert os.listdir(site.parent / "all") == ["tiny"] and names() == ["tiny"]  # noqa: PTH208
    site.write_text("name: local\ncampaigns: [a]\n")
    refused = run("campaigns")
    assert refused.code == 2 and "give the path of a folder" in refused.err


def test_a_directory_without_a_campaign_is_refused_before_anything_is_created(home: Path) -> None:
    Path("empty").mkdir()
    found = run("campaigns", "--keep", "empty")
    assert found.code != 0 and "empty" in found.err
    assert not (home / "data").exists()


@pytest.mark.slow
def test_a_campaign_runs_although_its_link_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    run("campaigns", "--keep")
    monkeypatch.setattr(Path, "symlink_to", refused)
    write_campaign(Path.cwd(), LOCAL, PROGRAM)
    done = run("run", "campaign.yaml", "--directory", "tiny")
    assert done.code == 0 and "not added to the list of campaigns" in done.out + done.err
    assert names() == []


def test_a_link_that_leads_nowhere_harms_no_other(home: Path) -> None:
    folder = store.folder(os.environ)
    store.create(folder)
    (folder / "loop").symlink_to(folder / "loop")
    (home / "loop").mkdir()
    assert store.add(home / "loop", os.environ) is None and (folder / "loop-2").resolve() == home / "loop"
    assert store.add(home / "loop", os.environ) is None
    assert [(row["name"], row["state"]) for row in store.listed(folder)] == [
        ("loop", "gone"),
        ("loop-2", "gone"),
    ]


def test_a_campaign_that_this_user_may_not_read_is_listed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied")

    folder = store.folder(os.environ)
    store.create(folder)
    assert store.add(home, os.environ) is None
    monkeypatch.setattr(store, "holds_campaign", refused)
    [row] = store.listed(folder)
    assert row["state"] == "unreadable" and "Permission denied" in row["error"]
