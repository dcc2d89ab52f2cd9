// The call tree with what each call path takes at the sliders' point. Rows are built as they are needed.

import { el, briefBadges, button, choice, growths, scrolling, shortFormula } from "./dom.js";
import { interval, known, lastPart, number, percent, place, short } from "./format.js";
import { sliders } from "./sliders.js";

const ROWS_AT_A_TIME = 40;
const OPEN_FROM_SHARE = 0.01;
const LEAST_RANKED = 1e-3; // of the whole: what is smaller than that at the sliders’ point does not dominate
const MOST_RANKED = 12;
const COLUMNS = [
  { key: "tree", text: "Call path" },
  { key: "share", text: "Share", number: true },
  { key: "value", text: "Value", number: true },
  { key: "width", text: "90 % interval", number: true, wide: true },
  { key: "growth", text: "Model", wide: true },
  { key: "smape", text: "Error", number: true, wide: true },
  { key: "notes", text: "Notes", wide: true },
];

export function treeSection(models, state) {
  const view = new Tree(models, state);
  const timed = models.metrics().some(([, unit]) => unit === "s");
  return el("section", { id: "tree", "aria-labelledby": "tree-title" },
    el("h2", { id: "tree-title" }, timed ? "What takes the time" : "Values by call path"),
    el("p", { class: "lead" }, "Every call path with its predicted value at the point that the sliders set, and its share ",
      "of the whole, with all that it calls; the interval holds the true value with 90 % probability. Filled marks below a slider are measured ",
      "values. A click on a heading sorts, a click on a name shows its model against the data."),
    sliders(models, state), view.filters(), view.element, view.more, growthRanking(models, state));
}

class Tree {
  constructor(models, state) {
    Object.assign(this, { models, state });
    this.toggled = new Map();
    this.limit = ROWS_AT_A_TIME;
    this.formulas = new Map();
    this.exclusive = models.callpaths.some((item) => item.exclusive);
    this.body = el("tbody");
    this.headings = COLUMNS.map((column) => this.heading(column));
    this.summary = el("p", { class: "muted", role: "status" });
    this.more = el("p", { class: "more" });
    this.element = scrolling("Call paths", el("table", { class: "tree" },
      el("caption", { class: "unseen" }, "Call paths, their share and their models"),
      el("thead", {}, el("tr", {}, this.headings)), this.body));
    state.when(["indices", "metric", "search", "hideMpi", "note", "least", "sort", "selected"], () => this.show());
    this.show();
  }

  heading(column) {
    const shape = [column.number ? "number" : "", column.wide ? "wide" : ""].join(" ").trim();
    return el("th", { scope: "col", class: shape || null, "data-key": column.key },
      button(column.text, () => this.sortBy(column.key), { class: "sort" }));
  }

  sortBy(key) {
    const { key: before, descending } = this.state.get("sort");
    this.state.set({ sort: { key, descending: before === key ? !descending : true } });
  }

  filters() {
    const { models, state } = this;
    const typed = (event) => { this.limit = ROWS_AT_A_TIME; state.set({ search: event.target.value }); };
    const notes = [...new Set(models.callpaths.flatMap((item) => item.badges ?? []))].sort();
    const metrics = models.metrics();
    return el("div", { class: "filters", role: "search" },
      el("label", { class: "choice grow" }, el("span", {}, "Search"),
        el("input", { type: "search", placeholder: "part of a name", spellcheck: "false", on: { input: typed } })),
      metrics.length > 1 ? choice("Metric", metrics.map(([name, unit]) => [name, unit ? `${name} / ${unit}` : name]),
        state.get("metric"), (metric) => state.set({ metric })) : null,
      choice("Share", [["0", "all"], ["0.001", "≥ 0.1 %"], ["0.01", "≥ 1 %"], ["0.05", "≥ 5 %"]], "0",
        (least) => state.set({ least: Number(least) })),
      notes.length ? choice("Notes", [["", "all"], ...notes.map((text) => [text, text])], "",
        (note) => state.set({ note })) : null,
      models.callpaths.some((item) => item.mpi) ? el("label", { class: "check" },
        el("input", { type: "checkbox", on: { change: (event) => state.set({ hideMpi: event.target.checked }) } }),
        "Hide MPI") : null,
      this.summary);
  }

  /** What is known of each call path at the sliders' point. */
  rows() {
    const { models, state } = this;
    const indices = state.get("indices");
    const all = models.ofMetric(state.get("metric"), indices);
    const total = models.total(all, indices);
    return new Map(all.map((item) => {
      const found = models.at(item, indices);
      return [item.id, { item, ...found, share: total > 0 ? models.branch(item, indices) / total : NaN }];
    }));
  }

  wanted(row) {
    const { state } = this;
    const text = (state.get("search") ?? "").trim().toLowerCase();
    return (!state.get("hideMpi") || !row.item.mpi)
      && (!text || row.item.name.toLowerCase().includes(text))
      && (!state.get("note") || (row.item.badges ?? []).includes(state.get("note")))
      && (!state.get("least") || row.share >= state.get("least"));
  }

  filtering() {
    return ["search", "note", "least", "hideMpi"].some((name) => this.state.get(name));
  }

  /** The rows in the order shown, with their depth. */
  ordered(rows) {
    const { key, descending } = this.state.get("sort");
    const sign = descending ? -1 : 1;
    if (key !== "tree") {
      const found = [...rows.values()].filter((row) => this.wanted(row)).map((row) => ({ ...row, depth: 0 }));
      return found.sort((a, b) => sign * compared(a, b, key));
    }
    return this.walk(rows, descending ? "share" : "name");
  }

  walk(rows, key) {
    const kept = this.kept(rows);
    const found = [];
    const visit = (parent, depth) => {
      const below = (this.models.children.get(parent) ?? []).map((item) => rows.get(item.id))
        .filter((row) => row !== undefined && kept.has(row.item.id));
      below.sort((a, b) => (key === "share" ? compared(b, a, "share") : compared(a, b, "name")));
      for (const row of below) {
        const inner = (this.models.children.get(row.item.id) ?? []).some((item) => kept.has(item.id));
        const open = inner && (this.toggled.get(row.item.id) ?? (this.filtering() || row.share >= OPEN_FROM_SHARE));
        found.push({ ...row, depth, inner, open });
        if (open) visit(row.item.id, depth + 1);
      }
    };
    visit(null, 0);
    return found;
  }

  // A call path that is searched for is shown below those that call it.
  kept(rows) {
    const kept = new Set();
    for (const row of rows.values()) {
      if (!this.wanted(row)) continue;
      for (let id = row.item.id; id !== null && !kept.has(id); id = this.models.parentOf(this.models.byId.get(id))) {
        kept.add(id);
      }
    }
    return kept;
  }

  show() {
    const rows = this.rows();
    const ordered = this.ordered(rows);
    const focused = document.activeElement?.closest?.("tbody") === this.body ? document.activeElement.dataset.key : null;
    this.body.replaceChildren(...ordered.slice(0, this.limit).map((row) => this.row(row)));
    if (focused) this.body.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
    this.showHeadings();
    this.showMore(ordered.length);
    const matches = [...rows.values()].filter((row) => this.wanted(row)).length;
    this.summary.textContent = `${number(matches)} of ${number(rows.size)} call paths at ${place(this.models.point(this.state.get("indices")))}`;
  }

  showHeadings() {
    const { key, descending } = this.state.get("sort");
    const unit = this.models.metrics().find(([name]) => name === this.state.get("metric"))?.[1];
    this.headings.forEach((heading, index) => {
      const { key: own, text } = COLUMNS[index];
      if (own === key) heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
      heading.firstChild.textContent = own === "value" && unit ? `${this.exclusive ? "Own value" : text} / ${unit}` : text;
    });
  }

  showMore(count) {
    const show = (limit) => () => { this.limit = limit; this.show(); };
    const rest = count - this.limit;
    this.more.replaceChildren(...(rest <= 0 ? [] : [
      button(`Show ${Math.min(rest, 100)} more`, show(this.limit + 100)),
      button(`Show all ${number(count)}`, show(Infinity), { class: "plain" })]));
  }

  row(row) {
    const { item } = row;
    const chosen = item.id === this.state.get("selected");
    return el("tr", { class: chosen ? "chosen" : null, "data-id": item.id },
      el("th", { scope: "row", style: { "--depth": row.depth } }, el("div", { class: "path" }, this.name(row))),
      el("td", { class: "number share", style: { "--share": `${100 * Math.min(1, Math.max(0, row.share || 0))}%` } },
        percent(row.share)),
      el("td", { class: "number" }, el("data", { value: row.value }, number(row.value))),
      el("td", { class: "number wide" }, interval(row.low, row.high)),
      el("td", { class: "wide" }, el("div", { class: "model", title: item.expression }, this.formula(item))),
      el("td", { class: "number wide" }, known(item.smape) ? `${short(item.smape, 2)}\u202f%` : "–"),
      el("td", { class: "wide", title: (item.notes ?? []).join("\n") || null }, briefBadges(item.badges)));
  }

  name(row) {
    const { item, inner, open } = row;
    const { models } = this;
    const tree = this.state.get("sort").key === "tree";
    const toggle = inner ? button(open ? "▾" : "▸", () => { this.toggled.set(item.id, !open); this.show(); }, {
      class: "toggle", "aria-expanded": String(open), "aria-label": `Calls of ${item.name}`, "data-key": `t${item.id}` })
      : el("span", { class: "toggle" });
    const select = () => this.state.set({ selected: item.id });
    return [tree ? toggle : null, el("a", { href: "#model", class: "name", title: item.name, "data-key": `n${item.id}`,
      "aria-current": item.id === this.state.get("selected") ? "true" : null, on: { click: select } },
    tree ? lastPart(item.name) : models.brief.get(item.name)), item.mpi && !lastPart(item.name).startsWith("MPI_") ? el("span", { class: "tag" }, "MPI") : null];
  }

  // Formulas are typeset once: that takes longer than everything else in a row.
  formula(item) {
    if (!this.formulas.has(item.id)) this.formulas.set(item.id, shortFormula(item));
    return this.formulas.get(item.id);
  }
}

function compared(a, b, key) {
  const sortable = {
    tree: (row) => row.item.name, name: (row) => row.item.name, notes: (row) => (row.item.badges ?? []).length,
    width: (row) => (row.high - row.low) / row.value, smape: (row) => row.item.smape,
    growth: (row) => fastest(row.item), share: (row) => row.share, value: (row) => row.value,
  }[key];
  const [left, right] = [sortable(a), sortable(b)];
  if (typeof left === "string") return left.localeCompare(right);
  return (known(left) ? left : -Infinity) - (known(right) ? right : -Infinity) || 0;
}

/** The exponent of the fastest growth; logarithms count a little. */
function fastest(item) {
  return Math.max(-Infinity, ...(item.growth ?? []).map((growth) => growth.exponent + 0.01 * (growth.log ?? 0)));
}

/** What dominates in the end: the fastest growing call paths of a parameter. */
function growthRanking(models, state) {
  const names = [...new Set(models.callpaths.flatMap((item) => (item.growth ?? []).map((growth) => growth.parameter)))]
    .filter((name) => models.parameter(name)?.measured?.length !== 2); // which show no law of growth
  if (names.length === 0) return null;
  const chosen = models.parameters.find((item) => item.processes && names.includes(item.name))?.name ?? names[0];
  const body = el("div");
  const show = (name) => body.replaceChildren(rankingTable(models, state, name));
  let current = chosen;
  const pick = choice("Parameter", names.map((name) => [name, name]), chosen, (name) => { current = name; show(name); });
  state.when(["indices", "metric"], () => show(current));
  show(chosen);
  return el("div", { class: "ranking" },
    el("div", { class: "figure-head" }, el("h3", {}, "What dominates at scale"), el("div", { class: "controls" }, pick)),
    el("p", { class: "caption" }, "The fastest growing call paths first. “Factor” compares the value at the sliders’ ",
      "point with that at the smallest measured value of the parameter."), body);
}

function rankingTable(models, state, name) {
  const indices = state.get("indices");
  const all = models.ofMetric(state.get("metric"), indices);
  const total = models.total(all, indices);
  const smallest = { ...indices, [name]: Math.max(0, models.stops(name).indexOf(Math.min(...(models.parameter(name)?.measured ?? [])))) };
  const rows = all.flatMap((item) => (item.growth ?? []).filter((growth) => growth.parameter === name)
    .map((growth) => ({ item, growth, value: models.at(item, indices).value, before: models.at(item, smallest).value })));
  rows.sort((a, b) => b.growth.exponent - a.growth.exponent || (b.growth.log ?? 0) - (a.growth.log ?? 0) || b.value - a.value);
  const large = rows.filter((row) => row.value > LEAST_RANKED * total);
  return rankingRows((large.length ? large : rows).slice(0, MOST_RANKED), total, state, models.brief);
}

function rankingRows(rows, total, state, brief) {
  const heads = ["Call path", "Grows as", "Factor", "Share"];
  return scrolling("Growth ranking", el("table", { class: "compact" },
    el("caption", { class: "unseen" }, "Call paths by how fast they grow"),
    el("thead", {}, el("tr", {}, heads.map((text, index) => el("th", { scope: "col", class: index > 1 ? "number" : null }, text)))),
    el("tbody", {}, rows.map(({ item, growth, value, before }) => el("tr", {},
      el("th", { scope: "row" }, el("a", { href: "#model", title: item.name,
        on: { click: () => state.set({ selected: item.id }) } }, brief.get(item.name))),
      el("td", {}, growths([growth])),
      el("td", { class: "number" }, known(value / before) ? `${number(value / before, 3)}×` : "–"),
      el("td", { class: "number" }, percent(value / total)))))));
}
