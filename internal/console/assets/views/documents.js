// SPDX-License-Identifier: Apache-2.0

// Documents: what each waits for, and how one came to be as fresh as it is.

import { diff } from "../diff.js";
import { copy, saving, sorting } from "../lists.js";
import { story, timeline } from "../timeline.js";

const filters = ["state", "collection", "contains"];

// colors are the classes of the tags, by state. Another state is bad.
const colors = {
  fresh: "good", scheduled: "", waiting: "", claimed: "", redriven: "warn", away: "warn", circuit_open: "warn",
  paused: "warn", throttled: "warn", postponed: "warn", late: "warn", not_launched: "warn", unknown: "warn", not_known: "soft", collected: "soft", forgotten: "soft",
};

// words are how the page writes a state.
const words = (state) => ({ claimed: "being written", redriven: "sent again" })[state] || state.replaceAll("_", " ");

export default {
  id: "documents",
  title: "Documents",
  mount(root, ctx) {
    return ctx.params.key === undefined ? list(root, ctx) : one(root, ctx, ctx.params.key);
  },
};

// tag shows a state. The colour of the tag follows the cause: a document that waits for a sink is
// waiting, like one that waits for quiet.
const tag = (ctx, state, cause = state) => ctx.el("span", { class: `tag ${colors[cause] ?? "bad"}` }, words(state));

// because says why a document waits, and what happens next. The server decides both. If the page has
// told the cause already, because says only what happens next.
function because(ctx, wait, told) {
  const cause = told ? "" : wait?.cause || "";
  if (!wait?.next) return cause;
  const over = wait.next !== "paused" && ms(wait.at) <= ctx.now();
  const next = `${wait.next} ${over ? "now" : ctx.fmt.ago(wait.at)}`;
  return told ? `${next[0].toUpperCase()}${next.slice(1)}.` : `${cause}, ${next}`;
}

// A bar follows the page's clock, so it moves without answers of the server.

function bars(ctx) {
  const running = new Set();
  const move = () => {
    for (const b of running) {
      if (b.node.isConnected) b.move();
      else running.delete(b);
    }
  };
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const timer = setInterval(move, calm ? 1000 : 200);
  const bar = (label) => {
    const fill = ctx.el("span", { class: "fill" }), text = ctx.el("span", {});
    const node = ctx.el("span", { class: "bar" }, ctx.el("span", { class: "track", "aria-hidden": "true" }, fill), text);
    const b = { node, from: 0, to: 0 };
    b.move = () => {
      const now = ctx.now(), share = b.to > b.from ? Math.min(Math.max((now - b.from) / (b.to - b.from), 0), 1) : 1;
      fill.style.width = `${(share * 100).toFixed(1)}%`;
      const said = `${label}: ${b.to > now ? `${ctx.fmt.duration(Math.ceil((b.to - now) / 100) * 100)} left` : "over"}`;
      if (text.textContent !== said) text.textContent = said;
    };
    b.set = (from, to) => {
      Object.assign(b, { from, to });
      running.add(b);
      b.move();
    };
    return b;
  };
  const run = (b) => {
    running.add(b);
    b.move();
  };
  return { bar, run, stop: () => clearInterval(timer) };
}

const ms = (t) => new Date(t).getTime();

// waiting shows why a document waits. Bars show how long it waits for quiet, and nothing else. told
// says that the page has told the cause already.
function waiting(ctx, make, told = false) {
  const quiet = make.bar("quiet"), cap = make.bar("max wait"), cause = ctx.el("span", {}), more = ctx.el("span", { class: "soft" });
  const node = ctx.el("span", { class: "bars" }, cause, quiet.node, cap.node, more);
  const said = { node };
  return {
    node,
    set(d) {
      const calm = d.wait.state === "waiting", due = calm && d.due_at && ms(d.due_at);
      said.move = () => {
        const text = calm ? (told ? "" : d.wait.cause) : because(ctx, d.wait, told);
        if (cause.textContent !== text) cause.textContent = text;
      };
      make.run(said);
      quiet.node.hidden = !due;
      if (due) quiet.set(due - d.quiet_ns / 1e6, due);
      cap.node.hidden = !due || !d.began_at;
      if (due && d.began_at) cap.set(ms(d.began_at), ms(d.began_at) + d.max_wait_ns / 1e6);
      more.textContent = d.held > 1 ? `${ctx.fmt.number(d.held)} messages wait` : "";
    },
  };
}

// The list.

// columns are the columns of the list, with the value by which the list is sorted.
const columns = {
  Document: (d) => d.key, State: (d) => d.state, Version: (d) => d.version || d.pending, Why: (d) => d.wait?.cause, "Last write": (d) => (d.written_at ? ms(d.written_at) : ""),
};

function list(root, ctx) {
  const { el, fmt } = ctx, filter = Object.fromEntries(filters.filter((n) => ctx.params[n]).map((n) => [n, ctx.params[n]]));
  const make = bars(ctx), chips = el("div", { class: "chips", role: "group", "aria-label": "By state" });
  const notes = el("div", {}), at = el("div", {}), news = el("p", { class: "soft" });
  const order = sorting(columns, () => {
    body = null;
    draw(page);
  });
  const save = el("div", { class: "actions", hidden: true }, saving(ctx, "documents", ["Document", "State", "Version", "Operation", "Pending", "Why", "Last write"],
    () => order.of(page.documents).map((d) => [d.key, words(d.state), d.version, d.operation, d.pending, because(ctx, d.wait), d.written_at])));
  let page = null;
  const rows = new Map(); // by key, so that a row keeps its place and its focus
  let body = null, asked = 0, took = 0, busy = false, first = true, gone = false, next = "";

  root.append(search(ctx, filter), chips, notes, news, at, save);

  function row(d) {
    const wait = waiting(ctx, make);
    const cell = (name, attrs) => el("td", { ...attrs, "data-name": name });
    const cells = { state: cell("State"), version: cell("Version"), written: cell("Last write", { class: "nowrap" }), wait: cell("Why") };
    const tr = el("tr", {}, el("th", { scope: "row", class: "key", "data-name": "Document" }, el("a", { href: ctx.link("documents", { key: d.key }) }, el("bdi", {}, d.key))),
      cells.state, cells.version, cells.wait, cells.written);
    return {
      tr,
      set(d) {
        ctx.renew(cells.state, `${d.state} ${d.wait?.state}`, () => tag(ctx, d.state, d.wait?.state));
        ctx.renew(cells.version, [d.version, d.operation, d.pending, d.state].join(" "), () => versions(ctx, d));
        ctx.renew(cells.wait, d.wait ? "waits" : "", () => (d.wait ? wait.node : "–"));
        if (d.wait) wait.set(d);
        cells.written.textContent = d.written_at ? fmt.ago(d.written_at) : "–";
      },
    };
  }

  function draw(p) {
    next = p.next;
    page = p;
    save.hidden = !p.documents.length;
    counted(p);
    ctx.renew(notes, JSON.stringify(p.notes || []), () => (p.notes || []).map((n) => el("p", { class: "note" }, n)));
    if (!p.documents.length) {
      body = null;
      rows.clear();
      ctx.renew(at, `nothing ${p.next}`, () => [el("p", { class: "empty" }, empty(ctx, p, filter)), pager()]);
      return;
    }
    if (!body) {
      body = el("tbody", {});
      ctx.renew(at, `table ${order.order()}`, () => [el("div", { class: "scroll stack", tabindex: "0", role: "region", "aria-label": "Documents" },
        el("table", { class: "documents" }, el("caption", {}, "By the table, at this moment. Sinks are not asked."),
          el("thead", {}, el("tr", {}, Object.keys(columns).map((h) => ctx.heading(order.heading(h))))),
          body)), el("div", {})]);
    }
    const shown = new Set(p.documents.map((d) => d.key));
    for (const [key, r] of rows) {
      if (!shown.has(key)) {
        r.tr.remove();
        rows.delete(key);
      }
    }
    let place = body.firstChild;
    for (const d of order.of(p.documents)) {
      if (!rows.has(d.key)) rows.set(d.key, row(d));
      const r = rows.get(d.key);
      r.set(d);
      if (r.tr === place) place = place.nextSibling;
      else body.insertBefore(r.tr, place);
    }
    if (at.lastChild.dataset.next !== (next || "")) at.lastChild.replaceWith(pager());
  }

  function pager() {
    return el("div", { class: "actions", "data-next": next || "" },
      ctx.params.cursor && el("a", { class: "button", href: ctx.link("documents", filter) }, "First page"),
      next && el("a", { class: "button", href: ctx.link("documents", { ...filter, cursor: next }) }, "Next page"));
  }

  // The chips keep their place and their focus. Only their numbers change.
  function counted(p) {
    const all = states(p, filter);
    ctx.renew(chips, all.map((c) => c.state).join(), () => all.map((c) => el("a", {
      class: "chip", href: ctx.link("documents", { ...filter, state: c.state }),
      "aria-current": (filter.state || "") === c.state ? "true" : null,
    }, c.name, el("span", { class: "soft" }))));
    all.forEach((c, i) => { chips.children[i].lastChild.textContent = c.n === undefined ? "" : ` ${fmt.number(c.n)}`; });
  }

  async function refresh() {
    if (busy) return;
    busy = true;
    asked = performance.now();
    try {
      const p = await ctx.get("/console/documents", { ...filter, cursor: ctx.params.cursor, limit: 100 });
      news.textContent = "";
      if (!gone) draw(p);
    } catch (e) {
      if (first) throw e;
      news.textContent = e.message;
    } finally {
      took = performance.now() - asked;
      busy = false;
      first = false;
    }
  }

  // If the server needs long for an answer, the page asks less often.
  ctx.live(() => { if (!first && performance.now() - asked > Math.min(Math.max(900, 10 * took), 5000)) refresh().catch(() => {}); });
  return refresh().then(() => () => {
    gone = true;
    make.stop();
  });
}

function versions(ctx, d) {
  const has = d.version ? ctx.el("span", { class: "mono" }, d.operation === "delete" ? `deleted by ${d.version}` : d.version) : ctx.el("span", { class: "soft mono" }, "none");
  if (!d.pending) return has;
  return [has, " ", ctx.el("span", { class: `mono ${d.state === "dead" ? "bad" : "soft"}` }, `→ ${d.pending}`)];
}

function search(ctx, filter) {
  const { el } = ctx;
  const contains = el("input", { id: "contains", type: "search", value: filter.contains || "", spellcheck: "false", autocomplete: "off", placeholder: "articles#vienna" });
  const collection = el("input", { id: "collection", list: "collections", value: filter.collection || "", spellcheck: "false", autocomplete: "off" });
  const go = (e) => {
    e?.preventDefault();
    ctx.go("documents", { state: filter.state, collection: collection.value.trim(), contains: contains.value.trim() });
  };
  return el("form", { class: "fields", role: "search", "aria-label": "Documents", onsubmit: go },
    el("div", { class: "field wide" }, el("label", { for: "contains" }, "Key, or a part of it"), contains),
    el("div", { class: "field" }, el("label", { for: "collection" }, "Collection"), collection,
      el("datalist", { id: "collections" }, (ctx.about.collections || []).map((c) => el("option", { value: c })))),
    el("button", { type: "submit", class: "primary" }, "Filter"),
    el("button", {
      type: "button",
      onclick: () => (contains.value.includes("#") ? ctx.go("documents", { key: contains.value.trim() })
        : ctx.toast("Type a whole key: the collection, #, and the id.")),
    }, "Go to document"));
}

// states are the filters, with the number of documents in each state if the stack counts them. A
// deployed stack counts none, and without a filter lists only documents that wait.
function states(p, filter) {
  const usual = ["waiting", "claimed", "dead", "scheduled", "fresh"];
  const total = p.counts && Object.values(p.counts).reduce((a, b) => a + b, 0);
  return [{ state: "", name: p.counts ? "all" : "on their way", n: total },
    ...p.states.filter((s) => usual.includes(s) || p.counts?.[s] || filter.state === s)
      .map((s) => ({ state: s, name: words(s), n: p.counts && (p.counts[s] || 0) }))];
}

function empty(ctx, p, filter) {
  if (p.next) return "None among those that were looked at. Go on to the next page.";
  if (filter.contains || filter.collection) return "No document passes the filter.";
  if (filter.state) return `No document is ${words(filter.state)}.`;
  if (ctx.about.mode === "aws") return "Nothing waits and nothing is being written.";
  return ["There are no documents yet. ", ctx.about.views.includes("send") ? ctx.el("a", { href: ctx.link("send") }, "Send one") : "POST one to /publish", "."];
}

// shownState is the state in the word of the list, unless the sink, which a list does not ask, says
// otherwise.
const shownState = (x) => (x.state.startsWith("sink_") ? x.state : x.listed);

// One document.

async function one(root, ctx, key) {
  const { el, fmt } = ctx, make = bars(ctx), wait = waiting(ctx, make, true);
  ctx.title(key);
  const lead = el("div", {}), body = el("div", {}), problem = el("div", {});
  const marks = el("p", { class: "marks" });
  root.append(marks, lead, problem, contents(ctx, key), body);
  const lanes = el("div", {}); // the timeline is drawn again and again, so it contains nothing that can have the focus
  let told = "", busy = false, gone = false, last = null;

  function draw(x) {
    last = x;
    lead.replaceChildren(el("div", { class: `sentence ${colors[x.state] ?? "bad"}` }, el("p", {}, tag(ctx, shownState(x), x.state), " ", ctx.times(x.sentence)), x.wait && wait.node));
    const row = x.row || {}, due = (x.held || []).find((h) => h.order_key === x.pending);
    if (x.wait) {
      wait.set({ wait: x.wait, due_at: due?.due_at, began_at: row.burst_start, quiet_ns: x.quiet_ns, max_wait_ns: x.max_wait_ns, held: x.held?.length });
    }
    ctx.renew(marks, x.version || "", () => [el("a", { href: ctx.link("documents") }, "All documents"), el("span", {}, "Key ", copy(ctx, "the key", key)),
      x.version && el("span", {}, "Version ", el("bdi", { class: "mono" }, x.version), " ", copy(ctx, "the version", x.version))]);
    ctx.renew(body, JSON.stringify(x), () => [
      ...sinks(ctx, key, x),
      el("h2", {}, "Timeline"), lanes, story(ctx, x),
      x.held?.length && [el("h2", {}, "Messages that wait"), ctx.table(["Version", "Operation", "Lane", "Sent", "Due", { text: "Received", number: true }, "Message"],
        x.held.map((h) => [mono(ctx, h.version), h.operation, h.lane, fmt.time(h.sent_at), fmt.time(h.due_at), `${h.receives}×`, [mono(ctx, h.message_id), " ", copy(ctx, "the message id", h.message_id)]]),
        { caption: `Of the flight ${x.flight}`, stack: true })],
      x.scheduled?.length && [el("h2", {}, "Scheduled"), ctx.table(["Version", "Not before", "Message"],
        x.scheduled.map((s) => [mono(ctx, s.version), fmt.time(s.not_before), mono(ctx, s.message_id)]), { caption: "Events that wait for their time", stack: true })],
      x.dead_letters?.length && [el("h2", {}, "Dead letters"), ctx.table(["Version", "Reason", "Detail", "State", "Died"],
        x.dead_letters.map((l) => [mono(ctx, l.version || "–"), el("a", { href: ctx.link("dead", { key: l.id }) }, l.reason), el("bdi", {}, l.detail), l.state, fmt.time(l.died_at)]),
        { caption: "Kept byte for byte", stack: true }), el("p", {}, el("a", { href: ctx.link("dead", { key }) }, "Redrive or drop them"))],
      el("h2", {}, "Effective settings"), ctx.table(["Setting", "Value"], [
        [el("code", { class: "whole" }, "quiet"), `${fmt.duration(x.quiet_ns / 1e6)} without a change, then it is written`], [el("code", { class: "whole" }, "maxWait"), `${fmt.duration(x.max_wait_ns / 1e6)} after the first change, at the latest`],
        [el("code", { class: "whole" }, "minInterval"), `one write in ${fmt.duration(x.min_interval_ns / 1e6)}, at most`], [el("code", { class: "whole" }, "sink"), x.sink],
      ], { caption: "Of its collection, with what the collection inherits" }),
      el("h2", {}, "Stored state"), Object.keys(row).length ? ctx.table(["Attribute", "Value"],
        Object.entries(row).map(([k, v]) => [el("code", { class: "whole" }, k), el("bdi", { class: "mono some" }, String(v))]), { caption: "The row of the document in the table" })
        : el("p", { class: "empty" }, "The table has no row of the document."),
    ]);
  }

  async function refresh() {
    if (busy) return;
    busy = true;
    try {
      const x = await ctx.get("/console/document", { key });
      const text = JSON.stringify(x);
      problem.replaceChildren();
      if (gone) return;
      if (text !== told) draw(x);
      if (text !== told || x.pending) lanes.replaceChildren(timeline(ctx, x));
      told = text;
    } catch (e) {
      if (!told) throw e;
      problem.replaceChildren(el("p", { class: "problem" }, e.message));
    } finally {
      busy = false;
    }
  }

  await refresh();
  // On AWS, each request reads the sink and the bucket. So the page asks only while the document waits.
  ctx.live(() => { if (ctx.about.mode === "dev" || last?.pending) refresh().catch(() => {}); });
  return () => {
    gone = true;
    make.stop();
  };
}

// sinks shows the state of the document in each sink of its collection. Each sink has a row in the
// table, and a page in the console.
function sinks(ctx, key, x) {
  const { el } = ctx, all = key.replace(/^([^#@]*)@[^#]*#/, "$1#");
  if (all !== key) return [el("p", {}, `This is about the sink ${x.sink} alone. `, el("a", { href: ctx.link("documents", { key: all }) }, "All sinks of this document"))];
  if (!x.others?.length) return [];
  return [el("h2", {}, "In each sink"), ctx.table(["Sink", "State", "Version in the sink", "Why"],
    [x, ...x.others].map((o) => [el("span", { class: "whole" }, o === x ? o.sink : el("a", { href: ctx.link("documents", { key: o.key }) }, o.sink)), tag(ctx, shownState(o), o.state), mono(ctx, o.in_sink || "–"), ctx.times(o.sentence)]),
    { caption: `What follows is about the sink ${x.sink}`, stack: true })];
}

const mono = (ctx, text) => ctx.el("bdi", { class: "mono" }, text);

// contents shows the document in the sink, what the newest event would change, and whether a search
// finds the document. It loads them only if the user asks, because a document may be large or
// confidential, and a search is a request to the engine.
function contents(ctx, key) {
  const { el } = ctx, at = el("div", { role: "region", "aria-label": "The document itself", "aria-live": "off" });
  const sink = () => ctx.get("/console/document/sink", { key });
  const run = (button, work) => async () => {
    button.disabled = true;
    try {
      at.replaceChildren(...[await work()].flat().filter(Boolean));
    } catch (e) {
      at.replaceChildren(el("p", { class: "problem" }, e.message));
    }
    button.disabled = false;
  };
  const show = el("button", { type: "button" }, "Show the document in the sink");
  show.addEventListener("click", run(show, async () => {
    const d = await sink();
    return d ? [el("h2", {}, `In the sink: version ${d.version}`), el("p", { class: "soft" }, `Written ${ctx.fmt.ago(d.indexed_at)}, ${ctx.fmt.bytes(new TextEncoder().encode(JSON.stringify(d.document)).length)}.`), el("pre", { tabindex: "0" }, ctx.pretty(d.document))]
      : el("p", { class: "empty" }, "The sink does not have it.");
  }));
  const compare = el("button", { type: "button" }, "Compare with the newest event");
  compare.addEventListener("click", run(compare, async () => {
    const [d, n] = await Promise.all([sink(), ctx.get("/console/document/newest", { key })]);
    if (!n) return el("p", { class: "empty" }, "No newer version waits and none is a dead letter: there is nothing to compare.");
    const from = n.from === "dead" ? "a dead letter" : "waits in a flight";
    const title = el("h2", {}, `From version ${d ? d.version : "none"} in the sink to version ${n.version} (${from})`);
    if (n.why) return [title, el("p", { class: "note" }, `What version ${n.version} would write is not known: ${n.why}.`)];
    if (n.operation === "delete") return [title, el("p", { class: "note" }, `Version ${n.version} deletes the document.`)];
    return [title, diff(ctx, d ? ctx.pretty(d.document) : "", ctx.pretty(n.document))];
  }));
  const found = el("button", { type: "button" }, "Is it searchable?");
  found.addEventListener("click", run(found, async () => {
    const a = await ctx.get("/console/document/searchable", { key });
    return ctx.table(["Sink", "Searchable", "Version", "Where", "Why"],
      a.sinks.map((s) => [s.sink, s.how ? `${s.searchable} (${s.how})` : s.searchable, mono(ctx, s.version || "–"), s.place, s.why ? ctx.times(s.why) : "–"]),
      { caption: "What a search of each engine finds now", stack: true });
  }));
  return el("div", {}, el("div", { class: "actions" }, show, compare, found), at);
}
