// The page of one node: its GPUs, live.

import {say, sync} from "./dom.js";
import * as format from "./format.js";
import {gpuCard, updateGpu} from "./gpu.js";
import {connect, showStatus} from "./live.js";
import {search} from "./search.js";
import {themeButton} from "./theme.js";

const $ = (id) => document.getElementById(id);
const found = search($("search"), $("found"), {
  items: () => [...$("gpus").children],
  noun: "GPUs",
});

themeButton($("theme"));
connect("/status/events", {
  onStatus: (status) => showStatus($("status"), status),
  onState(state) {
    document.title = `${state.node} – Slicewatch`;
    say($("node"), state.node);
    say($("about"), about(state));
    sync($("gpus"), state.gpus ?? [], {key: (gpu) => gpu.uuid, create: gpuCard, update: updateGpu});
    found.apply();
  },
});

function about(state) {
  const gpus = state.gpus ?? [];
  const known = gpus.flatMap((gpu) => gpu.devices ?? []).map((device) => device.utilization);
  const busy = known.filter((value) => value !== undefined);
  const unwell = gpus.filter((gpu) => gpu.health === "bad").length;
  return [
    format.count(gpus.length, "GPU"),
    busy.length ? `${format.percent(busy.reduce((a, b) => a + b, 0) / busy.length)} busy` : "",
    unwell ? `${unwell} bad` : "",
    state.driver ? `driver ${state.driver}` : "no driver",
    `means over ${format.seconds(state.window_seconds)}`,
  ]
    .filter(Boolean)
    .join(" · ");
}
