// Files made from the page: nothing is fetched.

import { el, button } from "./dom.js";
import { allFigures, download } from "./charts.js";

export function downloadsSection(source, models) {
  const given = (source.downloads ?? []).map((item) => item.text === null || item.text === undefined
    ? entry(item.name, item.note ?? "", null)
    : entry(item.name, size(item.text), () => download(item.name, item.type ?? "text/plain", item.text)));
  const figures = allFigures().map((figure) => entry(`${figure.name}.svg`, figure.title,
    () => download(`${figure.name}.svg`, "image/svg+xml", figure.svg())));
  const document = entry("report.json", "everything on this page", () => download("report.json", "application/json", JSON.stringify(source)));
  return el("section", { id: "downloads", "aria-labelledby": "downloads-title" },
    el("h2", { id: "downloads-title" }, "Downloads"),
    el("p", { class: "lead" }, "All files are made from this page, without a network. Figures are saved as they are set now."),
    el("div", { class: "pair" },
      el("div", {}, el("h3", {}, models.callpaths.length ? "Data and formulas" : "Data"), el("ul", { class: "files" }, given, document)),
      figures.length ? el("div", {}, el("h3", {}, "Figures"), el("ul", { class: "files" }, figures)) : null));
}

function entry(name, note, action) {
  return el("li", {}, action ? button(name, action, { class: "file" }) : el("span", { class: "file" }, name),
    el("span", { class: "muted" }, note));
}

function size(text) {
  const kilobytes = text.length / 1024;
  return kilobytes < 1 ? `${text.length} bytes` : `${Math.round(kilobytes)} KB`;
}
