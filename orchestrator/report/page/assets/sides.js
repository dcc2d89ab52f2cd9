// Two models of the same call path in one figure, each with its interval and its runs: two campaigns, or one without and with priors.

import { choice } from "./dom.js";
import { Figure, axis, band, tip, zoom } from "./charts.js";
import { number, place, plural, quantity, value } from "./format.js";

const SYMBOLS = ["circle", "triangle"];

/**
 * The figure. `items` are {label, name, metric, unit, sides: [{curves, runs}, {curves, runs}]}, where `curves()` gives
 * {line, points} and `runs()` {point, value}; `lines` are {parameter, at, x}; runs are drawn where they are on the line.
 */
export function sidesFigure({ title, name, caption, names, items, lines, parameters, shared = false }) {
  const draft = { item: 0, parameter: null, line: null, y: "linear" };
  const current = () => items[draft.item];
  const along = [...new Set(lines.map((line) => line.parameter))];
  const start = parameters.find((item) => item.processes && along.includes(item.name))?.name ?? along[0];
  const turn = (parameter) => {
    draft.parameter = parameter;
    const possible = lines.map((_, index) => index).filter((index) => lines[index].parameter === parameter);
    draft.line = possible.reduce((best, index) => (count(current(), lines[index]) > count(current(), lines[best]) ? index : best), possible[0]);
  };
  turn(start);
  const where = lineChoice(draft, lines, () => figure.update());
  const controls = [
    items.length > 1 ? choice("Call path", items.map((item, index) => [index, item.label]), 0, (index) => show(Number(index))) : null,
    along.length > 1 ? choice("Along", along.map((text) => [text, text]), start, (text) => { turn(text); where.fill(); figure.update(); }) : null,
    where.element,
    choice("Axis ↑", [["linear", "linear"], ["log", "logarithmic"]], "linear", (scale) => { draft.y = scale; figure.update(); })].filter(Boolean);
  const context = { names, lines, parameters, shared };
  const figure = new Figure({ title, name, caption, height: 400, controls,
    option: (colours) => option(current(), draft, context, colours),
    data: () => data(current(), draft, context),
    label: () => label(current(), draft, context) });
  const show = (index) => { draft.item = index; turn(draft.parameter); where.fill(); figure.update(); };
  const select = (index) => {
    controls[0].querySelector("select").value = String(index);
    show(index);
    figure.element.scrollIntoView({ block: "center" });
  };
  return { element: figure.element, select: items.length > 1 ? select : null };
}

// Which values the other parameters have.
function lineChoice(draft, lines, changed) {
  const element = choice("At", [], "", (index) => { draft.line = Number(index); changed(); });
  const select = element.querySelector("select");
  const fill = () => {
    const possible = lines.map((line, index) => [index, line]).filter(([, line]) => line.parameter === draft.parameter);
    select.replaceChildren(...possible.map(([index, line]) => new Option(place(line.at) || "all runs", index, false, index === draft.line)));
    element.hidden = possible.length < 2;
  };
  fill();
  return { element, fill };
}

function onLine(run, line) {
  return Object.entries(line.at).every(([name, at]) => run.point[name] === at);
}

function runsOn(item, side, line) {
  return item.sides[side].runs().filter((run) => onLine(run, line));
}

function count(item, line) {
  return runsOn(item, 0, line).length + runsOn(item, 1, line).length;
}

function curve(item, side, index) {
  return item.sides[side].curves().find((found) => found.line === index)?.points ?? [];
}

function option(item, draft, { names, lines, parameters, shared }, colours) {
  const line = lines[draft.line];
  const tints = [colours.s1, colours.s2];
  const parameter = parameters.find((found) => found.name === line.parameter);
  const series = names.flatMap((name, side) => {
    const points = curve(item, side, draft.line);
    const dots = shared && side === 0 ? [] : runsOn(item, side, line);
    return [
      { name, type: "line", showSymbol: false, z: 4, data: points.map((found) => [found.x, found.value]), connectNulls: false,
        itemStyle: { color: tints[side] }, lineStyle: { width: 2.5, color: tints[side], type: side ? "dashed" : "solid" }, emphasis: { disabled: true } },
      band(name, points, tints[side]), // after the line, whose colour the legend shows
      { name: shared ? "runs" : name, type: "scatter", z: 5, symbol: shared ? "circle" : SYMBOLS[side], symbolSize: 8,
        itemStyle: { color: shared ? colours.ink : tints[side], opacity: 0.85, borderColor: colours.paper, borderWidth: 0.5 },
        data: dots.map((run) => ({ value: [run.point[line.parameter], run.value], run, side })) }];
  });
  const title = item.unit ? `${item.metric} / ${item.unit}` : item.metric;
  return {
    xAxis: axis(colours, line.parameter, parameter.logarithmic ? "log" : "linear", { stops: parameter.stops, max: "dataMax" }),
    yAxis: axis(colours, title, draft.y, { vertical: true }), dataZoom: zoom(colours), series,
    legend: { data: [...names, ...(shared ? ["runs"] : [])] },
    tooltip: { trigger: "item", formatter: ({ data: { run, side } }) => tip(quantity(run.value, item.unit),
      [shared ? null : names[side], place(run.point)]) },
  };
}

function data(item, draft, { names, lines, shared }) {
  const line = lines[draft.line];
  const [a, b] = [0, 1].map((side) => curve(item, side, draft.line));
  const cells = (point) => (point ? [number(point.value), number(point.low), number(point.high)] : ["–", "–", "–"]);
  const models = line.x.map((x, index) => [value(x), "model", ...cells(a[index]), ...cells(b[index])]);
  const runs = [0, 1].flatMap((side) => (shared && side === 0 ? [] : runsOn(item, side, line)).map((run) =>
    [value(run.point[line.parameter]), "run", ...(side && !shared ? ["–", "–", "–", number(run.value), "–", "–"] : [number(run.value), "–", "–", shared ? number(run.value) : "–", "–", "–"])]));
  const heads = names.flatMap((name) => [name, `${name}: low`, `${name}: high`]);
  return { columns: [line.parameter, "kind", ...heads], rows: [...(a.length || b.length ? models : []), ...runs] };
}

function label(item, draft, { names, lines }) {
  const line = lines[draft.line];
  const last = [0, 1].map((side) => curve(item, side, draft.line).at(-1));
  const said = names.map((name, side) => (last[side] ? `${name} ${quantity(last[side].value, item.unit)}` : null)).filter(Boolean);
  const ends = said.length ? ` At ${line.parameter} = ${value(line.x.at(-1))}: ${said.join(", ")}.` : "";
  return `${item.name} along ${line.parameter}, ${plural(count(item, line), "run")}.${ends}`;
}
