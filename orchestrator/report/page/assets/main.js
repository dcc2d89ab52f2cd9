// The page: sections in the order in which a reader asks.

import { el } from "./dom.js";
import { Models, State, readDocument } from "./data.js";
import { connectTheme } from "./theme.js";
import { showCostsIn } from "./format.js";
import { preparePrinting, redraw } from "./charts.js";
import { headSection } from "./head.js";
import { treeSection } from "./tree.js";
import { modelSection } from "./model.js";
import { scalingSection } from "./scaling.js";
import { pointsSection } from "./points.js";
import { attemptsSection } from "./attempts.js";
import { effortSection } from "./effort.js";
import { downloadsSection } from "./downloads.js";
import { comparisonSections } from "./comparison.js";

function sections(source, models) {
  const found = [headSection(source)];
  if (source.comparison) found.push(...comparisonSections(source.comparison));
  if (models.callpaths.length) {
    const state = startState(source, models);
    found.push(treeSection(models, state), modelSection(models, state));
    const overlap = source.head?.answer?.overlap; // parts that contain each other are no shares of a sum
    const adds = !overlap && models.numbers().some((item) => item.processes);
    if (source.speedup || adds) found.push(scalingSection(models, state, source.speedup, overlap));
  }
  if (source.points || source.rounds || source.alternatives) found.push(pointsSection(source, models));
  if (source.attempts || source.ledger || source.noise || source.failures) found.push(attemptsSection(source));
  if (source.effort || source.priors) found.push(effortSection(source, models));
  return [...found, downloadsSection(source, models)].filter((section) => section !== null);
}

function startState(source, models) {
  const metric = source.head?.answer?.metric ?? models.metrics()[0][0];
  const indices = models.start();
  const largest = models.ofMetric(metric, indices).map((item) => [models.own(item, indices), item.id]);
  largest.sort((a, b) => b[0] - a[0]);
  return new State({ indices, metric, selected: largest[0]?.[1] ?? models.callpaths[0].id, search: "", hideMpi: false,
    note: "", least: 0, sort: { key: "tree", descending: true } });
}

const SHORT = { answer: "Summary", comparison: "Comparison", tree: "Call paths", model: "Model and data", scaling: "Scaling",
  points: "Why these points", attempts: "Time line", effort: "Effort and priors", downloads: "Downloads" };

function contents(found) {
  return el("ul", {}, found.map((section) => el("li", {}, el("a", { href: `#${section.id}` }, SHORT[section.id]))));
}

// The section in view is marked in the list of contents.
function follow(found) {
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      links.forEach((link) => link.removeAttribute("aria-current"));
      links.get(target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-20% 0px -75% 0px" });
  found.forEach((section) => observer.observe(section));
}

async function show() {
  const source = await readDocument();
  showCostsIn(source.cost_unit);
  const main = document.querySelector("main");
  const found = sections(source, new Models(source));
  document.querySelector("nav").replaceChildren(contents(found));
  main.replaceChildren(...found);
  connectTheme(document.getElementById("theme"), redraw);
  follow(found);
  preparePrinting();
  document.documentElement.dataset.ready = "true";
}

show().catch((error) => {
  document.querySelector("main").replaceChildren(el("p", { role: "alert", class: "warnings" },
    `This page cannot be shown: ${error.message}. A current browser is needed (Firefox 120, Chrome 123, Safari 17.5 or later).`));
  throw error;
});
