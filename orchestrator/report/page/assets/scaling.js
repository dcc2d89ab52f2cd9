// Speedup and efficiency, and what the time is made up of along the number of processes.

import { el, choice } from "./dom.js";
import { Figure, axis, band, tip } from "./charts.js";
import { costUnit, inCostUnit, interval, known, number, percent, short, shortened, value } from "./format.js";

const MOST_AREAS = 8;
const MOST_IN_REST = 0.4; // a larger share of nameless others says nothing

export function scalingSection(models, state, speedup, overlap) {
  const section = el("section", { id: "scaling", "aria-labelledby": "scaling-title" },
    el("h2", { id: "scaling-title" }, "Scaling"),
    el("p", { class: "lead" }, "How much faster the program gets with more processes. Dashed lines are ideal; the bands ",
      "are 90 % intervals."));
  if (speedup?.callpaths?.length) section.append(...speedupParts(models, speedup));
  const process = models.numbers().find((item) => item.processes) ?? models.numbers().find((item) => item.name === speedup?.parameter);
  if (process && !overlap) section.append(areaFigure(models, state, process.name));
  return section;
}

function speedupParts(models, speedup) {
  const draft = { item: speedup.callpaths[0] };
  const name = (item) => models.byId.get(item.id)?.name ?? String(item.id);
  const sentences = el("div", { class: "sentences", "aria-live": "polite" });
  const say = () => sentences.replaceChildren(...(draft.item.sentences ?? []).map((text) => el("p", {}, text)));
  const pick = choice("Call path", speedup.callpaths.map((item, index) => [index, name(item)]), 0, (index) => {
    draft.item = speedup.callpaths[index];
    say();
    [fast, efficient].forEach((figure) => figure.update());
  });
  const fast = ratioFigure(draft, name, { key: "speedup", title: "Speedup", caption: "Time on the fewest processes divided by time on N of them.",
    ideal: (first, processes) => first.speedup.value * processes / first.processes, scale: "log" });
  const efficient = ratioFigure(draft, name, { key: "efficiency", title: "Efficiency", caption: "Speedup per process: 100 % is ideal.",
    ideal: () => 1, scale: "zero" });
  say();
  return [speedup.text ? el("p", {}, speedup.text) : null, el("div", { class: "filters" }, pick), sentences,
    el("div", { class: "pair" }, fast.element, efficient.element)].filter(Boolean);
}

function ratioFigure(draft, name, { key, title, caption, ideal, scale }) {
  const points = () => draft.item.curve.filter((item) => known(item[key]?.value));
  const shown = key === "efficiency" ? percent : (found) => short(found, 3);
  return new Figure({
    title, caption, name: key, height: 320,
    option: (colours) => {
      const all = points();
      const along = all.map((item) => ({ x: item.processes, ...item[key] }));
      return {
        xAxis: axis(colours, "processes", "log", { stops: all.map((item) => item.processes) }),
        yAxis: axis(colours, title.toLowerCase(), scale, { vertical: true,
          axisLabel: { color: colours.muted, formatter: shown }, min: scale === "zero" ? 0 : undefined, ...(scale === "log" ? span(all, key) : {}) }),
        tooltip: { trigger: "item", formatter: (hit) => tip(`${value(hit.value[0])} processes`, [`${hit.seriesName}: ${shown(hit.value[1])}`]) },
        series: [band("90 % interval", along, colours.accent),
          { name: title.toLowerCase(), type: "line", data: along.map((item) => [item.x, item.value]), symbolSize: 7, symbol: "circle",
            itemStyle: { color: colours.accent }, lineStyle: { width: 2.5 } },
          { name: "ideal", type: "line", showSymbol: false, silent: true, data: all.map((item) => [item.processes, ideal(all[0], item.processes)]),
            lineStyle: { type: "dashed", color: colours.muted, width: 1.2 }, itemStyle: { color: colours.muted } }],
      };
    },
    data: () => ({ columns: ["processes", title.toLowerCase(), "90 % interval", "seconds", costUnit()], rows: points().map((item) =>
      [value(item.processes), shown(item[key].value), `${shown(item[key].low)} – ${shown(item[key].high)}`,
        number(item.seconds?.value), number(inCostUnit(item.core_hours?.value))]) }),
    label: () => {
      const last = points().at(-1);
      return last ? `${name(draft.item)}: ${shown(last[key].value)} on ${value(last.processes)} processes.` : "No curve.";
    },
  });
}

// Round limits of a logarithmic axis that hold everything drawn.
function span(all, key) {
  const found = all.flatMap((item) => [item[key].low, item[key].value, item[key].high]).filter((item) => item > 0);
  const ideal = all.length ? (all[0][key].value * all.at(-1).processes) / all[0].processes : 1;
  return { min: Math.min(...found) / 1.1, max: Math.max(ideal, ...found) * 1.1 };
}

/** The largest call paths stacked; everything else is one area. */
function areaFigure(models, state, name) {
  const draft = { how: "share" };
  const figure = new Figure({
    title: "What the time is made up of", name: "composition", height: 380,
    caption: "What each call path spends itself, without those that it calls; of very many, the parts that the program consists of. "
      + "The other parameters are as the sliders set them.",
    controls: [choice("Show", [["share", "shares"], ["value", "values"]], "share", (how) => { draft.how = how; figure.update(); })],
    option: (colours) => areaOption(models, state, name, draft, colours),
    data: () => areaData(models, state, name, draft),
    label: () => areaLabel(models, state, name),
  });
  state.when(["indices", "metric"], () => figure.update());
  return figure.element;
}

function layers(models, state, name) {
  const indices = state.get("indices");
  const all = models.ofMetric(state.get("metric"), indices);
  const at = models.stops(name).map((_, index) => ({ ...indices, [name]: index }));
  const alone = stacked(all.map((item) => ({ item, values: at.map((where) => models.own(item, where)) })), at);
  const parts = all.filter((item) => models.parts.includes(item.id));
  if (parts.length < 2 || restOf(alone) < MOST_IN_REST) return alone;
  const whole = parts.map((item) => ({ item, values: at.map((where) => Math.max(0, models.at(item, where).value || 0)) }));
  return stacked(whole, at);
}

/** The largest share that the last layer, all others, has anywhere. */
function restOf({ layers: found, totals }) {
  if (found.at(-1)?.item.id !== undefined) return 0;
  return Math.max(...found.at(-1).values.map((part, index) => part / (totals[index] || Infinity)));
}

/** The largest layers in order, the others as one, and what they add up to. */
function stacked(found, at) {
  const totals = at.map((_, index) => found.reduce((sum, layer) => sum + layer.values[index], 0));
  // The largest share anywhere along the parameter counts: what dominates at scale may be small today.
  found.forEach((layer) => { layer.size = Math.max(...layer.values.map((part, index) => (totals[index] > 0 ? part / totals[index] : 0))); });
  found.sort((a, b) => b.size - a.size);
  const rest = found.slice(MOST_AREAS).filter((layer) => layer.size > 0);
  const others = { item: { name: rest.length === 1 ? "1 other" : `${number(rest.length)} others` }, values: at.map((_, index) => rest.reduce((sum, layer) => sum + layer.values[index], 0)) };
  return { layers: [...found.slice(0, MOST_AREAS).filter((layer) => layer.size > 0), ...(rest.length ? [others] : [])], totals };
}

function areaOption(models, state, name, draft, colours) {
  const { layers: found, totals } = layers(models, state, name);
  const stops = models.stops(name);
  const unit = models.metrics().find(([metric]) => metric === state.get("metric"))?.[1];
  const shares = draft.how === "share";
  const shown = shares ? percent : (found) => short(found);
  const part = (layer, index) => (shares ? layer.values[index] / (totals[index] || NaN) : layer.values[index]);
  return {
    // Stops are evenly spaced like the slider's marks: doubling steps read well, and no axis fails at zero.
    xAxis: axis(colours, name, "category", { data: stops.map(value), boundaryGap: false }),
    yAxis: axis(colours, shares ? "share" : `${state.get("metric")} / ${unit}`, "zero", { vertical: true, max: shares ? 1 : undefined,
      axisLabel: { color: colours.muted, formatter: shares ? (found) => `${Math.round(100 * found)} %` : shown } }),
    legend: { data: found.map((layer) => layer.item.name), formatter: (text) => shortened(models.brief.get(text) ?? text, 28) },
    tooltip: { trigger: "axis", formatter: (hits) => tip(`${name} = ${hits[0]?.axisValue}`,
      [...hits].reverse().map((hit) => `${models.brief.get(hit.seriesName) ?? hit.seriesName}: ${shown(hit.value)}`)) },
    series: found.map((layer, index) => {
      const colour = index < MOST_AREAS ? colours.series[index] : colours.quiet;
      return { name: layer.item.name, type: "line", stack: "all", showSymbol: false, lineStyle: { width: 0.8, color: colours.paper },
        itemStyle: { color: colour }, areaStyle: { opacity: 0.85, color: colour }, emphasis: { focus: "series" },
        data: stops.map((_, at) => { const found = part(layer, at); return known(found) ? found : null; }) };
    }),
  };
}

function areaData(models, state, name, draft) {
  const { layers: found, totals } = layers(models, state, name);
  return { columns: [name, ...found.map((layer) => models.brief.get(layer.item.name) ?? layer.item.name)], rows: models.stops(name).map((stop, index) =>
    [value(stop), ...found.map((layer) => draft.how === "share" ? percent(layer.values[index] / totals[index]) : number(layer.values[index]))]) };
}

function areaLabel(models, state, name) {
  const { layers: found, totals } = layers(models, state, name);
  const last = models.stops(name).length - 1;
  const largest = [...found].sort((a, b) => b.values[last] - a.values[last]).slice(0, 3);
  return `At ${name} = ${value(models.stops(name)[last])}: `
    + largest.map((layer) => `${models.brief.get(layer.item.name) ?? layer.item.name} ${percent(layer.values[last] / totals[last])}`).join(", ");
}
