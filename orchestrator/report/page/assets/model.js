// One call path: its model against the data, along one parameter, over two, and measured against predicted.

import { el, button, badges, choice, formula, growths } from "./dom.js";
import { Figure, axis, band, tip, zoom } from "./charts.js";
import { interval, known, number, percent, place, plural, quantity, short, value } from "./format.js";

const MOST_GROUPS = 6;
const CROSS = "path://M0,1L1,0L5,4L9,0L10,1L6,5L10,9L9,10L5,6L1,10L0,9L4,5Z";
const LABELLED_CELLS = 120;
const LABELLED_ROWS = 9;
const BAND = "90 % interval of the mean";

export function modelSection(models, state) {
  const section = el("section", { id: "model", "aria-labelledby": "model-title", tabindex: "-1" },
    el("h2", { id: "model-title" }, "Model and data"),
    el("p", { class: "lead" }, "Points are single runs. The thick line is the model at the sliders’ point with its ",
      "90 % interval as a band; thin lines are the model where the runs of the same colour were measured. ",
      "Diamonds were measured to check the model and never used for fitting; crosses are runs far from the others at their point."),
    picker(models, state), card(models, state));
  const numbers = models.numbers().map((item) => item.name);
  if (numbers.length > 0) section.append(curveFigure(models, state, numbers));
  const pair = el("div", { class: "pair" });
  if (numbers.filter((name) => models.stops(name).length > 1).length > 1) pair.append(heatFigure(models, state, numbers));
  if (models.callpaths.some((item) => item.measured && item.predicted_at_runs)) pair.append(parityFigure(models, state));
  if (pair.childElementCount) section.append(pair);
  return section;
}

function chosen(models, state) {
  return models.byId.get(state.get("selected"));
}

// Names may be long and many: a text field that completes them.
function picker(models, state) {
  const names = models.callpaths.map((item) => label(models, item));
  const list = el("datalist", { id: "callpath-names" }, names.map((text) => el("option", { value: text })));
  const input = el("input", { list: list.id, spellcheck: "false", id: "callpath-picker" });
  const choose = () => {
    const index = names.indexOf(input.value);
    if (index >= 0) state.set({ selected: models.callpaths[index].id });
  };
  input.addEventListener("change", choose);
  const step = (by) => () => {
    const index = models.callpaths.indexOf(chosen(models, state));
    state.set({ selected: models.callpaths[(index + by + names.length) % names.length].id });
  };
  const update = () => { input.value = label(models, chosen(models, state)); };
  state.when(["selected"], update);
  update();
  return el("div", { class: "filters" }, el("label", { class: "choice grow" }, el("span", {}, "Call path"), input), list,
    button("←", step(-1), { "aria-label": "Previous call path" }), button("→", step(1), { "aria-label": "Next call path" }),
    el("a", { href: "#tree", class: "back" }, "Back to the call tree"));
}

function label(models, item) {
  const several = models.metrics().length > 1 ? ` · ${item.metric}` : "";
  const category = Object.keys(item.category ?? {}).length ? ` · ${place(item.category)}` : "";
  return `${item.name}${several}${category}`;
}

/** What is known of the call path in words: formula, prediction, error, notes. */
function card(models, state) {
  const holder = el("div", { class: "card", "aria-live": "polite" });
  const update = () => holder.replaceChildren(...cardParts(models, state));
  state.when(["selected", "indices"], update);
  update();
  return holder;
}

function cardParts(models, state) {
  const item = chosen(models, state);
  const found = models.at(item, state.get("indices"));
  const figures = [
    ["Prediction", quantity(found.value, item.unit), place(models.point(state.get("indices")))],
    ["90 % interval", interval(found.low, found.high, item.unit), null],
    ["Error on its data", known(item.smape) ? `${short(item.smape, 2)}\u202f%` : null, "SMAPE"],
    ["Noise", known(item.noise) ? percent(item.noise) : null, "between runs of one point"],
    ["Grows as", (item.growth ?? []).length ? growths(item.growth) : null, null],
    ["Runs", models.runsOf(item).length ? number(models.runsOf(item).length) : null, null],
  ].filter(([, text]) => text !== null);
  return [
    el("p", { class: "formula-line", tabindex: "0" }, el("strong", {}, models.brief.get(item.name)),
      formula(item, "block")),
    el("dl", { class: "facts plain" }, figures.map(([name, text, detail]) => el("div", {}, el("dt", {}, name),
      el("dd", {}, text, detail ? el("span", { class: "detail" }, detail) : null)))),
    item.badges?.length ? el("p", {}, badges(item.badges)) : null,
    item.notes?.length ? el("ul", { class: "notes" }, item.notes.map((note) => el("li", {}, note))) : null,
    copies(item),
  ].filter(Boolean);
}

function copies(item) {
  const forms = [["LaTeX", item.latex], ["Python", item.python], ["C", item.c]].filter(([, text]) => text);
  if (forms.length === 0) return null;
  return el("div", { class: "copies" }, el("span", { class: "muted" }, "Copy the formula as "),
    forms.map(([name, text]) => button(name, (event) => copied(event.target, text), { class: "small" })));
}

async function copied(target, text) {
  try {
    await navigator.clipboard.writeText(text);
    target.textContent = "copied";
  } catch {
    // Pages opened from a file may not write to the clipboard everywhere: then the text is there to be marked.
    target.replaceWith(el("code", {}, text));
  }
}

/** Runs in groups that share all parameters but one, the largest groups first. */
function groups(models, item, name) {
  const found = new Map();
  for (const run of models.runsOf(item)) {
    const others = Object.entries(run.point).filter(([other]) => other !== name);
    const key = JSON.stringify(others);
    if (!found.has(key)) found.set(key, { at: Object.fromEntries(others), runs: [] });
    found.get(key).runs.push(run);
  }
  const largest = [...found.values()].sort((a, b) => b.runs.length - a.runs.length);
  const shown = largest.slice(0, MOST_GROUPS);
  shown.sort((a, b) => inOrder(Object.values(a.at), Object.values(b.at)));
  const rest = largest.slice(MOST_GROUPS).flatMap((group) => group.runs);
  return rest.length ? [...shown, { at: null, runs: rest }] : shown;
}

function inOrder(a, b) {
  const index = a.findIndex((item, at) => item !== b[at]);
  if (index < 0) return 0;
  return typeof a[index] === "number" ? a[index] - b[index] : String(a[index]).localeCompare(String(b[index]));
}

function curveFigure(models, state, numbers) {
  const draft = { name: numbers[0], x: null, y: "linear" };
  const process = models.parameters.find((item) => item.processes && numbers.includes(item.name));
  if (process) draft.name = process.name;
  const update = () => figure.update();
  const set = (key) => (text) => { draft[key] = text; update(); };
  const scales = [["linear", "linear"], ["log", "logarithmic"]];
  const controls = [
    numbers.length > 1 ? choice("Along", numbers.map((name) => [name, name]), draft.name, set("name")) : null,
    choice("Axis →", [["", "automatic"], ...scales], "", set("x")),
    choice("Axis ↑", scales, "linear", set("y"))].filter(Boolean);
  const figure = new Figure({
    title: "Model against data", name: "model-and-data", height: 440, controls,
    caption: "Band: of the mean; single runs scatter more, so a diamond may lie outside it and within the interval of a single run. Drag to move, ctrl and wheel or the slider below to zoom.",
    option: (colours) => curveOption(models, state, draft, colours),
    data: () => curveData(models, state, draft),
    label: () => curveLabel(models, state, draft),
  });
  state.when(["selected", "indices"], update);
  return figure.element;
}

function curveLabel(models, state, draft) {
  const item = chosen(models, state);
  const line = curve(models, state, draft.name).filter((point) => known(point.value));
  if (line.length === 0) return `${item.name}: no prediction along ${draft.name}`;
  const [first, last] = [line[0], line.at(-1)];
  return `${item.name} along ${draft.name}: ${quantity(first.value, item.unit)} at ${value(first.x)}, `
    + `${quantity(last.value, item.unit)} at ${value(last.x)}, with ${plural(models.runsOf(item).length, "run")}.`;
}

function curve(models, state, name) {
  return curveAt(models, chosen(models, state), name, models.point(state.get("indices")));
}

/** The model along a parameter: the smooth curve of the document where it is for this point, or between stops. */
function curveAt(models, item, name, point) {
  const smooth = models.curvesOf(item, name).find((found) => Object.entries(found.at ?? {})
    .every(([other, at]) => other === name || point[other] === at));
  if (smooth) return smooth.points;
  const indices = models.indices({ ...point, [name]: models.stops(name)[0] });
  return indices === null ? [] : refined(models.slice(item, name, indices));
}

const BETWEEN = 8;

// Between stops the drawing follows powers, which models are made of: a straight line would bend on a logarithmic axis.
function refined(points) {
  return points.flatMap((from, index) => {
    const to = points[index + 1];
    if (to === undefined) return [from];
    return Array.from({ length: BETWEEN }, (_, step) => (step === 0 ? from : between(from, to, step / BETWEEN)));
  });
}

function between(from, to, part) {
  const powers = ["x", "value", "low", "high"].every((key) => !(from[key] <= 0) && !(to[key] <= 0));
  const mixed = (key) => (powers ? from[key] ** (1 - part) * to[key] ** part : from[key] * (1 - part) + to[key] * part);
  return { x: mixed("x"), value: mixed("value"), low: mixed("low"), high: mixed("high") };
}

function curveOption(models, state, draft, colours) {
  const item = chosen(models, state);
  const { name } = draft;
  const parameter = models.parameter(name);
  const main = curve(models, state, name);
  const others = elsewhere(item, name, models.point(state.get("indices")));
  const title = others ? `model at ${others}` : "model";
  const scale = draft.x || (parameter.logarithmic ? "log" : "linear");
  const found = groups(models, item, name);
  const series = [
    band(BAND, main, colours.accent),
    line(title, main, colours.accent, { lineStyle: { width: 2.5, color: colours.accent }, z: 4,
      markLine: changes(models, item, name, colours) }),
    here(models, state, name, colours),
    ...found.flatMap((group, index) => groupSeries(models, item, name, group, colourOf(found, index, colours), colours)),
  ];
  return {
    xAxis: axis(colours, name, scale, { stops: models.stops(name), max: "dataMax" }),
    yAxis: axis(colours, item.unit ? `${item.metric} / ${item.unit}` : item.metric, draft.y, { vertical: true }),
    legend: { data: [title, BAND, ...found.map((group) => groupName(item, name, group))] },
    dataZoom: zoom(colours), series,
    tooltip: { trigger: "item", formatter: (hit) => curveTip(item, name, hit) },
  };
}

function colourOf(found, index, colours) {
  if (found[index].at === null) return colours.quiet;
  return colours.series[(found.length === 1 ? 0 : index + 1) % colours.series.length];
}

function groupName(item, name, group) {
  if (group.at === null) return "other runs";
  const others = elsewhere(item, name, group.at);
  return others ? `runs, ${others}` : "runs";
}

/** The rest of a point in words; categories that belong to the call path are no news. */
function elsewhere(item, name, point) {
  const left = Object.entries(point).filter(([other]) => other !== name && !(other in (item.category ?? {})));
  return place(Object.fromEntries(left));
}

// Where the sliders stand.
function here(models, state, name, colours) {
  const found = models.at(chosen(models, state), state.get("indices"));
  const x = models.point(state.get("indices"))[name];
  return { type: "scatter", silent: true, z: 6, symbolSize: 13, data: known(found.value) ? [[x, found.value]] : [],
    itemStyle: { color: colours.paper, borderColor: colours.accent, borderWidth: 2.5 } };
}

function line(name, points, colour, extra = {}) {
  return { name, type: "line", showSymbol: points.length === 1, symbolSize: 6, data: points.map((item) => [item.x, item.value]),
    itemStyle: { color: colour }, connectNulls: false, emphasis: { disabled: true }, ...extra };
}

function groupSeries(models, item, name, group, colour, colours) {
  const title = groupName(item, name, group);
  const points = group.runs.map((run) => ({
    value: [run.point[name], run.value], run,
    symbol: run.outlier ? CROSS : run.validation ? "diamond" : "circle",
    symbolSize: run.validation ? 12 : run.outlier ? 9 : 7,
    itemStyle: { color: colour, opacity: run.outlier ? 1 : 0.85, borderColor: run.validation ? colours.ink : colours.paper,
      borderWidth: run.validation ? 1.5 : 0.5 },
  }));
  const scatter = { name: title, type: "scatter", data: points, itemStyle: { color: colour }, z: 5 };
  if (group.at === null || Object.keys(group.at).length === 0) return [scatter];
  const model = curveAt(models, item, name, group.at);
  return [scatter, line(title, model, colour, { lineStyle: { width: 1.2, color: colour, opacity: 0.8 }, silent: true, z: 3 })];
}

function changes(models, item, name, colours) {
  const at = models.curvesOf(item, name).flatMap((found) => found.changes);
  if (at.length === 0) return undefined;
  return { silent: true, symbol: "none", lineStyle: { color: colours.warn, type: "dashed" },
    label: { formatter: (hit) => `change at ${value(hit.value)}`, color: colours.ink },
    data: [...new Set(at)].map((x) => ({ xAxis: x })) };
}

function curveTip(item, name, hit) {
  const run = hit.data?.run;
  if (!run) return tip(hit.seriesName, [`${name} = ${value(hit.value[0])}`, quantity(hit.value[1], item.unit)]);
  return tip(quantity(run.value, item.unit), [place(run.point), run.id ? `run ${run.id}` : null, run.node ? `on ${run.node}` : null,
    run.outlier ? "outlier" : null, run.validation ? "validation: not used for fitting" : null]);
}

function curveData(models, state, draft) {
  const item = chosen(models, state);
  const rows = models.slice(item, draft.name, state.get("indices")).map((point) => [number(point.x), "model", number(point.value),
    number(point.low), number(point.high), place(models.point(state.get("indices")))]);
  const runs = models.runsOf(item).map((run) => [number(run.point[draft.name]),
    run.validation ? "validation" : run.outlier ? "outlier" : "run", number(run.value), "–", "–", place(run.point)]);
  return { columns: [draft.name, "kind", `${item.metric} / ${item.unit}`, "low", "high", "point"], rows: [...rows, ...runs] };
}

/** The model over two parameters as colours; dots are measured points, the ring is the sliders' point. */
function heatFigure(models, state, numbers) {
  const process = models.parameters.find((item) => item.processes && numbers.includes(item.name))?.name ?? numbers[0];
  const draft = { x: process, y: numbers.find((name) => name !== process) };
  const options = numbers.map((name) => [name, name]);
  const set = (key, other) => (name) => {
    if (draft[other] === name) draft[other] = draft[key];
    draft[key] = name;
    figure.update();
  };
  const controls = numbers.length > 2 ? [choice("→", options, draft.x, set("x", "y")), choice("↑", options, draft.y, set("y", "x"))] : [];
  const figure = new Figure({
    title: "Over two parameters", name: "heat-map", height: 380, controls,
    caption: "The darker, the larger the prediction (logarithmic scale). Dots are measured points; the ring is the sliders’ point.",
    option: (colours) => heatOption(models, state, draft, colours),
    data: () => heatData(models, state, draft),
    label: () => `Predictions of ${chosen(models, state).name} over ${draft.x} and ${draft.y}.`,
  });
  state.when(["selected", "indices"], () => figure.update());
  return figure.element;
}

function cells(models, state, draft) {
  const item = chosen(models, state);
  return models.stops(draft.x).flatMap((x, column) => models.stops(draft.y).map((y, row) => ({ x, y, column, row,
    ...models.at(item, { ...state.get("indices"), [draft.x]: column, [draft.y]: row }) })));
}

function heatOption(models, state, draft, colours) {
  const item = chosen(models, state);
  const all = cells(models, state, draft).filter((cell) => cell.value > 0);
  const logs = all.map((cell) => Math.log10(cell.value));
  const labelled = all.length <= LABELLED_CELLS && models.stops(draft.y).length <= LABELLED_ROWS && document.documentElement.clientWidth > 700;
  const category = (name, vertical) => axis(colours, name, "category",
    { vertical, data: models.stops(name).map(value), splitLine: { show: false }, axisLine: { show: false } });
  const here = [state.get("indices")[draft.x], state.get("indices")[draft.y]];
  return {
    xAxis: category(draft.x, false), yAxis: category(draft.y, true), legend: null, grid: { top: 34, bottom: 76 },
    visualMap: { min: Math.min(...logs), max: Math.max(...logs), dimension: 2, seriesIndex: 0, calculable: false, hoverLink: false,
      orient: "horizontal", left: "center", bottom: 0, itemWidth: 10, itemHeight: 160, textGap: 8,
      inRange: { color: [colours.low, colours.mid, colours.high] }, textStyle: { color: colours.muted },
      text: [quantity(10 ** Math.max(...logs), item.unit), quantity(10 ** Math.min(...logs), item.unit)] },
    tooltip: { formatter: (hit) => heatTip(item, draft, hit) },
    series: [
      { type: "heatmap", data: all.map((cell) => ({ value: [cell.column, cell.row, Math.log10(cell.value)], cell })),
        itemStyle: { borderColor: colours.paper, borderWidth: 1 }, emphasis: { disabled: true },
        label: { show: labelled, formatter: (hit) => short(hit.data.cell.value, 2), fontSize: 10, color: colours.ink } },
      { type: "scatter", data: dots(models, item, draft), symbolSize: 6, symbolOffset: [0, labelled ? 11 : 0], silent: true,
        itemStyle: { color: colours.ink, borderColor: colours.paper, borderWidth: 1 } },
      { type: "scatter", data: [here], symbolSize: 22, silent: true,
        itemStyle: { color: "transparent", borderColor: colours.ink, borderWidth: 2 } }],
  };
}

function dots(models, item, draft) {
  const at = (run) => [models.stops(draft.x).indexOf(run.point[draft.x]), models.stops(draft.y).indexOf(run.point[draft.y])];
  const found = models.runsOf(item).map(at).filter(([column, row]) => column >= 0 && row >= 0);
  return [...new Map(found.map((pair) => [pair.join(), pair])).values()];
}

function heatTip(item, draft, hit) {
  const { cell } = hit.data;
  return tip(quantity(cell.value, item.unit), [`${draft.x} = ${value(cell.x)}, ${draft.y} = ${value(cell.y)}`,
    `90 % interval ${interval(cell.low, cell.high, item.unit)}`]);
}

function heatData(models, state, draft) {
  const stops = models.stops(draft.x);
  const found = cells(models, state, draft);
  return { columns: [`${draft.y} ↓ ${draft.x} →`, ...stops.map(value)], rows: models.stops(draft.y).map((y, row) =>
    [value(y), ...stops.map((_, column) => number(found.find((cell) => cell.row === row && cell.column === column).value))]) };
}

/** Measured against predicted: on the diagonal the model is right. */
function parityFigure(models, state) {
  const figure = new Figure({
    title: "Measured against predicted", name: "parity", height: 380,
    caption: "On the diagonal the model is right; above it predicts too much. Dashed lines: 20 % off. Both axes are logarithmic.",
    option: (colours) => parityOption(models, chosen(models, state), colours),
    data: () => parityData(models, chosen(models, state)),
    label: () => parityLabel(models, chosen(models, state)),
  });
  state.when(["selected"], () => figure.update());
  return figure.element;
}

function pairs(models, item) {
  return models.runsOf(item).filter((run) => run.value > 0 && run.predicted > 0);
}

function parityOption(models, item, colours) {
  const all = pairs(models, item);
  const numbers = all.flatMap((run) => [run.value, run.predicted]);
  const [from, to] = [Math.min(...numbers) / 1.3, Math.max(...numbers) * 1.3];
  const diagonal = (factor, width, type) => ({ type: "line", showSymbol: false, silent: true, clip: true, tooltip: { show: false },
    data: [[from, from * factor], [to, to * factor]], lineStyle: { color: colours.muted, width, type } });
  const kind = (name, wanted, symbol, colour) => ({ name, type: "scatter", symbol, symbolSize: symbol === "circle" ? 7 : 11, z: 5,
    itemStyle: { color: colour, opacity: 0.85 },
    data: all.filter(wanted).map((run) => ({ value: [run.value, run.predicted], run })) });
  const unit = item.unit ? ` / ${item.unit}` : "";
  const span = { min: from, max: to };
  return {
    xAxis: axis(colours, `measured${unit}`, "log", span), yAxis: axis(colours, `predicted${unit}`, "log", { ...span, vertical: true }),
    tooltip: { formatter: ({ data: { run } }) => tip(place(run.point), [`measured ${quantity(run.value, item.unit)}`,
      `predicted ${quantity(run.predicted, item.unit)}`, `off by ${signed(run)}`]) },
    series: [diagonal(1, 1.2, "solid"), diagonal(1.2, 0.8, "dashed"), diagonal(1 / 1.2, 0.8, "dashed"),
      kind("run", (run) => !run.outlier && !run.validation, "circle", colours.s1),
      kind("outlier", (run) => run.outlier, CROSS, colours.bad),
      kind("validation", (run) => run.validation && !run.outlier, "diamond", colours.s2)]
      .filter((found) => found.type === "line" || found.data.length),
  };
}

function parityLabel(models, item) {
  const all = pairs(models, item);
  const near = all.filter((run) => Math.abs(run.predicted / run.value - 1) <= 0.2).length;
  return `${near} of ${plural(all.length, "run")} of ${item.name} are within 20 % of the prediction.`;
}

function parityData(models, item) {
  return { columns: ["point", "measured", "predicted", "off by"], rows: pairs(models, item).map((run) =>
    [place(run.point), number(run.value), number(run.predicted), signed(run)]) };
}

function signed(run) {
  const off = run.predicted / run.value - 1;
  return `${off < 0 ? "−" : "+"}${percent(Math.abs(off))}`;
}
