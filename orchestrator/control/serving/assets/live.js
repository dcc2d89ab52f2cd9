// Keeps the list and the page of a campaign up to date from one stream of events.
"use strict";

const root = document.body.dataset.root;
const live = document.getElementById("live");
const table = document.getElementById("campaigns");
const page = document.getElementById("campaign");
const seen = {};  // of the campaign that is shown: version of its status, of its report
let source = null;

function connect() {
  source = new EventSource(root + "events");
  source.onopen = () => say("live", true);
  source.onerror = () => say("connection lost; trying again", false);
  source.addEventListener("campaign", (event) => update(JSON.parse(event.data)));
  source.addEventListener("gone", (event) => rowOf(JSON.parse(event.data).key)?.remove());
}

// Browsers allow six connections to a server: a page that nobody sees gives its own back.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    source?.close();
    source = null;
    say("not live", false);
  } else if (source === null) {
    connect();
  }
});

function say(text, on) {
  live.textContent = text;
  live.classList.toggle("on", on);
}

function update(row) {
  if (table) {
    replaceRow(row);
    filter();
  }
  if (page && row.key === page.dataset.key) {
    showStatus(row);
    showReport(row);
  }
}

function rowOf(key) {
  return [...table?.tBodies[0].rows ?? []].find((row) => row.dataset.key === key);
}

function replaceRow(row) {
  const parsed = document.createElement("template");
  parsed.innerHTML = row.html;  // from the server, which escapes what campaigns say
  const fresh = parsed.content.firstElementChild;
  const old = rowOf(row.key);
  if (old) {
    const focused = old.contains(document.activeElement);
    old.replaceWith(fresh);
    if (focused) fresh.querySelector("a")?.focus();
  } else {
    table.tBodies[0].prepend(fresh);
  }
}

function filter() {
  const words = document.getElementById("search").value.toLowerCase().split(/\s+/);
  const state = document.getElementById("state").value;
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    const text = row.textContent.toLowerCase();
    const wanted = words.every((word) => text.includes(word)) && (!state || row.dataset.state === state);
    row.hidden = !wanted;
    shown += wanted;
  }
  document.getElementById("none").hidden = shown > 0;
}

async function showStatus(row) {
  const version = JSON.stringify([row.version, row.standing, row.report]);
  if (seen.status === version) return;
  seen.status = version;
  const answer = await fetch("status");
  const panel = document.getElementById("status");
  const text = await answer.text();
  if (answer.ok) panel.innerHTML = text;
  else panel.textContent = text;
}

// The frame loads a report when there is a new one; asking for it is also what lets one be built.
function showReport(row) {
  const frame = document.getElementById("report");
  const built = document.getElementById("built");
  if (row.building) built.textContent = row.report === null ? "" : "A newer report is being built.";
  else if (row.report_error) built.textContent = "The last report could not be built.";
  else if (row.report !== null) built.textContent = row.report === row.version ? "The report is up to date."
    : "The report is of an earlier moment; a new one follows after the round, or when you open it again.";
  const arrived = seen.report !== undefined && row.report !== seen.report;
  const wanted = row.stale && !row.building && seen.wanted !== row.version;
  seen.report = row.report;
  if (wanted) seen.wanted = row.version;
  if (wanted) fetch("report", {method: "HEAD"});
  else if (arrived) frame.src = "report";
}

document.getElementById("search")?.addEventListener("input", filter);
document.getElementById("state")?.addEventListener("change", filter);
connect();
