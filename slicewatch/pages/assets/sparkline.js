// A line of the last minutes, with gaps where nothing was known.
//
// sparkline() makes an element; draw(element, points, {label, most, format}) draws it anew.
// Its accessible name says latest, least and most, so that it needs no eyes.

import {svg} from "./dom.js";

const WIDTH = 120;
const HEIGHT = 24;

export function sparkline() {
  return svg(
    "svg",
    {class: "sparkline", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", preserveAspectRatio: "none"},
    svg("path"),
  );
}

export function draw(element, points, {label, most, format}) {
  const values = points.filter((value) => value !== null);
  element.toggleAttribute("hidden", values.length === 0);
  if (!values.length) return;
  const top = most ?? Math.max(...values, 1e-9);
  element.firstElementChild.setAttribute("d", path(points, top));
  const last = points.at(-1);
  const words = [
    `${label}: ${last === null ? "not known now" : format(last)}`,
    `least ${format(Math.min(...values))}`,
    `most ${format(Math.max(...values))}`,
  ].join(", ");
  if (element.getAttribute("aria-label") !== words) element.setAttribute("aria-label", words);
}

function path(points, top) {
  const step = WIDTH / Math.max(points.length - 1, 1);
  let text = "";
  let pen = "M";
  points.forEach((value, number) => {
    if (value === null) {
      pen = "M";
      return;
    }
    const y = HEIGHT - 1 - (HEIGHT - 2) * Math.min(value / top, 1);
    text += `${pen}${(number * step).toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
  });
  return text;
}
