"""Models of a campaign that contradict each other are reported by status, report and models.json."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import SIMULATED, run, write_campaign

# Within the measured range the parent takes longest; beyond it, its parts overtake it.
TRUTH = '{main->Solve: "10 + s", main->Solve->a: "0.02 * s**2"}'
OLD = '{main: "1e-5 * s**3 + 0.2 * log2(p)"}'


def test_a_parent_that_its_parts_overtake_is_reported_everywhere() -> None:
    text = SIMULATED.replace(OLD, TRUTH).replace("s: 35", "s: 300")
    text = text.replace("noise: 2", "noise: 0.5").replace("failure_rate: 0.1", "failure_rate: 0")
    write_campaign(Path.cwd(), text, None)
    status = run("run", "campaign.yaml", "--json").document
    [item] = status["contradictions"]
    assert item["callpath"] == "main->Solve" and item["children"] == ["main->Solve->a"]
    assert item["value"] < 0.5 * item["children_total"]
    assert json.loads(Path("rehearsal/models.json").read_text())["contradictions"] == [item]
    shown = " ".join(run("status", "rehearsal").out.split())
    assert "contradiction: main->Solve: predicted" in shown
    warnings = run("report", "rehearsal", "--json").document["head"]["warnings"]
    assert any(text.startswith("contradiction: main->Solve: predicted") for text in warnings)


def test_consistent_models_are_not() -> None:
    text = SIMULATED.replace(OLD, '{main->Solve: "10 + s**2", main->Solve->a: "0.02 * s**2"}')
    text = text.replace("failure_rate: 0.1", "failure_rate: 0")  # nor does a run hang
    write_campaign(Path.cwd(), text, None)
    assert run("run", "campaign.yaml", "--json").document["contradictions"] == []
    assert "contradiction" not in run("status", "rehearsal").out
