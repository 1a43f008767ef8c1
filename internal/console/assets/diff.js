// SPDX-License-Identifier: Apache-2.0

// The difference of two texts, by lines.

const most = 1500; // lines of each text that are compared one by one

export function diff({ el }, before, after) {
  const a = before ? before.split("\n") : [], b = after ? after.split("\n") : [];
  if (before === after) return el("p", { class: "empty" }, "They are the same.");
  const lines = compare(a, b), added = lines.filter((l) => l.sign === "+").length, removed = lines.filter((l) => l.sign === "-").length;
  return el("div", {},
    el("p", { class: "soft" }, `${added} lines added, ${removed} lines removed.`),
    el("pre", { class: "diff", tabindex: "0" }, fold(lines).map((l) => el(l.sign === "+" ? "ins" : l.sign === "-" ? "del" : "span", {},
      l.sign + " " + l.text + "\n"))));
}

// compare lists the lines of both: with " " in both, "-" in the first only, "+" in the second only.
export function compare(a, b) {
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const x = a.slice(head, a.length - tail), y = b.slice(head, b.length - tail), out = a.slice(0, head).map(same);
  if (x.length > most || y.length > most) out.push(...x.map(gone), ...y.map(come));
  else out.push(...middle(x, y));
  return out.concat(a.slice(a.length - tail).map(same));
}

const same = (text) => ({ sign: " ", text }), gone = (text) => ({ sign: "-", text }), come = (text) => ({ sign: "+", text });

// middle follows the longest common subsequence.
function middle(x, y) {
  const long = Array.from({ length: x.length + 1 }, () => new Uint16Array(y.length + 1));
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) {
      long[i][j] = x[i] === y[j] ? long[i + 1][j + 1] + 1 : Math.max(long[i + 1][j], long[i][j + 1]);
    }
  }
  const out = [];
  let i = 0, j = 0;
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) {
      out.push(same(x[i++]));
      j++;
    } else if (j === y.length || (i < x.length && long[i + 1][j] >= long[i][j + 1])) out.push(gone(x[i++]));
    else out.push(come(y[j++]));
  }
  return out;
}

// fold leaves out what is the same, but for three lines around each difference.
function fold(lines) {
  const near = lines.map((_, i) => lines.slice(Math.max(i - 3, 0), i + 4).some((l) => l.sign !== " "));
  const out = [];
  for (let i = 0; i < lines.length; i++) {
    if (near[i]) {
      out.push(lines[i]);
      continue;
    }
    let n = 0;
    while (i < lines.length && !near[i]) n++, i++;
    i--;
    out.push({ sign: " ", text: `… ${n} lines that are the same` });
  }
  return out;
}
