// Why these points: the map of the search space, and what each round of measuring brought.

import { el, choice, table } from "./dom.js";
import { Figure, around, axis, tip, zoom } from "./charts.js";
import { cost, costUnit, inCostUnit, known, number, place, plural } from "./format.js";

const STATES = [
  ["measured", "circle", "s1"], ["next", "emptyCircle", "s2"], ["failed", "triangle", "bad"],
  ["infeasible", "rect", "quiet"], ["rejected", "emptyRect", "muted"],
  ["not chosen", "emptyCircle", "quiet"],
];
const STAR = "path://M10,0L12.4,7.2L20,7.3L13.9,11.8L16.2,19L10,14.6L3.8,19L6.1,11.8L0,7.3L7.6,7.2Z";
const UNSEEN = new Set(["infeasible", "not chosen"]); // no run there, so no reason to choose it
const SIZED = new Set(["measured", "next", "failed"]);

export function pointsSection(source, models, state) {
  const section = el("section", { id: "points", "aria-labelledby": "points-title" },
    el("h2", { id: "points-title" }, "Why these points"),
    el("p", { class: "lead" }, `Each mark is a point of the search space${scope(source.points ?? [])}; the larger a disc, the more was spent there. Hover over a `,
      "mark, or open the data below it, for the reason why it was or was not measured; the table sums the reasons up."));
  if (source.points?.length) section.append(mapFigure(source.points, models, source.head?.answer?.is_evaluation_point ? source.head.answer.point : null), reasons(source.points));
  if (source.rounds?.length) section.append(roundsFigure(source.rounds, source.head?.answer?.is_evaluation_point), roundsList(source.rounds));
  if (source.alternatives?.length) section.append(alternatives(source.alternatives));
  return section;
}

// Points that were never chosen are in the document of small spaces only, and have no place where the cost is an axis.
function scope(points) {
  const shown = Object.keys(points[0]?.point ?? {}).length > 1 && points.some((item) => item.state === "not chosen");
  return shown ? ", faint rings those that were never chosen" : " that was considered";
}

function mapFigure(points, models, target) {
  const names = models.parameters.length ? models.parameters.map((item) => item.name) : Object.keys(points[0].point);
  const draft = { x: names[0], y: names[1] ?? null };
  const options = names.map((name) => [name, name]);
  const set = (key, other) => (name) => {
    if (draft[other] === name) draft[other] = draft[key];
    draft[key] = name;
    figure.update();
  };
  const figure = new Figure({
    title: "Map of the search space", name: "points", height: 420, marks: points.length,
    caption: names.length > 2 ? "Points that differ in other parameters lie on top of each other." : "",
    controls: names.length > 2 ? [choice("→", options, draft.x, set("x", "y")), choice("↑", options, draft.y, set("y", "x"))] : [],
    option: (colours) => mapOption(points, models, draft, target, colours),
    data: () => ({ columns: ["point", "state", `${costUnit()} spent`, "runs", "round", "reason"], rows: points.map((item) =>
      [place(item.point), item.state, number(inCostUnit(item.cost)), number(item.runs), number(item.round), item.reason ?? ""]) }),
    label: () => STATES.map(([name]) => [points.filter((item) => item.state === name).length, name])
      .filter(([count]) => count > 0).map(([count, name]) => `${plural(count, "point")} ${name}`).join(", "),
  });
  return figure.element;
}

// A reason begins with its kind: "starting set, line of x: ...", "new point: ...".
function reasons(points) {
  const kinds = new Map();
  for (const item of points.filter((found) => found.reason && !UNSEEN.has(found.state))) {
    const kind = item.reason.split(/[:,;]/)[0];
    if (!kinds.has(kind)) kinds.set(kind, []);
    kinds.get(kind).push(item);
  }
  if (kinds.size === 0) return null;
  const sum = (items, key) => items.reduce((total, item) => total + (item[key] ?? 0), 0);
  const rows = [...kinds].sort(([, a], [, b]) => sum(b, "cost") - sum(a, "cost")).map(([kind, items]) => [kind, number(items.length),
    number(sum(items, "runs")), number(inCostUnit(sum(items, "cost"))), `${place(items[0].point)}: ${items[0].reason}`]);
  return el("div", { class: "part" }, table("Reasons why points were chosen first", ["Chosen first because", "points", "runs", `${costUnit()} spent`, "for example"], rows));
}

function mapOption(points, models, draft, target, colours) {
  const dearest = Math.max(...points.filter((item) => SIZED.has(item.state)).map((item) => item.cost ?? 0)) || 1;
  const sized = (item) => known(item.cost) && SIZED.has(item.state);
  const size = (item) => (sized(item) ? 10 + 22 * Math.sqrt(item.cost / dearest) : 7);
  const scale = (name) => {
    const parameter = models.parameter(name);
    if (parameter?.kind === "category" || typeof points[0].point[name] === "string") return "category";
    return parameter?.logarithmic ? "log" : "linear";
  };
  const along = (name) => axis(colours, name, scale(name), { stops: coordinates(points, name, target), vertical: name === draft.y,
    splitLine: { show: false }, scale: true, boundaryGap: ["6%", "6%"] });
  const vertical = draft.y === null ? axis(colours, `${costUnit()} spent`, "log", { vertical: true }) : along(draft.y);
  return {
    xAxis: along(draft.x), yAxis: vertical, dataZoom: zoom(colours),
    tooltip: { formatter: (hit) => mapTip(hit.data.item) },
    series: [...STATES.map(([name, symbol, colour]) => ({
      name, type: "scatter", symbol, itemStyle: { color: colours[colour], opacity: name === "measured" ? 0.75 : 0.9 },
      z: name === "next" || name === "failed" ? 4 : name === "not chosen" ? 2 : 3,
      data: points.filter((item) => item.state === name).map((item) => ({
        value: [item.point[draft.x], draft.y === null ? inCostUnit(item.cost) : item.point[draft.y]], symbolSize: size(item), item })),
    })).filter((series) => series.data.length), ...evaluation(target, draft, colours)],
  };
}

// Where the models must hold.
function evaluation(target, draft, colours) {
  if (!target || draft.y === null) return [];
  return [{ name: "evaluation point", type: "scatter", symbol: STAR, symbolSize: 18, z: 5, itemStyle: { color: colours.ink },
    data: [{ value: [target[draft.x], target[draft.y]], item: { point: target, state: "evaluation point" } }] }];
}

function coordinates(points, name, target) {
  const found = points.map((item) => item.point[name]);
  return [...new Set(target ? [...found, target[name]] : found)].sort((a, b) => a - b);
}

function mapTip(item) {
  const heading = `${place(item.point)}: ${item.state}`;
  const box = tip(heading, [known(item.cost) ? `${cost(item.cost)}${item.runs ? ` in ${plural(item.runs, "run")}` : ""}` : null, known(item.round) ? `round ${item.round}` : null]);
  if (item.reason) box.append(el("div", { class: "reason" }, item.reason));
  return box;
}

function roundsFigure(rounds, atPoint) {
  const there = rounds.filter((item) => known(item.uncertainty_percent));
  const figure = new Figure({
    title: "Uncertainty against cost", name: "rounds", height: 320,
    caption: `After every round: the width of the 90 % intervals ${atPoint === false ? "over the search space" : "at the evaluation point"} relative to the predictions, as a mean over call paths `
      + "weighted by their time, against the cost by then. Hollow marks: rounds that brought no gain.",
    option: (colours) => ({
      xAxis: axis(colours, `${costUnit()} spent`, "zero"), yAxis: axis(colours, "uncertainty / %", "log", { vertical: true, ...around(there.map((item) => item.uncertainty_percent)) }),
      legend: null,
      tooltip: { formatter: (hit) => roundTip(hit.data.item) },
      series: [{ type: "line", symbol: "circle", lineStyle: { width: 2, color: colours.accent }, data: there.map((item) => ({
        value: [inCostUnit(item.spent), item.uncertainty_percent], item, symbolSize: 9,
        itemStyle: { color: item.improved === false ? colours.paper : colours.accent, borderColor: colours.accent, borderWidth: 2 } })) }],
    }),
    data: () => ({ columns: ["round", `${costUnit()} spent`, "uncertainty / %", "points", "what happened"], rows: rounds.map((item) =>
      [number(item.round), number(inCostUnit(item.spent)), number(item.uncertainty_percent, 3), number(item.points), item.sentence ?? ""]) }),
    label: () => there.length ? `From ${number(there[0].uncertainty_percent, 3)} % after ${cost(there[0].spent)} to `
      + `${number(there.at(-1).uncertainty_percent, 3)} % after ${cost(there.at(-1).spent)}.` : "No uncertainty is known.",
  });
  return figure.element;
}

function roundTip(item) {
  const box = tip(`Round ${item.round}: ${number(item.uncertainty_percent, 3)} %`, [`${cost(item.spent)} spent`,
    known(item.points) ? plural(item.points, "point") : null, item.improved === false ? "no improvement" : null]);
  if (item.sentence) box.append(el("div", { class: "reason" }, item.sentence));
  return box;
}

function roundsList(rounds) {
  const said = rounds.filter((item) => item.sentence);
  if (said.length === 0) return "";
  return el("details", { class: "data" }, el("summary", {}, "What was decided in every round"),
    el("ol", { class: "rounds" }, said.map((item) => el("li", { value: item.round }, item.sentence))));
}

function alternatives(items) {
  return el("div", { class: "part" }, el("h3", {}, "What else the same budget could have done"),
    el("p", { class: "caption" }, "Whole runs with their launch, by the models of how long runs last."),
    table("Alternatives for the same budget", ["Alternative", costUnit()], items.map((item) => [item.text, number(inCostUnit(item.core_hours))])));
}
