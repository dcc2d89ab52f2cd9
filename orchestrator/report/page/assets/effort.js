// Effort: whether time follows the work that was counted, how long call paths wait, and what priors did to the models.

import { el, choice, folded, growths, table } from "./dom.js";
import { Figure, around, axis, tip } from "./charts.js";
import { unpackedCurve } from "./data.js";
import { interval, number, percent, place, plural, quantity, shortened } from "./format.js";
import { sidesFigure } from "./sides.js";

const MOST_BARS = 15;
const MOST_SENTENCES = 3;
const LEAST_BAR = 0.005; // of the longest waiting time

export function effortSection({ effort, priors }, models) {
  const counted = (effort?.callpaths ?? []).filter((item) => metrics(item).length);
  const waiting = effort?.waiting ?? [];
  return el("section", { id: "effort", "aria-labelledby": "effort-title" },
    el("h2", { id: "effort-title" }, "Effort and priors"),
    counted.length ? el("p", { class: "lead" }, "Effort counters count work: basic blocks of the program, and calls and bytes of MPI. ",
      "Counts hardly vary between runs. Where time grows faster than every count, a call path waits, or its work becomes slower.") : null,
    counted.length ? countsFigure(counted, models) : null,
    waiting.length ? waitingPart(waiting, models) : null,
    priors?.callpaths?.length ? priorsPart(priors, models) : null);
}

function nameOf(models, item) {
  const found = models.byId.get(item.id);
  if (!found) return String(item.id);
  const category = Object.keys(found.category ?? {}).length ? ` · ${place(found.category)}` : "";
  return `${models.brief.get(found.name) ?? found.name}${category}`;
}

function countsFigure(counted, models) {
  const draft = { item: counted[0], metric: metrics(counted[0])[0] };
  const countChoice = () => choice("Count", metrics(draft.item).map((name) => [name, worded(name)]), draft.metric,
    (metric) => { draft.metric = metric; figure.update(); });
  let counts = countChoice();
  const figure = new Figure({
    title: "Time against counts", name: "effort", height: 340,
    caption: "A mark is a measured point: mean time in seconds over the mean count. On a straight line of slope 1 time is proportional to the count; both axes are logarithmic.",
    controls: [
      choice("Call path", counted.map((item, index) => [index, nameOf(models, item)]), 0, (index) => {
        draft.item = counted[index];
        if (!metrics(draft.item).includes(draft.metric)) draft.metric = metrics(draft.item)[0];
        counts.replaceWith(counts = countChoice());
        figure.update();
      }), counts],
    option: (colours) => ({
      xAxis: axis(colours, worded(draft.metric), "log", around(points(draft).map((point) => point.value[0]))),
      yAxis: axis(colours, "time / s", "log", { ...around(points(draft).map((point) => point.value[1])), vertical: true }), legend: null,
      tooltip: { formatter: ({ data }) => tip(place(data.pair.point), [quantity(data.pair.seconds, "s"), `${number(data.value[0])} ${worded(draft.metric)}`]) },
      series: [{ type: "scatter", symbolSize: 8, itemStyle: { color: colours.s1, opacity: 0.85 }, data: points(draft) }],
    }),
    data: () => ({ columns: ["point", "time / s", ...metrics(draft.item).map(worded)], rows: draft.item.pairs.map((pair) =>
      [place(pair.point), number(pair.seconds), ...metrics(draft.item).map((name) => number(pair.counts[name]))]) }),
    label: () => `${plural(draft.item.pairs.length, "point")} of ${nameOf(models, draft.item)}.`,
  });
  return figure.element;
}

// Counts that are zero everywhere, such as the bytes of a barrier, have no place on a logarithmic axis.
function metrics(item) {
  return [...new Set((item.pairs ?? []).flatMap((pair) => Object.keys(pair.counts).filter((name) => pair.counts[name] > 0)))];
}

function points({ item, metric }) {
  return item.pairs.filter((pair) => pair.counts[metric] > 0 && pair.seconds > 0).map((pair) => ({ value: [pair.counts[metric], pair.seconds], pair }));
}

function worded(metric) {
  return metric.replaceAll("_", " ");
}

/** Waiting time: the bars at one point, all points of a call path as data, and the longest in words. */
function waitingPart(waiting, models) {
  const places = [...new Map(waiting.flatMap((item) => item.rows).map((row) => [placeKey(row), row])).values()];
  const ahead = places.find((row) => row.predicted);
  const draft = { key: placeKey(ahead ?? places[0]) };
  const bars = () => waiting.map((item) => ({ item, row: item.rows.find((row) => placeKey(row) === draft.key) })).filter(({ row }) => row)
    .sort((a, b) => b.row.waiting - a.row.waiting).filter(({ row }, index, all) => row.waiting >= LEAST_BAR * all[0].row.waiting).slice(0, MOST_BARS).reverse();
  const height = () => 110 + 24 * bars().length;
  const figure = new Figure({
    title: "Waiting time", name: "waiting", height: height(),
    caption: "Time minus the time that counts explain, in seconds. Counts explain as much as they can: each has the highest cost per count at which no measured time is exceeded. "
      + "The rest is waiting for others, or a cost that counts do not show (caches, memory, input and output). What a call path waits at all points alike is not seen.",
    controls: [choice("At", places.map((row) => [placeKey(row), `${place(row.point)}${row.predicted ? " (by the models)" : ""}`]), draft.key,
      (key) => { draft.key = key; figure.height = height(); figure.update(); })],
    option: (colours) => waitingOption(bars(), models, colours),
    data: () => ({ columns: ["call path", "time / s", "explained by counts / s", "waiting / s", "share", "more than noise"], rows: [...bars()].reverse().map(({ item, row }) =>
      [nameOf(models, item), number(row.seconds), number(row.explained), number(row.waiting), percent(row.share), row.clear ? "yes" : "no"]) }),
    label: () => bars().slice(-1).map(({ item, row }) => `Longest for ${nameOf(models, item)}: ${quantity(row.waiting, "s")} of ${quantity(row.seconds, "s")}.`).join(""),
  });
  const clear = waiting.filter((item) => item.rows.some((row) => row.clear && !row.predicted));
  const said = (clear.length ? clear : waiting).map((item) => el("li", {}, el("strong", {}, nameOf(models, item)), ": ", item.text));
  return el("div", { class: "part" }, figure.element, folded("ul", { class: "notes" }, said, MOST_SENTENCES, "call paths"));
}

function placeKey(row) {
  return `${row.predicted ? "+" : ""}${JSON.stringify(row.point)}`;
}

function waitingOption(bars, models, colours) {
  const stacked = (name, colour, size) => ({ name, type: "bar", stack: "time", barMaxWidth: 14, itemStyle: { color: colour },
    data: bars.map(({ item, row }) => ({ value: size(row), item, row })) });
  return {
    grid: { top: 40 },
    xAxis: axis(colours, "time / s", "linear", { min: 0, splitLine: { show: true, lineStyle: { color: colours.rule } } }),
    yAxis: axis(colours, "", "category", { vertical: true, data: bars.map((_, index) => index), splitLine: { show: false },
      axisLabel: { color: colours.ink, interval: 0, formatter: (index) => shortened(nameOf(models, bars[index].item), 34) } }),
    tooltip: { formatter: ({ data: { item, row } }) => tip(nameOf(models, item), [place(row.point), `${quantity(row.seconds, "s")}, of which counts explain ${quantity(row.explained, "s")}`,
      `waiting ${quantity(row.waiting, "s")} (${percent(row.share)})${row.clear ? "" : ": within the noise"}`]) },
    series: [stacked("explained by counts", colours.quiet, (row) => row.explained), stacked("waiting", colours.s2, (row) => row.waiting)],
  };
}

/** The models without and with priors: a figure of one at a time, and a table of all. */
function priorsPart({ sources, callpaths }, models) {
  const items = callpaths.map((item) => {
    const found = models.byId.get(item.id);
    const runs = () => models.runsOf(found).filter((run) => !run.validation);
    const aided = () => (found.curves ?? []).map((curve) => ({ line: curve.line, points: unpackedCurve(curve, models.lines[curve.line]) }));
    const unaided = () => item.without.curves.map((curve) => ({ line: curve.line, points: unpackedCurve(curve, models.lines[curve.line]) }));
    return { label: nameOf(models, item), name: found.name, metric: found.metric, unit: found.unit,
      sides: [{ curves: unaided, runs }, { curves: aided, runs }] };
  });
  const figure = models.lines.length ? sidesFigure({ title: "Models without and with priors", name: "priors", items, lines: models.lines,
    names: ["without priors", "with priors"], parameters: models.parameters, shared: true,
    caption: "Both are fitted to the same runs, which are the marks. Bands are 90 % intervals." }).element : null;
  const unit = (item) => models.byId.get(item.id)?.unit;
  const side = (item, found) => el("span", {}, quantity(found.value, unit(item)), el("span", { class: "detail" }, interval(found.low, found.high, unit(item))));
  const rows = callpaths.map((item) => [nameOf(models, item), grown(item.without), side(item, item.without), grown(item.with), side(item, item.with),
    el("span", {}, item.text, item.why.length ? el("span", { class: "detail" }, item.why.join("; ")) : null)]);
  return el("div", { class: "part" }, el("h3", {}, "How priors changed the models"),
    el("p", { class: "lead" }, `Priors come from ${sources.join(" and ")}. They say which growth is likely before times are known; the measured times decide how far that holds. `,
      "Predictions and 90 % intervals are at the point of the answer."),
    figure, tables(rows));
}

const HEADS = ["Call path", "Growth without", "Prediction without", "Growth with", "Prediction with", "What changed, and why"];

function tables(rows) {
  const first = table("Models without and with priors", HEADS, rows.slice(0, MOST_BARS));
  if (rows.length <= MOST_BARS) return first;
  return [first, el("details", { class: "data" }, el("summary", {}, `${rows.length - MOST_BARS} more call paths`),
    table("Models without and with priors, smaller call paths", HEADS, rows.slice(MOST_BARS)))];
}

function grown(side) {
  return side.growth.length ? growths(side.growth) : "–";
}
