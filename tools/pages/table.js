// A table that sorts by the column whose head is clicked, and shows the rows in which a text occurs; and the tip that
// follows the mouse over charts.
"use strict";

// Thousands of rows would make a page slow.
const kMostRows = 300;

// A column is {title, value(row), text(row), words}: `value` sorts, `text` is shown, `words` columns are wide.
class SortedTable {
  constructor(columns, rows, {by, onChoose = () => {}}) {
    this.columns = columns;
    this.rows = rows;
    this.by = by;
    this.falls = true;
    this.onChoose = onChoose;
    this.filter = element("input", {
      type: "search",
      placeholder: "only rows with…",
      "aria-label": "filter the table",
      oninput: () => this.draw(),
    });
    this.count = element("span", {className: "faint", role: "status"});
    this.head = element("tr", {});
    this.body = element("tbody", {});
    this.node = element(
      "div",
      {},
      element("div", {className: "tools"}, this.filter, this.count),
      element("div", {className: "table"}, element("table", {}, element("thead", {}, this.head), this.body)),
    );
    this.draw();
  }
  draw() {
    const text = this.filter.value.toLowerCase();
    const shown = this.rows.filter(row =>
      this.columns.some(column => String(column.text(row)).toLowerCase().includes(text)),
    );
    const column = this.columns[this.by];
    shown.sort((a, b) => (this.falls ? -1 : 1) * d3.ascending(column.value(a), column.value(b)));
    const first = shown.slice(0, kMostRows);
    this.count.textContent =
      `${shown.length} of ${format.count(this.rows.length, "row")}` +
      (first.length < shown.length ? `, of which the first ${first.length} are shown` : "");
    this.head.replaceChildren(
      ...this.columns.map((column, i) =>
        element(
          "th",
          {
            className: column.words ? "words" : "",
            "aria-sort": i === this.by ? (this.falls ? "descending" : "ascending") : "none",
          },
          element(
            "button",
            {onclick: () => this.sort(i)},
            `${column.title}${i === this.by ? (this.falls ? " ↓" : " ↑") : ""}`,
          ),
        ),
      ),
    );
    this.body.replaceChildren(
      ...first.map(row =>
        element(
          "tr",
          {className: row === this.chosen ? "chosen" : "", onclick: () => this.onChoose(row)},
          ...this.columns.map(column =>
            element(
              "td",
              {className: `${column.words ? "words" : ""} ${column.style ? column.style(row) : ""}`},
              column.text(row),
            ),
          ),
        ),
      ),
    );
  }
  sort(column) {
    this.falls = this.by === column ? !this.falls : !this.columns[column].words;
    this.by = column;
    this.draw();
  }
  choose(row) {
    this.chosen = row;
    this.draw();
  }
}

const tip = document.body.appendChild(element("div", {className: "tip", hidden: true}));
// Shows the lines beside the mouse; hides the tip without lines.
function showTip(event, lines) {
  tip.hidden = !lines;
  if (!lines) return;
  tip.replaceChildren(...lines.filter(line => line).map(line => element("div", {}, line)));
  const right = event.clientX + 16 + tip.offsetWidth > innerWidth;
  tip.style.left = `${right ? Math.max(4, event.clientX - tip.offsetWidth - 12) : event.clientX + 16}px`;
  tip.style.top = `${Math.min(event.clientY + 12, innerHeight - tip.offsetHeight - 4)}px`;
}
// Gives the marks of a selection tips; `lines(datum)` are their texts.
function withTips(marks, lines) {
  return marks.on("mousemove", datum => showTip(d3.event, lines(datum))).on("mouseleave", () => showTip(null, null));
}

// Cuts a text of SVG to the width in pixels, for letters of usual width.
function cutText(text, width) {
  return shortened(text, Math.floor(width / 6.4));
}
