// SPDX-License-Identifier: Apache-2.0

// Jobs: the work that runs long, how far it is, and how to stop or resume it.

const colors = { running: "", done: "good", stopped: "warn", interrupted: "warn", failed: "bad" };

export default {
  id: "jobs",
  title: "Jobs",
  mount(root, ctx) {
    return ctx.params.key === undefined ? list(root, ctx) : one(root, ctx, ctx.params.key);
  },
};

// follow asks for path again and again, and calls draw with each answer.
async function follow(ctx, root, path, params, draw) {
  const problem = ctx.el("div", {}), every = ctx.about.mode === "dev" ? 1000 : 7000;
  root.prepend(problem);
  let busy = false, gone = false;
  async function refresh() {
    if (busy || gone || document.hidden) return;
    busy = true;
    try {
      const answer = await ctx.get(path, params);
      if (gone) return;
      problem.replaceChildren();
      draw(answer);
    } catch (e) {
      problem.replaceChildren(ctx.el("p", { class: "problem" }, e.message));
    } finally {
      busy = false;
    }
  }
  await refresh();
  const timer = setInterval(refresh, every);
  return () => {
    gone = true;
    clearInterval(timer);
  };
}

// pace measures how fast jobs run while the page is open. Before it has measured, the pace is that of
// the whole run.
function pace(ctx) {
  const first = new Map();
  return (j) => {
    if (j.phase !== "running") {
      first.delete(j.id);
      return {};
    }
    if (!first.has(j.id)) first.set(j.id, { at: ctx.now(), did: j.did });
    const from = first.get(j.id), seen = (ctx.now() - from.at) / 1000;
    const rate = seen > 3 && j.did > from.did ? (j.did - from.did) / seen : j.did / Math.max((new Date(j.saved_at) - new Date(j.begun_at)) / 1000, 1);
    return { rate, left: rate > 0 && j.total > j.did ? (j.total - j.did) / rate * 1000 : null };
  };
}

// drift says what a verification found, and when.
const drift = (ctx, j) => {
  const d = j.drift, n = ctx.fmt.number;
  return d.found === 0 ? `No drift at ${ctx.fmt.clock(j.saved_at)}` : `Drift found ${n(d.found)}, repaired ${n(d.repaired)}, at ${ctx.fmt.clock(j.saved_at)}`;
};

const counts = (ctx, j) => Object.entries(j.counts || {}).map(([name, n]) => `${ctx.fmt.number(n)} ${name.replaceAll("_", " ")}`).join(", ");

// progress says how far a job is. A job whose size is not known has no bar.
function progress(ctx, j, { rate, left }) {
  const { el, fmt } = ctx, of = j.total ? ` of ${fmt.number(j.total)}` : "";
  return [
    j.total > 0 && el("progress", { max: String(j.total), value: String(Math.min(j.did, j.total)), "aria-label": `Progress of ${j.id}` }),
    el("span", { class: "nowrap" }, `${fmt.number(j.did)}${of} done`),
    rate > 0 && el("span", { class: "soft" }, ` ${fmt.number(Math.round(rate * 10) / 10)}/s${left ? `, ${fmt.duration(left)} left` : ""}`),
  ];
}

const state = (ctx, j) => ctx.el("span", { class: `tag ${colors[j.phase] ?? "bad"}` }, j.phase);

function list(root, ctx) {
  const { el, fmt } = ctx, at = el("div", {}), measure = pace(ctx);
  root.append(el("p", {}, "A job is work that takes long, such as a backfill or a redrive. The stack's table stores how far it is, so a job that stopped continues where it was."), at);
  return follow(ctx, root, "/console/jobs", {}, ({ jobs }) => {
    const paces = jobs.map(measure);
    ctx.renew(at, JSON.stringify([jobs, paces, jobs.map((j) => fmt.ago(j.begun_at))]), () => ctx.table(
      ["Job", "State", "Progress", "Outcomes", "Begun", "By"],
      jobs.map((j, i) => [
        el("a", { class: "whole", href: ctx.link("jobs", { key: j.id }) }, j.id), state(ctx, j), el("span", { class: "progress" }, progress(ctx, j, paces[i])),
        j.error ? el("bdi", { class: "bad" }, j.error) : j.drift ? drift(ctx, j) : counts(ctx, j) || "–", el("time", { class: "nowrap", datetime: j.begun_at, title: j.begun_at }, fmt.ago(j.begun_at)), el("bdi", {}, j.by),
      ]),
      { caption: "The newest first", stack: true, empty: "No job runs, and none has run. A redrive of dead letters is one; lull backfill, lull replay and lull index check begin others." }));
  });
}

async function one(root, ctx, id) {
  const { el, fmt } = ctx, at = el("div", {}), lines = el("div", {}), say = el("p", { role: "status" }), measure = pace(ctx);
  let now = null, cancel = null;
  ctx.title(`Job ${id}`);
  const stop = el("button", { type: "button", class: "danger", onclick: halt, hidden: true }, "Stop…");
  const resume = el("button", { type: "button", class: "primary", onclick: goOn, hidden: true }, "Resume…");
  const how = el("p", { class: "soft" });
  root.append(el("p", {}, el("a", { href: ctx.link("jobs") }, "All jobs")), at, el("div", { class: "actions" }, stop, resume), how, say, lines);

  function draw(j) {
    now = j;
    const p = measure(j), fact = (name, ...value) => [el("dt", {}, name), el("dd", {}, ...value)];
    ctx.renew(at, JSON.stringify([j, p, fmt.ago(j.saved_at)]), () => [
      el("p", { class: "progress" }, state(ctx, j), " ", progress(ctx, j, p)),
      j.error && el("p", { class: "problem" }, el("bdi", {}, j.error)),
      el("dl", { class: "facts" }, fact("Work", j.verb), j.collection && fact("Collection", el("bdi", {}, j.collection)), j.drift && fact("Drift", drift(ctx, j)), fact("Outcomes", counts(ctx, j) || "none yet"),
        fact("Begun", fmt.clock(j.begun_at), ` (${fmt.ago(j.begun_at)}) by `, el("bdi", {}, j.by)), fact("Saved", fmt.clock(j.saved_at), ` (${fmt.ago(j.saved_at)})`),
        j.args && fact("Arguments", el("bdi", { class: "mono" }, j.args))),
    ]);
    ctx.renew(lines, JSON.stringify(j.lines), () => j.lines?.length && [el("h2", {}, "What it said"),
      el("details", {}, el("summary", {}, `The first ${fmt.number(j.lines.length)} lines`), el("pre", { tabindex: "0" }, j.lines.join("\n")))]);
    stop.hidden = j.phase !== "running";
    resume.hidden = !j.resume || j.phase === "running" || cancel !== null;
    how.textContent = j.phase === "running" || j.phase === "done" || j.resume ? "" : j.verb === "rebuild" ? "Resume or abort a rebuild on Now." : "The command that began the job continues it.";
  }

  const stays = () => `${fmt.number(now.did)} ${now.did === 1 ? "is" : "are"} done and stay${now.did === 1 ? "s" : ""} done. Nothing else changes. ${now.resume ? "You can resume the job here." : "The command that began the job continues it."}`;

  async function halt() {
    if (!await ctx.confirm(`The job stops when it stores its next step, within about a minute. ${stays()}`, { title: `Stop ${id}`, action: "Stop the job", danger: true })) return;
    try {
      await ctx.post("/console/job/stop", { id });
      say.textContent = "The job stops at its next step.";
    } catch (e) {
      say.textContent = e.message;
    }
  }

  async function goOn() {
    const drops = id === "drop", typed = drops ? "resume drop" : undefined;
    if (!await ctx.confirm(`The job continues after ${fmt.number(now.did)}. It runs while this page is open: if you leave the page, the job stops and can be resumed.`,
      { title: `Resume ${id}`, action: "Resume the job", typed, danger: drops })) return;
    resume.hidden = true;
    say.textContent = "The job runs while this page is open.";
    let wrong = "";
    cancel = ctx.stream("/console/job/resume", {}, (line) => { if (line.end) wrong = line.error || ""; }, {
      body: { id, confirm: typed },
      end(error) {
        cancel = null;
        say.textContent = wrong || error?.message || "Done.";
      },
    });
  }

  return follow(ctx, root, "/console/job", { id }, draw);
}
