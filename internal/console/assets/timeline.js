// SPDX-License-Identifier: Apache-2.0

// The timeline of a document. Each version of each message has a lane, which begins when the
// message was sent and ends with its outcome. Below the lanes is a list of all decisions in words.

// How the page draws each step: the word for its outcome, and its mark. If the step ends the wait
// of the version, end is the class of the bar.
const steps = {
  admitted: { word: "admitted", mark: "▸" }, held: { word: "held", mark: "▸" }, waiting: { word: "waits", mark: "·" },
  claimed: { word: "claimed", mark: "◆" }, committed: { word: "written and committed", mark: "●", end: "good" },
  superseded: { word: "superseded", mark: "○", end: "soft" }, stale: { word: "stale", mark: "○", end: "soft" },
  duplicate: { word: "duplicate", mark: "○", end: "soft" }, skipped: { word: "skipped", mark: "○", end: "soft" },
  unchanged: { word: "committed without a write: nothing changed", mark: "◎", end: "good" },
  enriched: { word: "enriched", mark: "✚" },
  dead_lettered: { word: "dead letter", mark: "✕", end: "bad" }, rejected: { word: "rejected", mark: "✕", end: "bad" },
  parked: { word: "dead letter parked", mark: "✕", end: "bad" }, already_dead: { word: "dead already", mark: "✕", end: "bad" },
  dropped: { word: "dropped", mark: "✕", end: "soft" }, redriven: { word: "sent again", mark: "▸", again: true },
  scheduled: { word: "scheduled", mark: "▹" }, released: { word: "lease given back", mark: "◇" },
  outcome_unknown: { word: "no answer", mark: "◇" }, left_superseded: { word: "left: a newer one goes first", mark: "○", end: "soft" },
};

const shown = 12; // how many lanes the page shows
const ms = (t) => (t ? new Date(t).getTime() : NaN);

// lanes collects the known facts about each version of each message. A decision that names no
// message belongs to the message of its version that has no outcome yet.
function lanes(x) {
  const versions = new Map(); // by message, "" for none
  const of = (version, message = "") => {
    if (!versions.has(version)) versions.set(version, new Map());
    const same = versions.get(version), known = [...(message ? [] : same.values())];
    let l = message ? same.get(message) || same.get("") : known.findLast((l) => !l.end) || known.at(-1);
    l ??= { version, sent: NaN, first: NaN, last: NaN, marks: [], end: null };
    if (message && same.get("") === l) same.delete("");
    if (message || !known.length) same.set(message, l);
    return l;
  };
  const seen = (l, sent, at) => {
    if (!(l.sent <= ms(sent))) l.sent = ms(sent) || l.sent;
    for (const t of [ms(sent), ms(at)]) {
      if (Number.isNaN(t)) continue;
      if (!(l.first <= t)) l.first = t;
      if (!(l.last >= t)) l.last = t;
    }
  };
  for (const d of x.decisions || []) {
    if (!d.version) continue;
    const l = of(d.version, d.message_id), step = steps[d.decided];
    seen(l, d.sent_at, d.at);
    if (!step) continue;
    l.marks.push({ at: ms(d.at), mark: step.mark, word: step.word });
    if (step.again) l.end = { at: ms(d.at), word: step.word, kind: "soft" }; // as another message
    // a written version keeps its outcome, even if a later decision calls it superseded or stale
    if (step.end && !(l.end?.kind === "good" && step.end === "soft")) l.end = { at: ms(d.at), word: step.word, kind: step.end };
  }
  for (const h of x.held || []) {
    const l = of(h.version, h.message_id);
    seen(l, h.sent_at, h.sent_at);
    l.due = ms(h.due_at);
    if (!l.end) l.held = true;
  }
  for (const d of x.dead_letters || []) {
    if (!d.version) continue;
    const l = of(d.version, d.message_id);
    seen(l, d.sent_at, d.died_at);
    if (!l.end && d.state === "parked") l.end = { at: ms(d.died_at), word: `dead letter: ${d.reason}`, kind: "bad" };
  }
  for (const s of x.scheduled || []) {
    const l = of(s.version, s.message_id);
    l.due = ms(s.not_before);
    l.planned = true;
  }
  if (x.version && !versions.has(x.version) && x.row?.last_write) {
    const l = of(x.version);
    seen(l, null, x.row.last_write);
    l.end = { at: ms(x.row.last_write), word: "written and committed", kind: "good" };
  }
  for (const same of versions.values()) {
    if (same.size > 1) [...same.values()].forEach((l, i) => { l.nth = `${i + 1} of ${same.size}`; });
  }
  return [...versions.values()].flatMap((same) => [...same.values()]).sort((a, b) => (a.first || a.due) - (b.first || b.due));
}

export function timeline(ctx, x) {
  const { el, fmt } = ctx, known = lanes(x), rows = known.slice(-shown), now = ctx.now();
  if (!rows.length && x.decisions?.length) return el("p", { class: "soft" }, "Its messages have no version, so no line can be drawn for them.");
  if (!rows.length) return el("p", { class: "empty" }, "No message of this document is known here.");
  const open = rows.some((l) => !l.end);
  const from = Math.min(...rows.map((l) => l.first || l.due).filter((t) => !Number.isNaN(t)));
  const to = Math.max(...rows.flatMap((l) => [l.last, l.end?.at, l.held ? l.due : NaN]).filter((t) => !Number.isNaN(t) && t !== undefined), open ? now : 0, from + 1000);
  const place = (t) => Math.min(Math.max((t - from) / (to - from), 0), 1) * 100;
  const at = (node, left, width) => {
    node.style.left = `${left}%`;
    if (width !== undefined) node.style.width = `max(${width}%, 3px)`;
    return node;
  };
  const draw = (l) => {
    const start = l.first || l.due, end = l.end ? l.end.at : l.held ? Math.max(now, start) : l.last || l.due;
    const kind = l.end?.kind || (l.planned ? "planned" : "open");
    const word = l.end?.word || (l.planned ? `not before ${fmt.time(l.due)}` : l.held ? `waits, due ${fmt.ago(l.due)}` : "under way");
    return el("li", {},
      el("span", { class: "mono version" }, el("bdi", {}, l.version)),
      el("span", { class: "lane", "aria-hidden": "true" },
        at(el("span", { class: `span ${kind}` }), place(start), place(end) - place(start)),
        l.held && l.due > now ? at(el("span", { class: "span ahead" }), place(now), place(l.due) - place(now)) : null,
        l.marks.map((m) => at(el("span", { class: "mark", title: `${m.word} ${fmt.time(m.at)}` }, m.mark), place(m.at)))),
      l.nth && el("span", { class: "soft nth" }, l.nth),
      el("span", { class: `outcome ${kind}` }, word, Number.isNaN(l.sent) || !l.end ? null : el("span", { class: "soft" }, `, ${fmt.duration(l.end.at - l.sent)} after it was sent`)));
  };
  return el("div", { class: "timeline" },
    el("p", { class: "soft axis" }, el("span", {}, fmt.time(from)), el("span", {}, fmt.duration(to - from)), el("span", {}, open && to <= now ? "now" : fmt.time(to))),
    known.length > shown && el("p", { class: "soft" }, `The last ${shown} of ${fmt.number(known.length)}.`),
    el("ol", { class: "lanes", "aria-label": "Versions, in the order of their messages" }, rows.map(draw)),
    el("p", { class: "soft legend" }, rows.some((l) => l.nth) && "1 of 2: messages of the same version. ", "▸ admitted, held ◆ claimed ✚ enriched ● written ◎ unchanged ○ superseded, stale or duplicate ✕ dead letter"));
}

// story returns the list of all decisions in words.
export function story(ctx, x) {
  const { el, fmt } = ctx, decisions = x.decisions || [];
  if (!decisions.length) {
    return el("p", { class: "soft" }, ctx.about.mode === "aws" ? "Each decision is in the functions' logs: `lull console --aws --logs 3h` reads them for this page."
      : "lull dev keeps its latest 20,000 decisions, and none of them is about this document.");
  }
  return el("details", { open: decisions.length <= 40 }, el("summary", {}, `${fmt.number(decisions.length)} decisions in words`),
    el("ol", { class: "story" }, decisions.map((d) => el("li", {},
      el("time", { datetime: d.at, class: "mono" }, fmt.time(d.at)), el("strong", {}, d.step), el("bdi", {}, d.text)))));
}
