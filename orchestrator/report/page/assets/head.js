// What the page is about, and its answer: the prediction at the evaluation point.

import { el } from "./dom.js";
import { interval, lastPart, percent, place, quantity, spoken } from "./format.js";

export function headSection(source) {
  const head = source.head ?? {};
  return el("section", { id: "answer", "aria-label": "Summary" },
    head.answer ? answer(head.answer) : null,
    warnings(head.warnings ?? []),
    facts(head.facts ?? []));
}

function answer(item) {
  const time = item.unit === "s" ? spoken(item.value) : null;
  return el("div", { class: "answer" },
    el("div", { class: "answer-number" },
      el("p", { class: "overline" }, `Predicted ${item.metric} at ${place(item.point)}`),
      el("p", { class: "big" }, el("data", { value: item.value }, quantity(item.value, item.unit)),
        time ? el("span", { class: "aside" }, `≈ ${time}`) : null),
      el("p", {}, `90 % interval ${interval(item.low, item.high, item.unit)}`,
        item.cost ? `; one such run costs ${quantity(item.cost.core_hours, "core-hours")}` : ""),
      item.sentence ? el("p", { class: "muted" }, item.sentence) : null),
    item.parts?.length ? parts(item) : null);
}

function parts(item) {
  const rest = 1 - item.parts.reduce((sum, part) => sum + part.share, 0);
  const shown = rest > 0.005 ? [...item.parts, { callpath: "everything else", share: rest }] : item.parts;
  const colour = (index) => (index < 8 && index < item.parts.length ? `var(--s${index + 1})` : "var(--quiet)");
  return el("div", { class: "answer-parts" },
    el("p", { class: "overline" }, "What it is made up of"),
    el("div", { class: "stack", "aria-hidden": "true" }, shown.map((part, index) =>
      el("span", { style: { width: `${100 * Math.max(0, part.share)}%`, background: colour(index) } }))),
    el("ul", { class: "parts" }, shown.map((part, index) => el("li", { title: part.callpath },
      el("span", { class: "swatch", "aria-hidden": "true", style: { background: colour(index) } }),
      el("span", { class: "name" }, lastPart(part.callpath)),
      el("span", { class: "number" }, percent(part.share)),
      el("span", { class: "number muted" }, interval(part.low, part.high, item.unit))))));
}

function warnings(texts) {
  if (texts.length === 0) return null;
  return el("div", { class: "warnings", role: "note", "aria-label": "Warnings" },
    el("p", { class: "overline" }, texts.length === 1 ? "Keep in mind" : `Keep in mind: ${texts.length} points`),
    el("ul", {}, texts.map((text) => el("li", {}, text))));
}

function facts(items) {
  if (items.length === 0) return null;
  return el("dl", { class: "facts" }, items.map((item) => el("div", {}, el("dt", {}, item.label),
    el("dd", {}, item.value ?? "–", item.detail ? el("span", { class: "detail" }, item.detail) : null))));
}
