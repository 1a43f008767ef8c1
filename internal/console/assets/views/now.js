// What a stack does at the moment: what came in and what became of it, how fresh documents are
// against the promise, the queues, and the sinks.

import { chart } from "../chart.js";
import { rebuilds } from "../rebuilds.js";

const shown = 300; // steps of the chart

export default {
  id: "now",
  title: "Now",
  async mount(root, ctx) {
    const { el } = ctx;
    const problem = el("div", {}), counts = el("div", {}), fresh = el("div", {}), flow = el("div", {}), money = el("div", {}), status = el("div", {});
    const built = rebuilds(ctx);
    root.append(problem, counts, built.node, fresh, flow, status, money);
    let asked = 0, took = 0, busy = false, drawn = -Infinity, last = null, tick = null, gone = false;

    const draw = () => {
      if (!last || gone) return;
      const s = tick?.status;
      ctx.renew(counts, JSON.stringify([last.total, s?.queues, s?.dead_letters, last.dollars?.total]), () => cards(ctx, last, s));
      // A chart is drawn less often than the numbers, and not while somebody reads its figures.
      if (performance.now() - drawn < 2500 || root.querySelector("figure details[open]")) return;
      drawn = performance.now();
      fresh.replaceChildren(...freshness(ctx, last));
      flow.replaceChildren(...throughput(ctx, last));
      const open = money.querySelector("details")?.open;
      money.replaceChildren(...dollars(ctx, last, open));
    };
    async function refresh() {
      if (busy) return;
      busy = true;
      asked = performance.now();
      try {
        last = await ctx.get("/console/now");
        problem.replaceChildren();
        draw();
      } catch (e) {
        problem.replaceChildren(el("p", { class: "problem" }, e.message));
        last ??= {}; // the queues are shown all the same
        draw();
      } finally {
        took = performance.now() - asked;
        busy = false;
      }
    }
    await refresh();
    ctx.live((t) => {
      tick = t;
      ctx.renew(status, JSON.stringify([t.error, t.status]), () => (t.error ? el("p", { class: "problem" }, t.error) : stack(ctx, t.status)));
      draw();
    });
    built.refresh();
    // Numbers change without the status, and a slow answer is asked for less often.
    const timer = setInterval(() => {
      if (!document.hidden) built.refresh();
      if (!document.hidden && performance.now() - asked > Math.min(Math.max(900, 10 * took), 5000)) refresh();
    }, ctx.about.mode === "dev" ? 1000 : 30_000);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  },
};

function card(ctx, name, value, more, kind) {
  return ctx.el("div", { class: "card" }, ctx.el("dt", {}, name), ctx.el("dd", { class: kind }, value, more && ctx.el("small", { class: "soft" }, more)));
}

function cards(ctx, m, status) {
  const { el, fmt } = ctx, t = m.total, n = fmt.number;
  const held = (status?.queues || []).reduce((sum, q) => sum + q.in_flight, 0);
  const ready = (status?.queues || []).reduce((sum, q) => sum + q.visible, 0);
  const list = t ? [
    card(ctx, "Events in", n(t.events), `since ${fmt.time(m.since)}`),
    card(ctx, "Held", n(held), ready ? `+ ${n(ready)} not yet received` : "messages that wait"),
    card(ctx, "Written", n(t.written + t.deleted), t.deleted ? `${n(t.deleted)} of them deletes` : "documents", "good"),
    card(ctx, "Unchanged", n(t.unchanged), "writes spared", t.unchanged ? "good" : null),
    card(ctx, "Superseded", n(t.superseded), "a newer version went"),
    card(ctx, "Stale", n(t.stale + t.duplicates), t.duplicates ? `${n(t.duplicates)} of them duplicates` : "came too late"),
    t.fetched || t.fetch_failed ? card(ctx, "Fetched", n(t.fetched || 0),
      t.fetch_failed ? `${n(t.fetch_failed)} more brought nothing to write` : "newest states, from the source",
      t.fetch_failed ? "warn" : null) : null,
    t.enriched || t.enrich_calls || t.enrich_failed ? card(ctx, "Enriched", n(t.enriched || 0),
      t.enrich_failed ? `${n(t.enrich_failed)}${t.enrich_calls ? ` of ${n(t.enrich_calls)}` : ""} requests failed` : t.enrich_calls ? `in ${n(t.enrich_calls)} requests` : "documents",
      t.enrich_failed ? "warn" : null) : null,
    t.skipped ? card(ctx, "Skipped", n(t.skipped), "by the source's rule") : null,
    card(ctx, "Dead", n(t.dead), el("a", { href: ctx.link("dead") }, `${n(status?.dead_letters)} parked`), t.dead ? "bad" : null),
    card(ctx, "Freshness", t.p50_ns ? fmt.duration(t.p50_ns / 1e6) : "–", t.p50_ns ? `median; p99 ${fmt.duration(t.p99_ns / 1e6)}` : "nothing was written yet"),
    m.dollars ? card(ctx, "Dollars so far", m.dollars.total < 0.01 ? "< 1\u00a0¢" : fmt.dollars(m.dollars.total),
      m.dollars.total < 0.01 ? `${fmt.dollars(m.dollars.total)} by list prices` : "by list prices") : null,
  ] : [
    card(ctx, "Held", n(held), "messages that wait"), card(ctx, "Not yet received", n(ready)),
    card(ctx, "Dead letters", n(status?.dead_letters), el("a", { href: ctx.link("dead") }, "parked")),
  ];
  return el("dl", { class: "cards" }, list.filter(Boolean));
}

// latest are the latest points, by the second.
function latest(m) {
  return (m.points || []).slice(-shown).map((p) => ({ ...p, x: new Date(p.at).getTime() / 1000 }));
}

// filled puts a zero on both sides of a time in which nothing happened.
function filled(points, step) {
  const none = (x) => ({ x, events: 0, written: 0, unchanged: 0, superseded: 0, stale: 0, dead: 0 });
  return points.flatMap((p, i) => {
    const gap = i > 0 && p.x - points[i - 1].x > 1.5 * step;
    return gap ? [none(points[i - 1].x + step), none(p.x - step), p] : [p];
  });
}

function freshness(ctx, m) {
  const { el, fmt } = ctx, notes = (m.notes || []).map((n) => el("p", { class: "note" }, n));
  const points = latest(m).filter((p) => p.p50_ns);
  if (!points.length) return notes;
  // Each step is a short line, so that a single one can be seen.
  const from = points[0].x, line = (of) => points.flatMap((p) => [[p.x - from, of(p) / 1e6], [p.x - from + m.step_ns / 1e9, of(p) / 1e6]]);
  // A promise far above what happens is said and not drawn: it would flatten all else.
  const promises = m.promises || [], peak = 3 * Math.max(...points.map((p) => p.p99_ns));
  const near = promises.filter((p, i) => i === 0 || p.fresh_ns <= peak), far = promises.filter((p) => !near.includes(p));
  const of = (p) => `promise for ${p.collections.length ? `${p.collections.join(", ")}${p.more ? ` and ${fmt.number(p.more)} more` : ""}` : "a document that becomes quiet"}: ${fmt.duration(p.fresh_ns / 1e6)}`;
  return [...notes, chart({
    title: "Freshness: from sent to committed",
    lines: [
      { name: "median", points: line((p) => p.p50_ns) },
      { name: "p99", points: line((p) => p.p99_ns) },
    ],
    levels: near.map((p) => ({ name: of(p), y: p.fresh_ns / 1e6 })),
    x: (v) => fmt.time((from + v) * 1000), y: fmt.duration, durations: true, xName: "At", every: 1,
  }), ...far.map((p) => el("p", { class: "soft" }, `Not drawn: ${of(p)}`))];
}

function throughput(ctx, m) {
  const points = filled(latest(m), m.step_ns / 1e9);
  if (!points.length) return [];
  const from = points[0].x, line = (name, of) => ({ name, points: points.map((p) => [p.x - from, of(p)]) });
  return [chart({
    title: `Events in each ${m.step_ns === 1e9 ? "second" : ctx.fmt.duration(m.step_ns / 1e6)}`,
    lines: [line("in", (p) => p.events), line("written", (p) => p.written), ...(points.some((p) => p.unchanged) ? [line("unchanged", (p) => p.unchanged)] : []), line("superseded, stale", (p) => p.superseded + p.stale), line("dead", (p) => p.dead)],
    x: (v) => ctx.fmt.time((from + v) * 1000), y: (v) => ctx.fmt.number(Math.round(v * 10) / 10), xName: "At",
  })];
}

function stack(ctx, s) {
  const { el, fmt } = ctx, right = (text) => ({ text, number: true });
  return [
    ...(s.wrong || []).map((w) => el("p", { class: "problem" }, w)),
    el("h2", {}, "Sinks"),
    ctx.table(["Sink", "Health", right("Budget")], (s.sinks || []).map((k) => [k.sink,
      k.pause ? el("span", { class: "warn" }, `paused by ${k.pause.by} since ${fmt.time(k.pause.since)}${k.pause.why ? ` (${k.pause.why})` : ""}: nothing is claimed before \`lull resume ${k.sink}\`; dead letters from ${fmt.time(k.pause.dead_from)} on`)
        : k.open ? el("span", { class: "bad" }, `unhealthy: nothing is claimed before ${fmt.time(k.open_until)} (opened ${k.level}× in a row)`)
        : k.put_off && k.put_off_until ? el("span", { class: "warn" }, `takes documents again, at a pace that grows${k.cause ? `; last reason: ${k.cause}` : ""}; at most ${fmt.number(k.put_off)} messages are put off, and come back by ${fmt.time(k.put_off_until)}`)
        : k.growing ? el("span", { class: "good" }, "healthy again: what waited goes at a pace that grows")
        : k.rate && !(k.rate >= k.ceiling) ? el("span", { class: "warn" }, "throttles")
        : el("span", { class: "good" }, k.at_ceiling ? "healthy, at its ceiling" : "healthy"),
      k.ceiling && !(k.rate < k.ceiling) ? `ceiling: ${fmt.number(k.ceiling)} documents/s` : k.rate ? `${fmt.number(Math.round(k.rate * 10) / 10)} documents/s` : "no limit"]), { caption: "Health by the table, and what each may be sent" }),
    el("h2", {}, "Lanes"),
    ctx.table(["Queue", right("Not yet received"), right("Held"), right("Delayed")],
      (s.queues || []).map((q) => [q.queue, fmt.number(q.visible), fmt.number(q.in_flight), fmt.number(q.delayed)]),
      { caption: `${fmt.number(s.flights)} flights, ${fmt.number(s.scheduled)} events scheduled${s.capped ? " (at least)" : ""}${s.pruned_at ? `, pruned ${fmt.ago(s.pruned_at)}` : ""}` }),
  ];
}

function dollars(ctx, m, open) {
  const { el, fmt } = ctx;
  if (!m.dollars?.items?.length) return [];
  return [el("details", { open }, el("summary", {}, `Dollars so far: ${fmt.dollars(m.dollars.total)}`),
    ctx.table(["Service", "What", { text: "Count", number: true }, { text: "Dollars", number: true }],
      m.dollars.items.map((i) => [i.service, i.what, fmt.number(Math.round(i.count * 1000) / 1000), fmt.dollars(i.dollars)]), { caption: "By list prices" }),
    el("p", { class: "soft" }, m.dollars.counts))];
}
