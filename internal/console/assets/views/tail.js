// SPDX-License-Identifier: Apache-2.0

// Live tail: the decisions of lull as they happen, with filters.

import { saving } from "../lists.js";

const most = 500; // how many decisions the page keeps
const every = 1000;

export default {
  id: "tail",
  title: "Live tail",
  needs: "tail",
  async mount(root, ctx) {
    const { el, fmt, params } = ctx;
    const choice = (id, name, all, value) => {
      const at = el("select", { id, name }, el("option", { value: "" }, "all"), all.map((v) => el("option", { value: v }, v)));
      if (value && !all.includes(value)) at.append(el("option", { value }, value));
      at.value = value || "";
      return at;
    };
    const first = await ctx.get("/console/tail", { limit: 1 });
    const word = choice("tail-word", "word", first.words, params.word), sink = choice("tail-sink", "sink", ctx.about.sinks, params.sink);
    const collection = el("input", { id: "tail-collection", name: "collection", value: params.collection || "", list: "tail-collections", autocomplete: "off", spellcheck: "false" });
    const contains = el("input", { id: "tail-contains", name: "contains", type: "search", value: params.contains || "", maxlength: "200", autocomplete: "off", spellcheck: "false" });
    const pause = el("button", { type: "button", "aria-pressed": "false", onclick: turn }, "Pause");
    const said = el("p", { role: "status" }), problem = el("div", { role: "alert" }), body = el("tbody", {});
    const kept = [];
    let after = "", paused = false, busy = false, gone = false, asked = 0, passed = 0, typing = 0;

    const field = (label, at, wide) => el("div", { class: wide ? "field wide" : "field" }, el("label", { for: at.id }, label), at);
    const query = () => ({ word: word.value, sink: sink.value, collection: collection.value.trim(), contains: contains.value.trim() });
    const headings = ["Time", "Decision", "Document", "What", "Sink"];
    root.append(
      el("form", { class: "fields", role: "search", "aria-label": "Decisions", onsubmit: (e) => { e.preventDefault(); again(); } },
        field("Decision", word), field("Sink", sink), field("Collection", collection), field("Text", contains, true),
        el("datalist", { id: "tail-collections" }, (ctx.about.collections || []).map((c) => el("option", { value: c }))), pause,
        saving(ctx, "decisions", [...headings, "Version", "Message"], () => kept.map((l) => [l.at, l.step, l.key, l.text, l.sink, l.version, l.message_id]))),
      said, problem,
      el("div", { class: "scroll stack", tabindex: "0", role: "region", "aria-label": "Decisions" },
        el("table", { class: "tail" }, el("caption", {}, `The newest first, at most ${most}. lull dev keeps its latest 20,000 decisions.`),
          el("thead", {}, el("tr", {}, headings.map(ctx.heading))), body)));

    function row(l) {
      const cell = (name, attrs, ...content) => el("td", { "data-name": name, ...attrs }, ...content);
      const key = l.key && el("a", { class: "mono", href: ctx.link("documents", { key: l.key }) }, el("bdi", {}, l.key));
      return el("tr", {}, cell("Time", { class: "nowrap" }, el("time", { datetime: l.at, title: l.at }, fmt.time(l.at))), cell("Decision", {}, el("strong", {}, l.step)),
        cell("Document", {}, key || el("span", { class: "soft" }, l.message_id ? `message ${l.message_id}` : "–")), cell("What", {}, el("bdi", {}, l.text)), cell("Sink", { class: "nowrap" }, l.sink || "–"));
    }

    function add(lines) {
      kept.unshift(...lines.toReversed());
      kept.length = Math.min(kept.length, most);
      body.prepend(...lines.toReversed().map(row));
      while (body.children.length > most) body.lastChild.remove();
    }

    function say(waiting) {
      const more = passed ? ` ${fmt.number(passed)} more came too fast to be shown.` : "";
      const text = paused ? `Paused. ${fmt.number(waiting)} newer decision${waiting === 1 ? "" : "s"}.` : kept.length ? `Shows ${fmt.number(kept.length)} decision${kept.length === 1 ? "" : "s"}.${more}`
        : "No decision passes the filter yet. New decisions are shown as they happen.";
      if (said.textContent !== text) said.textContent = text;
    }

    // look asks for the decisions since the last answer. While the list is paused, it only counts them.
    async function look() {
      if (busy || gone || document.hidden) return;
      busy = true;
      const mine = asked, still = paused;
      try {
        const p = await ctx.get("/console/tail", { ...query(), after, limit: still ? 1 : 200 });
        if (gone || mine !== asked || still !== paused) return;
        problem.replaceChildren();
        if (still) return say(p.lines.length + (p.passed || 0));
        if (after !== "") passed += p.passed || 0;
        after = p.next || 0;
        add(p.lines);
        say();
      } catch (e) {
        if (mine === asked) problem.replaceChildren(el("p", { class: "problem" }, e.message));
      } finally {
        busy = false;
        if (mine !== asked && !gone) look();
      }
    }

    // again begins with an empty list, after the filter has changed.
    function again() {
      clearTimeout(typing);
      asked++;
      after = "";
      passed = 0;
      kept.length = 0;
      body.replaceChildren();
      history.replaceState(null, "", ctx.link("tail", query()));
      if (paused) turn();
      else look();
    }

    function turn() {
      paused = !paused;
      pause.textContent = paused ? "Go on" : "Pause";
      pause.setAttribute("aria-pressed", String(paused));
      if (paused) say(0);
      else look();
    }

    for (const at of [word, sink]) at.addEventListener("change", again);
    for (const at of [collection, contains]) {
      at.addEventListener("input", () => {
        clearTimeout(typing);
        typing = setTimeout(again, 300);
      });
    }
    await look();
    const timer = setInterval(look, every);
    return () => {
      gone = true;
      clearInterval(timer);
      clearTimeout(typing);
    };
  },
};
