// The point at which all numbers of the page are predicted: one slider for every parameter.

import { el, button } from "./dom.js";
import { value } from "./format.js";

export function sliders(models, state) {
  if (models.parameters.length === 0) return null;
  const rows = models.parameters.map((parameter) => control(parameter, state));
  const reset = button("Reset", () => state.set({ indices: models.start() }), { class: "small" });
  const note = el("p", { class: "muted slider-note", role: "status" });
  const update = () => {
    const beyond = models.parameters.filter((item) => isBeyond(item, state.get("indices")[item.name]));
    note.textContent = beyond.length === 0 ? "Within the measured range."
      : `Extrapolated: ${beyond.map((item) => `${item.name} is beyond the measured ${range(item)}`).join("; ")}.`;
  };
  state.when(["indices"], update);
  update();
  return el("div", { class: "sliders", role: "group", "aria-label": "Point of prediction" }, rows,
    el("div", { class: "slider-foot" }, note, reset));
}

function control(parameter, state) {
  return parameter.kind === "category" ? selection(parameter, state) : slider(parameter, state);
}

function slider(parameter, state) {
  const input = el("input", { type: "range", min: 0, max: parameter.stops.length - 1, step: 1,
    id: `slider-${parameter.name}`, name: parameter.name, on: { input: () => move(state, parameter.name, input.value) } });
  const output = el("output", { for: input.id });
  const update = () => {
    const index = state.get("indices")[parameter.name];
    input.value = index;
    output.textContent = value(parameter.stops[index]);
    output.classList.toggle("beyond", isBeyond(parameter, index));
    input.setAttribute("aria-valuetext", `${output.textContent}, ${kindOf(parameter, index)}`);
  };
  state.when(["indices"], update);
  update();
  return el("div", { class: "slider" }, el("label", { for: input.id }, parameter.name),
    el("div", { class: "track" }, input, ticks(parameter)), output);
}

// A mark for every stop: where something was measured, and where not.
function ticks(parameter) {
  const last = Math.max(1, parameter.stops.length - 1);
  return el("div", { class: "ticks", "aria-hidden": "true" }, parameter.stops.map((_, index) =>
    el("span", { class: isMeasured(parameter, index) ? "measured" : "", style: { left: `${(100 * index) / last}%` } })));
}

function selection(parameter, state) {
  const select = el("select", { id: `slider-${parameter.name}`, on: {
    change: () => move(state, parameter.name, select.selectedIndex) } },
  parameter.stops.map((stop) => el("option", {}, value(stop))));
  const update = () => { select.selectedIndex = state.get("indices")[parameter.name]; };
  state.when(["indices"], update);
  update();
  return el("div", { class: "slider" }, el("label", { for: select.id }, parameter.name), select);
}

function move(state, name, index) {
  state.set({ indices: { ...state.get("indices"), [name]: Number(index) } });
}

function isMeasured(parameter, index) {
  return (parameter.measured ?? []).includes(parameter.stops[index]);
}

function isBeyond(parameter, index) {
  if (parameter.kind === "category" || !parameter.measured?.length) return false;
  const stop = parameter.stops[index];
  return stop > Math.max(...parameter.measured) || stop < Math.min(...parameter.measured);
}

function kindOf(parameter, index) {
  if (isMeasured(parameter, index)) return "measured";
  return isBeyond(parameter, index) ? "beyond the measured range" : "between measured values";
}

function range(parameter) {
  return `${value(Math.min(...parameter.measured))} – ${value(Math.max(...parameter.measured))}`;
}
