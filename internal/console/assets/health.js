// SPDX-License-Identifier: Apache-2.0

// What is wrong with a stack, by its status: the shell shows how much, and the view Now shows all.

import { el, fmt, link, now } from "./app.js";

// Each problem has {level, title, since, cause, does, you, page}: level is "bad" or "warn"; does is
// what lull does about it, you is what an operator can do, and page is a page of docs/runbook.

const ms = (t) => new Date(t).getTime();

function sinkProblem(k) {
  const cause = k.cause ? `Last reason: ${k.cause}.` : "";
  if (k.pause && k.open) {
    return {
      level: "bad", title: `Sink ${k.sink} is unhealthy, and paused by ${k.pause.by}`, since: k.since, about: true, page: "sink-down", sink: k.sink, paused: true,
      cause: `${k.pause.why ? `Reason of the pause: ${k.pause.why}. ` : ""}${cause}`,
      does: "Keeps every message in the queue, writes nothing, and does not ask the sink while it is paused.",
      you: `Check that the sink runs and can be reached, and resume it before ${fmt.clock(k.pause.dead_from)}: from then on its messages become dead letters.`,
    };
  }
  if (k.pause) {
    return {
      level: "warn", title: `Sink ${k.sink} is paused by ${k.pause.by}`, since: k.pause.since, cause: k.pause.why ? `Reason: ${k.pause.why}.` : "", sink: k.sink, paused: true,
      does: "Keeps every message in the queue and writes nothing.",
      you: `Resume the sink before ${fmt.clock(k.pause.dead_from)}: from then on its messages become dead letters.`,
    };
  }
  if (k.open) {
    const configuration = k.cause?.startsWith("configuration");
    return {
      level: "bad", title: `Sink ${k.sink} is unhealthy`, since: k.since, about: true, cause, page: configuration ? "sink-configuration" : "sink-down", sink: k.sink,
      does: `Keeps every message in the queue, and ${ms(k.open_until) > now() ? `asks the sink again ${fmt.ago(k.open_until)}` : "asks the sink now"}. Nothing is lost.`,
      you: configuration ? "Correct the sink's index or settings." : "Check that the sink runs and can be reached.",
    };
  }
  if (k.put_off && k.put_off_until) {
    return {
      level: "warn", title: `Sink ${k.sink} catches up`, cause, sink: k.sink,
      does: `Writes what waited, at a pace that grows. At most ${fmt.number(k.put_off)} message${k.put_off === 1 ? " is" : "s are"} put off, and come back by ${fmt.clock(k.put_off_until)}.`,
    };
  }
  if (k.growing) return { level: "warn", title: `Sink ${k.sink} catches up`, cause, sink: k.sink, does: `Writes what waited, at a pace that grows: ${pace(k.rate)}.` };
  if (k.rate && !(k.rate >= k.ceiling)) return { level: "warn", title: `Sink ${k.sink} throttles`, cause, page: "sink-down", sink: k.sink, does: `Sends it ${pace(k.rate)}, and more when it takes more.` };
  return null;
}

const pace = (rate) => `${fmt.number(Math.round(rate * 10) / 10)} documents a second`;

// oldestWait is how long the oldest message has waited, in milliseconds; null if none waits or if it
// is not known.
export const oldestWait = (status) => (status?.flow?.oldest_at ? Math.max(now() - ms(status.flow.oldest_at), 0) : null);

// isLate reports whether the oldest message waits longer than a document that always changes.
export const isLate = (status) => (oldestWait(status) ?? 0) > (status?.flow?.late_ns || Infinity) / 1e6;

// problems are those of a tick, the worst first.
export function problems(tick) {
  const s = tick?.status, all = [];
  if (tick?.error) return [{ level: "bad", title: "The stack does not answer", cause: tick.error, does: "The functions may run all the same: only this page cannot read the status." }];
  if (!s) return [];
  for (const k of s.sinks || []) all.push(sinkProblem(k));
  for (const e of s.enrichers || []) {
    if (e.away) all.push({ level: "bad", title: `The service that enriches ${e.collection} is away`, page: "enricher-away", does: `Keeps the documents of ${e.collection} waiting, and asks the service again ${fmt.ago(e.away_until)}.` });
  }
  for (const w of s.wrong || []) all.push({ level: "bad", title: "The stack differs from its settings", cause: w });
  if (isLate(s) && !all.some((p) => p?.sink && (p.level === "bad" || p.paused))) {
    all.push({ level: "bad", title: "Documents are late", since: s.flow.oldest_at, page: "live-age", does: "Tries each message again when its visibility ends." });
  }
  if (s.dead_letters) {
    all.push({ level: "warn", title: `${fmt.number(s.dead_letters)}${s.capped ? " or more" : ""} dead letter${s.dead_letters === 1 ? " is" : "s are"} parked`, does: "lull keeps each message byte for byte.", you: el("a", { href: link("dead") }, "See why, and redrive or drop them"), page: "dead-letters" });
  }
  return all.filter(Boolean).sort((a, b) => (a.level === "bad" ? 0 : 1) - (b.level === "bad" ? 0 : 1));
}
