// A curve over versions of the model, drawn as SVG.

import { drawn } from "./dom.js";

const WIDTH = 640;
const HEIGHT = 240;
const LEFT = 56;
const RIGHT = 16;
const TOP = 16;
const BOTTOM = 40;

function steps(low, high) {
  const size = (high - low) / 4;
  const round = 10 ** Math.floor(Math.log10(size));
  const step = [1, 2, 5, 10].map((one) => one * round).find((one) => one >= size);
  const first = Math.floor(low / step + 1e-9) * step;
  const values = [];
  for (let value = first; value < high + step * (1 - 1e-9); value += step) values.push(value);
  return values;
}

// points: [{at, value, isNow}]; text(value) says a value.
export function curve(title, points, text) {
  const values = points.map((point) => point.value);
  const low = Math.min(...values);
  const high = Math.max(...values);
  const least = Math.max(Math.abs(high), 0.1) * 0.1; // so that next to nothing does not look like much
  const room = Math.max(0, least - (high - low)) / 2;
  const ticks = steps(low - room, high + room);
  const [bottom, top] = [ticks[0], ticks[ticks.length - 1]];
  const x = (place) => LEFT + (points.length > 1 ? place / (points.length - 1) : 0.5) * (WIDTH - LEFT - RIGHT);
  const y = (value) => TOP + (1 - (value - bottom) / (top - bottom)) * (HEIGHT - TOP - BOTTOM);
  const grid = ticks.flatMap((value) => [
    drawn("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
    drawn("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, text(value)),
  ]);
  const every = Math.ceil(points.length / 12);
  const names = points
    .map((point, place) => drawn("text", { x: x(place), y: HEIGHT - BOTTOM + 20, "text-anchor": "middle" }, String(point.at)))
    .filter((_, place) => place % every === 0);
  const line = drawn("polyline", { class: "line", points: points.map((point, place) => `${x(place)},${y(point.value)}`).join(" ") });
  const dots = points.map((point, place) => drawn("circle", { class: point.isNow ? "dot now" : "dot", cx: x(place), cy: y(point.value), r: point.isNow ? 6 : 4 }, drawn("title", {}, `version ${point.at}: ${text(point.value)}`)));
  const axis = drawn("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 2, "text-anchor": "middle" }, "version of the model");
  const spoken = `${title}: ${points.map((point) => `version ${point.at} ${text(point.value)}`).join(", ")}`;
  return drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "curve", role: "img", "aria-label": spoken }, ...grid, ...names, axis, line, ...dots);
}
