// SPDX-License-Identifier: Apache-2.0

// Dead letters: the reason of each, and what to do.

import { copy, saving, sorting } from "../lists.js";

const filters = ["reason", "collection", "key", "state", "after", "before"];

// outcomes explain each outcome of a redrive or a drop, in the words of `lull dead redrive`.
const outcomes = {
  sent: "sent again, to be judged by its version",
  covered: "its message was sent with another dead letter of it",
  would_send: "would be sent again",
  would_drop: "would be dropped",
  superseded: "its version or a newer one is committed: lull removes the dead letter",
  busy: "the document is being written: try later",
  too_old_to_judge: "too old to judge by its row: only with force",
  too_large: "no room for lull's marks: publish it again from the upstream",
  empty: "no queue takes an empty body: publish it again from the upstream",
  unknown_schema: "its row is of a newer lull",
  gone: "another operator removed the dead letter",
  dropped: "dropped for good",
  failed: "failed",
};

export default {
  id: "dead",
  title: "Dead letters",
  needs: "dead",
  mount(root, ctx) {
    // #/dead/ID shows one dead letter. #/dead/COLLECTION#ID lists the dead letters of a document.
    return ctx.params.key && !ctx.params.key.includes("#") ? one(root, ctx, ctx.params.key) : list(root, ctx);
  },
};

const picked = (params) => Object.fromEntries(filters.filter((n) => params[n]).map((n) => [n, params[n]]));

// The list.

// columns are the columns by which the list can be sorted.
const columns = {
  Died: (l) => new Date(l.died_at).getTime(), Reason: (l) => l.reason, Document: (l) => l.key || "", Version: (l) => l.version, Detail: (l) => l.detail, State: (l) => l.state,
};

async function list(root, ctx) {
  const { el, fmt } = ctx, filter = picked(ctx.params), filtered = Object.keys(filter).length > 0;
  const news = el("div", { role: "status" }), groups = el("div", {}), letters = el("div", {}), work = el("div", {});
  root.append(news, groups, form(ctx, filter), work, letters);
  const actions = el("div", { class: "actions" }), selected = new Set(), order = sorting(columns, () => draw());
  let parked = null, fails = [], shown = null, drawn = 0;

  async function refresh() {
    const all = await ctx.get("/console/dead/groups");
    const own = filtered ? await ctx.get("/console/dead/groups", filter) : all;
    parked = all.groups.reduce((n, g) => n + g.parked, 0);
    fails = own.groups.filter((g) => g.fails_again && g.parked);
    news.replaceChildren();
    options(root, all.reasons);
    groups.replaceChildren(summary(ctx, own, filtered));
    await page("", []);
  }

  async function page(cursor, before) {
    letters.setAttribute("aria-busy", "true");
    try {
      const p = await ctx.get("/console/dead", { ...filter, cursor, limit: 50 });
      shown = { p, cursor, before };
      selected.clear();
      draw();
    } catch (e) {
      ctx.renew(letters, String(++drawn), () => el("p", { class: "problem" }, e.message));
    }
    letters.removeAttribute("aria-busy");
  }

  function draw() {
    arm();
    ctx.renew(letters, String(++drawn), () => rows(shown.p, shown.cursor, shown.before));
  }

  // arm makes the buttons. They are about the selected dead letters, or about all of the list.
  function arm() {
    const all = shown.p.dead_letters, some = all.filter((l) => selected.has(l.id)), bad = new Map();
    for (const l of some) if (fails.some((g) => g.reason === l.reason)) bad.set(l.reason, (bad.get(l.reason) || 0) + 1);
    ctx.renew(actions, JSON.stringify([some.map((l) => l.id), fails, all.length]), () => !all.length ? [] : [
      some.length ? orders(ctx, work, { ids: some.map((l) => l.id) }, `${fmt.number(some.length)} selected`, [...bad].map(([reason, parked]) => ({ reason, parked })), refresh)
        : orders(ctx, work, filtered ? filter : { all: true }, filtered ? "those of the filter" : "all", fails, refresh),
      saving(ctx, "dead-letters", ["Died", "Reason", "Document", "Version", "Detail", "State", "Sink", "Lane", "Message", "Dead letter"], () =>
        order.of(shown.p.dead_letters).map((l) => [l.died_at, l.reason, l.key, l.version, l.detail, l.state, l.sink, l.lane, l.message_id, l.id]))]);
    const head = letters.querySelector("thead input");
    if (head) Object.assign(head, { checked: some.length === all.length, indeterminate: some.length > 0 && some.length < all.length });
  }

  // box and boxForAll return the check boxes of a row and of all rows.
  const box = (l) => el("input", {
    type: "checkbox", checked: selected.has(l.id), "aria-label": `Select the dead letter of ${l.key || l.message_id}`,
    onchange(e) {
      e.target.checked ? selected.add(l.id) : selected.delete(l.id);
      arm();
    },
  });
  const boxForAll = () => el("input", {
    type: "checkbox", checked: selected.size > 0 && selected.size === shown.p.dead_letters.length, "aria-label": "Select all of this page",
    onchange(e) {
      for (const l of shown.p.dead_letters) e.target.checked ? selected.add(l.id) : selected.delete(l.id);
      for (const b of letters.querySelectorAll("tbody input")) b.checked = e.target.checked;
      arm();
    },
  });

  function rows(p, cursor, before) {
    const turn = (text, to, list) => el("button", {
      type: "button",
      async onclick() {
        await page(to, list);
        letters.querySelector("h2")?.focus();
      },
    }, text);
    return [
      el("h2", { tabindex: "-1" }, filtered ? "Those of the filter" : "All", order.sorted() ? ", this page sorted" : ", oldest first",
        before.length ? `, page ${before.length + 1}` : ""),
      actions,
      ctx.table([{ text: "Select", node: boxForAll() }, ...Object.keys(columns).map((n) => order.heading(n)), ""], order.of(p.dead_letters).map((l) => [
        box(l),
        el("time", { class: "nowrap", datetime: l.died_at, title: l.died_at }, fmt.ago(l.died_at)),
        el("code", { class: "nowrap" }, l.reason),
        l.key ? el("a", { class: "mono some", href: ctx.link("documents", { key: l.key }) }, l.key)
          : el("span", { class: "soft" }, "message ", el("code", {}, l.message_id)),
        el("bdi", { class: "mono" }, l.version || "–"),
        el("bdi", { class: "some" }, l.detail),
        el("span", { class: "nowrap" }, l.state === "redriven" ? "sent again" : l.state),
        el("a", { class: "nowrap", href: ctx.link("dead", { key: l.id }), "aria-label": `Open the dead letter of ${l.key || l.message_id}` }, "Open"),
      ]), {
        caption: "Dead letters", stack: true,
        empty: p.next ? "None on this page: the filter passed over what was looked at. Go on to the next one."
          : filtered ? "No dead letter passes the filter." : "There are no dead letters. Every message was written, superseded, or waits.",
      }),
      el("div", { class: "actions" },
        before.length ? turn("Previous page", before.at(-1), before.slice(0, -1)) : null,
        p.next ? turn("Next page", p.next, [...before, cursor]) : null),
    ].filter(Boolean);
  }

  ctx.live((tick) => {
    const now = tick.status?.dead_letters;
    if (parked === null || now === undefined || now === parked || tick.status.capped) return;
    parked = now;
    news.replaceChildren(el("p", { class: "note" }, `There are ${fmt.number(now)} parked now. `,
      el("button", { type: "button", onclick: refresh }, "Show them")));
  });
  await refresh();
}

function summary(ctx, all, filtered) {
  const { el, fmt } = ctx;
  if (!all.groups.length) return el("div", {});
  const total = all.groups.reduce((n, g) => n + g.parked + g.redriven, 0);
  return el("div", {},
    el("p", {}, all.capped ? `More than ${fmt.number(total)}; the oldest ${fmt.number(total)} are counted here. `
      : `${fmt.number(total)} ${!filtered ? "in all" : total === 1 ? "passes the filter" : "pass the filter"}. `, "Each is kept byte for byte until it is committed, superseded or dropped."),
    el("div", { class: "groups" }, all.groups.map((g) => el("section", { class: "card" },
      el("h2", {}, el("a", { href: ctx.link("dead", { reason: g.reason }) }, el("code", {}, g.reason)), " ",
        el("span", { class: "tag" }, `${fmt.number(g.parked)} parked`), " ",
        g.redriven ? el("span", { class: "tag" }, `${fmt.number(g.redriven)} sent again`) : null),
      el("p", {}, g.why),
      el("p", {}, el("strong", {}, "What to do: "), g.fix, " ", ctx.runbook("dead-letters")),
      el("p", { class: "soft" }, `First ${fmt.ago(g.oldest)}, last ${fmt.ago(g.newest)}.`)))));
}

// options adds the reasons to the field of the filter, once the server has named them.
function options(root, reasons) {
  const at = root.querySelector("select[name=reason]");
  if (at.length > 2) return;
  for (const r of reasons) {
    if (r !== at.value) at.add(new Option(r, r));
  }
}

function form(ctx, filter) {
  const { el } = ctx;
  const field = (label, input, wide) => el("div", { class: wide ? "field wide" : "field" }, el("label", { for: input.id }, label), input);
  const text = (name, more) => el("input", { id: `dead-${name}`, name, value: filter[name] || "", autocomplete: "off", spellcheck: "false", ...more });
  const choice = (name, list) => {
    const at = el("select", { id: `dead-${name}`, name }, list.map(([value, label]) => el("option", { value }, label)));
    at.value = filter[name] || "";
    return at;
  };
  const day = 86400000, since = [["", "any time"]];
  for (const [label, ms] of [["the last hour", day / 24], ["the last day", day], ["the last week", 7 * day]]) {
    since.push([new Date(ctx.now() - ms).toISOString(), label]);
  }
  if (filter.after) since.push([filter.after, `since ${filter.after}`]);
  return el("form", {
    class: "fields",
    onsubmit(e) {
      e.preventDefault();
      const params = Object.fromEntries([...new FormData(e.target)].map(([k, v]) => [k, v.trim()]));
      // A key without a collection would be taken for the id of a dead letter.
      if (params.key && !params.key.includes("#")) {
        const known = ctx.about.collections || [], of = params.collection || (known.length === 1 && known[0]);
        const input = e.target.elements.key;
        input.setCustomValidity(of ? "" : "Use the whole key, with its collection, such as content#menu. Or name the collection.");
        if (!input.reportValidity()) return;
        params.key = `${of}#${params.key}`;
      }
      ctx.go("dead", picked(params));
    },
  },
  field("Reason", choice("reason", [["", "any"], ...(filter.reason ? [[filter.reason, filter.reason]] : [])])),
  field("State", choice("state", [["", "any"], ["parked", "parked"], ["redriven", "sent again"]])),
  field("Died", choice("after", since)),
  field("Collection", text("collection")),
  field("Document", text("key", { placeholder: "collection#id", oninput: (e) => e.target.setCustomValidity("") }), true),
  el("button", { type: "submit" }, "Filter"),
  Object.keys(filter).length ? el("a", { href: ctx.link("dead") }, "Show all") : null);
}

// One dead letter.

async function one(root, ctx, id) {
  const { el, fmt } = ctx;
  const { dead_letter: l, bytes, advice } = await ctx.get("/console/dead/letter", { id });
  ctx.title(`Dead letter of ${l.key || "a message"}`);
  const fact = (name, value) => value === "" || value === undefined || value === null ? null
    : [el("dt", {}, name), el("dd", {}, value)];
  const at = (t) => t ? [el("time", { datetime: t }, fmt.time(t)), ` (${fmt.ago(t)})`] : null;
  const body = el("div", {}), work = el("div", {});
  let raw = false, text = null;

  function draw() {
    const cut = text.cut ? el("p", { class: "note" },
      `The first ${fmt.bytes(256 * 1024)} of ${fmt.bytes(text.bytes)}. lull dead show ${l.id} -o json has all of it.`) : null;
    const strange = text.utf8 ? null : el("p", { class: "note" }, "The body is not UTF-8: such bytes are shown as \\x.");
    body.replaceChildren(...[cut, strange,
      ctx.pretty(text.text) !== text.text && el("div", { class: "actions" }, el("button", {
        type: "button", "aria-pressed": String(raw),
        onclick() {
          raw = !raw;
          draw();
          body.querySelector("button").focus();
        },
      }, "As it was sent")),
      el("pre", { tabindex: "0", "aria-label": "Body" }, raw ? text.text : ctx.pretty(text.text) || "(empty)"),
    ].filter(Boolean));
  }

  root.append(...[
    el("p", {}, el("a", { href: ctx.link("dead") }, "All dead letters")),
    el("p", {}, el("code", {}, l.reason), ": ", advice.why),
    el("p", {}, el("strong", {}, "What to do: "), advice.fix),
    el("dl", { class: "facts" },
      fact("Detail", el("bdi", {}, l.detail)),
      fact("Document", l.key && [el("a", { class: "mono", href: ctx.link("documents", { key: l.key }) }, l.key), " ", copy(ctx, "the key", l.key)]),
      fact("Version", l.version && [el("bdi", { class: "mono" }, l.version), " ", copy(ctx, "the version", l.version)]),
      fact("State", l.state === "redriven" ? ["sent again ", at(l.redriven_at)] : l.state),
      fact("Died", at(l.died_at)), fact("Sent", at(l.sent_at)),
      fact("Refusals", l.refusals || ""),
      fact("First error", l.first_error && el("bdi", {}, l.first_error)), fact("Last error", l.last_error && el("bdi", {}, l.last_error)),
      fact("Sent again", l.redrives ? `${l.redrives} times, ${l.auto_redrives || 0} by itself` : ""),
      fact("Source", l.source),
      fact("Sink, lane", `${l.sink}, ${l.lane}`),
      fact("Message", [el("code", {}, l.message_id), " ", copy(ctx, "the message id", l.message_id)]),
      fact("Dead letter", [el("code", {}, l.id), " ", copy(ctx, "the id of the dead letter", l.id)]),
      Object.entries(l.attributes || {}).map(([name, a]) => fact(`Attribute ${name}`, el("bdi", { class: "mono" },
        a.string ?? (a.binary ? `${a.type}, base64 ${a.binary}` : a.type))))),
    el("h2", {}, `Body, ${fmt.bytes(bytes)}`), body,
    el("h2", {}, "Send it again, or drop it"),
    ctx.about.can.send ? el("p", {}, "Is the message itself wrong? ", el("a", { class: advice.fails_again ? "button primary" : null, href: ctx.link("send", { dead: l.id }) }, "Correct it and send it as a new one"),
      " The dead letter is closed once the corrected message is written.") : null, work].filter(Boolean));
  body.append(el("button", {
    type: "button",
    async onclick() {
      try {
        text = await ctx.get("/console/dead/body", { id });
        draw();
        body.querySelector("pre").focus();
      } catch (e) {
        body.replaceChildren(el("p", { class: "problem" }, e.message));
      }
    },
  }, "Show the body"));
  work.before(el("div", { class: "actions" }, orders(ctx, work, { id }, "this one", advice.fails_again ? [{ ...l, parked: 1 }] : [], null)));
}

// Redrive and drop. A dry run comes first.

// orders returns the buttons. fails are the groups whose redrive fails again: if there is one, the
// redrive is not the primary button.
function orders(ctx, at, selection, what, fails, done) {
  const { el } = ctx;
  return [
    el("button", { type: "button", class: fails.length ? "" : "primary", onclick: () => panel(ctx, at, "redrive", selection, what, fails, done) }, `Redrive ${what}…`),
    el("button", { type: "button", class: "danger", onclick: () => panel(ctx, at, "drop", selection, what, [], done) }, `Drop ${what}…`),
    fails.length > 0 && el("span", { class: "soft" }, warning(ctx, fails)),
  ];
}

// warning says whose redrive fails again.
const warning = (ctx, fails) => `A redrive fails again for ${fails.map((g) => `${ctx.fmt.number(g.parked)} ${g.reason}`).join(", ")}, unless the settings changed.`;

function panel(ctx, at, verb, selection, what, fails, done) {
  const { el, fmt } = ctx, redrive = verb === "redrive", path = `/console/dead/${verb}`;
  const rate = el("input", { id: "dead-rate", type: "number", min: "0", max: "10000", step: "any", value: "" });
  const force = el("input", { id: "dead-force", type: "checkbox" });
  // The numbers change several times a second. Screen readers read out only the beginning and the end.
  const spoken = el("p", { role: "status" }), result = el("div", {}), buttons = el("div", { class: "actions" });
  const heading = el("h2", { tabindex: "-1" }, redrive ? `Redrive ${what}` : `Drop ${what}`);
  const after = el("div", {}), sent = [];
  let cancel = null, unfollow = () => {};
  const close = () => {
    unfollow();
    at.replaceChildren();
  };
  const button = (text, kind, onclick) => el("button", { type: "button", class: kind, onclick }, text);
  at.replaceChildren(el("section", { class: "card" }, heading,
    el("p", {}, redrive
      ? "Each is sent to its queue again and judged by its version, so no document goes backwards. It stays parked until its version, or a newer one, is committed."
      : "The events are lost for good. Rows stay as they are: a version that was dropped is not written any more."),
    fails.length > 0 && el("p", { class: "note" }, warning(ctx, fails)),
    redrive ? el("div", { class: "fields" },
      selection.ids ? null : el("div", { class: "field" }, el("label", { for: "dead-rate" }, "At most a second (empty: no limit)"), rate),
      el("div", {}, force, " ", el("label", { for: "dead-force" }, "Also those that are too old to judge"))) : null,
    spoken, result, after, buttons));
  heading.focus();

  // run counts the lines that arrive. The last line has the counts of the server.
  function run(dry, total, confirm) {
    const counts = {}, lines = [], progress = total && el("progress", { max: String(total), value: "0", "aria-label": "Progress" });
    const began = new Date(ctx.now() - 1000).toISOString(); // the page's clock may be a little ahead
    let count = 0, due = false;
    const draw = (end) => {
      due = false;
      if (progress) progress.value = count;
      const rows = Object.entries(end?.counts || counts).sort().map(([o, n]) => [el("code", {}, o), fmt.number(n), outcomes[o] || ""]);
      result.replaceChildren(...[
        end ? null : progress,
        end || dry ? null : el("p", {}, "Leaving this page stops it."),
        end?.error ? el("p", { class: "problem" }, end.error) : null,
        end?.stopped ? el("p", { class: "note" }, `Stopped. What is counted was done, the rest is as it was.`) : null,
        rows.length ? ctx.table(["Outcome", { text: "Dead letters", number: true }, "What it means"], rows,
          { caption: dry ? "Dry run: nothing was changed" : end ? "What was done" : "So far", stack: true }) : null,
        lines.length ? el("details", {}, el("summary", {}, lines.length === 1 ? "Which one" : `The last ${lines.length} of them`),
          ctx.table(["Dead letter", "Document", "Outcome", "Error"], lines.map((l) => [
            el("code", {}, l.id), el("bdi", { class: "mono" }, `${l.key || "–"} ${l.version ? `v${l.version}` : ""}`), l.outcome, l.error || ""]), { stack: true })) : null,
      ].filter(Boolean));
    };
    return new Promise((resolve) => {
      const finish = (end) => {
        cancel = null;
        draw(end);
        const sums = Object.entries(end.counts || counts).map(([o, n]) => `${fmt.number(n)} ${o.replaceAll("_", " ")}`).join(", ") || "none selected";
        spoken.textContent = `${dry ? "Dry run" : end.stopped ? "Stopped" : end.error ? "It ended early" : "Done"}: ${sums}.`;
        resolve({ ...end, count });
      };
      let end = null;
      const stop = ctx.stream(path, null, (l) => {
        if (l.end) {
          end = l;
          return;
        }
        count++;
        if (!dry && l.outcome === "sent" && sent.length < followed) sent.push({ id: l.id, key: l.key, at: began });
        counts[l.outcome] = (counts[l.outcome] || 0) + 1;
        lines.unshift(l);
        if (lines.length > 100) lines.pop();
        if (!due) {
          due = true;
          setTimeout(() => { if (cancel) draw(); }, 200);
        }
      }, {
        body: {
          ...selection, dry_run: dry, confirm, force: redrive && force.checked,
          rate: !dry && redrive && rate.valueAsNumber > 0 ? rate.valueAsNumber : 0,
        },
        end: (e) => finish(end && !e ? end : { error: (e || new Error("The connection was lost.")).message + (count ? " What is counted was done." : "") }),
      });
      cancel = () => {
        stop();
        finish({ stopped: true });
      };
      spoken.textContent = dry ? "The dry run looks at each…" : redrive ? "Sending…" : "Dropping…";
      draw();
    });
  }

  async function rehearse() {
    buttons.replaceChildren(button("Stop", "", () => cancel?.()));
    const end = await run(true);
    const n = redrive ? (end.counts?.would_send || 0) : (end.counts?.would_drop || 0);
    buttons.replaceChildren(...[
      n && !end.error && !end.stopped ? button(redrive ? `Redrive ${fmt.number(n)}` : `Drop ${fmt.number(n)}…`,
        !redrive ? "danger" : fails.length ? "" : "primary", () => act(n)) : null,
      button("Dry run again", "", rehearse), button("Close", "", close)].filter(Boolean));
    buttons.firstChild.focus();
  }

  async function act(n) {
    const confirm = `drop ${n}`;
    if (!redrive && !await ctx.confirm(`${n === 1 ? "One dead letter and its event are" : `${fmt.number(n)} dead letters and their events are`} lost for good.`,
      { title: `Drop ${what}`, action: "Drop for good", typed: confirm, danger: true })) return;
    buttons.replaceChildren(button("Stop", "danger", () => cancel?.()));
    buttons.firstChild.focus();
    const end = await run(false, n, confirm);
    buttons.replaceChildren(button("Close", "", () => {
      close();
      if (done) done();
      else ctx.go("dead");
    }));
    buttons.firstChild.focus();
    if (!end.error && !end.stopped) ctx.toast(redrive ? "They were sent again." : "They are dropped.");
    if (redrive && sent.length) unfollow = follow(ctx, after, sent, end.counts?.sent || sent.length);
  }

  rehearse();
}

const followed = 20; // dead letters whose result is shown

// follow shows what became of dead letters that were sent again, until each has a result.
function follow(ctx, at, sent, all) {
  const { el, fmt } = ctx, said = el("p", { role: "status" }), table = el("div", {}), known = new Map();
  const kinds = { fresh: "good", gone: "good", committed: "good", stale: "warn", skipped: "warn", "dead again": "bad", waits: "" };
  let busy = false, gone = false, timer = 0;
  at.replaceChildren(el("h3", {}, "What became of them"), said, table);

  function draw() {
    const results = sent.map((s) => known.get(s.id) || { ...s, state: "waits" }), sums = new Map();
    for (const r of results) sums.set(r.state, (sums.get(r.state) || 0) + 1);
    const text = `${all > sent.length ? `Of the first ${fmt.number(sent.length)}: ` : ""}${[...sums].map(([state, n]) => `${fmt.number(n)} ${state === "waits" ? "not judged yet" : state}`).join(", ")}.`;
    if (said.textContent !== text) said.textContent = text;
    ctx.renew(table, JSON.stringify(results), () => ctx.table(["Document", "Result", "Why"], results.map((r) => [
      r.key ? el("a", { class: "mono", href: ctx.link("documents", { key: r.key }) }, r.key) : el("a", { class: "mono", href: ctx.link("dead", { key: r.id }) }, r.id),
      el("span", { class: `tag ${kinds[r.state]}` }, r.state === "waits" ? "not judged yet" : r.state), el("bdi", {}, r.why || "")]), { caption: "Each is followed to its result", stack: true }));
    return sums.get("waits") || 0;
  }

  async function look() {
    const open = sent.filter((s) => (known.get(s.id)?.state ?? "waits") === "waits");
    if (busy || gone || !open.length) return;
    busy = true;
    try {
      const { results } = await ctx.post("/console/dead/results", { sent: open });
      for (const r of results) known.set(r.id, r);
      if (!draw()) clearInterval(timer);
    } catch (e) {
      said.textContent = e.message;
    } finally {
      busy = false;
    }
  }

  draw();
  look();
  timer = setInterval(look, ctx.about.mode === "dev" ? 1000 : 7000);
  const end = () => {
    gone = true;
    clearInterval(timer);
  };
  ctx.leaving(end);
  return end;
}
