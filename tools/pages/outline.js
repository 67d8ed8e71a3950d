// The list of all nodes, which is the search, too. Only the rows in sight are elements: there may be thousands.
"use strict";

const kRowHeight = 40;

class Outline {
  // `onChoose(number)` is called for a row that is chosen, `onSearch(numbers)` for what was found, null without a text.
  constructor(place, onChoose, onSearch) {
    this.onChoose = onChoose;
    this.onSearch = onSearch;
    this.input = element("input", {
      type: "search",
      placeholder: "Search ( / )",
      title: "words of names, operators, shapes, layouts, ONNX nodes",
      role: "combobox",
      "aria-label": "search the graph",
      "aria-controls": "rows",
      "aria-expanded": "true",
    });
    this.count = element("div", {className: "count", role: "status"});
    this.rows = element("div", {className: "rows", id: "rows", role: "listbox", "aria-label": "nodes"});
    place.append(element("div", {className: "search"}, this.input, this.count), this.rows);
    this.input.addEventListener("input", () => this.search());
    this.input.addEventListener("keydown", event => this.onKey(event));
    this.rows.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.rows);
    document.addEventListener("keydown", event => {
      if (event.key !== "/" || event.target === this.input) return;
      event.preventDefault();
      this.input.focus();
      this.input.select();
    });
  }

  show(nodes) {
    this.nodes = nodes;
    this.texts = nodes.map(node =>
      [
        node.kind,
        node.name,
        node.type,
        node.place,
        ...node.operators.flatMap(op => [op.name, op.type, op.place, op.attributes]),
        ...node.weights.flatMap(weight => [weight.type, weight.name]),
      ]
        .join(" ")
        .toLowerCase(),
    );
    this.current = null;
    this.search();
  }

  // Each word has to occur.
  search() {
    const words = this.input.value
      .toLowerCase()
      .split(/\s+/)
      .filter(word => word);
    this.found = d3.range(this.nodes.length).filter(i => words.every(word => this.texts[i].includes(word)));
    this.count.textContent = words.length
      ? `${this.found.length} of ${format.count(this.nodes.length, "node")}: ↓ ↑ and Enter go there`
      : format.count(this.nodes.length, "node");
    this.rows.scrollTop = 0;
    this.onSearch(words.length ? this.found : null);
    this.draw();
  }

  onKey(event) {
    const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10};
    if (event.key === "Escape") {
      this.input.value = "";
      this.search();
    } else if (event.key === "Enter" || event.key in steps) {
      if (!this.found.length) return;
      const at = this.found.indexOf(this.current),
        step = steps[event.key] || 1;
      const next = at < 0 ? 0 : (at + step + this.found.length) % this.found.length;
      this.onChoose(this.found[next]);
    } else {
      return;
    }
    event.preventDefault();
  }

  // Marks the node and brings its row into sight.
  mark(number) {
    this.current = number;
    const at = this.found.indexOf(number),
      top = at * kRowHeight;
    const {scrollTop, clientHeight} = this.rows;
    if (at >= 0 && (top < scrollTop || top + kRowHeight > scrollTop + clientHeight))
      this.rows.scrollTop = Math.max(0, top - clientHeight / 2);
    this.draw();
  }

  draw() {
    if (!this.found) return;
    const {scrollTop, clientHeight} = this.rows;
    const first = Math.max(0, Math.floor(scrollTop / kRowHeight) - 4);
    const shown = this.found.slice(first, first + Math.ceil(clientHeight / kRowHeight) + 8);
    const end = element("div", {});
    end.style.height = `${this.found.length * kRowHeight}px`;
    this.rows.replaceChildren(end, ...shown.map((number, i) => this.row(number, (first + i) * kRowHeight)));
    this.input.setAttribute("aria-activedescendant", shown.includes(this.current) ? `row${this.current}` : "");
  }
  row(number, top) {
    const node = this.nodes[number];
    const row = element(
      "div",
      {
        className: "row",
        id: `row${number}`,
        role: "option",
        "aria-selected": String(number === this.current),
        onclick: () => this.onChoose(number),
      },
      element("div", {}, node.title),
      element("div", {className: "faint"}, node.place || node.type),
    );
    row.style.top = `${top}px`;
    row.style.borderLeftColor = `var(--${node.kind === "runtime" ? "runtime" : node.kind === "input" || node.kind === "result" ? "border" : node.work})`;
    return row;
  }
}
