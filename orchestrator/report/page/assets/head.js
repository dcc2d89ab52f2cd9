// What the page is about, and its answer: the prediction at the evaluation point.

import { el, folded } from "./dom.js";
import { briefNames, cost, inCostUnit, interval, known, percent, place, plural, quantity, spoken } from "./format.js";

const MOST_WARNINGS = 4;
const MOST_FACTS = 15;
const LONG = 90; // characters of a detail from which a fact has the width of two

export function headSection(source) {
  const head = source.head ?? {};
  if (!head.answer && !head.warnings?.length && !head.facts?.length) return null;
  return el("section", { id: "answer", "aria-label": "Summary" },
    head.answer ? answer(head.answer) : null,
    warnings(head.warnings ?? []),
    facts(head.facts ?? []));
}

function answer(item) {
  const time = item.unit === "s" ? spoken(item.value) : null;
  return el("div", { class: "answer" },
    el("div", { class: "answer-number" },
      el("p", { class: "overline" }, `Predicted ${item.metric} ${item.is_fastest ? "of the fastest measured configuration, " : "at "}${place(item.point)}`),
      el("p", { class: "big" }, el("data", { value: item.value }, quantity(item.value, item.unit)),
        time ? el("span", { class: "aside" }, `≈ ${time}`) : null),
      el("p", {}, `${item.interval ?? "90 %"} interval ${interval(item.low, item.high, item.unit)}`),
      item.checked ? el("p", {}, checked(item)) : null,
      item.launched ? el("p", {}, launched(item.launched)) : null,
      item.cost ? el("p", { class: "muted" }, costOfRun(item.cost)) : null,
      // The sentence says in words what number and bar show: only needed where there is no bar.
      item.sentence && !item.parts?.length ? el("p", { class: "muted" }, item.sentence) : null),
    item.parts?.length ? parts(item) : null);
}

function checked({ checked: { measured, low, high, inside }, unit, value }) {
  const off = value / measured - 1;
  return `A run there, not used for the models, took ${quantity(measured, unit)}: ${inside ? "within" : "outside"} `
    + `the 90 % interval of single runs, ${interval(low, high, unit)}. The prediction is ${percent(Math.abs(off))} too ${off > 0 ? "high" : "low"}.`;
}

function launched({ value, low, high, modeled }) {
  if (known(modeled)) return `With its launch a run takes at least as long. The model of whole runs says less: ${quantity(modeled, "s")}.`;
  const range = known(low) && known(high) ? ` (${interval(low, high, "s")})` : "";
  return `A whole run with its launch, by a model of its own: ${quantity(value, "s")}${range}.`;
}

function costOfRun({ core_hours: hours, low, high, cores, note }) {
  const assumed = note ? ` (${note})` : "";
  const range = known(low) && known(high) ? ` (${interval(inCostUnit(low), inCostUnit(high))})` : "";
  return `One such run costs ${cost(hours)}${range}${known(cores) ? ` on ${plural(cores, "core")}${assumed}` : ""}.`;
}

function parts(item) {
  const rest = 1 - item.parts.reduce((sum, part) => sum + part.share, 0);
  const shown = rest > 0.005 && !item.overlap ? [...item.parts, { callpath: "everything else", share: rest }] : item.parts;
  const brief = briefNames(shown.map((part) => part.callpath));
  const colour = (index) => (index < 8 && index < item.parts.length ? `var(--s${index + 1})` : "var(--quiet)");
  return el("div", { class: "answer-parts" },
    el("p", { class: "overline" }, item.overlap ? "Parts of it, which overlap" : "What it is made up of"),
    item.overlap ? null : el("div", { class: "stack", "aria-hidden": "true" }, shown.map((part, index) =>
      el("span", { style: { width: `${100 * Math.max(0, part.share)}%`, background: colour(index) } }))),
    el("ul", { class: "parts" }, shown.map((part, index) => el("li", { title: part.callpath },
      el("span", { class: "swatch", "aria-hidden": "true", style: { background: colour(index) } }),
      el("span", { class: "name" }, brief.get(part.callpath)),
      el("span", { class: "number" }, percent(part.share)),
      el("span", { class: "number muted" }, interval(part.low, part.high, item.unit))))));
}

function warnings(texts) {
  if (texts.length === 0) return null;
  return el("div", { class: "warnings", role: "note", "aria-label": "Warnings" },
    el("p", { class: "overline" }, texts.length === 1 ? "Keep in mind" : `Keep in mind: ${texts.length} points`),
    folded("ul", {}, texts.map((text) => el("li", {}, text)), MOST_WARNINGS, "warnings"));
}

function facts(items) {
  if (items.length === 0) return null;
  const wide = (item) => (item.detail?.length ?? 0) > LONG || item.list?.length;
  const shown = items.map((item) => el("div", { class: wide(item) ? "wide" : null }, el("dt", {}, item.label),
    el("dd", {}, item.value ?? "–", item.detail ? el("span", { class: "detail" }, item.detail) : null, all(item.list))));
  return el("div", {}, folded("dl", { class: "facts" }, shown, MOST_FACTS, "facts"));
}

function all(texts) {
  if (!texts?.length) return null;
  return el("details", { class: "data" }, el("summary", {}, `All ${texts.length}`), el("ul", {}, texts.map((text) => el("li", {}, text))));
}
