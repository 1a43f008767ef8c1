// SPDX-License-Identifier: Apache-2.0

// The shell of the console: navigation, live data, and what every view may use.
//
// A view is a file in views/. The name of the file is the address of the view: views/dead.js is at
// #/dead. The file exports
//
//   export default {
//     id: "dead",              // the name of the file
//     title: "Dead letters",   // in the navigation and above the view
//     needs: "dead",           // hidden unless `can` of GET /console/about has it; optional
//     mount(root, ctx) {       // fills the empty element root; may be async
//       ...
//       return () => { ... };  // optional: stops what mount started
//     },
//   };
//
// mount is called for each address of the view: #/dead?reason=rejected gives ctx.params
// {reason: "rejected"}, and #/documents/content%23a gives {key: "content#a"}. ctx.live and ctx.stream
// end with the view. If mount throws an error, the page shows the error instead of the view.
//
//   ctx.get(path, params)          the JSON of the answer; params are the query, without empty values
//   ctx.post(path, body)           the JSON of the answer; body is sent as JSON, or unchanged if it is a text
//       Both throw an Error with the server's sentence as message, and .status.
//   ctx.stream(path, params, onEvent, {body, end})
//       reads lines of JSON, or server-sent events, and calls onEvent with each. With a body it is
//       a POST. end(error) is called once. It gets an error if the connection broke off. Returns a
//       function that cancels the request; after that, end is not called.
//   ctx.live(fn)                   calls fn with the last tick, if there is one, and with each new tick:
//       {boot, now, status, error, ...} of internal/console/live.go. Returns a function that stops the calls.
//   ctx.now()                      the time of the stack's clock, in milliseconds
//   ctx.go(view, params)           goes to another address; params.key is the part behind the view
//   ctx.link(view, params)         the address of a view, for a link: el("a", {href: ctx.link("dead")}, ...)
//   ctx.runbook(page)              a link to a page of the runbook, such as sink-down
//   ctx.params, ctx.about          the params of this address; the answer of GET /console/about
//   ctx.title(text)                the heading, and the document's title
//   ctx.el(tag, attrs, ...children)   an element. An attribute that is a function is a listener
//       (onclick). true makes an empty attribute; false and null make none. A child is an element, a
//       text, or a list. No code uses innerHTML: a sender's text is shown as text.
//   ctx.svg(tag, attrs, ...children)  an element of SVG
//   ctx.fmt                        ago, duration, number, time, bytes, dollars: see below
//   ctx.confirm(text, {title, action, typed, asked, danger})   a dialog; resolves to true or false.
//       typed is the text that the user must type to confirm. asked is the label of a field: the
//       dialog resolves to its text, which must not be empty. text may be an element.
//   ctx.toast(text)                shows a short message for some seconds
//   ctx.table(headings, rows, {caption, empty, stack})   a table; a wide table scrolls;
//       a heading is a text, {text, number: true}, {text, node}, or a heading of sorting() in lists.js;
//       a row is a list of cells (texts, elements); with stack, each row is a list of its own on a phone
//   ctx.heading(h)                 the heading of a column, for a table that a view makes itself
//   ctx.times(text)                the text with each time of it in the format of the page
//   ctx.renew(node, text, children)  fills node with the result of children(), unless text is the same
//       as at the last call. The focus stays at its place. Use it for parts that a tick may change.
//   ctx.leaving(fn)                calls fn when the user leaves the view
//   ctx.pretty(text)               JSON with lines and indents, or the unchanged text

import { problems } from "./health.js";

const $ = (id) => document.getElementById(id);

// token proves that the user may use this page. `lull dev` writes the token into the page, and `lull
// console` writes the token into the address that it prints.
const token = (() => {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("lull-token", given);
    history.replaceState(null, "", "#/now"); // the address bar must not show the token
  }
  return document.querySelector("meta[name=lull-token]").content || sessionStorage.getItem("lull-token") || "";
})();

// If the user enters an address with another token, the page loads again.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) location.reload();
});

// runbook is a link to a page of the runbook.
const runbook = (page) => el("a", { href: `${about.docs}runbook/${page}.md`, target: "_blank", class: "nowrap", rel: "noreferrer noopener" }, `Runbook: ${page}`);

// Elements.

function fill(node, attrs, children) {
  for (const [name, value] of Object.entries(attrs || {})) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") node.addEventListener(name.replace(/^on/, ""), value);
    else if (name === "value" || name === "checked" || name === "indeterminate") node[name] = value;
    else if (name === "href" && /^\s*(javascript|data):/i.test(value)) continue;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

export const el = (tag, attrs, ...children) => fill(document.createElement(tag), attrs, children);

export const svg = (tag, attrs, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attrs, children);

export function table(headings, rows, { caption, empty, stack } = {}) {
  if (!rows.length) return el("p", { class: "empty" }, empty || "There is nothing to show.");
  const number = headings.map((h) => h.number && "number"), text = headings.map((h) => h.text ?? h);
  return el("div", { class: stack ? "scroll stack" : "scroll", tabindex: "0", role: "region", "aria-label": caption || "Table" },
    el("table", {},
      caption && el("caption", {}, caption),
      el("thead", {}, el("tr", {}, headings.map(heading))),
      el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((c, i) => el("td", { class: number[i], "data-name": text[i] }, c)))))));
}

// heading returns the heading of a column. The heading of a column that can be sorted is a button.
export function heading(h) {
  const text = h.text ?? h;
  if (text === "" || h.node) return el("td", {}, h.node);
  return el("th", { scope: "col", class: h.number && "number", "aria-sort": h.turn && h.sort },
    h.turn ? el("button", { type: "button", class: "sort", onclick: h.turn }, text) : text);
}

// times returns a text of the server with each time of it in the format of the page.
export function times(text) {
  return text.split(/(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/).map((part, i) => (i % 2 ? el("time", { datetime: part, title: part }, fmt.time(part)) : part));
}

// A click needs the same element from the press to the release. So renew waits while a press inside
// its node lasts.
const renewed = new WeakMap(), late = new Map();
let pressed = null;

function release() {
  pressed = null;
  for (const [node, again] of [...late]) if (late.delete(node)) again();
}

addEventListener("pointerdown", (e) => { pressed = e.target; }, true);
addEventListener("click", () => { pressed = null; }, true); // before the listeners of the element
for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => setTimeout(release), true);

export function renew(node, text, children) {
  if (pressed && node.contains(pressed)) {
    late.set(node, () => renew(node, text, children));
    return;
  }
  late.delete(node);
  if (renewed.get(node) === text) return;
  const stops = () => [...node.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")];
  const at = stops().indexOf(document.activeElement);
  renewed.set(node, text);
  node.replaceChildren(...[children()].flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  if (at >= 0) stops()[at]?.focus({ preventScroll: true });
}

// pretty indents JSON token by token, so that a long number keeps all its digits.
export function pretty(text) {
  if (typeof text !== "string") return JSON.stringify(text, null, 2);
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  const tokens = text.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[^\s"[\]{},:]+|[[\]{},:]/g);
  let out = "", depth = 0;
  const line = () => `\n${"  ".repeat(Math.min(depth, 40))}`;
  for (let i = 0; i < tokens.length; i++) {
    const t = tokens[i];
    if ((t === "{" || t === "[") && /^[}\]]$/.test(tokens[i + 1])) out += t + tokens[++i];
    else if (t === "{" || t === "[") depth++, out += t + line();
    else if (t === "}" || t === "]") depth--, out += line() + t;
    else if (t === ",") out += t + line();
    else out += t === ":" ? ": " : t;
  }
  return out;
}

// Formats.

const plain = new Intl.NumberFormat("en");
const two = (n) => String(n).padStart(2, "0");

export const fmt = {
  number: (n) => plain.format(n ?? 0),
  // duration writes milliseconds in at most two units
  duration(ms) {
    if (ms === null || ms === undefined || Number.isNaN(ms)) return "–";
    const s = Math.abs(ms) / 1000, sign = ms < 0 ? "−" : "";
    if (s < 1) return `${sign}${Math.round(s * 1000)} ms`;
    if (s < 60) return `${sign}${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
    if (s < 3600) return `${sign}${Math.floor(s / 60)} min${Math.floor(s % 60) ? ` ${two(Math.floor(s % 60))} s` : ""}`;
    if (s < 86400) return `${sign}${Math.floor(s / 3600)} h${Math.floor(s / 60) % 60 ? ` ${two(Math.floor(s / 60) % 60)} min` : ""}`;
    return `${sign}${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
  },
  // ago says how far a time is from now, by the stack's clock: "12 s ago", "in 3 s"
  ago(t) {
    if (!t) return "–";
    const past = now() - new Date(t).getTime();
    if (Math.abs(past) < 1000) return "now";
    return past > 0 ? `${fmt.duration(past)} ago` : `in ${fmt.duration(-past)}`;
  },
  // time writes a time of day, and the date if it is another day
  time(t) {
    const d = new Date(t);
    if (!t || Number.isNaN(d.getTime())) return "–";
    const day = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} `;
    const clock = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${String(d.getMilliseconds()).padStart(3, "0")}`;
    return (d.toDateString() === new Date(now()).toDateString() ? "" : day) + clock;
  },
  // clock writes a time without milliseconds
  clock: (t) => fmt.time(t).replace(/\.\d+$/, ""),
  bytes(n) {
    if (n < 1024) return `${n} bytes`;
    return n < 1 << 20 ? `${(n / 1024).toFixed(1)} KB` : `${(n / (1 << 20)).toFixed(1)} MB`;
  },
  dollars(n) {
    if (!n) return "$0";
    return n < 0.01 ? `$${n.toFixed(6)}` : n < 100 ? `$${n.toFixed(2)}` : `$${plain.format(Math.round(n))}`;
  },
};

// Requests.

function address(path, params) {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries(params || {})) {
    if (v !== "" && v !== null && v !== undefined && v !== false) query.append(k, v);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

// waits notes that a request waits for its answer. If one waits for more than a second, the page says
// so. The result ends the wait.
const waiting = new Set();

function waits() {
  const since = performance.now();
  waiting.add(since);
  const timer = setInterval(told, 1000);
  return () => {
    clearInterval(timer);
    waiting.delete(since);
    told();
  };
}

function told() {
  const long = performance.now() - Math.min(...waiting, Infinity), text = long > 990 ? "Waiting for the server…" : "";
  $("busy").hidden = !text;
  const at = document.querySelector("#busy span");
  if (at.textContent !== text) at.textContent = text;
  $("seconds").textContent = text && ` ${fmt.duration(long)}`;
}

async function ask(path, { params, body, signal } = {}) {
  const options = { headers: { "X-Lull-Token": token }, signal };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = typeof body === "string" ? body : JSON.stringify(body);
  }
  let answer;
  const over = path === "/console/events" ? () => {} : waits();
  try {
    answer = await fetch(address(path, params), options);
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw Object.assign(new Error("The server does not answer."), { status: 0 });
  } finally {
    over();
  }
  if (answer.ok) return answer;
  const text = await answer.text();
  let message = text;
  try {
    message = JSON.parse(text).error;
  } catch { /* it is not JSON: shown as it is */ }
  throw Object.assign(new Error(message || `The server answers ${answer.status}.`), { status: answer.status });
}

const get = async (path, params) => (await ask(path, { params })).json();
const post = async (path, body) => (await ask(path, { body })).json();

// Lines of JSON, and server-sent events of one line of data.
async function lines(answer, onEvent, onSign) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    onSign?.();
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const line of parts) {
      const text = line.startsWith("data:") ? line.slice(5) : line;
      if (text.trim() && !text.startsWith(":")) onEvent(JSON.parse(text));
    }
  }
}

function stream(path, params, onEvent, { body, end } = {}) {
  const abort = new AbortController();
  (async () => {
    let failed = null;
    try {
      await lines(await ask(path, { params, body, signal: abort.signal }), onEvent);
    } catch (e) {
      failed = e;
    }
    if (!abort.signal.aborted) end?.(failed);
  })();
  return () => abort.abort();
}

// Live data. One stream feeds all views. The page closes the stream while the tab is hidden, and
// opens the stream again when the tab is shown.

const watchers = new Set();
let last = null, offset = 0, about = null, connection = null, attempt = 0, again = 0;

export const now = () => offset + Date.now() * (about?.speed || 1);

function live(fn) {
  watchers.add(fn);
  if (last) fn(last);
  return () => watchers.delete(fn);
}

const silence = 40_000; // in milliseconds; the server sends a sign of life every 15 s

function connect() {
  clearTimeout(again);
  if (connection || document.hidden) return;
  const abort = connection = new AbortController();
  let watch = 0;
  const sign = () => {
    clearTimeout(watch);
    watch = setTimeout(() => abort.abort(), silence);
  };
  (async () => {
    sign();
    try {
      const answer = await ask("/console/events", { signal: abort.signal });
      attempt = 0;
      banner(null);
      await lines(answer, take, sign);
      lost();
    } catch (e) {
      if (connection === abort) e.status === 403 ? outdated() : lost();
    } finally {
      clearTimeout(watch);
      if (connection === abort) connection = null;
    }
  })();
}

function take(tick) {
  if (about && tick.boot !== about.boot) {
    outdated();
    return;
  }
  offset = new Date(tick.now).getTime() - Date.now() * (about?.speed || 1);
  last = tick;
  health();
  for (const fn of [...watchers]) fn(tick);
}

// health shows in the header of every view whether something is wrong.
function health() {
  const all = problems(last), bad = all.filter((p) => p.level === "bad"), at = $("health");
  const text = bad.length ? (bad.length === 1 ? bad[0].title : `${bad.length} problems`) : all.length ? (all.length === 1 ? all[0].title : `${all.length} warnings`) : "Healthy";
  if (at.textContent !== text) at.textContent = text;
  at.className = bad.length ? "bad" : all.length ? "warn" : "good";
  at.hidden = false;
  const mark = bad.length ? "⚠ " : "";
  if (!document.title.startsWith(mark) || (!mark && document.title.startsWith("⚠"))) document.title = mark + document.title.replace(/^⚠ /, "");
}

function lost() {
  if (document.hidden) return;
  banner("Connection lost. Trying again…");
  again = setTimeout(connect, Math.min(1000 * 2 ** attempt++, 10_000));
}

// outdated says that the server of this page was restarted.
function outdated() {
  if (about?.mode === "dev") {
    banner("lull was restarted: this page belongs to the run before it.",
      el("button", { type: "button", onclick: () => location.reload() }, "Reload the page"));
    again = setTimeout(connect, 10_000);
  } else {
    banner(token ? "The token is of an earlier run. Open the address that `lull console` printed when it started."
      : "Open the address that `lull console` printed: it ends with the token.");
  }
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    attempt = 0;
    connect();
    return;
  }
  connection?.abort();
  connection = null;
});

function banner(text, ...more) {
  const at = $("banner");
  if (at.dataset.text === (text || "")) return;
  at.dataset.text = text || "";
  at.hidden = !text;
  at.replaceChildren(...(text ? [el("span", {}, text), ...more] : []));
}

// Dialogs and messages.

function confirm(text, { title, action, typed, asked, danger } = {}) {
  return new Promise((resolve) => {
    const field = typed && el("input", { id: "typed", autocomplete: "off", spellcheck: "false" });
    const yes = el("button", { type: "submit", class: danger ? "danger" : "primary", disabled: Boolean(typed || asked) }, action || "Confirm");
    const answer = asked && el("input", { id: "why", maxlength: "200", autocomplete: "off", oninput: () => { yes.disabled = !answer.value.trim(); } });
    const dialog = el("dialog", { "aria-labelledby": "dialog-title" },
      el("form", {
        onsubmit(e) {
          e.preventDefault(); // the content security policy forbids forms; the next line closes the dialog
          dialog.close("yes");
        },
      },
      el("h2", { id: "dialog-title" }, title || action || "Please confirm"),
      typeof text === "string" ? el("p", {}, text) : text,
      field && el("label", { for: "typed" }, "Type ", el("code", {}, typed), " to confirm:"), field,
      asked && el("label", { for: "why" }, asked), answer,
      el("div", { class: "actions" },
        el("button", { type: "button", onclick: () => dialog.close("no") }, "Cancel"), yes)));
    field?.addEventListener("input", () => { yes.disabled = field.value !== typed; });
    const leave = () => dialog.close("no");
    window.addEventListener("hashchange", leave); // the question belongs to the view that asked it
    dialog.addEventListener("close", () => {
      window.removeEventListener("hashchange", leave);
      dialog.remove();
      resolve(dialog.returnValue === "yes" && (answer ? answer.value.trim() : true));
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

function toast(text) {
  const note = el("div", { class: "toast" }, text);
  $("toasts").append(note);
  setTimeout(() => note.remove(), 6000);
}

// Routes.

const views = new Map();
let leave = () => {}, shown = 0;

export function link(view, params = {}) {
  const { key, ...query } = params;
  return address(`#/${view}${key === undefined ? "" : "/" + encodeURIComponent(key)}`, query);
}

function route() {
  const [place, query] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [id, ...rest] = place.split("/");
  const params = Object.fromEntries(new URLSearchParams(query || ""));
  if (rest.length) {
    try {
      params.key = decodeURIComponent(rest.join("/"));
    } catch {
      params.key = rest.join("/");
    }
  }
  return { id, params };
}

function title(text) {
  $("title").textContent = text;
  document.title = `${text} · ${about?.stack || "lull"}`;
}

async function show() {
  if (location.hash === "#main") return; // the skip link
  const { id, params } = route(), view = views.get(id) || views.values().next().value, mine = ++shown;
  leave();
  for (const a of $("views").querySelectorAll("a")) {
    a.dataset.view === view.id ? a.setAttribute("aria-current", "page") : a.removeAttribute("aria-current");
  }
  title(view.title);
  const root = el("div", { id: "view", class: `view-${view.id}` }), ends = [];
  $("view").replaceWith(root);
  leave = () => ends.forEach((end) => end());
  const keep = (end) => (ends.push(end), end);
  const ctx = {
    get, post, link, now, runbook, el, svg, fmt, confirm, toast, table, heading, times, pretty, renew, params, about,
    go: (to, p) => { location.hash = link(to, p); },
    live: (fn) => keep(live(fn)),
    stream: (...all) => keep(stream(...all)),
    title: (text) => { if (mine === shown) title(text); },
    leaving: (end) => keep(end),
  };
  try {
    const end = await view.mount(root, ctx);
    if (end) mine === shown ? ends.push(end) : end();
  } catch (e) {
    root.replaceChildren(problem(e));
  }
}

function problem(e) {
  return el("div", { class: "problem", role: "alert" }, el("p", {}, e.message),
    el("button", { type: "button", onclick: show }, "Try again"));
}

async function start() {
  try {
    about = await get("/console/about");
  } catch (e) {
    if (e.status === 403) {
      outdated();
      $("view").replaceChildren();
    } else {
      banner("The server does not answer. Trying again…");
      setTimeout(start, 2000);
    }
    return;
  }
  offset = new Date(about.now).getTime() - Date.now() * about.speed;
  $("stack").replaceChildren(el("span", { class: `mode ${about.mode}` }, about.mode === "dev" ? "dev" : "AWS"), about.stack);
  for (const name of about.views) {
    try {
      const view = (await import(`./views/${name}.js`)).default;
      if (!view.needs || about.can[view.needs]) views.set(view.id, view);
    } catch (e) {
      toast(`The view ${name} cannot be loaded: ${e.message}`);
    }
  }
  $("views").replaceChildren(...[...views.values()].map((v) =>
    el("li", {}, el("a", { href: link(v.id), "data-view": v.id }, v.title))));
  banner(null);
  connect();
  await show();
  addEventListener("hashchange", async () => {
    const at = document.activeElement;
    await show();
    // The focus stays in a field that the user has entered while the view was loading.
    if (location.hash !== "#main" && [at, document.body].includes(document.activeElement)) $("title").focus();
  });
}

start();
