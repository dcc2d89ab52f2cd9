// Numbers and points as people read them. A narrow space groups thousands, which no language misreads.

const SUPERSCRIPT = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

export function known(value) {
  return typeof value === "number" && Number.isFinite(value);
}

export function number(value, digits = 4) {
  if (!known(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) {
    const [mantissa, exponent] = value.toExponential(Math.min(digits, 3) - 1).split("e");
    return `${minus(mantissa)}×10${[...String(Number(exponent))].map((sign) => SUPERSCRIPT[sign]).join("")}`;
  }
  const text = value.toLocaleString("en-US", { maximumSignificantDigits: Math.max(digits, wholeDigits(size)) });
  return minus(text.replaceAll(",", "\u202f"));
}

// Whole numbers such as 65536 processes keep all their digits.
function wholeDigits(size) {
  return Number.isInteger(size) && size < 1e7 ? String(size).length : 1;
}

function minus(text) {
  return text.replace("-", "−");
}

export function quantity(value, unit) {
  return unit && known(value) ? `${number(value)}\u202f${unit}` : number(value);
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
  if (seconds < 5400) return `${number(seconds / 60, 3)} min`;
  return seconds < 172800 ? `${number(seconds / 3600, 3)} h` : `${number(seconds / 86400, 3)} days`;
}

export function clock(seconds) {
  if (!known(seconds)) return "–";
  const rest = Math.round(seconds);
  const [hours, minutes] = [Math.floor(rest / 3600), Math.floor((rest % 3600) / 60)];
  const two = (value) => String(value).padStart(2, "0");
  return `${hours}:${two(minutes)}:${two(rest % 60)}`;
}

export function value(item) {
  return typeof item === "number" ? number(item) : String(item);
}

export function place(point) {
  return Object.entries(point ?? {}).map(([name, item]) => `${name} = ${value(item)}`).join(", ");
}

export function lastPart(name) {
  return name.split("->").at(-1);
}

/** The end of a long name, for axes: its beginning says least. */
export function shortened(name, most = 32) {
  const part = lastPart(name);
  return part.length <= most ? part : `…${part.slice(1 - most)}`;
}

export function plural(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
}
