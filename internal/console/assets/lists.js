// SPDX-License-Identifier: Apache-2.0

// What lists have in common: sorting, copy buttons, and CSV files.

// sorting sorts the rows of a list by a column. columns maps the heading of each column that can be
// sorted to a function that returns the value of a row. again is called when the order changes.
//
//   heading(text, more)   a heading for ctx.table, with a button that sorts
//   of(rows)              the rows in the chosen order; it does not change the given list
//   order(), sorted()     a text that changes with the order; whether a column is chosen
export function sorting(columns, again) {
  let by = "", down = false;
  const turn = (text) => () => {
    if (by !== text) [by, down] = [text, false];
    else if (!down) down = true;
    else by = ""; // the third click restores the order of the server
    again();
  };
  return {
    heading: (text, more) => ({ text, ...more, sort: by !== text ? "none" : down ? "descending" : "ascending", turn: turn(text) }),
    of(rows) {
      if (!by) return rows;
      const value = (row) => columns[by](row) ?? "", sign = down ? -1 : 1;
      return [...rows].sort((a, b) => sign * compare(value(a), value(b)));
    },
    order: () => `${by} ${down}`,
    sorted: () => by !== "",
  };
}

// compare compares numbers as numbers, and texts with the numbers in them as numbers. Empty values
// are last.
const words = new Intl.Collator("en", { numeric: true });

function compare(a, b) {
  if (a === "" || b === "") return (a === "") - (b === "");
  return typeof a === "number" && typeof b === "number" ? a - b : words.compare(String(a), String(b));
}

// copy returns a button that copies a text. what names the text, such as "the key".
export function copy(ctx, what, text) {
  const { el, svg } = ctx;
  const icon = svg("svg", { width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true" },
    svg("rect", { x: 4.5, y: 4.5, width: 8, height: 8, rx: 1.5 }), svg("path", { d: "M9.5 4.5v-2a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h2" }));
  return el("button", {
    type: "button", class: "copy", title: `Copy ${what}`, "aria-label": `Copy ${what} ${text}`,
    async onclick() {
      try {
        await navigator.clipboard.writeText(text);
        ctx.toast(`Copied ${what}.`);
      } catch {
        ctx.toast(`The browser does not let this page copy. Select ${what} instead.`);
      }
    },
  }, icon);
}

// csv returns the text of a CSV file. A spreadsheet runs a cell that begins with one of = + - @ as a
// formula, so an apostrophe goes before such a character. It also goes there after a separator inside
// a cell, because some spreadsheets split the text at other separators.
export function csv(headings, rows) {
  const cell = (v) => `"${String(v ?? "").replaceAll("\0", "").replace(/(^|[;,|\t\r\n])(\s*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g, "$1$2'").replaceAll('"', '""')}"`;
  return [headings, ...rows].map((row) => row.map(cell).join(",") + "\r\n").join("");
}

// saving returns a button that saves the rows of a list as a CSV file. rows returns the cells of
// each row that the list shows at the moment.
export function saving(ctx, name, headings, rows) {
  return ctx.el("button", {
    type: "button",
    onclick() {
      const at = URL.createObjectURL(new Blob([csv(headings, rows())], { type: "text/csv;charset=utf-8" }));
      const file = `lull-${name}-${new Date(ctx.now()).toISOString().slice(0, 19).replaceAll(":", "")}.csv`;
      ctx.el("a", { href: at, download: file }).click();
      setTimeout(() => URL.revokeObjectURL(at), 10_000); // the browser reads it after the click
    },
  }, "Save as CSV");
}
