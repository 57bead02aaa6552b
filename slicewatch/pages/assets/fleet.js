// The page of the fleet: #/ its pools, #/pool/NAME the nodes of one, #/node/NAME one node.
//
// Searching asks the server, which knows every node; a name in the address is always encoded.

import {h, say, sync} from "./dom.js";
import * as format from "./format.js";
import {findings, gpuCard, showHealth, updateGpu} from "./gpu.js";
import {connect, showStatus} from "./live.js";
import {draw, sparkline} from "./sparkline.js";
import {themeButton} from "./theme.js";

const $ = (id) => document.getElementById(id);
const NO_POOL = "nodes without a pool";
const poolName = (name) => name || NO_POOL;
const poolLink = (name) => `#/pool/${encodeURIComponent(name)}`;
const nodeLink = (name) => `#/node/${encodeURIComponent(name)}`;

let stream = null;

function route() {
  const [, kind, name] = location.hash.match(/^#\/(pool|node|search)\/(.*)$/) ?? [];
  return {kind: kind ?? "fleet", name: decodeURIComponent(name ?? "")};
}

function go({focus}) {
  const {kind, name} = route();
  stream?.close();
  const content = h("div");
  $("content").replaceChildren(content);
  sync($("findings"), [], {key: String});
  say($("about"), "");
  say($("found"), "");
  const show = {fleet: showFleet, pool: showPool, node: showNode, search: showFound}[kind];
  const {title, url, crumbs, update} = show(name, content);
  say($("title"), title);
  document.title = `${title} – Slicewatch`;
  $("crumbs").replaceChildren(...crumbs);
  if (kind !== "search") $("search").value = "";
  if (focus) $("title").focus();
  stream = connect(url, {
    onStatus: (status) => showStatus($("status"), status),
    onState: update,
  });
}

const crumb = (text, href) => h("a", {href, text});

function showFleet(_, content) {
  content.className = "pools";
  return {
    title: "Fleet",
    url: "/fleet/events",
    crumbs: [],
    update(state) {
      say($("about"), about(state.totals, state));
      sync(content, state.pools ?? [], {key: (pool) => pool.name, create: poolCard, update: updatePool});
    },
  };
}

function showPool(name, content) {
  const list = h("ul", {class: "nodes"});
  content.append(list);
  return {
    title: poolName(name),
    url: `/fleet/events?pool=${encodeURIComponent(name)}`,
    crumbs: [crumb("Fleet", "#/")],
    update(state) {
      const pool = (state.pools ?? []).find((one) => one.name === name);
      say($("found"), pool ? "" : "There is no such pool, or no node of it has an exporter.");
      if (pool) say($("about"), about(pool.totals, state));
      rows(list, pool?.nodes ?? []);
    },
  };
}

function showFound(words, content) {
  const list = h("ul", {class: "nodes"});
  content.append(list);
  return {
    title: "Search",
    url: `/fleet/events?q=${encodeURIComponent(words)}`,
    crumbs: [crumb("Fleet", "#/")],
    update(state) {
      const nodes = (state.pools ?? []).flatMap((pool) => pool.nodes ?? []);
      say($("found"), `${format.count(nodes.length, "node")} with ${words}`);
      rows(list, nodes);
    },
  };
}

function showNode(name, content) {
  content.className = "gpus";
  return {
    title: name,
    url: `/fleet/node/${encodeURIComponent(name)}/events`,
    crumbs: [crumb("Fleet", "#/")],
    update(state) {
      $("crumbs").replaceChildren(crumb("Fleet", "#/"), crumb(poolName(state.pool ?? ""), poolLink(state.pool ?? "")));
      findings($("findings"), state.findings ?? []);
      const parts = [
        state.gpus ? format.count(state.gpus.length, "GPU") : "GPUs not known",
        state.cordoned ? "cordoned" : "",
        state.driver ? `driver ${state.driver}` : "",
      ];
      say($("about"), parts.filter(Boolean).join(" · "));
      sync(content, state.gpus ?? [], {key: (gpu) => gpu.uuid, create: gpuCard, update: updateGpu});
    },
  };
}

function about(totals, state) {
  const parts = [
    format.count(totals.nodes ?? 0, "node"),
    format.count(totals.gpus ?? 0, "GPU"),
    totals.known ? `${format.percent(totals.utilization)} busy` : "utilization not known",
    totals.unwell ? `${totals.unwell} not answering` : "",
    totals.silent ? `${format.count(totals.silent, "node")} silent` : "",
    totals.cordoned ? `${totals.cordoned} cordoned` : "",
    state.pods_known === false ? "pods of the cluster are not known" : "",
  ];
  return parts.filter(Boolean).join(" · ");
}

function poolCard(pool) {
  const figure = (name) => h("div", {"data-figure": name}, h("dt", {text: name}), h("dd", {}, h("span"), sparkline()));
  return h(
    "article",
    {class: "pool"},
    h("header", {}, h("h2", {}, h("a", {href: poolLink(pool.name), text: poolName(pool.name)})), h("span", {class: "health"})),
    h("p", {class: "what"}),
    h("dl", {class: "figures"}, figure("Utilization"), figure("Memory"), figure("Power")),
  );
}

function updatePool(card, pool) {
  const {totals, lines = {}} = pool;
  showHealth(card.querySelector(".health"), pool.health);
  const allocated = totals.allocated === undefined ? "" : `${totals.allocated} of ${totals.devices} devices allocated`;
  const parts = [format.count(totals.nodes ?? 0, "node"), format.count(totals.gpus ?? 0, "GPU"), allocated];
  if (totals.silent) parts.push(`${totals.silent} silent`);
  if (totals.cordoned) parts.push(`${totals.cordoned} cordoned`);
  if (totals.contention_max_ratio) parts.push(`contention up to ${format.ratio(totals.contention_max_ratio)}`);
  say(card.querySelector(".what"), parts.filter(Boolean).join(" · "));
  const shown = {
    Utilization: [format.percent(totals.utilization), lines.utilization, {most: 100, format: format.percent}],
    Memory: [
      format.of(totals.memory_used_bytes, totals.memory_total_bytes, format.bytes),
      lines.memory,
      {most: 100, format: format.percent},
    ],
    Power: [format.watts(totals.power_watts), lines.power, {format: format.watts}],
  };
  for (const [name, [text, points, options]] of Object.entries(shown)) {
    const figure = card.querySelector(`[data-figure="${name}"]`);
    say(figure.querySelector("dd > span"), text);
    draw(figure.querySelector("svg"), points ?? [], {label: name, ...options});
  }
}

function rows(list, nodes) {
  sync(list, nodes, {
    key: (row) => row.node,
    create: (row) =>
      h(
        "li",
        {},
        h("a", {class: "name", href: nodeLink(row.node), text: row.node}),
        h("span", {class: "health"}),
        h("span", {class: "cells", role: "img"}),
        h("span", {class: "words"}),
        h("span", {class: "finding"}),
      ),
    update: updateRow,
  });
}

function updateRow(item, row) {
  const [, health, cells, words, finding] = item.children;
  const {totals} = row;
  showHealth(health, row.health);
  const values = row.utilizations ?? [];
  const known = values.filter((value) => value !== null).map(format.percent);
  const said = known.length ? `utilization of its devices: ${known.join(", ")}` : "utilization not known";
  if (cells.getAttribute("aria-label") !== said) cells.setAttribute("aria-label", said);
  sync(cells, values.map((value, number) => ({value, number})), {
    key: (cell) => cell.number,
    create: () => h("i"),
    update(cell, {value}) {
      cell.className = value === null ? "unknown" : "";
      cell.style.setProperty("--fill", `${value ?? 0}%`);
    },
  });
  const parts = [
    totals.known ? `${format.percent(totals.utilization)} busy` : "",
    totals.memory_used_bytes === undefined ? "" : format.of(totals.memory_used_bytes, totals.memory_total_bytes, format.bytes),
    totals.power_watts === undefined ? "" : format.watts(totals.power_watts),
    totals.contention_max_ratio ? `contention ${format.ratio(totals.contention_max_ratio)}` : "",
    row.cordoned ? "cordoned" : "",
  ];
  say(words, parts.filter(Boolean).join(" · "));
  say(finding, row.finding ?? "");
}

let pause = null;
$("search").addEventListener("input", (event) => {
  clearTimeout(pause);
  const words = event.target.value.trim();
  // The server is asked once somebody has stopped writing.
  pause = setTimeout(() => {
    const place = words ? `#/search/${encodeURIComponent(words)}` : "#/";
    if (location.hash === place) return;
    history.replaceState(null, "", place);
    go({focus: false});
  }, 300);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.tagName === "INPUT") return;
  event.preventDefault();
  $("search").focus();
});
addEventListener("hashchange", () => go({focus: true}));
themeButton($("theme"));
if (route().kind === "search") $("search").value = route().name;
go({focus: false});
