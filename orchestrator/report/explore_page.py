"""An exploration for people: one self-contained HTML page, and a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rich.table import Table

from orchestrator.report import explore_figures, html_parts, noise_report
from orchestrator.report.explore import Exploration, Ranked
from orchestrator.report.explore_samples import Column
from orchestrator.report.noise_report import NoiseReport
from orchestrator.units import count

_STRONGEST = 4  # parameters that a line of the terminal's table names
_VISIBLE = 0.005  # share of variance below which nothing is to be seen
_CLUSTERS = (
    "Parameters (black) and responses (red) by what they have in common: the nearer to their names two of "
    "them are joined, the more alike they are. Parameters that join at more than 0.2 were hardly varied "
    "independently. One model can stand for all responses that join at 0.9 or more."
)
_RANKING = (
    "Explained is the share of the variance of the response's ranks that the parameter's ranks explain: a "
    "parabola of them, so that it is above Spearman's ρ² where the response rises and falls; for categories "
    "what remains after chance. Factor is the largest median of an interval over the smallest. Chance is the "
    "probability of so large a ρ, or of as much explained by categories, without any effect."
)
_ASSOCIATION = (
    "The response over intervals of each parameter, the strongest first; the figure beside its name is what "
    "it explains. Points are means, dashes medians, bars the middle half of the points in an interval; the "
    "grey line is the mean of all points."
)
_NOISE = (
    "How far repetitions lie apart: the range of their deviations from their mean, per call path and point. "
    "The outline shows how often a range occurs; lines are the smallest, the mean, the median (short) and "
    "the largest."
)


def page(exploration: Exploration, title: str, noise: NoiseReport | None) -> str:
    """Return the page: findings, clusters, noise, and for every response its ranking and associations."""
    samples = exploration.samples
    size = (
        f"{count(samples.points, 'point')}, {count(len(samples.parameters), 'parameter')}, "
        f"{count(len(samples.responses), 'response')}"
    )
    parts = [
        f"<h1>Exploration of {escape(title)}</h1>",
        f"<p>{escape(size)}</p>",
        *(f"<p>{escape(text)}</p>" for text in exploration.findings),
        *(f'<p class="note">{escape(text)}</p>' for text in samples.notes),
        "<h2>Clusters</h2>",
        f'<p class="note">{escape(_CLUSTERS)}</p>',
        html_parts.image(explore_figures.clusters(exploration), "clusters of parameters and responses"),
        *_noise(noise),
        "<h2>Responses</h2>",
        f'<p class="note">{escape(_RANKING)}</p>',
        f'<p class="note">{escape(_ASSOCIATION)}</p>',
    ]
    for response, ranks in exploration.rankings:
        metric = f" <small>{escape(response.unnamed_metric)}</small>" if response.unnamed_metric else ""
        parts.append(f"<h3>{escape(response.name)}{metric}</h3>")
        parts.append(_ranking(ranks))
        parts.append(html_parts.image(explore_figures.associations(response, ranks), response.name))
    return html_parts.document(f"Exploration of {title}", parts)


def _noise(noise: NoiseReport | None) -> list[str]:
    if noise is None:
        return []
    picture = html_parts.image(noise_report.violins(noise), "noise of repeated runs")
    return ["<h2>Noise</h2>", f'<p class="note">{escape(_NOISE)}</p>', picture]


def _ranking(ranks: Sequence[Ranked]) -> str:
    heads = ("parameter", "ρ", "explained", "factor", "chance", "points")
    rows = [
        (
            item.parameter.name,
            None if item.association.rho is None else html_parts.Number(f"{item.association.rho:+.2f}"),
            html_parts.Number(f"{item.explained:.2f}"),
            None if item.factor is None else html_parts.Number(f"{item.factor:.3g}"),
            html_parts.Number(f"{item.association.p_value:.2g}" if item.association.p_value else "< 1e-300"),
            item.association.points,
        )
        for item in ranks
    ]
    return html_parts.table(heads, rows)


def overview(exploration: Exploration) -> Table:
    """Return a line per response with its strongest parameters, for a terminal."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("response", overflow="fold")
    several = any(response.unnamed_metric for response, _ in exploration.rankings)
    if several:
        table.add_column("metric")
    table.add_column("explained by (+ rises, - falls, c category)", overflow="fold")
    for response, ranks in exploration.rankings:
        metric = [response.unnamed_metric] if several else []
        table.add_row(response.name, *metric, _strongest(response, ranks))
    return table


def _strongest(response: Column, ranks: Sequence[Ranked]) -> str:
    texts = []
    for item in ranks[:_STRONGEST]:
        if item.explained >= _VISIBLE:
            rho = item.association.rho
            sign = "c" if rho is None else "+" if rho > 0 else "-"
            texts.append(f"{item.parameter.name} {item.explained:.2f} {sign}")
    return (
        ", ".join(texts)
        or f"nothing that was varied ({response.name} is scatter, or was too rarely measured)"
    )
