// Draws a laid-out graph on a canvas: only what the window shows, and less of it the smaller it is.
"use strict";

class GraphCanvas {
  // `onSelect(number)` is called for a click on a box, and with null for one beside all boxes.
  constructor(stage, onSelect) {
    this.stage = stage;
    this.onSelect = onSelect;
    this.canvas = stage.appendChild(element("canvas", {className: "graph", tabIndex: 0, "aria-label":
      "graph: drag or arrow keys move it, the wheel or + and - zoom, 0 shows all"}));
    this.strip = stage.appendChild(element("canvas", {className: "strip", title: "the whole graph"}));
    this.window = stage.appendChild(element("div", {className: "window"}));
    this.context = this.canvas.getContext("2d");
    this.transform = d3.zoomIdentity;
    this.selected = null;
    this.found = new Set();  // what the search found
    this.zoom = d3.zoom().scaleExtent([0.001, 3]).on("zoom", () => { this.transform = d3.event.transform; this.draw(); });
    d3.select(this.canvas).call(this.zoom).on("dblclick.zoom", null);
    this.canvas.addEventListener("click", event => this.onSelect(this.boxAt(event.offsetX, event.offsetY)));
    this.canvas.addEventListener("keydown", event => this.onKey(event));
    d3.select(this.strip).call(d3.drag().container(this.strip).subject(() => ({})).on("start drag", () => this.jump(d3.event.y)));
    new ResizeObserver(() => this.resize()).observe(stage);
    onSchemeChange(() => this.resize());
  }

  show(graph) {
    this.graph = graph;
    this.selected = null;
    this.resize();
    this.home();
  }

  // ---- The window

  resize() {
    const {clientWidth: width, clientHeight: height} = this.stage, ratio = devicePixelRatio || 1;
    for (const [canvas, w] of [[this.canvas, width - 26], [this.strip, 26]]) {
      canvas.width = w * ratio;
      canvas.height = height * ratio;
      canvas.style.width = `${w}px`;
      canvas.style.height = `${height}px`;
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.width = width - 26;
    this.height = height;
    this.colors = {};
    for (const name of ["paper", "panel", "line", "ink", "faint", "accent", "accent-soft", "border", "product", "elementwise", "movement", "runtime"])
      this.colors[name] = color(name);
    if (!this.graph) return;
    this.drawStrip();
    this.draw();
  }
  moveTo(transform) { d3.select(this.canvas).call(this.zoom.transform, transform); }
  // Shows the graph from its top, at a size that can be read.
  home() {
    const {left, right, height} = this.graph;
    const all = Math.min(this.width / (right - left + 60), this.height / (height + 60));
    const scale = Math.min(1, Math.max(all, 0.75));
    const x = right - left > this.width / scale ? this.graph.boxes[0] ? this.graph.boxes[0].x : 0 : (left + right) / 2;
    this.moveTo(d3.zoomIdentity.translate(this.width / 2 - x * scale, 24).scale(scale));
  }
  all() {
    const {left, right, height} = this.graph;
    const scale = Math.min(1, this.width / (right - left + 60), this.height / (height + 60));
    this.moveTo(d3.zoomIdentity.translate(this.width / 2 - (left + right) / 2 * scale, (this.height - height * scale) / 2).scale(scale));
  }
  center(number) {
    const box = this.graph.boxes[number], scale = Math.max(this.transform.k, 0.75);
    this.moveTo(d3.zoomIdentity.translate(this.width / 2 - box.x * scale, this.height / 2 - (box.top + box.height / 2) * scale).scale(scale));
  }
  jump(y) {
    const at = y / this.height * this.graph.height, k = this.transform.k;
    this.moveTo(d3.zoomIdentity.translate(this.transform.x, this.height / 2 - at * k).scale(k));
  }
  onKey(event) {
    const moves = {ArrowUp: [0, 80], ArrowDown: [0, -80], ArrowLeft: [80, 0], ArrowRight: [-80, 0],
                   PageUp: [0, this.height * .8], PageDown: [0, -this.height * .8]};
    const canvas = d3.select(this.canvas), move = moves[event.key];
    if (move) canvas.call(this.zoom.translateBy, move[0] / this.transform.k, move[1] / this.transform.k);
    else if (event.key === "+" || event.key === "=") canvas.call(this.zoom.scaleBy, 1.3);
    else if (event.key === "-") canvas.call(this.zoom.scaleBy, 1 / 1.3);
    else if (event.key === "0") this.all();
    else if (event.key === "Home") this.home();
    else return;
    event.preventDefault();
  }

  // Returns the layers from `top` to `bottom`, in the graph's coordinates.
  visibleLayers(top, bottom) {
    const {layers} = this.graph;
    const first = d3.bisector(layer => layer.bottom).left(layers, top);
    const last = d3.bisector(layer => layer.top).right(layers, bottom);
    return [Math.max(0, first - 1), Math.min(layers.length, last + 1)];
  }
  boxAt(px, py) {
    const [x, y] = this.transform.invert([px, py]), [first, last] = this.visibleLayers(y, y);
    for (let l = first; l < last; ++l) {
      for (const box of this.graph.layers[l].boxes) {
        if (Math.abs(x - box.x) <= kBox.width / 2 && y >= box.top && y <= box.top + box.height) return box.number;
      }
    }
    return null;
  }

  // ---- Drawing

  draw() {
    if (!this.graph || this.isPending) return;
    this.isPending = true;
    requestAnimationFrame(() => { this.isPending = false; this.drawNow(); });
  }
  drawNow() {
    const context = this.context, {x, y, k} = this.transform;
    context.clearRect(0, 0, this.width, this.height);
    context.save();
    context.translate(x, y);
    context.scale(k, k);
    const top = -y / k, bottom = (this.height - y) / k, [first, last] = this.visibleLayers(top, bottom);
    this.left = -x / k;
    this.rightEdge = (this.width - x) / k;
    this.drawn = 0;
    this.drawLanes(top, bottom);
    for (let l = first; l < last; ++l) this.graph.layers[l].boxes.forEach(box => this.drawEdges(box));
    for (let l = first; l < last; ++l) this.graph.layers[l].boxes.forEach(box => this.drawBox(box));
    context.restore();
    const scale = this.height / this.graph.height;
    this.window.style.top = `${Math.max(0, top * scale)}px`;
    this.window.style.height = `${Math.max(4, (Math.min(bottom, this.graph.height) - Math.max(top, 0)) * scale)}px`;
  }

  edgeStyle(from, to) {
    const isChosen = this.selected !== null && (from === this.selected || to === this.selected);
    this.context.strokeStyle = isChosen ? this.colors.accent : this.colors.border;
    this.context.lineWidth = (isChosen ? 2.5 : 1.2) / Math.max(0.3, Math.min(1, this.transform.k));
  }
  // Draws a line that leaves its ends upright.
  curve(x0, y0, x1, y1) {
    const middle = (y0 + y1) / 2;
    this.context.beginPath();
    this.context.moveTo(x0, y0);
    this.context.bezierCurveTo(x0, middle, x1, middle, x1, y1);
    this.context.stroke();
  }
  drawLanes(top, bottom) {
    for (const span of this.graph.spans) {
      const from = span.box.top + span.box.height;
      if (span.bottom < top || from > bottom) continue;
      const chosen = span.box.users.some(user => user.number === this.selected && user.layer > span.box.layer + 1);
      this.edgeStyle(span.box.number, chosen ? this.selected : null);
      this.curve(span.box.x, from, span.x, Math.max(span.top, from + 8));
      this.context.beginPath();
      this.context.moveTo(span.x, Math.max(span.top, from + 8));
      this.context.lineTo(span.x, span.bottom);
      this.context.stroke();
    }
  }
  drawEdges(box) {
    for (const number of box.node.inputs) {
      const from = this.graph.boxes[number];
      this.edgeStyle(number, box.number);
      if (box.layer === from.layer + 1) {
        this.curve(from.x, from.top + from.height, box.x, box.top);
      } else if (from.lane) {
        const y = box.top - kBox.gapY / 2;
        this.curve(from.lane.x, Math.min(y, box.top - 14), box.x, box.top);
      }
      if (this.transform.k > 0.4) this.arrow(box.x, box.top);
    }
  }
  arrow(x, y) {
    const context = this.context;
    context.fillStyle = context.strokeStyle;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x - 4, y - 7);
    context.lineTo(x + 4, y - 7);
    context.fill();
  }

  colorOf(node) {
    if (node.kind === "input" || node.kind === "result") return this.colors.border;
    if (node.kind === "runtime") return this.colors.runtime;
    return this.colors[node.work];
  }
  drawBox(box) {
    const {x, top, height, node} = box, context = this.context, left = x - kBox.width / 2, k = this.transform.k;
    if (left > this.rightEdge || left + kBox.width < this.left) return;
    ++this.drawn;
    const isChosen = box.number === this.selected, isFound = this.found.has(box.number);
    context.fillStyle = isFound || isChosen ? this.colors["accent-soft"] : this.colors.panel;
    context.strokeStyle = isChosen || isFound ? this.colors.accent : this.colors.line;
    context.lineWidth = (isChosen ? 2.5 : isFound ? 1.5 : 1) / Math.min(1, Math.max(k, 0.2));
    context.beginPath();
    context.rect(left, top, kBox.width, height);
    context.fill();
    context.stroke();
    context.fillStyle = this.colorOf(node);
    context.fillRect(left, top, k < 0.3 ? kBox.width : 5, k < 0.3 ? kBox.head : height);
    if (k >= 0.3) this.drawTexts(box, left);
  }
  drawTexts(box, left) {
    const {node, top, height} = box, context = this.context, inner = kBox.width - 24, isSmall = this.transform.k < 0.5;
    const plain = "12px system-ui, 'DejaVu Sans', sans-serif", right = left + kBox.width - 10;
    const weights = isSmall || !node.weightsText ? 0 : this.text(node.weightsText, right, top + 17, inner / 2, "faint", plain, "right") + 10;
    this.text(node.title, left + 14, top + 17, inner - weights, "ink", "600 13px system-ui, 'DejaVu Sans', sans-serif");
    if (isSmall) return;
    node.operators.slice(0, kBox.mostRows).forEach((operator, i) => {
      const y = top + kBox.head + 12 + i * kBox.row;
      const used = this.text(operator.label, left + 14, y, inner * 0.62, "ink", plain);
      this.text(operator.place, right, y, inner - used - 14, "faint", plain, "right");
    });
    if (node.operators.length > kBox.mostRows)
      this.text(`… ${node.operators.length - kBox.mostRows} more`, left + 14, top + kBox.head + 12 + kBox.mostRows * kBox.row, inner, "faint", plain);
    this.text(node.type, left + 14, top + height - 7, inner, "faint", "11px ui-monospace, 'DejaVu Sans Mono', monospace");
  }
  // Draws a text that is cut to the width; returns the width that it takes.
  text(text, x, y, width, colorName, font, align = "left") {
    const context = this.context;
    context.font = font;
    context.textAlign = align;
    context.fillStyle = this.colors[colorName];
    let full = context.measureText(text).width;
    if (full > width) {
      let length = Math.max(1, Math.floor(text.length * width / full) - 1);
      while (length > 1 && context.measureText(text.slice(0, length) + "…").width > width) --length;
      text = text.slice(0, length) + "…";
      full = width;
    }
    context.fillText(text, x, y);
    return full;
  }

  drawStrip() {
    const context = this.strip.getContext("2d"), scale = this.height / this.graph.height;
    const {left, right} = this.graph, wide = 20 / Math.max(1, right - left);
    context.clearRect(0, 0, 26, this.height);
    for (const box of this.graph.boxes) {
      context.fillStyle = this.found.has(box.number) ? this.colors.accent : this.colorOf(box.node);
      const w = Math.max(3, kBox.width * wide);
      context.fillRect(3 + (box.x - left) * wide - w / 2, box.top * scale, w, Math.max(1, box.height * scale - 1));
    }
  }
}
