// The page of `relaxc view`: outline, graph, details. Its state can be linked to: #kernel=NAME, #node=NUMBER,
// #search=TEXT, #tab=loops, #function=NAME.
"use strict";

(() => {
  const started = performance.now(),
    settings = addressSettings();
  const header = element(
    "header",
    {},
    element("h1", {}, data.file),
    element("span", {className: "faint"}, `${data.kind}, for ${data.target}`),
  );
  const outlinePlace = element("nav", {className: "outline"}),
    stage = element("div", {className: "stage"});
  const panel = element("aside", {className: "details", hidden: true, "aria-label": "details"});
  const page = document.getElementById("page");
  page.className = "view";
  page.append(header, outlinePlace, stage, panel);

  // Returns "NCHW → NCHW16c", the layouts of an operator's image and result, or one of them where they are equal.
  function layoutText(attributes) {
    const layout = key => (new RegExp(`\\b${key}=([A-Za-z0-9]+)`).exec(attributes) || ["", ""])[1];
    const from = layout("data_layout") || layout("layout") || layout("src_layout"),
      to = layout("out_layout") || layout("dst_layout");
    return from && to && from !== to ? `${from} → ${to}` : from || to;
  }
  // Adds what boxes, rows and the search show of a node.
  function prepare(node) {
    const names = node.operators.map(operator => operator.name).join(" ");
    node.work = node.kind === "view" ? "movement" : workOf(names || node.name.replace(/^fused_/, ""));
    node.title =
      node.kind === "input" ? `input ${node.name}` : node.kind === "result" ? `result ${node.name}` : node.name;
    for (const operator of node.operators) operator.label = [operator.name, layoutText(operator.attributes)].join("  ");
    const bytes = d3.sum(node.weights, weight => weight.bytes);
    node.weightsText = node.weights.length ? `${format.bytes(bytes)} of weights` : "";
  }
  data.functions.forEach(({nodes}) => nodes.forEach(prepare));

  // The address links to what is chosen.
  function noteChoice(number) {
    const link = new URLSearchParams(data.functions.length > 1 ? {function: current.name} : {});
    if (number !== null) link.set("node", number);
    history.replaceState(null, "", `#${link}`);
  }
  let current = data.functions[0] || {name: "", nodes: []},
    graph = null;
  const canvas = new GraphCanvas(stage, choose);
  const details = new Details(panel, choose);
  const outline = new Outline(outlinePlace, choose, found => {
    canvas.found = new Set(found || []);
    if (!canvas.graph) return;
    canvas.drawStrip();
    canvas.draw();
  });
  const status = element("div", {className: "status"});
  const zoomBy = factor => d3.select(canvas.canvas).call(canvas.zoom.scaleBy, factor);
  stage.append(
    element(
      "div",
      {className: "buttons"},
      element("button", {title: "zoom in (+)", "aria-label": "zoom in", onclick: () => zoomBy(1.4)}, "+"),
      element("button", {title: "zoom out (-)", "aria-label": "zoom out", onclick: () => zoomBy(1 / 1.4)}, "−"),
      element("button", {title: "show all (0)", onclick: () => canvas.all()}, "all"),
      element("button", {title: "to the top (Home)", onclick: () => canvas.home()}, "top"),
    ),
  );

  function choose(number) {
    canvas.selected = number;
    noteChoice(number);
    if (number === null) {
      details.hide();
      canvas.draw();
      return;
    }
    details.show(graph.boxes[number], current.name);
    outline.mark(number);
    canvas.resize(); // the panel takes a part of the window
    canvas.reveal(number);
  }

  function show(shown) {
    current = shown;
    const begin = performance.now();
    graph = layoutGraph(shown.nodes);
    details.nodes = shown.nodes;
    details.hide();
    canvas.show(graph);
    outline.show(shown.nodes);
    const operators = d3.sum(shown.nodes, node => node.operators.length),
      count = kind => shown.nodes.filter(node => node.kind === kind).length;
    status.textContent = [
      operators ? format.count(operators, "operator") : null,
      format.count(count("kernel"), "kernel call"),
      `laid out in ${Math.round(performance.now() - begin)} ms`,
    ]
      .filter(text => text)
      .join(", ");
  }

  if (data.functions.length > 1) {
    const select = element(
      "select",
      {"aria-label": "function", onchange: () => show(data.functions[select.selectedIndex])},
      ...data.functions.map(shown => element("option", {}, shown.name)),
    );
    const wanted = data.functions.findIndex(shown => shown.name === settings.get("function"));
    if (wanted >= 0) select.selectedIndex = wanted;
    current = data.functions[select.selectedIndex];
    header.append(element("label", {}, "function ", select));
  }
  header.append(
    legendOf({
      product: "products, convolutions",
      elementwise: "other arithmetic",
      movement: "moves data",
      runtime: "runtime or other function",
      border: "input, result",
    }),
    status,
  );
  for (const note of data.notes)
    header.append(element("div", {className: "faint", style: "flex-basis: 100%"}, `Note: ${note}.`));

  // Shows what the address says.
  function follow(settings) {
    if (settings.get("search")) {
      outline.input.value = settings.get("search");
      outline.search();
    }
    details.tab = settings.get("tab");
    const wanted = settings.has("node")
      ? Number(settings.get("node"))
      : current.nodes.findIndex(node => node.name === settings.get("kernel"));
    if (wanted >= 0 && wanted < current.nodes.length) choose(wanted);
    else if (settings.has("node") || settings.has("kernel"))
      status.textContent = `no kernel '${settings.get("kernel") || settings.get("node")}' is here`;
    if (settings.get("zoom") === "all") canvas.all();
  }
  show(current);
  follow(settings);
  addEventListener("hashchange", () => follow(addressSettings()));
  requestAnimationFrame(() => {
    document.body.dataset.ready = Math.round(performance.now() - started);
  });
})();
