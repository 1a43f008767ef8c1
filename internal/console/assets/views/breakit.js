// SPDX-License-Identifier: Apache-2.0

// Failures that happen on AWS, caused on purpose in this run. Each failure says what to expect.

// The switches. The page sends each change at once.
const breaks = [
  {
    name: "sink_down", label: "Sink down", on: true, off: false,
    expect: "Nothing is written. Messages wait in the queue, and after a few failures lull only asks now and then whether the sink is back.",
  },
  {
    name: "sink_slow_ms", label: "Sink slow", off: 0,
    choices: [[1000, "1 s a request"], [3000, "3 s a request"], [8000, "8 s, longer than lull waits"]],
    expect: "Documents become later. Where the sink takes longer than lull waits, a write's outcome is unknown, and lull repeats it.",
  },
  {
    name: "sink_rejects", label: "Sink rejects", off: 0,
    choices: [[0.1, "1 document in 10"], [0.5, "every second document"], [1, "every document"]],
    expect: "A document that the sink refuses for good becomes a dead letter, and others go on. Send dead letters again when it takes them. Where it refuses every document, the fault is not in the documents: they wait, and none becomes a dead letter.",
  },
  {
    name: "table_away", label: "Table away", on: true, off: false,
    expect: "Nothing is decided without the table. Messages stay in the queue, and documents are written when it is back.",
  },
];

const kills = [
  {
    name: "receive", label: "Kill receive",
    expect: "Its next invocation ends right after it has written a row. The message comes back, and lull starts the flight then.",
  },
  {
    name: "index", label: "Kill index",
    expect: "Its next invocation ends right after the sink took the documents. No row knows: lull writes them once more.",
  },
];

// The stream of events: how many documents it has, and the milliseconds between two bursts.
const documents = 8, every = 1000;

export default {
  id: "breakit",
  title: "Break it",
  needs: "breakit",
  async mount(root, ctx) {
    const { el, fmt } = ctx;
    let state = await ctx.get("/console/breakit"), asking = false, asked = 0, sending = 0, sent = 0;

    const say = el("p", { role: "status" });
    const counts = el("div", {});
    const problem = el("p", { class: "problem", role: "alert", hidden: true });
    const inputs = new Map();

    async function change(path, body) {
      problem.hidden = true;
      try {
        show(await ctx.post(path, body));
      } catch (e) {
        problem.textContent = e.message;
        problem.hidden = false;
        show(state);
      }
    }
    const chosen = () => Object.fromEntries(breaks.map((b) => [b.name, value(b)]));
    const value = (b) => b.choices ? Number(inputs.get(b.name).value) : inputs.get(b.name).checked;

    const cards = breaks.map((b) => {
      const id = `break-${b.name}`, listen = { id, "aria-describedby": `${id}-expect`, onchange: () => change("/console/breakit", chosen()) };
      const input = b.choices
        ? el("select", listen, el("option", { value: String(b.off) }, "no"), b.choices.map(([v, text]) => el("option", { value: String(v) }, text)))
        : el("input", { type: "checkbox", ...listen });
      inputs.set(b.name, input);
      return el("div", { class: "card" },
        b.choices ? [el("label", { for: id }, b.label, " "), input] : [input, el("label", { for: id }, " ", b.label)],
        el("p", { id: `${id}-expect` }, b.expect));
    });
    const killed = new Map(kills.map((k) => [k.name, el("span", { role: "status" })]));
    const killing = kills.map((k) => el("div", { class: "card" },
      el("button", {
        type: "button", class: "danger", "aria-describedby": `kill-${k.name}-expect`,
        onclick: () => change("/console/breakit/kill", { function: k.name }),
      }, k.label), " ", killed.get(k.name),
      el("p", { id: `kill-${k.name}-expect` }, k.expect)));
    const right = el("button", {
      type: "button", class: "primary",
      onclick: () => change("/console/breakit", Object.fromEntries(breaks.map((b) => [b.name, b.off]))),
    }, "Restore all");
    const stream = el("button", { type: "button", "aria-pressed": "false", onclick: toggle }, "Keep sending events");

    root.append(
      el("p", {}, "Break this run on purpose and watch it recover. Nothing of it leaves this process, and ",
        "putting everything right takes effect at once."),
      el("div", { class: "actions" }, stream, right),
      el("p", { class: "soft" }, `The stream is a burst of three versions each second, of ${documents} documents in turn: break-it-1 and so on. It ends when you leave this view: watch Now or a document in a second tab.`),
      problem, say, counts,
      el("h2", {}, "Switches"), el("div", { class: "cards wide" }, cards),
      el("h2", {}, "Kill a function"), el("div", { class: "cards wide" }, killing));

    // toggle starts or stops the stream of events.
    function toggle() {
      if (sending) {
        clearInterval(sending);
        sending = 0;
      } else {
        sending = setInterval(send, every);
        send();
      }
      stream.setAttribute("aria-pressed", String(Boolean(sending)));
      stream.textContent = sending ? "Stop sending events" : "Keep sending events";
    }
    async function send() {
      try {
        await ctx.post("/console/breakit/send", { id: `break-it-${1 + sent++ % documents}` });
      } catch (e) {
        if (sending) toggle();
        problem.textContent = `No more events are sent: ${e.message}`;
        problem.hidden = false;
      }
    }

    function show(s) {
      state = s;
      for (const b of breaks) {
        const input = inputs.get(b.name);
        if (!b.choices) input.checked = s[b.name] === b.on;
        else {
          const v = String(s[b.name]);
          if (![...input.options].some((o) => o.value === v)) input.append(el("option", { value: v }, v));
          input.value = v;
        }
      }
      for (const k of kills) {
        const armed = s.armed?.[k.name] || 0, done = s.killed?.[k.name] || 0;
        const text = armed ? "waits for its next invocation" : done ? `killed ${done} time${done === 1 ? "" : "s"}` : "";
        if (killed.get(k.name).textContent !== text) killed.get(k.name).textContent = text;
      }
      const text = sentence(s);
      if (say.textContent !== text) say.textContent = text;
      say.className = broken(s) ? "note" : "";
      counts.replaceChildren(el("dl", { class: "cards totals" }, [
        ["Events", s.events], ["Done", s.done], ["Waiting", s.waiting], ["Dead letters", s.dead], ["Lost", s.lost],
      ].map(([name, n]) => el("div", { class: "card" }, el("dt", {}, name),
        el("dd", { class: name === "Lost" ? (n ? "bad" : "good") : undefined }, fmt.number(n))))));
    }

    const broken = (s) => !zero(s.since) && zero(s.righted);

    function sentence(s) {
      if (zero(s.since)) return "Everything works. Nothing has been broken yet.";
      if (broken(s)) {
        const what = [...breaks.filter((b) => s[b.name] !== b.off).map((b) => b.label.toLowerCase()),
          ...kills.filter((k) => s.armed?.[k.name]).map((k) => `${k.name} to be killed`)].join(", ");
        return `Broken since ${fmt.time(s.since)}: ${what}.`;
      }
      if (zero(s.recovered)) return `Everything works since ${fmt.time(s.righted)}. Recovering: what came before that is not done yet.`;
      const after = Math.max(new Date(s.recovered) - new Date(s.righted), 0);
      const dead = s.dead ? ` ${s.dead} became dead letters.` : "";
      return `Recovered ${fmt.duration(after)} after everything worked again. ${s.lost ? `${s.lost} events are lost.` : "Nothing was lost."}${dead}`;
    }
    const zero = (t) => !t || t.startsWith("0001-");

    async function look() {
      if (asking || document.hidden) return;
      asking = true;
      try {
        const mine = ++asked, s = await ctx.get("/console/breakit");
        if (mine === asked) show(s);
      } catch { /* the banner reports the error */ }
      asking = false;
    }
    show(state);
    const timer = setInterval(look, 1000);
    return () => {
      clearInterval(timer);
      clearInterval(sending);
    };
  },
};
