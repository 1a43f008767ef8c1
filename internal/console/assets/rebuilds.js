// SPDX-License-Identifier: Apache-2.0

// The rebuilds that run: how far each one is, and the buttons that resume or abort it.

const phases = {
  creating: "the new index is made", announced: "writes begin to go to both indices", filling: "the engine copies the documents",
  sourcing: "a resync from the source fills the new index", comparing: "both are compared, and what differs is copied again",
  switching: "readers get the new index", tidying: "readers have the new index; what is not needed goes",
  done: "done: readers have the new index", aborted: "aborted: readers have the index that they had",
};

// rebuilds returns its element, and a function that the view calls at each tick.
export function rebuilds(ctx) {
  const { el, fmt } = ctx, node = el("div", {}), rows = new Map(); // by sink
  const every = ctx.about.mode === "dev" ? 1500 : 15_000;
  let asked = -Infinity, busy = false;

  function row(sink) {
    const state = el("div", {}), say = el("p", { role: "status" });
    const resume = el("button", { type: "button", onclick: () => run("resume", {}) }, "Resume");
    const abort = el("button", { type: "button", class: "danger", onclick: giveUp }, "Abort…");
    const section = el("section", {}, el("h2", {}, "Rebuild"), state, el("div", { class: "actions" }, resume, abort), say);
    let last = null, stop = null, ended = false;

    function draw(p) {
      last = p;
      const share = p.total > 0 && ["filling", "sourcing", "comparing"].includes(p.phase);
      ctx.renew(state, JSON.stringify(p), () => [
        el("p", {}, "Collection ", el("bdi", { class: "mono" }, p.collection), " of sink ", el("bdi", {}, p.sink), ": ",
          el("strong", {}, p.phase || "unknown"), p.phase ? `, ${phases[p.phase] || p.phase}.` : ".", p.passes > 1 ? ` Comparison ${fmt.number(p.passes)}.` : ""),
        share && el("progress", { max: String(p.total), value: String(Math.min(p.done, p.total)), "aria-label": `Progress of ${p.phase}` }),
        share && el("p", {}, `${fmt.number(p.done)} of ${fmt.number(p.total)} documents`),
        el("p", { class: "soft" }, "From ", el("bdi", { class: "mono" }, p.old), " to ", el("bdi", { class: "mono" }, p.new),
          `, begun ${fmt.ago(p.begun)} by `, el("bdi", {}, p.by), ".",
          p.missed ? ` ${fmt.number(p.missed)} live writes did not reach the new index: a comparison brings them.` : "",
          p.repaired ? ` ${fmt.number(p.repaired)} documents were brought up to date.` : "",
          p.newer ? ` ${fmt.number(p.newer)} documents are newer than the export, and were copied as they are.` : ""),
        p.error && el("p", { class: "problem" }, el("bdi", {}, p.error)),
        p.left > 0 && el("p", { class: "problem" }, `${fmt.number(p.left)} documents would be missing from the new index: readers get it only where --allow says that they may.`),
        p.refused?.length && ctx.table(["Document", "Why the new index refuses it"],
          p.refused.map((r) => [el("bdi", { class: "mono" }, r.id), el("bdi", {}, r.reason)]),
          { caption: p.refusals > p.refused.length ? `The first ${p.refused.length} of those that are known` : "Refused documents" }),
      ]);
    }

    function run(action, body) {
      stop?.();
      resume.disabled = abort.disabled = true;
      say.textContent = action === "resume" ? "Going on. If you leave this page it stops where it is, and can be resumed." : "Giving up…";
      let wrong = "";
      stop = ctx.stream(`/console/rebuild/${action}`, {}, (line) => {
        if (line.progress?.phase) draw(line.progress);
        if (line.error) wrong = line.error;
      }, {
        body: { sink, ...body },
        end(error) {
          stop = null;
          resume.disabled = abort.disabled = ended = ["done", "aborted"].includes(last?.phase);
          say.textContent = wrong || error?.message || (ended ? "" : "It has stopped: resume it.");
        },
      });
    }

    async function giveUp() {
      if (!last) return;
      const typed = `abort ${last.collection}`;
      const sure = await ctx.confirm(`The new index ${last.new} is deleted. Readers keep ${last.old}, and live writes go on.`,
        { title: "Abort the rebuild", action: "Abort", typed, danger: true });
      if (sure) run("abort", { confirm: typed });
    }

    return { section, draw, busy: () => stop !== null, ended: () => ended };
  }

  async function refresh() {
    if (busy || performance.now() - asked < every) return;
    busy = true;
    asked = performance.now();
    try {
      const { rebuilds: all } = await ctx.get("/console/rebuilds");
      for (const p of all) {
        if (!rows.has(p.sink) || rows.get(p.sink).ended()) {
          rows.get(p.sink)?.section.remove();
          rows.set(p.sink, row(p.sink));
          node.append(rows.get(p.sink).section);
        }
        if (!rows.get(p.sink).busy()) rows.get(p.sink).draw(p);
      }
      // A rebuild that ended on this page stays, with its outcome. The page removes a rebuild that
      // ended elsewhere.
      for (const [sink, r] of rows) {
        if (!all.some((p) => p.sink === sink) && !r.busy() && !r.ended()) {
          r.section.remove();
          rows.delete(sink);
        }
      }
    } catch {
      // the page asks again later, and the status says what is wrong
    } finally {
      busy = false;
    }
  }
  return { node, refresh };
}
