// SPDX-License-Identifier: Apache-2.0

// The charts of the view Now. Both charts have the same time axis, which shows the local time.

import { chart } from "./chart.js";

const ms = (t) => new Date(t).getTime();
const counts = ["events", "written", "deleted", "unchanged", "superseded", "stale", "duplicates", "dead"];

// widths are the possible widths of a bar, in steps.
const widths = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600];

// buckets adds up the points of each bar. A bar without a write has no freshness, so the chart has
// a gap there.
function buckets(points, from, width) {
  const by = new Map();
  for (const p of points) {
    const at = from + Math.floor((ms(p.at) - from) / width) * width;
    if (at < from) continue;
    if (!by.has(at)) by.set(at, { at, medians: [], p99: null, ...Object.fromEntries(counts.map((n) => [n, 0])) });
    const b = by.get(at);
    for (const n of counts) b[n] += p[n] || 0;
    if (p.p50_ns) b.medians.push(p.p50_ns / 1e6);
    if (p.p99_ns) b.p99 = Math.max(b.p99, p.p99_ns / 1e6);
  }
  return [...by.values()].sort((a, b) => a.at - b.at).map((b) => ({ ...b, median: b.medians.length ? b.medians.sort((x, y) => x - y)[(b.medians.length - 1) >> 1] : null }));
}

// zone returns the name of the time zone of the axis.
function zone() {
  const minutes = -new Date().getTimezoneOffset(), two = (n) => String(n).padStart(2, "0"), abs = Math.abs(minutes);
  return minutes === 0 ? "UTC" : `UTC${minutes < 0 ? "−" : "+"}${two(Math.floor(abs / 60))}:${two(abs % 60)}`;
}

// series returns the two charts of the measurements. range is how far back they reach, in
// nanoseconds; 0 is as far as the measurements.
export function series(ctx, m, range) {
  const { el, fmt } = ctx, notes = (m.notes || []).map((n) => el("p", { class: "note" }, n));
  if (!m.points?.length) return notes;
  const step = m.step_ns / 1e6, end = Math.ceil((ctx.now() + 1) / step) * step, longest = range ? range / 1e6 : ctx.about.mode === "aws" ? 180 * step : 600 * step;
  const begin = Math.max(Math.min(ms(m.points[0].at), end - 60 * step), end - longest);
  const width = (widths.find((w) => (end - begin) / (w * step) <= 60) || 600) * step;
  const from = Math.floor(begin / width) * width, to = Math.ceil(end / width) * width;
  const all = buckets(m.points, from, width), axis = { range: [from, to], step: width, clock: true, xName: "At", x: (v) => fmt.clock(v) };
  const shades = (m.outages || []).map((o) => ({ name: `sink ${o.sink} ${o.paused ? "paused" : "unhealthy"}`, kind: o.paused ? "pause" : "outage", from: ms(o.from), to: o.to ? ms(o.to) : to }))
    .filter((o) => o.to > from && o.from < to);
  const each = fmt.duration(width).replace(".0", "");
  return [...notes, freshness(ctx, m, all, axis, shades, each), events(ctx, all, axis, shades, each)];
}

function freshness(ctx, m, all, axis, shades, each) {
  const { fmt } = ctx, fresh = all.filter((b) => b.median !== null);
  // The chart does not draw a promise that is far above the measurements, because it would flatten
  // the lines. The caption names it instead.
  const promises = m.promises || [], peak = 3 * Math.max(0, ...fresh.map((b) => b.p99));
  const near = promises.filter((p, i) => (i === 0 && !peak) || p.fresh_ns / 1e6 <= peak), far = promises.filter((p) => !near.includes(p));
  const of = (p) => `promise${p.collections.length ? ` for ${p.collections.join(", ")}${p.more ? ` and ${fmt.number(p.more)} more` : ""}` : ""}: ${fmt.duration(p.fresh_ns / 1e6)} after the last change`;
  return chart({
    ...axis, shades, title: "Freshness", note: [`from sent to committed, for what was written in each ${each}; times are ${zone()}`, ...far.map((p) => `not drawn: ${of(p)}`)].join("; "),
    series: [
      { name: "median", meaning: "median", kind: "steps", points: fresh.map((b) => [b.at, b.median]) },
      { name: "p99", meaning: "p99", kind: "steps", points: fresh.map((b) => [b.at, b.p99]) },
    ],
    levels: near.map((p) => ({ name: of(p), y: p.fresh_ns / 1e6 })), y: fmt.duration, durations: true,
  });
}

function events(ctx, all, axis, shades, each) {
  // The table lists only the bars that have events.
  const bar = (name, meaning, of) => ({ name, meaning, kind: "bar", points: all.map((b) => [b.at, of(b)]) });
  return chart({
    ...axis, shades, title: `Events in each ${each}`, note: `what came in, and what became of it; times are ${zone()}`, whole: true, y: ctx.fmt.number,
    series: [
      bar("written", "written", (b) => b.written + b.deleted), bar("unchanged", "unchanged", (b) => b.unchanged),
      bar("superseded, stale", "superseded", (b) => b.superseded + b.stale + b.duplicates), bar("dead", "dead", (b) => b.dead),
      { name: "in", meaning: "in", kind: "steps", points: whole(all, axis, ctx.now()) },
    ],
  });
}

// whole adds a zero for each step without events, so that the line has no gap. The last point is
// the last step that is over.
function whole(all, { range: [from], step }, to) {
  const by = new Map(all.map((b) => [b.at, b.events])), first = all[0]?.at ?? from, points = [];
  for (let at = first; at + step <= to; at += step) points.push([at, by.get(at) || 0]);
  return points;
}
