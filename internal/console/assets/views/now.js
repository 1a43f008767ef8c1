// SPDX-License-Identifier: Apache-2.0

// What a stack does at the moment: first what is wrong, then three figures, then the charts, then
// queues, sinks and sources.

import { series } from "../flow.js";
import { isLate, oldestWait, problems } from "../health.js";
import { saving, sorting } from "../lists.js";
import { rebuilds } from "../rebuilds.js";

export default {
  id: "now",
  title: "Now",
  async mount(root, ctx) {
    const { el } = ctx;
    const part = () => el("div", {});
    const wrong = el("section", { "aria-label": "What is wrong" }), figures = part(), failed = part(), reach = part(), flow = part(), status = part(), total = part(), split = part(), money = part();
    const built = rebuilds(ctx), order = sorting(columns, () => draw());
    root.append(wrong, figures, failed, built.node, reach, flow, status, total, split, money);
    let range = 0; // in nanoseconds; 0 is the range that the server chooses
    let asked = 0, took = 0, busy = false, drawn = -Infinity, last = null, tick = null, gone = false;

    const draw = () => {
      if (!last || gone) return;
      ctx.renew(total, JSON.stringify(last.total), () => totals(ctx, last));
      ctx.renew(split, JSON.stringify([last.parts, order.order()]), () => parts(ctx, last.parts || [], order));
      ctx.renew(reach, JSON.stringify([last.ranges_ns, range]), () => ranges(ctx, last.ranges_ns || [], range || last.ranges_ns?.[ctx.about.mode === "aws" ? last.ranges_ns.length - 1 : 0], choose));
      // The page draws a chart less often than the numbers, and not while the pointer is over the chart.
      if (drawn !== -Infinity && (performance.now() - drawn < 2500 || root.querySelector("figure details[open], figure:hover"))) return;
      drawn = performance.now();
      flow.replaceChildren(...series(ctx, last, range));
      const open = money.querySelector("details")?.open;
      money.replaceChildren(...dollars(ctx, last, open));
    };
    const say = () => {
      if (gone) return;
      const s = tick?.status, all = problems(tick);
      ctx.renew(wrong, JSON.stringify([all, s ? oldestWait(s) : 0]), () => alerts(ctx, all, s));
      ctx.renew(figures, JSON.stringify([s, oldestWait(s)]), () => three(ctx, s));
    };
    const choose = (ns) => {
      range = ns;
      drawn = -Infinity;
      draw();
      refresh();
    };
    async function refresh() {
      if (busy) return;
      busy = true;
      asked = performance.now();
      const mine = range;
      try {
        const m = await ctx.get("/console/now", { range: range ? `${range / 1e9}s` : "" });
        if (mine === range) last = m;
        failed.replaceChildren();
      } catch (e) {
        failed.replaceChildren(el("p", { class: "problem" }, e.message));
        last ??= {}; // the page shows the queues without these numbers
      } finally {
        took = performance.now() - asked;
        busy = false;
      }
      if (mine !== range) return refresh(); // the user has chosen another range
      draw();
    }
    await refresh();
    ctx.live((t) => {
      tick = t;
      say();
      ctx.renew(status, JSON.stringify([t.error, t.status]), () => (t.error ? [] : stack(ctx, t.status)));
      draw();
    });
    built.refresh();
    // The numbers change even if the status does not. If the server needs long for an answer, the page
    // asks less often.
    const timer = setInterval(() => {
      if (document.hidden) return;
      say();
      built.refresh();
      if (performance.now() - asked > Math.max(Math.min(Math.max(900, 10 * took), 5000), last?.step_ns / 1e7 || 0)) refresh();
    }, ctx.about.mode === "dev" ? 1000 : 30_000);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  },
};

// ranges returns the buttons that choose how far back the charts reach.
function ranges(ctx, all, chosen, choose) {
  if (all.length < 2) return [];
  return ctx.el("div", { class: "chips", role: "group", "aria-label": "The charts show the last" }, ctx.el("span", { class: "soft" }, "The charts show the last"),
    all.map((ns) => ctx.el("button", { type: "button", class: "chip", "aria-pressed": String(ns === chosen), onclick: () => choose(ns) }, ctx.fmt.duration(ns / 1e6).replace("1 d 0 h", "24 h"))));
}

// columns are the columns of the table of parts, with the value of each part.
const columns = {
  "Part": (p) => `${p.kind} ${p.name}`, "Events in": (p) => p.events, "Written": (p) => done(p, p.written + p.deleted), "Unchanged": (p) => done(p, p.unchanged),
  "Superseded, stale": (p) => done(p, p.superseded + p.stale + p.duplicates), "Dead": (p) => done(p, p.dead),
};
const done = (p, n) => (p.kind === "source" ? null : n); // a decision does not name its source

// parts returns the counts of each sink, collection and source.
function parts(ctx, all, order) {
  const { el, fmt } = ctx;
  if (!all.length) return [];
  const names = Object.keys(columns), kinds = ["sink", "collection", "source"];
  const rows = () => order.of(all.toSorted((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind)));
  const name = (p) => (!p.name ? el("span", { class: "soft" }, "all others") : p.kind === "collection" ? el("a", { href: ctx.link("documents", { collection: p.name }) }, el("bdi", { class: "mono" }, p.name)) : el("bdi", { class: "mono" }, p.name));
  return [el("h2", {}, "By sink, collection and source"),
    ctx.table(names.map((n, i) => order.heading(n, { number: i > 0 })),
      rows().map((p) => [[el("span", { class: "soft" }, `${p.kind} `), name(p)], ...names.slice(1).map((n) => { const v = columns[n](p); return v === null ? "–" : fmt.number(v); })]),
      { caption: "Each message counts once for each of its sinks. A decision does not name its source, so only events are counted by source.", stack: true }),
    el("div", { class: "actions" }, saving(ctx, "parts", ["Kind", "Name", ...names.slice(1)], () => rows().map((p) => [p.kind, p.name, ...names.slice(1).map((n) => columns[n](p))])))];
}

const held = (s) => (s?.queues || []).reduce((sum, q) => sum + q.in_flight + q.visible, 0);
const promiseOf = (ctx, s) => ctx.fmt.duration(s.flow.promise_ns / 1e6);

// waits says how long the oldest message has waited, beside the promise.
function waits(ctx, s) {
  const age = oldestWait(s);
  if (!s?.flow || s.flow.unknown) return null;
  if (age === null) return "Nothing waits.";
  return [`Oldest waiting: ${ctx.fmt.duration(age)}; promise: ${promiseOf(ctx, s)} after the last change. `,
    ctx.el("a", { href: ctx.link("documents", { state: "waiting" }) }, `${ctx.fmt.number(held(s))} message${held(s) === 1 ? " waits" : "s wait"}`), "."];
}

// alerts begin the page: what is wrong, since when, and what lull does about it.
function alerts(ctx, all, s) {
  const { el, fmt } = ctx;
  if (!s && !all.length) return [];
  if (!all.length) return el("p", { class: "well" }, el("strong", {}, "Everything works."), " ", waits(ctx, s));
  const fact = (name, ...value) => [el("dt", {}, name), el("dd", {}, ...value)];
  return all.map((p) => el("section", { class: `alert ${p.level}` },
    el("h2", {}, p.title, p.since && el("small", {}, ` since ${p.about ? "about " : ""}${fmt.clock(p.since)}, ${fmt.duration(ctx.now() - new Date(p.since).getTime())}`)),
    p.level === "bad" && s && waits(ctx, s) && el("p", { class: "waits" }, waits(ctx, s)),
    p.level === "bad"
      ? [p.cause && el("p", {}, el("bdi", {}, p.cause)), el("dl", { class: "facts" }, p.does && fact("What lull does", p.does), (p.you || p.page) && fact("What you can do", p.you, " ", p.page && ctx.runbook(p.page)))]
      : el("p", {}, el("bdi", {}, p.cause), " ", p.does, " ", p.you, " ", p.page && ctx.runbook(p.page)),
    p.paused && el("div", { class: "actions" }, pauseButton(ctx, p.sink, true))));
}

// pauseButton pauses or resumes a sink, after a question.
function pauseButton(ctx, sink, paused) {
  const order = async () => {
    const why = paused
      ? await ctx.confirm("lull writes what waited at a pace that grows, live changes first.", { title: `Resume sink ${sink}`, action: "Resume the sink" })
      : await ctx.confirm("lull writes nothing to the sink until somebody resumes it. Messages wait in the queue, and nothing is lost. Messages that wait longer than retry.deadDeadline become dead letters.",
        { title: `Pause sink ${sink}`, action: "Pause the sink", asked: "Why? Everybody who looks at this page sees the reason." });
    if (!why) return;
    try {
      await ctx.post(`/console/sink/${paused ? "resume" : "pause"}`, { sink, why: paused ? "" : why });
      ctx.toast(paused ? `Sink ${sink} is resumed.` : `Sink ${sink} is paused.`);
    } catch (e) {
      ctx.toast(e.message);
    }
  };
  return ctx.el("button", { type: "button", class: "nowrap", onclick: order, "aria-label": `${paused ? "Resume" : "Pause"}… sink ${sink}` }, paused ? "Resume…" : "Pause…");
}

function figure(ctx, name, value, more, kind) {
  const { el } = ctx;
  return el("div", { class: "card" }, el("dt", {}, name), el("dd", { class: kind }, value, el("small", { class: "soft" }, more)));
}

// three returns the figures that show whether the stack is healthy.
function three(ctx, s) {
  const { el, fmt } = ctx, f = s?.flow;
  if (!f) return [];
  if (f.unknown) return el("p", { class: "note" }, `Freshness and rate are not known: ${f.unknown}`);
  const age = oldestWait(s), down = (s.sinks || []).some((k) => k.open || k.pause), span = fmt.duration(f.span_ns / 1e6), rate = (n) => fmt.number(Math.round(n * 10) / 10);
  return el("dl", { class: "cards three" },
    figure(ctx, "Oldest waiting", age === null ? "nothing waits" : fmt.duration(age), `promise: ${promiseOf(ctx, s)} after the last change`,
      isLate(s) || (down && age > f.promise_ns / 1e6) ? "bad" : age === null ? "good" : null),
    figure(ctx, "Freshness", f.p50_ns ? fmt.duration(f.p50_ns / 1e6) : "–", f.p50_ns ? `median of what was written; p99 ${fmt.duration(f.p99_ns / 1e6)}; last ${span}` : `nothing was written in the last ${span}`,
      down ? (f.p50_ns ? "soft" : "bad") : null),
    figure(ctx, "Events in", `${rate(f.in)}/s`, `${rate(f.written)}/s written; last ${span}`));
}

function totals(ctx, m) {
  const { el, fmt } = ctx, t = m.total, n = fmt.number;
  if (!t) return [];
  const list = [
    ["Events in", n(t.events), "all messages"],
    ["Written", n(t.written + t.deleted), t.deleted ? `${n(t.deleted)} of them deletes` : "documents", "m-written"],
    ["Unchanged", n(t.unchanged), "writes spared", "m-unchanged"],
    ["Superseded", n(t.superseded), "a newer version was written", "m-superseded"],
    ["Stale", n(t.stale + t.duplicates), t.duplicates ? `${n(t.duplicates)} of them duplicates` : "came too late", "m-superseded"],
    (t.fetched || t.fetch_failed) && ["Fetched", n(t.fetched || 0), t.fetch_failed ? `${n(t.fetch_failed)} more brought nothing to write` : "newest states, from the source"],
    (t.enriched || t.enrich_calls || t.enrich_failed) && ["Enriched", n(t.enriched || 0),
      t.enrich_failed ? `${n(t.enrich_failed)}${t.enrich_calls ? ` of ${n(t.enrich_calls)}` : ""} requests failed` : t.enrich_calls ? `in ${n(t.enrich_calls)} requests` : "documents"],
    t.skipped && ["Skipped", n(t.skipped), "by the source's rule"],
    ["Dead", n(t.dead), el("a", { href: ctx.link("dead") }, "dead letters"), "m-dead"],
    m.dollars && ["Dollars so far", m.dollars.total < 0.01 ? "< 1\u00a0¢" : fmt.dollars(m.dollars.total), "by list prices"],
  ].filter(Boolean);
  return [el("h2", {}, `Since ${fmt.clock(m.since)}`),
    el("dl", { class: "cards totals" }, list.map(([name, value, more, meaning]) => el("div", { class: "card" },
      el("dt", {}, meaning && el("span", { class: `dot ${meaning}`, "aria-hidden": "true" }), name), el("dd", {}, value, el("small", { class: "soft" }, more)))))];
}

// health shows the state of a sink in one word, and explains the state.
function health(ctx, k) {
  const { el, fmt } = ctx, pace = k.rate && `${fmt.number(Math.round(k.rate * 10) / 10)} documents/s`;
  const said = (kind, word, text) => [el("span", { class: `tag ${kind}` }, word), " ", text];
  if (k.pause) return said("warn", "paused", `by ${k.pause.by} since ${fmt.clock(k.pause.since)}${k.pause.why ? ` (${k.pause.why})` : ""}; its messages become dead letters from ${fmt.clock(k.pause.dead_from)} on`);
  if (k.open) return said("bad", "unhealthy", `nothing is claimed before ${fmt.clock(k.open_until)} (opened ${k.level}× in a row)`);
  if (k.put_off && k.put_off_until) return said("warn", "catches up", `takes documents again, at a pace that grows${k.cause ? `; last reason: ${k.cause}` : ""}; at most ${fmt.number(k.put_off)} message${k.put_off === 1 ? " is" : "s are"} put off, and come back by ${fmt.clock(k.put_off_until)}`);
  if (k.growing) return said("good", "healthy again", `what waited goes at a pace that grows, now ${pace}`);
  if (k.rate && !(k.rate >= k.ceiling)) return said("warn", "throttles", pace);
  return said("good", "healthy", k.at_ceiling ? "at its ceiling" : "");
}

function stack(ctx, s) {
  const { el, fmt } = ctx, right = (text) => ({ text, number: true });
  return [
    el("h2", {}, "Queues"),
    ctx.table(["Queue", right("Queued"), right("Waiting"), right("Delayed")],
      (s.queues || []).map((q) => [el("span", { class: "whole" }, q.queue), fmt.number(q.visible), fmt.number(q.in_flight), fmt.number(q.delayed)]),
      { caption: `Queued: not yet received. Waiting: held in a flight, or put off. ${fmt.number(s.flights)} flights, ${fmt.number(s.scheduled)} events scheduled${s.capped ? " (at least)" : ""}${s.pruned_at ? `, pruned ${fmt.ago(s.pruned_at)}` : ""}.` }),
    el("h2", {}, "Sinks"),
    ctx.table(["Sink", "Health", right("Limit"), ""], (s.sinks || []).map((k) => [el("span", { class: "whole" }, k.sink), health(ctx, k), k.ceiling ? `${fmt.number(k.ceiling)}/s` : "none", pauseButton(ctx, k.sink, Boolean(k.pause))]),
      { stack: true, caption: "Health by the table. The limit is the setting maxDocumentsPerSecond." }),
    el("h2", {}, "Sources"),
    ctx.table(["Source", "Format", "Versions", "Documents come"], (ctx.about.sources || []).map((o) => [o.name, o.kind, o.class, o.fetch ? `from ${o.fetch}` : "in the message"]),
      { caption: "By the settings", stack: true }),
  ];
}

function dollars(ctx, m, open) {
  const { el, fmt } = ctx;
  if (!m.dollars?.items?.length) return [];
  return [el("details", { open }, el("summary", {}, `Dollars so far: ${fmt.dollars(m.dollars.total)}`),
    ctx.table(["Service", "What", { text: "Count", number: true }, { text: "Dollars", number: true }],
      m.dollars.items.map((i) => [i.service, i.what, fmt.number(Math.round(i.count * 1000) / 1000), fmt.dollars(i.dollars)]), { caption: "By list prices", stack: true }),
    el("p", { class: "soft" }, m.dollars.counts))];
}
