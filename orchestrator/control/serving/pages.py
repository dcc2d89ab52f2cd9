"""The pages around the reports. Whatever a campaign says is text here: all of it is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from orchestrator.control.serving.campaigns import Row
from orchestrator.report import html_parts, html_sections
from orchestrator.report.wording import last_event, moment
from orchestrator.types import Attempt

_STATES = ("running", "interrupted", "paused", "stopping", "stopped", "unreadable")
_HEADS = ("campaign", "state", "round", "runs", "cost", "uncertainty", "last event", "directory")


def overview(rows: Sequence[Row]) -> str:
    """Return the list of all campaigns, with a search field; scripts keep it up to date."""
    states = "".join(f"<option>{name}</option>" for name in _STATES)
    heads = "".join(f'<th scope="col">{name}</th>' for name in _HEADS)
    body = f"""
<main>
<h1>Campaigns</h1>
<p class="tools">
<label>Search <input type="search" id="search" autocomplete="off"></label>
<label>State <select id="state"><option value="">all</option>{states}</select></label>
<span id="live" role="status">not live</span>
</p>
<table id="campaigns"><thead><tr>{heads}</tr></thead>
<tbody>{"".join(map(overview_row, rows))}</tbody></table>
<p id="none" class="note"{" hidden" if rows else ""}>No campaign matches.</p>
</main>"""
    return _document("Campaigns", body, "")


def overview_row(row: Row) -> str:
    """Return one campaign as a row of the list."""
    key, name, state = row["key"], escape(row["campaign"]), escape(row.get("standing", row["state"]))
    head = f'<tr data-key="{key}" data-state="{state}">'
    link = f'<th scope="row"><a href="campaigns/{key}/">{name}</a></th>'
    where = f"<td>{escape(row.get('directory', ''))}</td></tr>"
    if row.get("error") or "round" not in row:
        said = escape(row.get("error") or "")
        return f'{head}{link}<td>{_badge(state)}</td><td colspan="5">{said}</td>{where}'
    runs = f"{row['measured']} measured" + (f", {row['in_flight']} in flight" if row["in_flight"] else "")
    runs += f", {row['given_up']} given up" if row["given_up"] else ""
    bar = f'<progress max="1" value="{row["share"]:.3f}" aria-label="share of the budget"></progress>'
    cells = (
        _badge(state),
        str(row["round"]),
        escape(runs),
        f"{bar} {escape(row['cost'])}",
        escape(row["uncertainty"] or "-"),
        escape(last_event(row["last"], row["virtual"])),
    )
    return head + link + "".join(f"<td>{cell}</td>" for cell in cells) + where


def _badge(state: str) -> str:
    return f'<span class="badge {state.replace(" ", "-")}">{state}</span>'


def campaign(row: Row) -> str:
    """Return the page of one campaign: where it stands, live, and its report in a frame of its own."""
    name = escape(row["campaign"])
    body = f"""
<header><a href="../../">All campaigns</a> <h1>{name}</h1>
<span id="live" role="status">not live</span></header>
<main id="campaign" data-key="{row["key"]}">
<details open><summary>Where it stands</summary><section id="status">reading ...</section></details>
<p class="tools"><span id="built" role="status"></span>
<a href="report" target="_blank">report in its own tab</a></p>
<iframe id="report" title="Report of {name}" src="report" sandbox="allow-scripts allow-downloads"></iframe>
</main>"""
    return _document(str(row["campaign"]), body, "../../")


def status(document: Mapping[str, Any]) -> str:
    """Return where a campaign stands as a part of its page."""
    flights = document["in_flight"]
    rows = [(item["run"], item["attempt"], item["state"], moment(item["since"])) for item in flights]
    table = html_parts.table(("run in flight", "attempt", "state", "since"), rows) if rows else ""
    note = document["models_note"]
    said = f'<p class="note">{escape(note)}</p>' if note else ""
    return html_sections.status_section(document) + said + table


def files(attempt: Attempt, sizes: Mapping[str, int]) -> str:
    """Return the list of the files of an attempt; it is served at the path of the attempt's directory."""
    folder, title = quote(f"attempt-{attempt.number}"), escape(attempt.id)
    items = "".join(
        f'<li><a href="{folder}/{quote(name)}">{escape(name)}</a> {size:,} bytes</li>'
        for name, size in sizes.items()
    )
    found = f"<ul>{items}</ul>" if items else "<p>Its files are gone, or were never written.</p>"
    back = '<p><a href="../../../report">Back to the report</a></p>'
    return _plain(title, f"{back}<h1>{title}</h1>{found}")


def waiting(error: str) -> str:
    """Return what stands in the place of a report that is not there yet."""
    again = '<meta http-equiv="refresh" content="3">' if not error else ""
    said = (
        escape(f"The report cannot be built: {error}")
        if error
        else "The report is being built: models are fitted."
    )
    return _plain("Report", f"<p>{said}</p>", again)


def _plain(title: str, body: str, head: str = "") -> str:
    """Return a page without scripts, for the frame of a report."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{head}<title>{title}</title>'
        "<style>:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}</style>"
        f"</head><body>{body}</body></html>"
    )


def _document(title: str, body: str, root: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><link rel="stylesheet" href="{root}live.css">'
        f'<script defer src="{root}live.js"></script></head>\n'
        f'<body data-root="{root}">{body}\n</body></html>\n'
    )
