// SPDX-License-Identifier: Apache-2.0

// Search: what the search engine holds, as readers find it.

export default {
  id: "search",
  title: "Search",
  needs: "search",
  mount(root, ctx) {
    const { el, fmt, params } = ctx;
    const text = el("input", { id: "search-q", type: "search", value: params.q || "", maxlength: "1000", autocomplete: "off", spellcheck: "false" });
    const prefix = el("input", { id: "search-prefix", type: "checkbox", checked: params.prefix !== "no" });
    const names = el("datalist", { id: "search-fields" });
    const field = el("input", { id: "search-field", value: params.field || "", list: "search-fields", placeholder: "all fields", autocomplete: "off", spellcheck: "false" });
    const collection = el("input", { id: "search-collection", value: params.collection || "", placeholder: "all collections", autocomplete: "off", spellcheck: "false" });
    const count = el("p", { role: "status" }), list = el("div", {});
    let asked = 0, timer = 0, known = new Set();

    const one = (h) => el("section", { class: "card" },
      el("h2", {}, el("a", { href: ctx.link("documents", { key: h.key }) }, el("bdi", {}, h.title || h.key))),
      h.title ? el("p", {}, el("bdi", { class: "mono soft" }, h.key)) : null,
      h.fragments.map((f) => el("p", {}, el("span", { class: "soft" }, el("bdi", {}, f.field), ": "),
        el("bdi", {}, f.parts.map((p) => p.hit ? el("mark", {}, p.text) : p.text)))),
      el("p", { class: "soft" }, "Version ", el("bdi", { class: "mono" }, h.version || "–"),
        `, fence ${h.fence}, `, h.indexed_at ? ["written ", el("time", { datetime: h.indexed_at, title: h.indexed_at }, fmt.ago(h.indexed_at))] : "time of writing unknown",
        `, ${fmt.bytes(h.bytes)}`));

    async function ask() {
      clearTimeout(timer);
      const mine = ++asked, q = text.value.trim() ? text.value : "";
      const query = { q, field: field.value.trim(), collection: collection.value.trim() };
      history.replaceState(null, "", ctx.link("search", { ...query, prefix: prefix.checked ? "" : "no" }));
      if (!q) {
        count.replaceChildren("Type a word. Every word must be in a document; the last one may be the beginning of a word.");
        list.replaceChildren();
        return;
      }
      list.setAttribute("aria-busy", "true");
      try {
        const found = await ctx.get("/console/search", { ...query, prefix: prefix.checked });
        if (mine !== asked) return;
        for (const f of found.fields) {
          if (!known.has(f)) names.append(el("option", { value: f }));
          known.add(f);
        }
        const n = found.hits.length;
        count.replaceChildren(n === 0 ? "Nothing was found. What was written a moment ago may not be searchable yet."
          : found.more ? `The first ${n} of more documents. Add a word to find fewer.` : n === 1 ? "One document." : `${n} documents.`);
        list.replaceChildren(...(found.notes || []).map((note) => el("p", { class: "note" }, note)), ...found.hits.map(one));
      } catch (e) {
        if (mine !== asked) return;
        count.replaceChildren();
        list.replaceChildren(el("p", { class: "problem", role: "alert" }, e.message));
      }
      list.removeAttribute("aria-busy");
    }

    const later = () => {
      clearTimeout(timer);
      timer = setTimeout(ask, 300);
    };
    const input = (label, at, wide) => el("div", { class: wide ? "field wide" : "field" }, el("label", { for: at.id }, label), at);
    for (const at of [text, field, collection]) at.addEventListener("input", later);
    prefix.addEventListener("change", ask);
    root.append(el("form", {
      class: "fields", role: "search",
      onsubmit(e) {
        e.preventDefault();
        ask();
      },
    },
    input("Words", text, true), input("Field", field), input("Collection", collection), names,
    el("button", { type: "submit", class: "primary" }, "Search"),
    el("div", {}, prefix, " ", el("label", { for: "search-prefix" }, "The last word may be the beginning of a word"))),
    count, list);
    ask();
    return () => {
      clearTimeout(timer);
      asked++;
    };
  },
};
