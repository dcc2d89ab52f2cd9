"""The uncertainty at P₊ is one number: in reasons, the journal, the log, the status and the report."""

from __future__ import annotations

import re
from pathlib import Path

from orchestrator import units
from orchestrator.control import session
from orchestrator.control.runtime import fit
from orchestrator.journal import events
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.measurements import measurements
from orchestrator.journal.replay import replay
from orchestrator.models import uncertainty
from orchestrator.models.selection import modeler
from orchestrator.report import event_text, html_sections, status, status_text
from tests.control.campaigns import load

REASON = re.compile(r"lowers the uncertainty at P\(p=16, n=50\) from (.+?) to ([^(]+?) \(")


def test_the_reasons_the_log_the_status_and_the_report_have_the_same_uncertainty(tmp_path: Path) -> None:
    chosen = load("stop.budget=0.3 core-hours", "executor.noise=8", "model=auto")
    directory = tmp_path / "campaign"
    session.run(chosen, directory)
    entries = list(read(directory / FILE_NAME))

    width, compared = None, 0
    for entry in entries:
        event = entry.event
        if isinstance(event, events.RoundCompleted):
            width = event.width
            shown = "" if width is None else f"uncertainty at the evaluation point {100 * width:.3g} %"
            assert width is None or width > 10 or shown in event_text.describe(event)
        if isinstance(event, events.RoundProposed) and width is not None:
            found = REASON.search(event.reasons[0])
            if found:
                assert found[1] == units.uncertainty(width)
                assert _share(found[2]) <= _share(found[1])
                compared += 1
    assert compared >= 2

    state = replay(entries)
    known = measurements(state, chosen.parameters)
    models = fit(modeler(), known)
    point = chosen.evaluation_point
    assert point is not None
    expected = uncertainty.at(models, point).width
    assert expected is not None and state.uncertainty == expected
    document = status.document(state, models, known, point)
    assert document["uncertainty_percent"] == 100 * expected
    text = f"uncertainty at the evaluation point: {100 * expected:.3g} % (mean width of the 90 % intervals)"
    assert text in " ".join(status_text.plain_text(document).split())
    assert text in html_sections.status_section(document)


def _share(text: str) -> float:
    number, _, unit = text.partition(" ")
    return float(number) / (100 if unit == "%" else 1)
