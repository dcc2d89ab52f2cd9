// Numbers and points as people read them. A narrow space groups thousands, which no language misreads.

const SUPERSCRIPT = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

export function known(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** A number with so many significant digits; whole numbers keep all of theirs. */
export function number(value, digits = 4, trimmed = false) {
  if (!known(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) {
    const [mantissa, exponent] = value.toExponential(Math.min(digits, 3) - 1).split("e");
    return `${minus(mantissa)}×10${[...String(Number(exponent))].map((sign) => SUPERSCRIPT[sign]).join("")}`;
  }
  const whole = Number.isInteger(size) ? String(size).length : Math.min(15, Math.trunc(size).toString().length);
  const most = Math.max(digits, whole);
  const text = value.toLocaleString("en-US", { maximumSignificantDigits: most,
    minimumSignificantDigits: trimmed || Number.isInteger(size) ? 1 : most });
  return minus(text.replaceAll(",", "\u202f"));
}

/** A number on an axis, or a parameter's value: without zeros at its end. */
export function short(value, digits = 4) {
  return number(value, digits, true);
}

function minus(text) {
  return text.replace("-", "−");
}

export function quantity(value, unit) {
  return unit && known(value) ? `${number(value)}\u202f${unit}` : number(value);
}

// Costs are core-hours in the document, and are shown in the unit of the campaign's budget.
const IN_CORE_HOURS = { "core-seconds": 1 / 3600, "core-minutes": 1 / 60, "core-hours": 1, "core-days": 24 };
let budgetUnit = "core-hours";

export function showCostsIn(unit) {
  budgetUnit = unit ?? "core-hours";
}

export function costUnit() {
  return budgetUnit;
}

export function inCostUnit(hours) {
  return known(hours) ? hours / IN_CORE_HOURS[budgetUnit] : hours;
}

export function cost(hours) {
  return quantity(inCostUnit(hours), budgetUnit);
}

export function interval(low, high, unit) {
  if (!known(low) || !known(high)) return "–";
  return `${number(low, 3)} – ${number(high, 3)}${unit ? `\u202f${unit}` : ""}`;
}

export function percent(fraction) {
  if (!known(fraction)) return "–";
  const value = 100 * fraction;
  if (value > 0 && value < 0.1) return "< 0.1\u202f%";
  return `${value.toFixed(value < 9.95 ? 1 : 0)}\u202f%`;
}

/** Time as a person says it, for long durations: 3.4 h, 2.1 days. */
export function spoken(seconds) {
  if (!known(seconds) || seconds < 120) return null;
  if (seconds < 5400) return `${number(seconds / 60, 2)} min`;
  return seconds < 172800 ? `${number(seconds / 3600, 2)} h` : `${number(seconds / 86400, 2)} days`;
}

export function clock(seconds) {
  if (!known(seconds)) return "–";
  const rest = Math.round(seconds);
  const [hours, minutes] = [Math.floor(rest / 3600), Math.floor((rest % 3600) / 60)];
  const two = (value) => String(value).padStart(2, "0");
  return `${hours}:${two(minutes)}:${two(rest % 60)}`;
}

export function value(item) {
  return typeof item === "number" ? short(item, 6) : String(item);
}

export function place(point) {
  return Object.entries(point ?? {}).map(([name, item]) => `${name} = ${value(item)}`).join(", ");
}

/** The last part of a call path; of a C++ function its name without types: they are longer than all else. */
export function lastPart(name) {
  return plain(name.split("->").at(-1));
}

function plain(part) {
  const signature = /^([^()]*[\w~>])\(.*\)/.exec(part);
  return signature ? signature[1].replace(/<.*>$/, "").split(" ").at(-1) : part;
}

/** Names as short as they can be told apart: the last part, or the last two where several share it. */
export function briefNames(names) {
  const all = [...new Set(names)];
  const counts = new Map();
  for (const name of all) counts.set(lastPart(name), (counts.get(lastPart(name)) ?? 0) + 1);
  return new Map(all.map((name) => [name, counts.get(lastPart(name)) === 1 ? lastPart(name) : name.split("->").slice(-2).map(plain).join(" › ")]));
}

/** The end of a long name, for axes: its beginning says least. */
export function shortened(name, most = 32) {
  return name.length <= most ? name : `…${name.slice(1 - most)}`;
}

export function plural(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
}
