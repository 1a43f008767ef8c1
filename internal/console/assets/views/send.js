// SPDX-License-Identifier: Apache-2.0

// Send: messages to try, in the form that the settings decode.

const suffix = () => [...crypto.getRandomValues(new Uint8Array(4))].map((b) => "abcdefghjkmnpqrstuvwxyz23456789"[b % 31]).join("");
// calm are the states that do not change without an operator or a new event.
const calm = new Set(["fresh", "dead", "dropped", "reset", "forgotten", "far_ahead", "sink_lost", "sink_older", "sink_newer", "sink_kept"]);

export default {
  id: "send",
  title: "Send",
  needs: "send",
  async mount(root, ctx) {
    const { el, fmt } = ctx;
    const { forms, why, trials } = await ctx.get("/console/send/forms");
    if (!forms.length) {
      root.append(el("p", { class: "problem" }, why || "No source of the settings can be written by the console."));
      return;
    }
    let trial = trials[0], form = forms[0], drafts = [], own = false, left = false, watch = () => {};
    let fixes = null; // the dead letter that the message corrects
    const named = (f) => `${f.source}${f.kind === f.source ? "" : ` (${f.kind})`}${f.collection ? `, collection ${f.collection}` : ""}`;
    const choice = el("select", { id: "send-form" }, forms.map((f, i) => el("option", { value: String(i) }, named(f))));
    const id = el("input", { id: "send-id", value: `sample-${suffix()}`, autocomplete: "off", spellcheck: "false", required: true });
    const data = el("textarea", { id: "send-data", rows: "5", spellcheck: "false" });
    const text = el("p", {}), hint = el("p", { class: "soft" }), problem = el("div", { role: "alert" });
    const closes = el("input", { type: "checkbox", id: "send-closes", checked: true });
    const list = el("div", {}), outcome = el("div", {}), said = el("p", { role: "status" });

    const radios = trials.map((t, i) => el("div", {},
      el("input", {
        type: "radio", name: "trial", id: `trial-${t.id}`, value: t.id, checked: i === 0,
        onchange() {
          trial = t;
          write();
        },
      }), " ", el("label", { for: `trial-${t.id}` }, t.title)));

    function describe() {
      text.textContent = trial.text;
      const notes = [];
      if (form.refers) notes.push("A message of this source refers to an object. The object must be there when the document is written, or the event waits for it.");
      if (!form.deletes) notes.push("The settings know no deletes for this source.");
      if (form.arrival) notes.push("This source takes the last arrival for the newest: it knows no older versions.");
      if (why) notes.push(`Not offered: ${why}`);
      hint.textContent = notes.join(" ");
      data.placeholder = ctx.pretty(JSON.stringify(form.data));
      data.disabled = form.refers;
    }

    // write asks for the messages. It replaces what the user has typed into them.
    let asked = 0;
    async function write() {
      const mine = ++asked;
      describe();
      try {
        const { messages } = await ctx.post("/console/send/write", {
          trial: trial.id, source: form.source, collection: form.collection, id: id.value, data: data.value,
        });
        if (mine !== asked) return;
        drafts = messages;
        problem.replaceChildren();
      } catch (e) {
        if (mine !== asked) return;
        drafts = [];
        problem.replaceChildren(el("p", { class: "problem" }, e.message));
      }
      draw();
    }

    function draw() {
      list.replaceChildren(...drafts.map((d, i) => {
        d.at = el("textarea", { id: `send-body-${i}`, rows: String(Math.min(d.body.split("\n").length + 1, 14)), spellcheck: "false", value: d.body });
        const attributes = Object.entries(d.attributes || {}).map(([name, a]) => `${name}: ${a.string}`).join(", ");
        return el("details", { open: drafts.length === 1 },
          el("summary", {}, `Message ${i + 1}: ${d.note}`, d.after_ms ? `, after ${fmt.duration(d.after_ms)}` : ""),
          el("label", { for: d.at.id }, `Body of message ${i + 1}`), d.at,
          attributes ? el("p", { class: "soft" }, "With the attribute ", el("code", {}, attributes)) : null,
          d.ref ? el("p", { class: "soft" }, "Its content is the object ", el("code", {}, d.ref)) : null);
      }), drafts.length ? el("div", { class: "actions" },
        el("button", { type: "submit", class: "primary" }, drafts.length === 1 ? "Send it" : `Send ${drafts.length} messages`),
        fixes && el("span", {}, closes, " ", el("label", { for: "send-closes" }, "Drop the dead letter once the corrected message is written")),
        el("button", { type: "button", onclick: write }, "Regenerate example")) : null);
    }

    root.append(
      el("form", {
        async onsubmit(e) {
          e.preventDefault();
          if (fixes && drafts.every((d) => d.at.value === d.body) && !await ctx.confirm("Nothing was changed in the message. A copy of it fails as before, and makes a second dead letter. To send the same message again, redrive its dead letter.", { title: "Send it unchanged?", action: "Send it unchanged" })) return;
          send();
        },
      },
      el("fieldset", { class: "fields" }, el("legend", {}, "What to try"), radios), text,
      el("div", { class: "fields" },
        el("div", { class: "field" }, el("label", { for: "send-form" }, "Source"), choice),
        el("div", { class: "field wide" }, el("label", { for: "send-id" }, "Document's id"), id)),
      hint,
      el("details", {}, el("summary", {}, "Content of your own"),
        el("label", { for: "send-data" }, "A JSON object; empty for an example"), data),
      problem, el("h2", {}, "Messages"), list), said, outcome);
    choice.addEventListener("change", () => {
      form = forms[Number(choice.value)];
      write();
    });
    let timer = 0;
    const later = () => {
      clearTimeout(timer);
      timer = setTimeout(write, 400);
    };
    id.addEventListener("input", () => {
      own = true;
      later();
    });
    data.addEventListener("input", later);
    await (ctx.params.dead ? correct(ctx.params.dead) : write());

    // correct loads the message of a dead letter, without the attributes that lull added.
    async function correct(dead) {
      const [{ dead_letter: l }, body] = await Promise.all(["letter", "body"].map((what) => ctx.get(`/console/dead/${what}`, { id: dead })));
      await write();
      if (body.cut || !body.utf8) {
        problem.replaceChildren(el("p", { class: "note" }, "The message of the dead letter is too large for this page, or not UTF-8. Send it with lull publish."));
        return;
      }
      const lulls = ["lull-event", "lull-first-sent", "lull-letter"];
      drafts = [{
        body: ctx.pretty(body.text), after_ms: 0, note: `the message of the dead letter of ${l.key || l.message_id}`,
        attributes: Object.fromEntries(Object.entries(l.attributes || {}).filter(([name]) => !lulls.includes(name))),
      }];
      text.textContent = `${l.detail}: correct that, and send it.`;
      fixes = l.id;
      draw();
    }

    // send sends each message at its time, even if the user has opened another view.
    function send() {
      const batch = drafts.map((d, i) => ({ ...d, body: d.at.value, number: i + 1 }));
      if (!batch.length) return;
      watch();
      const rows = new Map(), states = new Map();
      const log = el("tbody", {}), docs = el("div", {});
      let due = batch.length, last = ctx.now(), fixed = null, stays = ""; // stays says why the dead letter stays
      outcome.replaceChildren(el("h2", { tabindex: "-1", id: "send-sent" }, "What was sent"),
        el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Messages that were sent" },
          el("table", {}, el("thead", {}, el("tr", {}, ["Message", "Sent", "Decoded as"].map((h) => el("th", { scope: "col" }, h)))), log)), docs);
      for (const m of batch) {
        const row = el("tr", {}, el("td", {}, `${m.number}: ${m.note}`), el("td", {}), el("td", {}));
        rows.set(m.number, row);
        log.append(row);
      }
      const tell = (number, when, what) => {
        const [, at, decoded] = rows.get(number).children;
        at.replaceChildren(el("span", { class: "nowrap" }, when));
        decoded.replaceChildren(...what);
      };
      const times = new Map();
      for (const m of batch) times.set(m.after_ms, [...(times.get(m.after_ms) || []), m]);

      async function go(some) {
        try {
          const done = await ctx.post(fixes ? "/console/send?corrects=1" : "/console/send", {
            messages: some.map((m) => ({ body: m.body, attributes: m.attributes })), unchecked: true,
          });
          const refused = new Map((done.refused || []).map((r) => [r.message, r.why]));
          some.forEach((m, i) => {
            const events = (done.sent || []).filter((e) => e.message === i);
            if (refused.has(i)) tell(m.number, "refused", [el("span", { class: "bad" }, refused.get(i))]);
            else tell(m.number, fmt.time(ctx.now()), events.map((e) => el("div", {}, e.invalid ? el("span", { class: "bad" }, `a dead letter: ${e.invalid}`)
              : e.skip ? `skipped: ${e.skip}` : [`${e.operation} `, el("a", { class: "mono", href: ctx.link("documents", { key: e.key }) }, e.key), ` version ${e.version}`])));
            for (const e of events) if (e.key) states.set(e.key, null);
            if (!fixes) return;
            if (done.stale) stays = `${done.stale} Give the message a newer version, or drop the dead letter.`;
            else if (refused.has(i)) stays = "The message was not sent.";
            else if (events.some((e) => e.invalid)) stays = "It was sent, and fails again: there is a second dead letter.";
            else if (events.length === 1 && events[0].version) fixed = { id: fixes, key: events[0].key, version: events[0].version };
          });
        } catch (e) {
          some.forEach((m) => tell(m.number, "not sent", [el("span", { class: "bad" }, e.message)]));
          stays = fixes && "The message was not sent.";
        }
        due -= some.length;
        last = ctx.now();
        said.textContent = due ? `${due === 1 ? "One message is" : `${due} messages are`} still to be sent. You may look at other views, but keep the page open.` : stays ? `${stays} The dead letter stays parked.` : "Everything was sent.";
        look();
      }
      for (const [after, some] of times) {
        if (!after) {
          go(some);
          continue;
        }
        const wait = after / (ctx.about.speed || 1);
        for (const m of some) tell(m.number, `in ${fmt.duration(after)}`, []);
        setTimeout(() => {
          go(some);
          if (left) ctx.toast(some.length === 1 ? `Sent: ${some[0].note}.` : `${some.length} messages were sent.`);
        }, wait);
      }

      // close drops the dead letter that the message has corrected.
      async function close() {
        const letter = fixed;
        fixed = null;
        try {
          await ctx.post("/console/dead/close", letter);
          said.textContent = "The document is fresh, and its dead letter is closed.";
        } catch (e) {
          said.textContent = `The document is fresh, and its dead letter stays: ${e.message}`;
        }
      }

      // look reads the states of the documents at each tick, until no state changes any more.
      let looking = false;
      async function look() {
        const soon = due || ctx.now() - last < form.fresh_ms + 5000; // the message may not have been received yet
        const now = fixed && states.get(fixed.key);
        if (!soon && calm.has(now?.state) && now.version !== fixed.version) {
          said.textContent = `Version ${fixed.version} is not written: ${fixed.key} is ${now.state.replaceAll("_", " ")} with version ${now.version || "none"}. The dead letter stays parked.`;
          fixed = null;
        }
        const keys = [...states.keys()].filter((k) => soon || !calm.has(states.get(k)?.state)).slice(0, 20);
        if (left || looking || !keys.length) return;
        looking = true;
        try {
          const query = new URLSearchParams(keys.map((k) => ["key", k]));
          for (const s of (await ctx.get(`/console/send/states?${query}`)).states) states.set(s.key, s);
          const shown = [...states].filter(([, s]) => s);
          docs.replaceChildren(el("h2", {}, "Results"), ...shown.map(([k, s]) => el("section", { class: "card" },
            el("h3", {}, el("a", { class: "mono", href: ctx.link("documents", { key: k }) }, k), " ", el("span", { class: "tag" }, s.state.replaceAll("_", " "))),
            el("p", {}, ctx.times(s.sentence)))));
          const s = fixed && states.get(fixed.key);
          if (s?.state === "fresh" && s.version === fixed.version && closes.checked) await close();
        } catch (e) {
          docs.replaceChildren(el("p", { class: "problem" }, e.message));
        }
        looking = false;
      }
      watch = ctx.live(look);
      outcome.querySelector("h2").focus();
      if (!own && !ctx.params.dead) { // the next example is another document, whose versions begin with 1
        id.value = `sample-${suffix()}`;
        write();
      }
    }

    return () => {
      clearTimeout(timer);
      left = true;
    };
  },
};
