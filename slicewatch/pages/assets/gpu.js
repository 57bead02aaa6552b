// A GPU, drawn as its slices.
//
// gpuCard(gpu) makes an element, updateGpu(element, gpu) draws the state of it (GpuState of
// slicewatch/pages/message.py). A partitioned GPU is a bar of its memory slices, with instances in
// their places and gaps where nothing is; any other is one slice. In each slice its tenants stand side
// by side. Elements stay the same from state to state.

import {h, say, sync} from "./dom.js";
import * as format from "./format.js";
import {draw, sparkline} from "./sparkline.js";

const HEALTH = {
  bad: ["✕", "bad"],
  warning: ["!", "warning"],
  unknown: ["?", "not known"],
  good: ["✓", "good"],
};
const REASONS = {
  mig_enabled: "the GPU is partitioned: see its slices",
  mig_instance: "not measured for MIG devices",
  mps: "not known under MPS",
  vgpu_host: "not known on a vGPU host",
};

/** Show a health with a sign and a word. */
export function showHealth(element, health) {
  const [sign, word] = HEALTH[health] ?? HEALTH.unknown;
  element.dataset.health = health;
  say(element, `${sign} ${word}`);
}

export function gpuCard(gpu) {
  const title = h("h2", {id: `gpu-${gpu.uuid}`});
  const card = h(
    "article",
    {class: "gpu", "aria-labelledby": title.id},
    h("header", {}, title, h("p", {class: "model"}), h("span", {class: "health"})),
    h("ul", {class: "findings"}),
    h(
      "dl",
      {class: "figures"},
      ...["Utilization", "Memory", "Power", "Temperature"].map((name) =>
        h("div", {"data-figure": name}, h("dt", {text: name}), h("dd", {}, h("span"), sparkline())),
      ),
    ),
    h("div", {class: "bar", "aria-hidden": "true"}),
    h("ul", {class: "slices"}),
    h("p", {class: "uuid"}),
  );
  return card;
}

export function updateGpu(card, gpu) {
  say(card.querySelector("h2"), `GPU ${gpu.index}`);
  say(card.querySelector(".model"), gpu.model.replace(/^NVIDIA /, ""));
  say(card.querySelector(".uuid"), gpu.uuid);
  showHealth(card.querySelector("header .health"), gpu.health);
  card.classList.toggle("lost", !gpu.up);
  findings(card.querySelector(".findings"), gpu.findings ?? []);
  figures(card, gpu);
  bar(card.querySelector(".bar"), gpu);
  slices(card.querySelector(".slices"), gpu);
}

/** Show findings in a list, each with the name of its runbook. */
export function findings(list, found) {
  sync(list, found, {
    key: (one) => `${one.health} ${one.runbook} ${one.text.replace(/\d+ min ago/, "")}`,
    create: () => h("li", {}, h("span", {class: "health"}), " ", h("span"), " ", h("code")),
    update(item, one) {
      const [health, text, runbook] = item.children;
      showHealth(health, one.health);
      say(text, one.text);
      say(runbook, one.runbook ? `runbook ${one.runbook}` : "");
    },
  });
}

function figures(card, gpu) {
  const whole = gpu.mig ? null : gpu.devices?.[0];
  const lines = gpu.lines ?? {};
  const shown = {
    Utilization: [
      gpu.mig ? "by slice" : format.percent(whole?.utilization),
      lines.utilization,
      {most: 100, format: format.percent},
    ],
    Memory: [
      format.of(gpu.memory_used_bytes, gpu.memory_total_bytes, format.bytes),
      lines.memory,
      {most: 100, format: format.percent},
    ],
    Power: [
      format.of(gpu.power_watts, gpu.power_limit_watts, format.watts),
      lines.power,
      {most: gpu.power_limit_watts, format: format.watts},
    ],
    Temperature: [format.celsius(gpu.temperature_celsius), [], {format: format.celsius}],
  };
  for (const [name, [text, points, options]] of Object.entries(shown)) {
    const figure = card.querySelector(`[data-figure="${name}"]`);
    say(figure.querySelector("dd > span"), text);
    draw(figure.querySelector("svg"), points ?? [], {label: name, ...options});
  }
}

/** Draw the memory slices of a partitioned GPU: who has which, how busy, and what nobody has. */
function bar(element, gpu) {
  const total = gpu.mig ? gpu.memory_slices : null;
  element.hidden = !total;
  if (!total) return;
  element.style.setProperty("--slices", total);
  sync(element, placed(gpu.devices ?? [], total), {
    key: (slice) => slice.uuid ?? `free-${slice.placement_start}`,
    create: () => h("div", {}, h("div", {class: "fill"}), h("span")),
    update(cell, slice) {
      const [fill, label] = cell.children;
      cell.className = slice.uuid ? "cell" : "cell free";
      cell.style.gridColumn = `${slice.placement_start + 1} / span ${slice.placement_size}`;
      fill.style.setProperty("--fill", `${slice.utilization ?? 0}%`);
      const busy = slice.utilization === undefined ? "?" : format.percent(slice.utilization);
      say(label, slice.uuid ? `${slice.profile.split(".")[0]} ${busy}` : "");
    },
  });
}

function slices(list, gpu) {
  list.setAttribute("aria-label", gpu.mig ? "MIG devices" : "What runs on it");
  list.classList.toggle("mig", gpu.mig === true);
  const free = gpu.mig ? unpartitioned(gpu) : 0;
  sync(list, [...(gpu.devices ?? []), ...(free ? [{free}] : [])], {
    key: (slice) => slice.uuid ?? "free",
    create: (slice) => (slice.uuid ? sliceOf() : h("li", {class: "slice free"}, h("p"))),
    update(item, slice) {
      if (slice.uuid) updateSlice(item, slice, gpu);
      else say(item.firstElementChild, `${format.count(slice.free, "memory slice")} in no MIG device`);
    },
  });
}

const unpartitioned = (gpu) =>
  placed(gpu.devices ?? [], gpu.memory_slices ?? 0)
    .filter((slice) => !slice.uuid)
    .reduce((sum, slice) => sum + slice.placement_size, 0);

/** Return the MIG devices and, between them, the gaps. */
function placed(devices, total) {
  const all = [];
  let next = 0;
  for (const device of devices) {
    const start = device.placement_start;
    // Compute instances of one GPU instance share its place; what has none cannot be drawn.
    if (start === undefined || start < next) continue;
    if (start > next) all.push({placement_start: next, placement_size: start - next});
    all.push(device);
    next = start + device.placement_size;
  }
  if (next < total) all.push({placement_start: next, placement_size: total - next});
  return all;
}

function sliceOf() {
  return h(
    "li",
    {class: "slice"},
    h("div", {class: "fill", "aria-hidden": "true"}),
    h("p", {class: "name"}),
    h("p", {class: "use"}),
    h("ul", {class: "tenants"}),
    h("p", {class: "note"}),
  );
}

function updateSlice(item, device, gpu) {
  const [fill, name, use, tenants, note] = item.children;
  fill.style.setProperty("--fill", `${device.utilization ?? 0}%`);
  item.classList.toggle("unknown", device.utilization === undefined);
  say(name, device.profile ? `${device.profile}` : sharing(device));
  say(use, words(device, gpu));
  say(note, notes(device));
  showTenants(tenants, device);
}

const sharing = (device) =>
  device.replicas > 1 ? `shared, ${format.count(device.replicas, "replica")}` : "whole GPU";

function words(device, gpu) {
  const parts = [
    device.utilization === undefined ? "utilization not known" : `${format.percent(device.utilization)} busy`,
  ];
  if (gpu.mig) parts.push(format.of(device.memory_used_bytes, device.memory_total_bytes, format.bytes));
  if (device.contention_ratio) parts.push(`contention ${format.ratio(device.contention_ratio)}`);
  if (device.pressure_ratio) parts.push(`pressure ${format.ratio(device.pressure_ratio)}`);
  return parts.join(" · ");
}

function notes(device) {
  const reason = device.reasons?.utilization;
  return reason ? `not reported: ${REASONS[reason] ?? reason.replaceAll("_", " ")}` : "";
}

function showTenants(list, device) {
  const tenants = device.tenants ?? [];
  const held = tenants.reduce((sum, tenant) => sum + (tenant.replicas ?? 0), 0);
  const free = Math.max((device.replicas ?? 1) - held, 0);
  const shown = [...tenants];
  if (!tenants.length || (free && device.replicas > 1)) shown.push({free});
  sync(list, shown, {
    key: (tenant) => (tenant.free === undefined ? `${tenant.namespace}/${tenant.pod}/${tenant.container}` : "free"),
    create: () => h("li", {}, h("span", {class: "who"}), h("span", {class: "much"})),
    update: (item, tenant) => updateTenant(item, tenant, device),
  });
}

function updateTenant(item, tenant, device) {
  const [who, much] = item.children;
  const isFree = tenant.free !== undefined;
  item.className = isFree ? "tenant free" : "tenant";
  const share = isFree ? tenant.free / (device.replicas ?? 1) : (tenant.busy_ratio ?? 0);
  item.style.setProperty("--share", share);
  if (isFree) {
    say(who, nobody(device, tenant.free));
    say(much, "");
    return;
  }
  const name = tenant.pod ? `${tenant.namespace}/${tenant.pod}` : "processes outside of pods";
  say(who, tenant.container && tenant.pod ? `${name} · ${tenant.container}` : name);
  const parts = [];
  if (tenant.busy_ratio !== undefined) parts.push(`${format.ratio(tenant.busy_ratio)} busy`);
  if (tenant.memory_used_bytes !== undefined) parts.push(format.bytes(tenant.memory_used_bytes));
  if (tenant.contention_ratio) parts.push(`disturbed ${format.ratio(tenant.contention_ratio)}`);
  if (tenant.replicas > 1) parts.push(format.count(tenant.replicas, "replica"));
  if (device.tenants_known && !tenant.replicas && tenant.pod) parts.push("not allocated");
  say(much, parts.join(" · "));
}

function nobody(device, free) {
  if (!device.tenants_known) return "who holds it is not known";
  return device.replicas > 1 ? `${format.count(free, "replica")} free` : "free";
}
