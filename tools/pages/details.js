// The panel about one node: what it computes, from what, and the texts of its kernel.
"use strict";

class Details {
  // `onChoose(number)` goes to another node; null closes the panel.
  constructor(panel, onChoose) {
    this.panel = panel;
    this.onChoose = onChoose;
    this.tab = null;
  }

  hide() {
    this.panel.hidden = true;
  }

  show(box, functionName) {
    const {node} = box;
    this.panel.hidden = false;
    this.panel.scrollTop = 0;
    this.panel.replaceChildren(
      element("button", {className: "close", "aria-label": "close", onclick: () => this.onChoose(null)}, "✕"),
      element("button", {className: "close", onclick: () => this.panel.classList.toggle("wide")}, "wider"),
      element("h2", {}, node.name),
      element("div", {className: "faint"}, this.subtitle(node)),
      ...this.section("Result", node.type && element("div", {className: "mono"}, node.type)),
      ...this.section("Nodes of the model", node.place && element("div", {}, node.place)),
      ...this.section("Operators in it", this.operatorTable(node)),
      ...this.section("Weights", this.weightTable(node)),
      (this.texts = element("div", {})),
      ...this.section("Comes from", this.links(node.inputs)),
      ...this.section("Goes to", this.links(box.users.map(user => user.number))),
    );
    this.showTexts(node.kind === "kernel" ? node.name : functionName);
  }

  subtitle(node) {
    const kinds = {
      input: "an input of the function",
      result: "a result of the function",
      view: "no work: another view of the same memory",
      runtime: "a function of the runtime, or another one of the module",
    };
    if (node.kind === "runtime" && node.name === "if") return "a branch: the calls of both sides lie before it";
    if (node.kind !== "kernel") return kinds[node.kind];
    const calls = this.nodes.filter(other => other.kind === "kernel" && other.name === node.name).length;
    const group = node.operators.length > 1 ? `a kernel of ${node.operators.length} operators` : "a kernel";
    return calls > 1 ? `${group}, called ${calls} times` : group;
  }
  section(title, content) {
    return content ? [element("h3", {}, title), content] : [];
  }

  operatorTable(node) {
    if (!node.operators.length) return null;
    const cell = (name, ...children) => element("td", {className: name}, ...children);
    return element(
      "table",
      {className: "operators"},
      ...node.operators.map(operator =>
        element(
          "tr",
          {},
          cell("", element("b", {}, operator.name), element("div", {className: "faint"}, operator.place)),
          cell("mono", operator.type, operator.attributes && element("div", {className: "faint"}, operator.attributes)),
        ),
      ),
    );
  }
  weightTable(node) {
    if (!node.weights.length) return null;
    return element(
      "table",
      {},
      ...node.weights.map(weight =>
        element(
          "tr",
          {},
          element("td", {className: "mono"}, weight.type),
          element("td", {}, weight.name),
          element("td", {}, format.bytes(weight.bytes)),
        ),
      ),
    );
  }
  links(numbers) {
    if (!numbers.length) return null;
    const shown = numbers
      .slice(0, 12)
      .map(number =>
        element("div", {}, element("button", {onclick: () => this.onChoose(number)}, this.nodes[number].title)),
      );
    if (numbers.length > 12) shown.push(element("div", {className: "faint"}, `and ${numbers.length - 12} more`));
    return element("div", {className: "links"}, ...shown);
  }

  async showTexts(name) {
    const place = this.texts; // of this node: another may be chosen before the texts are read
    const tabs = element("div", {className: "tabs", role: "tablist"});
    const code = element("pre", {className: "code", tabIndex: 0});
    const texts = (await readTexts())[name];
    if (!texts) return;
    const titles = Object.keys(texts);
    const choose = title => {
      this.tab = title;
      code.textContent = texts[title];
      for (const button of tabs.children) button.setAttribute("aria-selected", String(button.textContent === title));
    };
    tabs.append(...titles.map(title => element("button", {role: "tab", onclick: () => choose(title)}, title)));
    place.replaceChildren(tabs, code);
    choose(titles.includes(this.tab) ? this.tab : titles[0]);
  }
}
