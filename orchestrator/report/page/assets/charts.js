// Figures: drawn as vectors when they come into view, with their data as a table and as an SVG file.

import { el, button, table } from "./dom.js";
import { palette } from "./theme.js";
import { clock, short } from "./format.js";

const EXPORTED_WIDTH = 900;
const PAPER_WIDTH = 660;
const MOST_VECTORS = 3000; // beyond it the screen shows pixels, which are faster; the file stays a vector drawing
const figures = [];
let printing = false;

const observer = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) figures.find((item) => item.holder === entry.target)?.draw();
}, { rootMargin: "200px" });

/**
 * A figure.
 *
 * `option(colours)` gives what the plotting library draws, `data()` its table ({columns, rows}), `label()` what a
 * screen reader says, `name` the file's name, `height` pixels, `marks` how many things are drawn, `click` what a mark does.
 */
export class Figure {
  constructor({ title, caption, name, option, data, label, height = 360, marks = 0, controls = [], click = null }) {
    Object.assign(this, { title, name, option, data, label, height, marks, click });
    this.holder = el("div", { class: "chart", role: "img" });
    this.details = el("details", { class: "data", on: { toggle: () => this.fill() } }, el("summary", {}, "Data"));
    this.element = el("figure", {},
      el("div", { class: "figure-head" }, el("h3", {}, title), el("div", { class: "controls" }, controls,
        button("SVG", () => download(`${name}.svg`, "image/svg+xml", this.svg()),
          { class: "small", "aria-label": `Save "${title}" as an SVG file` }))),
      el("figcaption", {}, caption), this.holder, this.details);
    this.resize();
    figures.push(this);
    observer.observe(this.holder);
  }

  resize() {
    this.holder.style.height = `${this.height}px`;
    this.holder.setAttribute("aria-label", `${this.title}. ${this.label()}`);
  }

  draw() {
    if (this.chart) return;
    observer.unobserve(this.holder);
    this.resize();
    this.chart = echarts.init(this.holder, null, { renderer: this.marks > MOST_VECTORS ? "canvas" : "svg" });
    this.chart.setOption(this.current());
    if (this.click) this.chart.on("click", this.click);
    new ResizeObserver(() => this.chart.resize()).observe(this.holder);
  }

  current() {
    const colours = palette(printing ? "light" : null);
    const option = this.option(colours);
    return framed(printing ? { ...option, dataZoom: undefined } : option, colours);
  }

  /** Show changed data or colours. */
  update() {
    this.fill();
    if (!this.chart) return; // what was never in view is up to date when it is drawn
    this.resize();
    this.chart.resize(printing ? { width: Math.min(PAPER_WIDTH, this.holder.clientWidth) } : {});
    this.chart.setOption(this.current(), { notMerge: true });
  }

  fill() {
    if (!this.details.open) return;
    const { columns, rows } = this.data();
    this.details.replaceChildren(this.details.firstChild, table(`Data of: ${this.title}`, columns, rows));
  }

  /** The figure as a file: light, without what only a mouse can use. */
  svg() {
    const colours = palette("light");
    const option = framed(this.option(colours), colours);
    const chart = echarts.init(null, null, { renderer: "svg", ssr: true, width: EXPORTED_WIDTH, height: this.height + 40 });
    const grid = { ...option.grid, bottom: option.dataZoom ? 34 : option.grid.bottom };
    chart.setOption({ ...option, grid, dataZoom: undefined, animation: false, backgroundColor: "#ffffff" });
    const text = chart.renderToSVGString();
    chart.dispose();
    return text;
  }
}

export function allFigures() {
  return figures;
}

export function redraw() {
  figures.forEach((figure) => figure.update());
}

/** Paper is light, and shows what was not yet in view. */
export function preparePrinting() {
  const set = (now) => () => {
    printing = now;
    figures.forEach((figure) => { figure.draw(); figure.update(); });
  };
  addEventListener("beforeprint", set(true));
  addEventListener("afterprint", set(false));
}

export function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// What all figures have in common.
function framed(option, colours) {
  const text = { color: colours.muted, fontFamily: colours.font, fontSize: 12 };
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  return {
    animation: !calm, animationDuration: 250, animationDurationUpdate: 150, color: colours.series, textStyle: text,
    ...option,
    grid: { left: 12, right: 24, top: option.legend === null ? 34 : 66, bottom: option.dataZoom ? 60 : 34, containLabel: true, ...option.grid },
    legend: option.legend === null ? undefined : {
      type: "scroll", top: 4, left: 0, itemWidth: 16, itemHeight: 9, itemGap: 16, icon: "roundRect",
      textStyle: { ...text, color: colours.ink }, pageIconColor: colours.ink, pageTextStyle: text, ...option.legend },
    tooltip: option.tooltip === null ? undefined : {
      backgroundColor: colours.panel, borderColor: colours.rule, padding: [8, 12], confine: true,
      textStyle: { ...text, color: colours.ink }, extraCssText: "box-shadow: 0 4px 16px rgb(0 0 0 / 12%)",
      ...option.tooltip },
  };
}

/** An axis with a name and unit in words; a logarithmic one where `scale` says so. */
export function axis(colours, name, scale = "linear", extra = {}) {
  const vertical = extra.vertical;
  const marks = scale === "log" ? extra.stops ?? decades(extra.min, extra.max) : undefined;
  return {
    name, nameLocation: vertical ? "end" : "middle", nameGap: vertical ? 14 : 28,
    nameTextStyle: { color: colours.muted, align: vertical ? "left" : "center", padding: vertical ? [0, 0, 0, -28] : 0 },
    type: scale === "log" ? "log" : scale === "category" ? "category" : "value", scale: scale !== "zero",
    axisLine: { show: !vertical, lineStyle: { color: colours.muted } }, axisTick: { show: false, customValues: marks },
    splitLine: { show: vertical, lineStyle: { color: colours.rule } }, minorSplitLine: { show: false },
    ...without(extra, ["vertical", "stops", "axisLabel"]), ...ends(extra.stops, scale),
    axisLabel: { color: colours.muted, hideOverlap: true, customValues: marks,
      formatter: scale === "category" ? undefined : (value) => short(value, 3), ...extra.axisLabel },
  };
}

/** Ends of a logarithmic axis around its values above zero: none are needed where there are none. */
export function around(values) {
  const found = values.filter((value) => value > 0);
  return found.length ? { min: Math.min(...found) / 1.15, max: Math.max(...found) * 1.15 } : {};
}

// A logarithmic axis ends at its outermost stops, with a little room: whole decades would leave half of it empty.
function ends(stops, scale) {
  return scale === "log" && stops?.length > 1 ? { min: stops[0] / 1.12, max: stops.at(-1) * 1.12 } : {};
}

/** Round numbers between two: 1, 2 and 5 times the powers of ten, or only these where there are many. */
function decades(from, to) {
  if (!(from > 0) || !(to > from)) return undefined;
  const powers = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); power += 1) powers.push(10 ** power);
  const found = powers.length > 4 ? powers : powers.flatMap((power) => [power, 2 * power, 5 * power]);
  const inside = found.filter((item) => item >= from && item <= to);
  return inside.length > 2 ? inside : steps(from, to);
}

// Less than a decade: equal steps of 1, 2 or 5.
function steps(from, to) {
  const size = 10 ** Math.floor(Math.log10((to - from) / 5));
  const step = size * [1, 2, 5, 10].find((factor) => (to - from) / (size * factor) <= 7);
  return Array.from({ length: Math.floor(to / step) - Math.ceil(from / step) + 1 }, (_, index) =>
    Number(((Math.ceil(from / step) + index) * step).toPrecision(6)));
}

function without(object, names) {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}

const STEPS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** An axis of seconds since the start, with marks at whole minutes, hours or days. */
export function timeAxis(colours, end, extra = {}) {
  const interval = STEPS.find((step) => end / step <= 9) ?? 86400 * Math.ceil(end / 86400 / 9);
  return axis(colours, `hours:minutes${interval < 60 ? ":seconds" : ""} since the start`, "linear", { min: 0, max: end, interval, ...extra,
    axisLabel: { showMaxLabel: false, formatter: (seconds) => clock(seconds).slice(0, interval < 60 ? undefined : -3) } });
}

/** Zoom of the horizontal axis: a slider below, ctrl and wheel, and dragging. */
export function zoom(colours) {
  return [
    { type: "inside", xAxisIndex: 0, filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseMove: true },
    { type: "slider", xAxisIndex: 0, filterMode: "none", height: 6, bottom: 12, borderColor: "transparent",
      backgroundColor: colours.panel, fillerColor: colours.rule, showDataShadow: false, showDetail: false, brushSelect: false,
      handleIcon: "circle", handleSize: 14, handleStyle: { color: colours.paper, borderColor: colours.muted, borderWidth: 1.5 },
      moveHandleSize: 0 },
  ];
}

/** A band between low and high, on any kind of axis: one polygon through all points. */
export function band(name, points, colour, extra = {}) {
  const there = points.filter((item) => Number.isFinite(item.low) && Number.isFinite(item.high));
  const outline = (api) => [...there.map((item) => api.coord([item.x, item.high])),
    ...[...there].reverse().map((item) => api.coord([item.x, item.low]))];
  return {
    name, type: "custom", clip: true, silent: true, z: 1,
    // All points are data, so that the axes reach as far as the band does; the polygon is drawn with the first.
    data: there.length > 1 ? there.map((item) => [item.x, item.low, item.high]) : [],
    encode: { x: 0, y: [1, 2] }, itemStyle: { color: colour, opacity: 0.16 }, tooltip: { show: false },
    renderItem: ({ dataIndex }, api) => (dataIndex > 0 ? null
      : { type: "polygon", shape: { points: outline(api) }, style: { fill: colour, opacity: 0.16 } }),
    ...extra,
  };
}

/** The content of a tooltip: a heading and lines; text, never markup. */
export function tip(heading, lines) {
  return el("div", { class: "tip" }, el("strong", {}, heading),
    lines.filter(Boolean).map((line) => el("div", {}, line)));
}
