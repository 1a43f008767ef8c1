// SPDX-License-Identifier: Apache-2.0

// Compares other settings or another load with the settings that run now. The simulator computes
// both.

import { chart } from "../chart.js";

// The fields of the load. Their names are those of the flags of `lull simulate`.
const fields = [
  { name: "load", label: "Events a second", type: "number", value: "5", min: 0, step: "any" },
  { name: "burst", label: "Events in a burst", type: "number", value: "3", min: 1, max: 100 },
  { name: "spread", label: "A burst takes", value: "2s" },
  { name: "documents", label: "Documents", type: "number", value: "1000", min: 1 },
  { name: "for", label: "For", value: "30m" },
  { name: "sink-takes", label: "Sink takes a second (0: any number)", type: "number", value: "0", min: 0 },
  { name: "sink-down", label: "Sink down from-to (10m-15m)", value: "" },
];

export default {
  id: "whatif",
  title: "What if",
  needs: "whatif",
  async mount(root, ctx) {
    const { el, fmt, table } = ctx;
    const running = (await ctx.get("/console/whatif")).settings;
    const inputs = new Map();
    let stop = null;

    const field = (f) => {
      const { name, label, ...attrs } = f, id = `whatif-${name}`;
      const input = el("input", { id, autocomplete: "off", spellcheck: "false", ...attrs, size: attrs.type ? undefined : "10" });
      inputs.set(name, { input, numeric: Boolean(attrs.type) });
      return el("div", { class: "field" }, el("label", { for: id }, label), input);
    };
    const settings = el("textarea", {
      id: "whatif-settings", rows: "18", spellcheck: "false", autocomplete: "off", autocapitalize: "off", value: running,
      "aria-describedby": "whatif-help",
    });
    inputs.set("settings", { input: settings });
    const run = el("button", { type: "submit", class: "primary" }, "Compare");
    const cancel = el("button", { type: "button", disabled: true, onclick: () => done("Stopped.") }, "Stop");
    const bar = el("progress", { max: "1", value: "0", "aria-label": "Progress", hidden: true });
    const say = el("p", { role: "status" });
    const faults = el("div", { role: "alert" });
    const results = el("div", {});

    root.append(
      el("p", {}, "Change the load, the settings or both. The real functions run against simulated services, ",
        "in virtual time, and nothing of this run is touched."),
      el("form", { onsubmit: start },
        el("div", { class: "fields grid" }, fields.map(field)),
        el("div", { class: "field" }, el("label", { for: "whatif-settings" }, "Your settings"),
          el("small", { id: "whatif-help" }, "They begin as the settings that run. Raise debounce.quiet, for example."), settings),
        el("div", { class: "actions" }, run, cancel,
          el("button", { type: "button", onclick: () => { settings.value = running; } }, "Back to the settings that run"))),
      bar, say, faults, results);

    function question() {
      const load = {};
      for (const f of fields) {
        const { input, numeric } = inputs.get(f.name), text = input.value.trim();
        if (text !== "") load[f.name] = numeric ? Number(text) : text;
      }
      return { settings: settings.value, load };
    }

    function start(e) {
      e.preventDefault();
      stop?.();
      const found = {};
      faults.replaceChildren();
      for (const { input } of inputs.values()) input.removeAttribute("aria-invalid");
      run.disabled = true;
      cancel.disabled = false;
      bar.hidden = false;
      bar.value = 0;
      say.textContent = "Simulating…";
      stop = ctx.stream("/console/whatif", {}, (line) => {
        if (line.share > bar.value) bar.value = line.share;
        if (line.doing && !found.shown) say.textContent = `Simulating ${line.doing}…`;
        if (line.today) found.today = line.today;
        if (line.yours) found.yours = line.yours;
        if (line.error) wrong(line);
        found.failed ||= Boolean(line.error);
      }, {
        body: question(),
        end(error) {
          if (error) wrong({ error: error.message });
          else if (!found.failed) show(found);
          done(error || found.failed ? "" : found.yours ? "Done." : "Done. Your settings are those that run.");
        },
      });
    }

    function done(text) {
      stop?.();
      stop = null;
      run.disabled = false;
      cancel.disabled = true;
      bar.hidden = true;
      say.textContent = text;
    }

    // wrong shows all faults, and marks the field of each fault.
    function wrong({ error, faults: all }) {
      const go = (input) => () => {
        input.focus();
        input.scrollIntoView({ block: "center" });
      };
      faults.replaceChildren(el("div", { class: "problem" }, !all?.length ? el("p", {}, error) : [
        el("p", {}, all.length === 1 ? "One thing is wrong:" : `${all.length} things are wrong:`),
        el("ul", {}, all.map((f) => {
          const { input } = inputs.get(f.field) || inputs.get("settings");
          input.setAttribute("aria-invalid", "true");
          return el("li", {},
            el("button", { type: "button", class: "plain", onclick: go(input) }, inputs.has(f.field) ? labelOf(f.field) : f.field),
            f.line ? ` (line ${f.line})` : "", f.value ? ` ${f.value}` : "", `: ${f.problem}${f.fix ? `: ${f.fix}` : ""}`);
        })),
      ]));
    }
    const labelOf = (name) => fields.find((f) => f.name === name).label;

    function show({ today, yours }) {
      const sides = [["Today", today], ...(yours ? [["Yours", yours]] : [])];
      const row = (name, of, text) => [name, ...sides.map(([, o]) => text(of(o)))];
      const month = (m) => [m.floor, m.ceiling].sort((a, b) => a - b).map(fmt.dollars).join(" to ");
      results.replaceChildren(
        el("h2", { id: "whatif-result", tabindex: "-1" }, "What comes of it"),
        sides.filter(([, o]) => o.stopped).map(([name, o]) => el("p", { class: "problem" },
          `${name}: the time was over after ${fmt.duration(span(o.virtual))} of the load. The figures are of what was written until then. `,
          "Try fewer events or a shorter time.")),
        today.violations.concat(yours?.violations || []).map((v) => el("p", { class: "problem" }, `A promise was broken: ${v}`)),
        table(["What", ...sides.map(([name]) => ({ text: name, number: true }))], [
          row("Fresh at p50", (o) => o.freshness_ms.p50, fmt.duration),
          row("Fresh at p99", (o) => o.freshness_ms.p99, fmt.duration),
          row("Promised at p99, while the sink is well", (o) => o.promise_ms, fmt.duration),
          row("The latest", (o) => o.freshness_ms.max, fmt.duration),
          row("Events", (o) => o.events, fmt.number),
          row("In the form of", (o) => o.sources, (names) => names?.join(", ") || "native events"),
          row("Sink writes", (o) => o.writes, fmt.number),
          row("Sink writes a burst", (o) => o.writes_per_burst, (n) => n.toFixed(2)),
          row("Requests to the sink", (o) => o.sink_requests, fmt.number),
          row("Dead letters", (o) => o.dead_letters, fmt.number),
          row("All written after", (o) => o.stopped ? null : span(o.virtual), (ms) => ms === null ? "unknown" : fmt.duration(ms)),
          row("AWS, a month of this load", (o) => o.month, month),
          row("A million events", (o) => o.month.per_million_events, fmt.dollars),
        ], { caption: "The settings that run beside yours" }),
        el("p", { class: "soft" }, `List prices, ${today.month.prices}: as few pollers as AWS may use, and as many as it begins with. `,
          "The sink itself is not in it. ",
          "The bill is of native events. ",
          "A burst whose document changes again at once shares its write."),
        el("div", { class: "charts" },
          lines("Freshness of what is written, p99", fmt.duration, (p) => p.committed ? p.p99_ms : null,
            [...new Set(sides.map(([, o]) => o.promise_ms))].map((y, i) => ({ name: i ? "promised with yours" : "promised", y }))),
          lines("Freshness of what is written, p50", fmt.duration, (p) => p.committed ? p.p50_ms : null),
          lines("Documents written a second", (n) => n.toFixed(n < 10 ? 1 : 0), (p) => p.written),
          lines("Messages in the queues, including held ones", fmt.number, (p) => p.waiting)));
      const heading = results.querySelector("#whatif-result");
      heading.focus({ preventScroll: true });
      heading.scrollIntoView({ block: "start" });

      function lines(title, y, of, levels = []) {
        return chart({
          title, levels, y, durations: y === fmt.duration, x: (s) => fmt.duration(s * 1000), every: 4,
          series: sides.map(([name, o]) => ({ name, meaning: name === "Today" ? "today" : "yours", points: o.points.map((p) => [p.at, of(p)]) })),
        });
      }
    }
    return () => stop?.();
  },
};

// span converts a Go duration such as 1h2m3s to milliseconds.
function span(text) {
  const unit = { h: 3600_000, m: 60_000, s: 1000 };
  return [...text.matchAll(/([\d.]+)(h|ms|m|s)/g)].reduce((sum, [, n, u]) => sum + Number(n) * (unit[u] || 1), 0);
}
