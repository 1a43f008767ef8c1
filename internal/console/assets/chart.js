// SPDX-License-Identifier: Apache-2.0

// Charts of lines and bars. A chart draws itself again when its width changes, so that its text
// keeps its size.

import { el, svg, table } from "./app.js";

const height = 190, left = 64, right = 16, top = 12, bottom = 26;

// chart returns a figure that has a legend, a drawing and a table of the numbers.
//
//   title, note       the caption, and the text after it in small letters
//   series            [{name, meaning, kind, points: [[x, y], ...]}]; kind is "line" (the default),
//                     "steps" or "bar". Bars at the same x are stacked. A y of null makes a gap.
//   step              the width of a bar and of a step, in units of x
//   levels            [{name, y}]: horizontal lines
//   shades            [{name, from, to, kind}]: shaded times; kind is "outage" or "pause"
//   range             [from, to] of the x axis; the default is the range of the points
//   clock             an x is a time in milliseconds; otherwise an x is a number of seconds
//   durations, whole  a y is a duration in milliseconds, or a whole number
//   x, y              functions that format the values of the table and of the tooltip
//
// The meaning of a series decides its colour: see .m-* in app.css.
export function chart(c) {
  const { title, note, series, levels = [], shades = [], step = 0, every = 1, x, y } = c;
  const bars = series.filter((s) => s.kind === "bar"), all = series.flatMap((s) => s.points).filter((p) => p[1] !== null);
  const xs = all.map((p) => p[0]), [low, high] = c.range || [Math.min(...xs, Infinity), Math.max(...xs, -Infinity)];
  const stacks = new Map();
  for (const b of bars) for (const [at, v] of b.points) stacks.set(at, (stacks.get(at) || 0) + v);
  const peak = Math.max(0, ...stacks.values(), ...series.filter((s) => s.kind !== "bar").flatMap((s) => s.points.map((p) => p[1] ?? 0)), ...levels.map((l) => l.y));
  const ticks = scale(peak, c), most = ticks.at(-1);
  const area = el("div", { class: "chart" });
  const figure = el("figure", {}, el("figcaption", {}, title, note && el("small", {}, ` ${note}`)), legend(series, levels, shades), area);
  if (!all.length) {
    area.append(el("p", { class: "empty" }, "There is nothing to draw."));
    return figure;
  }
  const label = `${title}. ${series.map((s) => `${s.name}: ${summary(s, y)}`).join(". ")}`;
  const near = rows(series, 1), tip = el("div", { class: "tip", hidden: true, "aria-hidden": "true" });

  const draw = (width) => {
    const span = high > low ? high - low : 1, inner = width - left - right;
    const px = (v) => left + Math.min(Math.max((v - low) / span, 0), 1) * inner;
    const py = (v) => top + (1 - v / most) * (height - top - bottom);
    const cursor = svg("line", { class: "cursor", y1: top, y2: height - bottom, x1: -9, x2: -9 });
    const drawing = svg("svg", { role: "img", "aria-label": label, width, height, viewBox: `0 0 ${width} ${height}` },
      shades.filter((s) => s.to > low && s.from < high).map((s) => svg("rect", {
        class: `shade ${s.kind}`, x: px(s.from), y: top, width: Math.max(px(s.to) - px(s.from), 2), height: height - top - bottom,
      })),
      ticks.map((v) => [
        svg("line", { class: "grid", x1: left, x2: width - right, y1: py(v), y2: py(v) }),
        svg("text", { x: left - 8, y: py(v) + 4, "text-anchor": "end" }, c.durations ? brief(v / 1000) : v === 0 ? "0" : y(v)),
      ]),
      marks(c, low, high, inner / 90).map((m) => svg("text", { x: px(m.at), y: height - 7, "text-anchor": px(m.at) < left + 30 ? "start" : px(m.at) > width - right - 30 ? "end" : "middle" }, m.text)),
      levels.map((l) => svg("line", { class: `line m-${l.meaning || "promise"}`, x1: left, x2: width - right, y1: py(l.y), y2: py(l.y) })),
      stacked(bars, step, px, py),
      series.filter((s) => s.kind !== "bar").map((s) => svg("path", { class: `line m-${s.meaning}`, d: s.kind === "steps" ? stairs(s.points, step, px, py) : path(s.points, px, py) })),
      cursor);
    const hide = () => {
      tip.hidden = true;
      cursor.setAttribute("x1", -9);
      cursor.setAttribute("x2", -9);
    };
    drawing.addEventListener("pointerleave", hide);
    drawing.addEventListener("pointermove", (e) => {
      const at = low + (e.offsetX - left) / inner * span - step / 2;
      const row = near.reduce((a, b) => (Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a));
      if (Math.abs(px(row[0] + step / 2) - e.offsetX) > 24) return hide();
      const over = px(row[0] + step / 2);
      cursor.setAttribute("x1", over);
      cursor.setAttribute("x2", over);
      tip.replaceChildren(el("strong", {}, x(row[0])), ...series.map((s, i) => el("span", {}, swatch(s), `${s.name} `, el("b", {}, value(row[i + 1], y)))),
        ...shades.filter((s) => s.from <= row[0] + step && s.to >= row[0]).map((s) => el("span", {}, s.name)));
      tip.hidden = false;
      tip.style.left = `${Math.max(0, over > width / 2 ? over - tip.offsetWidth - 10 : over + 10)}px`;
    });
    area.replaceChildren(drawing, tip);
  };
  new ResizeObserver(([at]) => draw(Math.max(Math.floor(at.contentRect.width), 200))).observe(area);
  figure.append(el("details", {}, el("summary", {}, "Show as table"), table(
    [{ text: c.xName || "Time", number: true }, ...series.map((s) => ({ text: s.name, number: true }))],
    rows(series, every).map(([at, ...values]) => [x(at), ...values.map((v) => value(v, y))]),
    { caption: title })));
  return figure;
}

const value = (v, y) => (v === null || v === undefined ? "–" : y(v));

// rows returns every nth x, with the values of all series at that x.
function rows(series, every) {
  const by = new Map();
  series.forEach((s, i) => s.points.forEach(([at, v]) => {
    if (!by.has(at)) by.set(at, Array(series.length).fill(null));
    by.get(at)[i] = v;
  }));
  return [...by].sort((a, b) => a[0] - b[0]).filter((_, i) => i % every === 0).map(([at, values]) => [at, ...values]);
}

function swatch(s) {
  const box = s.kind === "bar" || s.shade;
  return svg("svg", { width: box ? 12 : 26, height: 12, "aria-hidden": "true" }, box
    ? svg("rect", { class: s.shade ? `shade ${s.shade}` : `fill m-${s.meaning}`, width: 12, height: 12, rx: 2 })
    : svg("line", { class: `line m-${s.meaning}`, x1: 1, x2: 25, y1: 6, y2: 6 }));
}

function legend(series, levels, shades) {
  const kinds = new Map(shades.map((s) => [s.name, { name: s.name, shade: s.kind }]));
  return el("ul", { class: "legend" }, [...series, ...levels.map((l) => ({ meaning: "promise", ...l })), ...kinds.values()]
    .map((s) => el("li", {}, swatch(s), s.name)));
}

function summary(s, y) {
  const values = s.points.map((p) => p[1]).filter((v) => v !== null);
  if (!values.length) return "nothing";
  return `from ${y(values[0])} to ${y(values.at(-1))}, at most ${y(Math.max(...values))}`;
}

function stacked(bars, step, px, py) {
  const under = new Map();
  return bars.flatMap((b) => b.points.filter((p) => p[1] > 0).map(([at, v]) => {
    const from = under.get(at) || 0;
    under.set(at, from + v);
    return svg("rect", { class: `fill m-${b.meaning}`, x: px(at) + 0.5, width: Math.max(px(at + step) - px(at) - 1, 1), y: py(from + v), height: Math.max(py(from) - py(from + v), 1) });
  }));
}

function path(points, px, py) {
  let d = "", pen = false;
  for (const [a, b] of points) {
    if (b !== null) d += `${pen ? "L" : "M"}${px(a).toFixed(1)} ${py(b).toFixed(1)}`;
    pen = b !== null;
  }
  return d;
}

// stairs draws each value as a horizontal line that is as long as its step. Lines of adjacent steps
// are joined.
function stairs(points, step, px, py) {
  let d = "", end = null;
  for (const [a, b] of points) {
    if (b === null) continue;
    d += `${end !== null && a - end < step / 2 ? "L" : "M"}${px(a).toFixed(1)} ${py(b).toFixed(1)}H${px(a + step).toFixed(1)}`;
    end = a + step;
  }
  return d;
}

const two = (n) => String(n).padStart(2, "0");

// marks returns the labels of the x axis: local times of day, or seconds. It returns at most as
// many as most says.
function marks(c, low, high, most) {
  const unit = c.clock ? 1000 : 1, step = round((high - low) / unit / Math.max(1, most)) * unit;
  const zone = c.clock ? new Date(low).getTimezoneOffset() * 60_000 : 0, first = c.clock ? Math.ceil((low - zone) / step) * step + zone : low;
  return Array.from({ length: Math.max(0, Math.floor((high - first) / step) + 1) }, (_, i) => first + i * step).map((at) => {
    const t = new Date(at);
    return { at, text: c.clock ? `${two(t.getHours())}:${two(t.getMinutes())}${step < 60_000 ? `:${two(t.getSeconds())}` : ""}` : brief(at) };
  });
}

// scale returns the ticks of the y axis. If the values are whole numbers, the ticks are, too.
function scale(peak, c) {
  let step = c.durations ? round(peak / 4000) * 1000 : nice(peak / 4);
  if (c.whole) step = Math.max(1, Math.ceil(step));
  const n = Math.max(1, Math.ceil(peak / step - 1e-9));
  return Array.from({ length: n + 1 }, (_, i) => Math.round(i * step * 1e6) / 1e6);
}

// brief writes a number of seconds in a short form.
const brief = (s) => (s === 0 ? "0" : s < 60 ? `${s} s` : s < 3600 ? `${+(s / 60).toFixed(1)} min` : `${+(s / 3600).toFixed(1)} h`);

// round returns the next round number of seconds that is at least s.
function round(s) {
  return [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600].find((n) => n >= s) || 43200;
}

// nice returns the next round number that is at least v.
function nice(v) {
  if (!(v > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(v));
  return unit * [1, 2, 5, 10].find((n) => n * unit >= v - 1e-9);
}
