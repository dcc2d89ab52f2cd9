// The document as it came, and the predictions of all call paths over the grid of the sliders' stops.

import { briefNames } from "./format.js";

/** Read the document from the page; a large one is compressed. */
export async function readDocument() {
  const holder = document.getElementById("document");
  if (holder.type === "application/json") return JSON.parse(holder.textContent);
  const packed = bytes(holder.textContent.trim());
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function bytes(text) {
  const raw = atob(text);
  return Uint8Array.from({ length: raw.length }, (_, index) => raw.charCodeAt(index));
}

export function floats(text) {
  return text ? new Float32Array(bytes(text).buffer) : new Float32Array(0);
}

/** A curve along a line of the document: {x, value, low, high} at its points. */
export function unpackedCurve(found, line) {
  const [value, low, high] = [found.value, found.low, found.high].map(floats);
  return line.x.map((x, index) => ({ x, value: value[index], low: low[index] ?? NaN, high: high[index] ?? NaN }));
}

/** Everything that the sections ask about call paths and their predictions. */
export class Models {
  constructor(source) {
    this.parameters = source.parameters ?? [];
    this.callpaths = source.callpaths ?? [];
    this.names = source.grid?.names ?? [];
    this.runs = source.runs ?? [];
    this.lines = source.lines ?? [];
    this.whole = source.whole ?? [];
    this.parts = source.parts ?? [];
    this.brief = briefNames(this.callpaths.map((item) => item.name));
    this.byId = new Map(this.callpaths.map((item) => [item.id, item]));
    this.children = grouped(this.callpaths, (item) => this.parentOf(item));
    this.strides = strides(source.grid?.shape ?? []);
    this.unpacked = new Map();
    this.measured = new Map();
  }

  parentOf(callpath) {
    return this.byId.has(callpath.parent) ? callpath.parent : null;
  }

  parameter(name) {
    return this.parameters.find((item) => item.name === name);
  }

  /** The stops of a parameter along the grid. */
  stops(name) {
    return this.parameter(name)?.stops ?? [];
  }

  numbers() {
    return this.parameters.filter((item) => item.kind !== "category" && this.names.includes(item.name));
  }

  /** Where each slider stands at first: the evaluation point, or the fastest configuration. */
  start() {
    return Object.fromEntries(this.parameters.map((item) => [item.name, startOf(item)]));
  }

  point(indices) {
    return Object.fromEntries(this.parameters.map((item) => [item.name, item.stops[indices[item.name]]]));
  }

  /** The stops' indices of a point; null where a coordinate is no stop. */
  indices(point) {
    const found = {};
    for (const item of this.parameters) {
      found[item.name] = item.stops.indexOf(point[item.name]);
      if (found[item.name] < 0) return null;
    }
    return found;
  }

  flat(indices) {
    return this.names.reduce((sum, name, axis) => sum + indices[name] * this.strides[axis], 0);
  }

  series(callpath) {
    if (!this.unpacked.has(callpath.id)) {
      const [value, low, high] = [callpath.value, callpath.low, callpath.high].map(floats);
      this.unpacked.set(callpath.id, { value, low, high });
    }
    return this.unpacked.get(callpath.id);
  }

  /** The runs that measured a call path: {point, value, predicted, outlier, validation, id, node}. */
  runsOf(callpath) {
    if (!this.measured.has(callpath.id)) this.measured.set(callpath.id, this.unpackRuns(callpath));
    return this.measured.get(callpath.id);
  }

  unpackRuns(callpath) {
    const [values, predicted] = [floats(callpath.measured), floats(callpath.predicted_at_runs)];
    const outliers = new Set(callpath.outliers ?? []);
    return this.runs.map((run, index) => ({ ...run, value: values[index] ?? NaN, predicted: predicted[index] ?? NaN,
      outlier: outliers.has(index) })).filter((run) => Number.isFinite(run.value));
  }

  /** Smooth curves of a call path along one parameter: {at, points, changes}. */
  curvesOf(callpath, name) {
    return (callpath.curves ?? []).filter((found) => this.lines[found.line]?.parameter === name).map((found) => {
      const line = this.lines[found.line];
      return { at: line.at, points: unpackedCurve(found, line), changes: found.change_points ?? [] };
    });
  }

  /** {value, low, high} at the stops; NaN where nothing is known. */
  at(callpath, indices) {
    const { value, low, high } = this.series(callpath);
    const index = this.flat(indices);
    return { value: value[index] ?? NaN, low: low[index] ?? NaN, high: high[index] ?? NaN };
  }

  /** Call paths of one metric that apply to the categories chosen. */
  ofMetric(metric, indices) {
    return this.callpaths.filter((item) => item.metric === metric && this.applies(item, indices));
  }

  applies(callpath, indices) {
    return Object.entries(callpath.category ?? {}).every(([name, wanted]) =>
      !this.parameter(name) || this.parameter(name).stops[indices[name]] === wanted);
  }

  metrics() {
    return [...new Map(this.callpaths.map((item) => [item.metric, item.unit])).entries()];
  }

  /** What call paths of one metric add up to: those that the document names; else all exclusive ones and those at the top. */
  total(callpaths, indices) {
    const named = callpaths.filter((item) => this.whole.includes(item.id));
    const counted = named.length ? named : callpaths.filter((item) => item.exclusive || this.parentOf(item) === null);
    return counted.reduce((sum, item) => sum + positive(this.at(item, indices).value), 0);
  }

  /** What a call path takes with all that it calls, be its values inclusive or exclusive. */
  branch(callpath, indices) {
    const own = positive(this.at(callpath, indices).value);
    if (!callpath.exclusive) return own;
    const below = (this.children.get(callpath.id) ?? []).filter((item) => item.metric === callpath.metric);
    return below.reduce((sum, item) => sum + this.branch(item, indices), own);
  }

  /** What a call path spends itself, without those that it calls. */
  own(callpath, indices) {
    const whole = positive(this.at(callpath, indices).value);
    if (callpath.exclusive) return whole;
    const below = (this.children.get(callpath.id) ?? []).filter((item) => item.metric === callpath.metric);
    return Math.max(0, below.reduce((rest, item) => rest - positive(this.at(item, indices).value), whole));
  }

  /** The prediction along one parameter, the others as they stand. */
  slice(callpath, name, indices) {
    return this.stops(name).map((x, index) => ({ x, ...this.at(callpath, { ...indices, [name]: index }) }));
  }
}

function grouped(items, key) {
  const groups = new Map();
  for (const item of items) {
    if (!groups.has(key(item))) groups.set(key(item), []);
    groups.get(key(item)).push(item);
  }
  return groups;
}

function startOf(parameter) {
  const found = parameter.stops.indexOf(parameter.default);
  return found >= 0 ? found : parameter.stops.length - 1;
}

function strides(shape) {
  const found = shape.map(() => 1);
  for (let axis = shape.length - 2; axis >= 0; axis -= 1) found[axis] = found[axis + 1] * shape[axis + 1];
  return found;
}

function positive(number) {
  return Number.isFinite(number) && number > 0 ? number : 0;
}

/** What the reader has chosen; sections listen to the choices that concern them. */
export class State {
  constructor(values) {
    this.values = values;
    this.listeners = [];
    this.pending = new Set();
  }

  get(name) {
    return this.values[name];
  }

  // Sliders send more events than a screen shows: all changes within one frame are announced once.
  set(changes) {
    Object.assign(this.values, changes);
    if (this.pending.size === 0) requestAnimationFrame(() => this.announce());
    Object.keys(changes).forEach((name) => this.pending.add(name));
  }

  announce() {
    const changed = [...this.pending];
    this.pending.clear();
    for (const [names, listener] of this.listeners) if (names.some((name) => changed.includes(name))) listener();
  }

  when(names, listener) {
    this.listeners.push([names, listener]);
  }
}
