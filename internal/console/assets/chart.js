// Line charts, drawn again whenever their place changes its width: text stays as large as it is.

import { el, svg, table } from "./app.js";

const height = 200, left = 58, right = 12, top = 10, bottom = 26;

// chart returns a figure with a legend, a chart and, for those who cannot see it, its figures as a
// table. A line is {name, points: [[x, y], ...]}: a y of null is a gap. A level is {name, y}: a
// horizontal line. An x is in seconds, and a y in milliseconds where durations says so. x and y
// format what the table shows. Lines differ in colour and in dashes.
export function chart({ title, lines, levels = [], x, y, xName, every = 1, durations }) {
  const all = lines.flatMap((l) => l.points), ys = [...all.map((p) => p[1]), ...levels.map((l) => l.y)].filter((v) => v !== null);
  const xs = all.map((p) => p[0]), low = Math.min(...xs, Infinity), high = Math.max(...xs, -Infinity), peak = Math.max(...ys, 0),
    most = durations ? 4000 * round(peak / 4000) : nice(peak);
  const area = el("div", { class: "chart" });
  const figure = el("figure", {}, el("figcaption", {}, title), legend([...lines, ...levels], lines.length), area);
  if (!ys.length) {
    area.append(el("p", { class: "empty" }, "There is nothing to draw."));
    return figure;
  }
  const label = `${title}. ${lines.map((l) => `${l.name}: ${summary(l, y)}`).join(". ")}`;
  const draw = (width) => {
    const px = (v) => left + (high > low ? (v - low) / (high - low) : 0) * (width - left - right);
    const py = (v) => top + (1 - v / most) * (height - top - bottom);
    const step = round((high - low) / Math.max(1, (width - left) / 90));
    const marks = Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, i) => low + i * step);
    area.replaceChildren(svg("svg", { role: "img", "aria-label": label, width, height, viewBox: `0 0 ${width} ${height}` },
      [0, 1, 2, 3, 4].map((i) => i * most / 4).map((v) => [
        svg("line", { class: "grid", x1: left, x2: width - right, y1: py(v), y2: py(v) }),
        svg("text", { x: left - 6, y: py(v) + 4, "text-anchor": "end" }, durations ? tick(v / 1000) : v === 0 ? "0" : y(v)),
      ]),
      marks.map((v, i) => svg("text", {
        x: px(v), y: height - 8, "text-anchor": i === 0 ? "start" : px(v) > width - 50 ? "end" : "middle",
      }, tick(v))),
      levels.map((l, i) => svg("line", { class: `line level l${i}`, x1: left, x2: width - right, y1: py(l.y), y2: py(l.y) })),
      lines.map((l, i) => svg("path", { class: `line l${i}`, d: path(l.points, px, py) }))));
  };
  new ResizeObserver(([at]) => draw(Math.max(Math.floor(at.contentRect.width), 200))).observe(area);
  figure.append(el("details", {}, el("summary", {}, "The figures"), table(
    [{ text: xName || "Time", number: true }, ...lines.map((l) => ({ text: l.name, number: true }))],
    rows(lines, every).map(([at, ...values]) => [x(at), ...values.map((v) => v === null || v === undefined ? "–" : y(v))]),
    { caption: title })));
  return figure;
}

// rows are the points of all lines by x, every nth of them.
function rows(lines, every) {
  const by = new Map();
  lines.forEach((l, i) => l.points.forEach(([at, v]) => {
    if (!by.has(at)) by.set(at, Array(lines.length).fill(null));
    by.get(at)[i] = v;
  }));
  return [...by].sort((a, b) => a[0] - b[0]).filter((_, i) => i % every === 0).map(([at, values]) => [at, ...values]);
}

function legend(lines, drawn) {
  return el("ul", { class: "legend" }, lines.map((l, i) => el("li", {},
    svg("svg", { width: 26, height: 10, "aria-hidden": "true" }, svg("line", {
      class: i < drawn ? `line l${i}` : `line level l${i - drawn}`, x1: 1, x2: 25, y1: 5, y2: 5,
    })), l.name)));
}

function summary(line, y) {
  const values = line.points.map((p) => p[1]).filter((v) => v !== null);
  if (!values.length) return "nothing";
  return `from ${y(values[0])} to ${y(values.at(-1))}, at most ${y(Math.max(...values))}`;
}

function path(points, px, py) {
  let d = "", pen = false;
  for (const [a, b] of points) {
    if (b === null) {
      pen = false;
      continue;
    }
    d += `${pen ? "L" : "M"}${px(a).toFixed(1)} ${py(b).toFixed(1)}`;
    pen = true;
  }
  return d;
}

// tick is a round number of seconds, short.
const tick = (s) => s === 0 ? "0" : s < 60 ? `${s} s` : s < 3600 ? `${+(s / 60).toFixed(1)} min` : `${+(s / 3600).toFixed(1)} h`;

// round is a round number of seconds, s at least.
function round(s) {
  return [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600].find((n) => n >= s) || 43200;
}

// nice is a round number above v.
function nice(v) {
  if (!(v > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(v));
  return unit * [1, 2, 4, 5, 8, 10].find((n) => n * unit >= v);
}
