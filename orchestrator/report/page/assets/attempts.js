// What happened when: attempts on their nodes, spending, noise, failures.

import { el, table } from "./dom.js";
import { Figure, axis, timeAxis, tip, zoom } from "./charts.js";
import { clock, cost, costUnit, inCostUnit, known, number, place, plural, quantity, value } from "./format.js";

const STATE_COLOURS = { measured: "s1", failed: "bad", running: "s2", censored: "warn" };
const ROW = 26;

export function attemptsSection(source) {
  const section = el("section", { id: "attempts", "aria-labelledby": "attempts-title" },
    el("h2", { id: "attempts-title" }, "What happened when"),
    el("p", { class: "lead" }, "Times count from the campaign’s start, in hours and minutes."));
  if (source.attempts?.length) section.append(timeLine(source.attempts));
  if (source.ledger?.time?.length) section.append(spending(source.ledger));
  if (source.noise) section.append(...noise(source.noise));
  if (source.failures?.length) section.append(failures(source.failures));
  if (source.unmeasured?.length) section.append(unmeasured(source.unmeasured));
  return section;
}

/** One lane per node; an attempt that never ran waits in the last one. */
function lanes(attempts) {
  const names = [...new Set(attempts.map((item) => item.node ?? "no node"))];
  return names.sort((a, b) => b.localeCompare(a, "en", { numeric: true }));
}

function timeLine(attempts) {
  const names = lanes(attempts);
  return new Figure({
    title: "Attempts", name: "attempts", marks: 2 * attempts.length, height: 130 + ROW * Math.min(names.length, 24),
    caption: "Thin line: waiting in the queue. Bar: running, coloured by how it ended. Gaps between bars are idle time.",
    option: (colours) => timeLineOption(attempts, names, colours),
    data: () => ({ columns: ["run", "attempt", "kind", "node", "queued", "started", "finished", "state", costUnit(), "reason"],
      rows: attempts.map((item) => [String(item.run), value(item.attempt), item.kind ?? "–", item.node ?? "–", clock(item.queued),
        clock(item.started), clock(item.finished), item.state, number(inCostUnit(item.charge)), item.reason ?? ""]) }),
    label: () => Object.entries(counts(attempts)).map(([state, count]) => `${plural(count, "attempt")} ${state}`).join(", "),
  }).element;
}

function counts(attempts) {
  const found = {};
  for (const item of attempts) found[item.state] = (found[item.state] ?? 0) + 1;
  return found;
}

function timeLineOption(attempts, names, colours) {
  const end = Math.max(...attempts.flatMap((item) => [item.queued, item.started, item.finished]).filter(known));
  const states = Object.keys(counts(attempts));
  return {
    xAxis: timeAxis(colours, end),
    yAxis: axis(colours, "", "category", { vertical: true, data: names, splitLine: { show: false },
      axisLabel: { color: colours.muted, width: 110, overflow: "truncate" } }),
    dataZoom: zoom(colours), legend: { data: states },
    tooltip: { formatter: (hit) => attemptTip(hit.data.item) },
    series: states.map((state) => {
      const colour = colours[STATE_COLOURS[state] ?? "quiet"];
      return { name: state, type: "custom", clip: true, itemStyle: { color: colour }, encode: { x: [1, 3], y: 0 },
        renderItem: (context, api) => attemptShape(context, api, colour, colours),
        data: attempts.filter((item) => item.state === state).map((item) => ({ item,
          value: [item.node ?? "no node", item.queued ?? item.started ?? 0, item.started ?? item.finished ?? end, item.finished ?? end] })) };
    }),
  };
}

function attemptShape(context, api, colour, colours) {
  const [queued, started, finished] = [1, 2, 3].map((index) => api.coord([api.value(index), api.value(0)]));
  const lane = api.size([0, 1])[1];
  const tall = Math.min(18, lane * 0.62);
  const bar = { x: started[0], y: started[1] - tall / 2, width: Math.max(1.5, finished[0] - started[0]), height: tall, r: 2 };
  return { type: "group", children: [
    { type: "line", shape: { x1: queued[0], y1: queued[1], x2: started[0], y2: queued[1] }, style: { stroke: colours.muted, lineWidth: 1 } },
    { type: "rect", shape: bar, style: { fill: colour, stroke: colours.paper, lineWidth: 0.5 } }] };
}

function attemptTip(item) {
  const box = tip(`${item.run}, attempt ${item.attempt}: ${item.state}`, [item.node ? `on ${item.node}` : null,
    known(item.started) && known(item.queued) ? `waited ${clock(item.started - item.queued)}` : null,
    known(item.finished) && known(item.started) ? `ran ${clock(item.finished - item.started)}` : null,
    known(item.charge) ? `charged ${cost(item.charge)}` : null]);
  if (item.reason) box.append(el("div", { class: "reason" }, item.reason));
  return box;
}

function spending(ledger) {
  const [spent, reserved, budget] = ["spent", "reserved", "budget"].map((name) => ledger[name]?.map(inCostUnit));
  const stepped = (name, values, extra) => ({ name, type: "line", step: "end", showSymbol: false,
    data: ledger.time.map((time, index) => [time, values[index]]), ...extra });
  const area = (colour, opacity) => ({ itemStyle: { color: colour }, lineStyle: { width: 1.5, color: colour }, areaStyle: { color: colour, opacity } });
  return new Figure({
    title: "Spending", name: "spending", height: 300,
    caption: "What was spent, and what was reserved on top for attempts in flight; the budget as it was at each time.",
    option: (colours) => ({
      xAxis: timeAxis(colours, ledger.time.at(-1)),
      yAxis: axis(colours, costUnit(), "zero", { vertical: true, min: 0 }), dataZoom: zoom(colours),
      tooltip: { trigger: "axis", formatter: (hits) => tip(clock(hits[0].value[0]), hits.map((hit) => `${hit.seriesName}: ${quantity(hit.value[1], costUnit())}`)) },
      series: [
        reserved ? stepped("spent and reserved", reserved.map((amount, index) => amount + spent[index]), area(colours.s2, 0.18)) : null,
        stepped("spent", spent, area(colours.s1, 0.3)),
        budget ? stepped("budget", budget, { itemStyle: { color: colours.ink }, lineStyle: { type: "dashed", width: 1.5, color: colours.ink } }) : null,
      ].filter(Boolean),
    }),
    data: () => ({ columns: ["time", "spent", "reserved", "budget"], rows: ledger.time.map((time, index) => [clock(time),
      number(spent[index]), number(reserved?.[index]), number(budget?.[index])]) }),
    label: () => `${cost(ledger.spent.at(-1))} spent of a budget of ${cost(ledger.budget?.at(-1))}.`,
  }).element;
}

function noise(item) {
  const tables = el("div", { class: "pair" });
  if (item.points?.length) tables.append(el("div", {}, el("h4", {}, "Per point"), table("Noise of every point", ["point", "noise / %", "runs"],
    [...item.points].sort((a, b) => b.percent - a.percent).map((row) => [place(row.point), number(row.percent, 3), number(row.runs)]))));
  if (item.nodes?.length) tables.append(el("div", {}, el("h4", {}, "Per node"), table("Noise of every node",
    ["node", "noise / %", "time against the others", "runs"], item.nodes.map((row) => [row.node, number(row.percent, 3),
      known(row.median_ratio) ? `${number(row.median_ratio, 3)}×` : "–", number(row.runs)]))));
  return [el("h3", { class: "part" }, "Noise"),
    el("p", { class: "caption" }, "How much runs of the same point differ (percent of the mean). A node well above 1× is slower than the others."),
    item.drift ? el("p", {}, item.drift) : null, tables.childElementCount ? tables : null,
    item.hours?.length ? hours(item.hours) : null].filter(Boolean);
}

function hours(items) {
  return new Figure({
    title: "Drift", name: "drift", height: 260,
    caption: "Time of a run divided by the median of its point, against when it ran: without drift all lie around 1.",
    option: (colours) => ({ legend: null, dataZoom: zoom(colours),
      xAxis: timeAxis(colours, Math.max(...items.map((item) => item.t))),
      yAxis: axis(colours, "ratio", "linear", { vertical: true }),
      tooltip: { formatter: (hit) => tip(`${number(hit.value[1], 4)}×`, [clock(hit.value[0])]) },
      series: [{ type: "scatter", symbolSize: 7, itemStyle: { color: colours.s1, opacity: 0.8 }, data: items.map((item) => [item.t, item.ratio]),
        markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: colours.muted, type: "dashed" }, data: [{ yAxis: 1 }] } }] }),
    data: () => ({ columns: ["time", "ratio"], rows: items.map((item) => [clock(item.t), number(item.ratio)]) }),
    label: () => `${plural(items.length, "value")} between ${number(Math.min(...items.map((item) => item.ratio)), 3)} and ${number(Math.max(...items.map((item) => item.ratio)), 3)}.`,
  }).element;
}

function failures(items) {
  return el("div", { class: "part" }, el("h3", {}, `Failures (${items.length})`),
    el("p", { class: "caption" }, "Every failed attempt: what it was charged, what became of its run in the end, and its files where the campaign’s directory is beside this page."),
    table("Failed attempts", ["run", "attempt", "class", "reason", `${costUnit()} charged`, "the run", "files"], items.map((item) =>
      [String(item.run), value(item.attempt), item.class || "–", item.reason || "–", number(inCostUnit(item.charge)), item.outcome ?? "–",
        item.files ? fileLink(item.files) : "–"])));
}

function unmeasured(items) {
  return el("div", { class: "part" }, el("h3", {}, `Given up, skipped or discarded (${items.length})`),
    el("p", { class: "caption" }, "Every run that was chosen and does not count for the models, with what its attempts were charged."),
    table("Runs that were given up, skipped or discarded", ["run", "the run", `${costUnit()} charged`, "reason"], items.map((item) =>
      [String(item.run), item.outcome, number(inCostUnit(item.charge)), item.reason || "–"])));
}

// A relative path always: whatever a file is called, it is no address of another kind.
function fileLink(path) {
  return el("a", { href: `./${path.split("/").map(encodeURIComponent).join("/")}` }, path);
}
