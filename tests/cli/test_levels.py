"""Nodes, ranks per node and threads as the user of a campaign sees them: planned, rehearsed, replayed."""

from __future__ import annotations

import itertools
from pathlib import Path

from orchestrator.campaign import loader
from orchestrator.control.assembly import assemble
from orchestrator.control.shapes import kinds
from orchestrator.doctor import campaign as doctor
from orchestrator.journal.events import AttemptFinished
from orchestrator.journal.file import FILE_NAME, read
from tests.cli.running import LOCAL, run, write_campaign

LEVELS = (
    LOCAL.replace(
        "{name: local, slots: 1, max_pending: 1, launcher: none}",
        "{name: slurm, cores_per_node: 4, partition: debug, launcher: 'srun -n {ranks} -N {nodes}'}",
    )
    .replace(
        "{n: [1, 2, 3, 4, 5]}",
        "{nodes: [1, 2, 4], ppn: [1, 2, 4], t: [1, 2], n: [1, 2, 3]}\n"
        "resources: {nodes: nodes, ranks_per_node: ppn, threads: t}\n"
        'constraints: ["nodes * ppn == p", "ppn * threads <= 4"]',
    )
    .replace('["{n}"]', '["{n}", "{p}"]')
    .replace("{n: 8}", "{nodes: 8, ppn: 4, t: 1, n: 4}")
    .replace("1 core-hour", "20 core-hours")
)
SHAPES = [
    (nodes, ppn, t) for nodes, ppn, t in itertools.product((1, 2, 4), (1, 2, 4), (1, 2)) if ppn * t <= 4
]


def test_the_plan_shows_what_every_point_occupies() -> None:
    write_campaign(Path.cwd(), LEVELS)
    plan = run("plan", "campaign.yaml", "--json", "--points", "--no-rehearsal").document
    assert len(plan["points"]) == plan["space"]["points"] == 3 * len(SHAPES)
    for item in plan["points"]:
        point = item["point"]
        assert (item["nodes"], item["ranks_per_node"], item["threads"]) == tuple(
            point[name] for name in ("nodes", "ppn", "t")
        )
        assert item["ranks"] == point["nodes"] * point["ppn"]
        assert item["cores"] == item["ranks"] * point["t"]
    assert sorted((i["nodes"], i["ranks_per_node"], i["threads"]) for i in plan["resources"]) == SHAPES
    assert {item["points"] for item in plan["resources"]} == {3}
    for item in plan["runs"]:
        occupied = item["resources"]
        assert item["cores"] == occupied["cores"]
        assert f"srun -n {occupied['ranks']} -N {occupied['nodes']} " in item["script"]
    text = run("plan", "campaign.yaml", "--points", "--no-rehearsal").out
    assert "resources of a run:\n  1 node x 1 rank x 1 thread: 1 core, 3 points\n" in text
    assert "  4 nodes x 4 ranks x 1 thread: 16 cores, 3 points\n" in text
    assert "nodes=4, ppn=2, t=2, n=3 │ 4 nodes x 2 ranks x 2 threads │ 16" in text


def test_a_plan_of_single_cores_says_nothing_of_resources() -> None:
    write_campaign(Path.cwd(), LOCAL)
    assert "resources of a run" not in run("plan", "campaign.yaml", "--no-rehearsal").out


def test_the_doctor_lists_what_runs_occupy() -> None:
    write_campaign(Path.cwd(), LEVELS)
    check = doctor.occupied(kinds(assemble(loader.load(Path("campaign.yaml")))))
    assert check.detail.startswith("1 node x 1 rank x 1 thread (1 core); ")
    assert check.detail.endswith("3 others; 4 nodes x 4 ranks x 1 thread (16 cores)")


def points_of(directory: str) -> set[tuple[object, ...]]:
    """Return the levels of the points that a campaign has measured."""
    entries = read(Path(directory) / FILE_NAME)
    ended = [entry.event for entry in entries if isinstance(entry.event, AttemptFinished)]
    points = {event.attempt.run.point for event in ended if event.failure is None}
    return {tuple(point[name] for name in ("nodes", "ppn", "t")) for point in points}


def test_a_rehearsal_has_all_levels() -> None:
    write_campaign(Path.cwd(), LEVELS)
    result = run("simulate", "campaign.yaml", "--directory", "rehearsal")
    assert result.code == 0, result.err
    assert "n / nodes / ppn / t" in result.out + result.err
    measured = points_of("rehearsal")
    assert measured <= set(SHAPES)
    for place in range(3):
        assert len({levels[place] for levels in measured}) > 1


def test_measurements_of_all_levels_are_replayed() -> None:
    rows = ["nodes,ppn,t,n,callpath,time"]
    held = [levels for levels in SHAPES if levels[0] < 4]
    for nodes, ppn, t in held:
        for n, more in itertools.product((1, 2, 3), (0.0, 1e-3)):
            rows.append(f"{nodes},{ppn},{t},{n},main,{0.1 * nodes + n / (nodes * ppn * t) + more}")
    Path("data.csv").write_text("\n".join(rows) + "\n")
    write_campaign(Path.cwd(), LEVELS)
    rules = ("--set", "stop.patience=1", "--set", "model=pmnf", "--set", "strategy=cpf")
    result = run("simulate", "campaign.yaml", "--dataset", "data.csv", *rules, "--directory", "replay")
    assert result.code == 0, result.err
    measured = points_of("replay")
    assert measured and measured <= set(held)


def test_a_parameter_called_like_a_resource_is_remarked_if_it_is_none() -> None:
    remark = "note: parameter nodes does not change what a run requests; to request nodes, write resources"

    def planned(text: str) -> str:
        write_campaign(Path.cwd(), text)
        result = run("plan", "campaign.yaml", "--no-rehearsal")
        assert result.code == 0, result.err
        return " ".join(result.out.split())

    assert remark not in planned(LEVELS)
    without = LEVELS.replace("resources: {nodes: nodes, ", "resources: {")
    assert remark in planned(without)
    assert remark not in planned(without.replace("  output:", "  ranks: p\n  output:"))
