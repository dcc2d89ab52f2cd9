// Effort: whether time follows the work that was counted, and how long call paths wait.

import { el, choice, table } from "./dom.js";
import { Figure, axis, tip } from "./charts.js";
import { number, place, plural, quantity } from "./format.js";

export function effortSection(effort, models) {
  const section = el("section", { id: "effort", "aria-labelledby": "effort-title" },
    el("h2", { id: "effort-title" }, "Work and time"),
    el("p", { class: "lead" }, "Effort counters count work without noise. Where time grows faster than every count, a call path ",
      "waits, or its work becomes slower."));
  const counted = (effort.callpaths ?? []).filter((item) => item.pairs?.length);
  if (counted.length) section.append(countsFigure(counted, models));
  const waiting = (effort.callpaths ?? []).filter((item) => item.waiting?.length);
  if (waiting.length) section.append(waitingTable(waiting, models));
  if (effort.priors?.length) section.append(el("h3", { class: "part" }, "How the counts changed the models"),
    table("Priors", ["Call path", "What changed"], effort.priors.map((item) => [item.callpath, item.text])));
  return section;
}

function nameOf(models, item) {
  return models.byId.get(item.id)?.name ?? String(item.id);
}

function countsFigure(counted, models) {
  const metrics = (item) => [...new Set(item.pairs.flatMap((pair) => Object.keys(pair.counts)))];
  const draft = { item: counted[0], metric: metrics(counted[0])[0] };
  const all = [...new Set(counted.flatMap(metrics))];
  const figure = new Figure({
    title: "Time against counts", name: "effort", height: 340,
    caption: "On a straight line of slope 1 time is proportional to the count; both axes are logarithmic.",
    controls: [
      choice("Call path", counted.map((item, index) => [index, nameOf(models, item)]), 0, (index) => { draft.item = counted[index]; figure.update(); }),
      choice("Count", all.map((name) => [name, name]), draft.metric, (metric) => { draft.metric = metric; figure.update(); })],
    option: (colours) => ({
      xAxis: axis(colours, draft.metric, "log"), yAxis: axis(colours, "time / s", "log", { vertical: true }), legend: null,
      tooltip: { formatter: ({ data }) => tip(place(data.pair.point), [quantity(data.pair.seconds, "s"), `${number(data.value[0])} ${draft.metric}`]) },
      series: [{ type: "scatter", symbolSize: 8, itemStyle: { color: colours.s1, opacity: 0.85 }, data: draft.item.pairs
        .filter((pair) => pair.counts[draft.metric] > 0 && pair.seconds > 0).map((pair) => ({ value: [pair.counts[draft.metric], pair.seconds], pair })) }],
    }),
    data: () => ({ columns: ["point", "time / s", ...metrics(draft.item)], rows: draft.item.pairs.map((pair) =>
      [place(pair.point), number(pair.seconds), ...metrics(draft.item).map((name) => number(pair.counts[name]))]) }),
    label: () => `${plural(draft.item.pairs.length, "point")} of ${nameOf(models, draft.item)}.`,
  });
  return figure.element;
}

function waitingTable(waiting, models) {
  const rows = waiting.flatMap((item) => item.waiting.map((found) => [nameOf(models, item), place(found.point), number(found.seconds)]));
  return el("div", { class: "part" }, el("h3", {}, "Waiting time"),
    el("p", { class: "caption" }, "Time minus what the counted work takes."),
    table("Waiting time", ["Call path", "point", "waiting / s"], rows));
}
