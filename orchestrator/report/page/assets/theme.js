// Light and dark. The style sheet holds all colours; charts read them from there.

const COLOURS = ["ink", "muted", "rule", "paper", "panel", "accent", "good", "bad", "warn", "quiet",
  "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "low", "mid", "high"];

/** The colours of a scheme, "light" or "dark"; the page's own if none is named. */
export function palette(scheme = null) {
  const probe = document.createElement("span");
  if (scheme !== null) probe.style.colorScheme = scheme;
  document.body.append(probe);
  const found = { font: getComputedStyle(document.body).fontFamily };
  for (const name of COLOURS) {
    probe.style.color = `var(--${name})`;
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  found.series = [1, 2, 3, 4, 5, 6, 7, 8].map((index) => found[`s${index}`]);
  return found;
}

const PREFERENCE = matchMedia("(prefers-color-scheme: dark)");

/** The scheme in force. */
export function scheme() {
  return document.documentElement.dataset.theme ?? (PREFERENCE.matches ? "dark" : "light");
}

/** Let a button switch the scheme; `changed` is called whenever it changes. */
export function connectTheme(button, changed) {
  const label = () => {
    const other = scheme() === "dark" ? "light" : "dark";
    button.textContent = other === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Switch to the ${other} theme`);
  };
  const update = () => { label(); changed(); };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = scheme() === "dark" ? "light" : "dark";
    update();
  });
  PREFERENCE.addEventListener("change", update);
  label();
}
