// Elements are built, never parsed from text: names of call paths come from other people's programs.

const SVG = "http://www.w3.org/2000/svg";
const MATHML = "http://www.w3.org/1998/Math/MathML";
const FORMULA_ELEMENTS = new Set([
  "math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "msup", "msub", "msubsup", "mfrac", "msqrt", "mroot",
  "mover", "munder", "munderover", "mstyle", "mfenced", "mpadded", "mphantom", "mtable", "mtr", "mtd",
]);
const FORMULA_ATTRIBUTES = new Set(["mathvariant", "stretchy", "form", "fence", "separator", "lspace", "rspace",
  "width", "display", "displaystyle", "linethickness", "columnalign"]);

/** Make an element: `attributes.on` holds listeners, `attributes.style` custom properties; children may nest. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "style") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Return a typeset formula, or its plain text where there is none. */
export function formula(callpath, display = "inline") {
  const plain = () => el("code", { class: "formula" }, callpath.expression ?? "");
  if (!callpath.mathml) return plain();
  const parsed = new DOMParser().parseFromString(callpath.mathml, "text/html").querySelector("math");
  if (parsed === null) return plain();
  const copy = safeFormula(parsed);
  copy.setAttribute("display", display);
  return el("span", { class: "formula" }, copy);
}

/** Return the formula for a table: of a long sum of parts only its largest terms, the whole one in the title. */
export function shortFormula(callpath) {
  const { short } = callpath;
  if (!short) return formula(callpath);
  if (!short.mathml) return el("code", { class: "formula" }, short.text);
  return el("span", {}, el("span", { class: "muted" }, `sum of ${short.parts} parts: `), formula({ mathml: short.mathml }), " + …");
}

// A copy of known elements and attributes only: the document is data, whoever wrote it.
function safeFormula(node) {
  const copy = document.createElementNS(MATHML, node.localName);
  for (const { name, value } of node.attributes) if (FORMULA_ATTRIBUTES.has(name)) copy.setAttribute(name, value);
  for (const child of node.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) copy.append(child.data);
    else if (FORMULA_ELEMENTS.has(child.localName)) copy.append(safeFormula(child));
  }
  return copy;
}

/** What call paths grow as, with raised exponents: "p**(1/2)" and "p^0.5" alike. */
export function growths(items) {
  const growing = items.filter((item) => item.text !== "constant");
  const parts = (growing.length ? growing : items.slice(0, 1)).map((item) => item.text).join(" · ").replaceAll(" * ", " ").replaceAll("log2", "log₂")
    .split(/(?:\^|\*\*)(\([^)]*\)|-?[\d./]+)/);
  return el("span", { class: "growth" }, parts.map((text, index) => (index % 2 ? el("sup", {}, text.replace(/^\(|\)$/g, "").replace("-", "−")) : text)));
}

/** A table with a caption for screen readers; cells of the first column head their rows. */
export function table(caption, columns, rows, attributes = {}) {
  const numeric = columns.map((_, index) => rows.length > 0 && rows.every((row) => isNumeric(row[index])));
  const cell = (content, index) => index === 0
    ? el("th", { scope: "row", class: numeric[0] ? "number" : null }, content)
    : el("td", { class: numeric[index] ? "number" : null }, content ?? "–");
  return scrolling(caption, el("table", attributes,
    el("caption", { class: "unseen" }, caption),
    el("thead", {}, el("tr", {}, columns.map((name, index) =>
      el("th", { scope: "col", class: numeric[index] ? "number" : null }, name)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell))))));
}

// Wide tables scroll by themselves, with the keyboard, too: that needs a name and a place in the tab order.
export function scrolling(label, content) {
  return el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label }, content);
}

const NUMERIC = /^[+\-−]?[\d\u202f.,]+(×10[⁻⁰¹²³⁴-⁹]+)?( ?[%×])?$|^–$/;
function isNumeric(content) {
  return content === null || content === undefined || (typeof content === "string" && NUMERIC.test(content));
}

export function button(text, action, attributes = {}) {
  return el("button", { type: "button", ...attributes, on: { click: action } }, text);
}

/** A labelled choice among `options` ([value, text]); `changed` gets the value. */
export function choice(label, options, chosen, changed) {
  const select = el("select", { on: { change: () => changed(select.value) } },
    options.map(([value, text]) => el("option", { value, selected: String(value) === String(chosen) }, text)));
  return el("label", { class: "choice" }, el("span", {}, label), select);
}

/** The first children, and the others behind a line that opens them. */
export function folded(tag, attributes, children, most, what) {
  if (children.length <= most) return [el(tag, attributes, children)];
  return [el(tag, attributes, children.slice(0, most)), el("details", { class: "data" },
    el("summary", {}, `${children.length - most} more ${children.length - most > 1 ? what : what.replace(/s$/, "")}`),
    el(tag, attributes, children.slice(most)))];
}

export function badges(texts) {
  return (texts ?? []).map((text) => el("span", { class: "badge" }, text));
}

/** The first badge and how many more there are: a row of a table has one line. */
export function briefBadges(texts) {
  const [first, ...others] = texts ?? [];
  if (first === undefined) return null;
  return [badges([first]), others.length ? el("span", { class: "muted", title: others.join(", ") }, `+${others.length}`) : null];
}
