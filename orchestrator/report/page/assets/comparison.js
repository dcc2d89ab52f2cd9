// Two campaigns side by side: what became slower, how sure that is, and what differs around them.

import { el, button, scrolling } from "./dom.js";
import { Figure, axis, tip } from "./charts.js";
import { floats, unpackedCurve } from "./data.js";
import { briefNames, interval, known, number, percent, plural, shortened } from "./format.js";
import { sidesFigure } from "./sides.js";

const SURE = 0.95;
const MOST_SHOWN = 30;

export function comparisonSections(comparison) {
  const [a, b] = comparison.names;
  const section = el("section", { id: "comparison", "aria-labelledby": "comparison-title" },
    el("h2", { id: "comparison-title" }, `${b} against ${a}`),
    el("p", { class: "lead" }, `The ratio is the value of ${b} divided by that of ${a}: above 1 ${b} ${comparison.rows?.every(isTime) ? "is slower" : "has more, and of a time it is slower"}. `,
      "Lines are 90 % intervals; a filled mark is a change that is real with at least 95 % probability."));
  const rows = [...(comparison.rows ?? [])];
  const both = bothFigure(comparison);
  const choose = both?.select ? (row) => { const index = comparison.rows.indexOf(row); if (index < comparison.pairs.length) both.select(index); } : null;
  if (rows.length) section.append(summary(rows, comparison.names), ratioFigure(rows, choose).element);
  if (both) section.append(both.element);
  if (rows.length) section.append(rowsTable(rows));
  if (comparison.facts?.length) section.append(el("h3", { class: "part" }, "What differs around them"), factsTable(comparison));
  return [section];
}

// The models and the runs of both, of one call path at a time.
function bothFigure(comparison) {
  const { names, rows, pairs = [], lines = [], points = [], parameters = [] } = comparison;
  if (pairs.length === 0 || lines.length === 0) return null;
  const nameOf = naming(rows);
  const items = pairs.map((pair, index) => ({
    label: nameOf(rows[index]),
    name: rows[index].callpath, metric: rows[index].metric, unit: rows[index].unit,
    sides: pair.map((side, at) => ({
      curves: () => side.curves.map((found) => ({ line: found.line, points: unpackedCurve(found, lines[found.line]) })),
      runs: () => [...floats(side.measured)].map((value, run) => ({ point: points[at][run], value })).filter((run) => Number.isFinite(run.value)),
    })),
  }));
  const few = pairs.length < rows.length ? ` Of ${plural(rows.length, "call path")} the ${pairs.length} that changed most.` : "";
  return sidesFigure({ title: "Both against their data", name: "both", names, items, lines, parameters,
    caption: `Lines are the models, bands their 90 % intervals, marks single runs.${few} A click on a call path above shows it here.` });
}

function isSure(row) {
  return row.probability >= SURE;
}

// More time is slower; what more of a rate or of a counter means, nothing here says.
function isTime(row) {
  return row.unit === "s";
}

// Names of rows: of call paths, with their metrics where there are several.
function naming(rows) {
  const brief = briefNames(rows.map((row) => row.callpath));
  const several = new Set(rows.map((row) => row.metric)).size > 1;
  return (row) => `${brief.get(row.callpath)}${several ? ` · ${row.metric}` : ""}`;
}

function summary(rows, [a, b]) {
  const times = rows.filter(isTime), others = rows.filter((row) => !isTime(row));
  const changed = (some) => [some.filter((row) => isSure(row) && row.ratio > 1).length, some.filter((row) => isSure(row) && row.ratio < 1).length];
  const [slower, faster] = changed(times), [more, less] = changed(others);
  const texts = [];
  if (times.length) texts.push(`of ${plural(times.length, others.length ? "time" : "call path")}, ${number(slower)} became slower and ${number(faster)} faster`);
  if (others.length) texts.push(`of ${plural(others.length, "other value")}, ${number(more)} became larger and ${number(less)} smaller`);
  const text = texts.join("; ");
  return el("p", { class: "big small-big" }, slower + faster + more + less === 0 ? `No call path changed beyond noise between ${a} and ${b}.`
    : `${text[0].toUpperCase()}${text.slice(1)}, each with at least 95 % probability.`);
}

function ratioFigure(rows, choose) {
  const away = (row) => Math.abs(Math.log(row.ratio));
  const shown = rows.filter((row) => row.ratio > 0).sort((x, y) => isSure(y) - isSure(x) || away(y) - away(x)).slice(0, MOST_SHOWN).reverse();
  return new Figure({
    title: "Ratio per call path", name: "ratios", height: 110 + 24 * shown.length,
    caption: rows.length > MOST_SHOWN ? `The ${MOST_SHOWN} call paths that changed most; all are in the table below.` : "",
    option: (colours) => ratioOption(shown, rows, colours),
    data: () => ({ columns: ["call path", "metric", "ratio", "90 % interval", "probability"], rows: [...shown].reverse().map(cells) }),
    click: choose ? ({ dataIndex }) => choose(shown[dataIndex]) : null,
    label: () => `${plural(shown.filter(isSure).length, "call path")} with a change that is real with at least 95 % probability.`,
  });
}

function cells(row) {
  return [row.callpath, row.metric, number(row.ratio), interval(row.low, row.high), percent(row.probability)];
}

function ratioOption(rows, all, colours) {
  const nameOf = naming(all);
  const colour = (row) => (!isSure(row) ? colours.muted : !isTime(row) ? colours.accent : row.ratio > 1 ? colours.bad : colours.good);
  const bounds = rows.flatMap((row) => [row.low, row.high, row.ratio]).filter((x) => x > 0);
  return {
    legend: null, grid: { top: 12 },
    xAxis: axis(colours, "ratio", "log", { min: Math.min(0.9, ...bounds) * 0.97, max: Math.max(1.1, ...bounds) * 1.03,
      splitLine: { show: true, lineStyle: { color: colours.rule } } }),
    yAxis: axis(colours, "", "category", { vertical: true, data: rows.map((_, index) => index), splitLine: { show: false },
      axisLabel: { color: colours.ink, interval: 0, formatter: (index) => shortened(nameOf(rows[index]), 34) } }),
    tooltip: { formatter: ({ data }) => ratioTip(data.row) },
    series: [{ type: "custom", clip: true, encode: { x: [1, 2, 3], y: 0 }, data: rows.map((row, index) => ({ row,
      value: [index, row.low ?? row.ratio, row.ratio, row.high ?? row.ratio] })),
    renderItem: (context, api) => whisker(api, colour(rows[context.dataIndex]), isSure(rows[context.dataIndex]), colours),
    markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: colours.ink, width: 1.2, type: "solid" }, data: [{ xAxis: 1 }] } }],
  };
}

function whisker(api, colour, filled, colours) {
  const [low, middle, high] = [1, 2, 3].map((index) => api.coord([api.value(index), api.value(0)]));
  return { type: "group", children: [
    { type: "line", shape: { x1: low[0], y1: low[1], x2: high[0], y2: high[1] }, style: { stroke: colour, lineWidth: 2 } },
    { type: "circle", shape: { cx: middle[0], cy: middle[1], r: 5 }, style: { fill: filled ? colour : colours.paper, stroke: colour, lineWidth: 2 } }] };
}

function ratioTip(row) {
  const box = tip(`${row.callpath} · ${row.metric}`, [`${number(row.ratio, 3)}× (${interval(row.low, row.high)})`, `real with ${percent(row.probability)} probability`]);
  if (row.sentence) box.append(el("div", { class: "reason" }, row.sentence));
  return box;
}

const COLUMNS = [["callpath", "Call path"], ["ratio", "Ratio", true], ["high", "90 % interval", true],
  ["probability", "Probability of a change", true], ["sentence", "What changed"]];

function rowsTable(rows) {
  const state = { key: "probability", descending: true, limit: 50 };
  const body = el("tbody");
  const more = el("p", { class: "more" });
  const heads = COLUMNS.map(([key, text, right]) => el("th", { scope: "col", class: right ? "number" : null },
    button(text, () => { state.descending = state.key === key ? !state.descending : true; state.key = key; show(); }, { class: "sort" })));
  const nameOf = naming(rows);
  const show = () => {
    const sorted = [...rows].sort((x, y) => (state.descending ? -1 : 1) * compare(x[state.key], y[state.key]));
    body.replaceChildren(...sorted.slice(0, state.limit).map((row) => rowElement(row, nameOf)));
    heads.forEach((head, index) => {
      if (COLUMNS[index][0] === state.key) head.setAttribute("aria-sort", state.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    more.replaceChildren(...(sorted.length > state.limit ? [button(`Show all ${sorted.length}`, () => { state.limit = Infinity; show(); })] : []));
  };
  show();
  return el("div", { class: "part" }, scrolling("Compared call paths", el("table", { class: "compact comparison" },
    el("caption", { class: "unseen" }, "Compared call paths"), el("thead", {}, el("tr", {}, heads)), body)), more);
}

function rowElement(row, nameOf) {
  const kind = !isSure(row) || !isTime(row) ? "" : row.ratio > 1 ? "slower" : "faster";
  return el("tr", {}, el("th", { scope: "row", title: row.callpath }, nameOf(row)),
    el("td", { class: `number ${kind}` }, known(row.ratio) ? `${number(row.ratio, 3)}×` : "–"),
    el("td", { class: "number" }, interval(row.low, row.high)),
    el("td", { class: "number" }, percent(row.probability)), el("td", {}, row.sentence ?? ""));
}

function compare(x, y) {
  if (typeof x === "string") return x.localeCompare(y ?? "");
  return (x ?? -Infinity) - (y ?? -Infinity) || 0;
}

function factsTable({ names, facts }) {
  const differs = (item) => item.a !== item.b;
  return scrolling("Facts of both", el("table", { class: "compact" }, el("caption", { class: "unseen" }, "Facts of both"),
    el("thead", {}, el("tr", {}, ["", ...names].map((text) => el(text ? "th" : "td", { scope: text ? "col" : null }, text)))),
    el("tbody", {}, facts.map((item) => el("tr", { class: differs(item) ? "differs" : null },
      el("th", { scope: "row" }, item.label), el("td", {}, item.a ?? "–"), el("td", {}, item.b ?? "–"))))));
}
