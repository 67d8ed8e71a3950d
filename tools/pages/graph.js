// Draws a laid-out graph on a canvas: only what the window shows, and less of it the smaller it is.
"use strict";

class GraphCanvas {
  // `onSelect(number)` is called for a click on a box, and with null for one beside all boxes.
  constructor(stage, onSelect) {
    this.stage = stage;
    this.onSelect = onSelect;
    this.canvas = stage.appendChild(
      element("canvas", {
        className: "graph",
        tabIndex: 0,
        "aria-label": "graph: drag or arrow keys move it, the wheel or + and - zoom, 0 shows all",
      }),
    );
    this.strip = stage.appendChild(element("canvas", {className: "strip", title: "the whole graph"}));
    this.window = stage.appendChild(element("div", {className: "window"}));
    this.context = this.canvas.getContext("2d");
    this.transform = d3.zoomIdentity;
    this.selected = null;
    this.found = new Set(); // what the search found
    this.zoom = d3
      .zoom()
      .scaleExtent([0.001, 3])
      .on("zoom", () => {
        this.transform = d3.event.transform;
        this.showsAll = false;
        this.draw();
      });
    d3.select(this.canvas).call(this.zoom).on("dblclick.zoom", null);
    this.canvas.addEventListener("click", event => this.onSelect(this.boxAt(event.offsetX, event.offsetY)));
    document.addEventListener("keydown", event => this.onKey(event));
    d3.select(this.strip).call(
      d3
        .drag()
        .container(this.strip)
        .subject(() => ({}))
        .on("start drag", () => this.jump(d3.event.y)),
    );
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
    const {clientWidth: width, clientHeight: height} = this.stage,
      ratio = devicePixelRatio || 1;
    for (const [canvas, w] of [
      [this.canvas, width - 26],
      [this.strip, 26],
    ]) {
      canvas.width = w * ratio;
      canvas.height = height * ratio;
      canvas.style.width = `${w}px`;
      canvas.style.height = `${height}px`;
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.width = width - 26;
    this.height = height;
    this.colors = {};
    for (const name of [
      "paper",
      "panel",
      "line",
      "ink",
      "faint",
      "accent",
      "accent-soft",
      "border",
      "product",
      "elementwise",
      "movement",
      "runtime",
    ])
      this.colors[name] = color(name);
    if (!this.graph) return;
    if (this.showsAll) this.all();
    this.drawStrip();
    this.drawNow(); // a canvas of a new size is empty
  }
  moveTo(transform) {
    d3.select(this.canvas).call(this.zoom.transform, transform);
  }
  // Shows the graph from its top, at a size that can be read.
  home() {
    const {
        left,
        right,
        height,
        boxes: [first],
      } = this.graph,
      scale = 0.9;
    if (Math.min(this.width / (right - left + 60), this.height / (height + 60)) > 0.6) return this.all();
    this.moveTo(d3.zoomIdentity.translate(this.width / 2 - (first ? first.x : 0) * scale, 24).scale(scale));
  }
  all() {
    const {left, right, height} = this.graph;
    const scale = Math.min(1, this.width / (right - left + 60), this.height / (height + 60));
    this.moveTo(
      d3.zoomIdentity
        .translate(this.width / 2 - ((left + right) / 2) * scale, (this.height - height * scale) / 2)
        .scale(scale),
    );
    this.showsAll = true;
  }
  // Shows the box, in the middle of the window unless all of it is in sight.
  reveal(number) {
    const {x, top, height} = this.graph.boxes[number];
    const [left, first] = this.transform.apply([x - kBox.width / 2, top]),
      [right, last] = this.transform.apply([x + kBox.width / 2, top + height]);
    if (left < 0 || first < 0 || right > this.width || last > this.height || this.transform.k < 0.5)
      this.center(number);
    else this.draw();
  }
  center(number) {
    const box = this.graph.boxes[number],
      scale = Math.max(this.transform.k, 0.75);
    this.moveTo(
      d3.zoomIdentity
        .translate(this.width / 2 - box.x * scale, this.height / 2 - (box.top + box.height / 2) * scale)
        .scale(scale),
    );
  }
  // Goes to the part of the graph that the strip has at this height.
  jump(y) {
    const {layers, columns, left} = this.graph,
      flow = (y / this.height) * this.graph.flow,
      k = this.transform.k;
    const layer = layers[Math.max(0, d3.bisector(other => other.flow).right(layers, flow) - 1)];
    const at = layer.top + flow - layer.flow,
      isFolded = columns.length > 1;
    const x = isFolded ? this.width / 2 - (columns[layer.column].x + left + kBox.width / 2) * k : this.transform.x;
    this.moveTo(d3.zoomIdentity.translate(x, this.height / 2 - at * k).scale(k));
  }
  onKey(event) {
    const isElsewhere = event.target.closest("input, select, textarea, .details, .outline");
    if (isElsewhere || event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = {
      ArrowUp: [0, 80],
      ArrowDown: [0, -80],
      ArrowLeft: [80, 0],
      ArrowRight: [-80, 0],
      PageUp: [0, this.height * 0.8],
      PageDown: [0, -this.height * 0.8],
    };
    const canvas = d3.select(this.canvas),
      move = moves[event.key];
    if (move) canvas.call(this.zoom.translateBy, move[0] / this.transform.k, move[1] / this.transform.k);
    else if (event.key === "+" || event.key === "=") canvas.call(this.zoom.scaleBy, 1.3);
    else if (event.key === "-") canvas.call(this.zoom.scaleBy, 1 / 1.3);
    else if (event.key === "0") this.all();
    else if (event.key === "Home") this.home();
    else return;
    event.preventDefault();
  }

  // Calls the function on each layer that is in the rectangle, in the graph's coordinates.
  eachLayer({left, right, top, bottom}, call) {
    const {layers, columns, left: edge} = this.graph,
      wide = columns.length > 1 ? columns[1].x : Infinity;
    for (const column of columns) {
      if (column.x + edge > right || column.x + edge + wide < left) continue;
      let l = d3.bisector(layer => layer.bottom).left(layers, top - kBox.gapY, column.first, column.last);
      for (; l < column.last && layers[l].top < bottom + kBox.gapY; ++l) call(layers[l]);
    }
  }
  boxAt(px, py) {
    const [x, y] = this.transform.invert([px, py]);
    let found = null;
    this.eachLayer({left: x, right: x, top: y, bottom: y}, layer => {
      for (const box of layer.boxes) {
        if (Math.abs(x - box.x) <= kBox.width / 2 && y >= box.top && y <= box.top + box.height) found = box.number;
      }
    });
    return found;
  }

  // ---- Drawing

  draw() {
    if (!this.graph || this.isPending) return;
    this.isPending = true;
    requestAnimationFrame(() => {
      this.isPending = false;
      this.drawNow();
    });
  }
  drawNow() {
    const context = this.context,
      {x, y, k} = this.transform;
    context.clearRect(0, 0, this.width, this.height);
    context.save();
    context.translate(x, y);
    context.scale(k, k);
    this.shown = {left: -x / k, right: (this.width - x) / k, top: -y / k, bottom: (this.height - y) / k};
    const layers = [];
    this.eachLayer(this.shown, layer => layers.push(layer));
    if (k < 0.15) {
      this.drawFar(layers);
    } else {
      this.drawLanes(this.shown);
      for (const layer of layers) layer.boxes.forEach(box => this.drawEdges(box));
      for (const layer of layers) layer.boxes.forEach(box => this.drawBox(box));
    }
    context.restore();
    this.showWindow(layers);
  }
  // Draws thousands of boxes as rectangles, with one path for each colour, and the lanes as one path: a path for each
  // box would take too long for a smooth movement.
  drawFar(layers) {
    const context = this.context,
      {k} = this.transform,
      paths = {};
    const add = (color, box, margin = 0) => {
      paths[color] = paths[color] || new Path2D();
      paths[color].rect(
        box.x - kBox.width / 2 - margin,
        box.top - margin,
        kBox.width + 2 * margin,
        box.height + 2 * margin,
      );
    };
    const lines = new Path2D();
    for (const {pieces} of this.graph.spans) {
      for (const {x, top, bottom} of pieces) lines.rect(x, top, 0, bottom - top);
    }
    context.strokeStyle = this.colors.line;
    context.lineWidth = 0.6 / k;
    context.stroke(lines);
    for (const layer of layers) {
      for (const box of layer.boxes) {
        const isMarked = box.number === this.selected || this.found.has(box.number);
        add(isMarked ? this.colors.ink : this.colorOf(box.node), box, isMarked ? 1 / k : 0);
      }
    }
    for (const [color, path] of Object.entries(paths)) {
      context.globalAlpha = this.found.size && color !== this.colors.ink ? 0.35 : 1;
      context.fillStyle = color;
      context.fill(path);
    }
    context.globalAlpha = 1;
  }
  // Marks in the strip which part of the graph the window shows.
  showWindow(layers) {
    const {flow, columns} = this.graph,
      scale = this.height / flow;
    let first = d3.min(layers, layer => layer.flow) || 0,
      last = d3.max(layers, layer => layer.flow + layer.bottom - layer.top) || 0;
    if (columns.length === 1) [first, last] = [Math.max(0, this.shown.top), Math.min(flow, this.shown.bottom)];
    this.window.style.top = `${first * scale}px`;
    this.window.style.height = `${Math.max(4, (last - first) * scale)}px`;
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
  drawLanes({left, right, top, bottom}) {
    const context = this.context;
    for (const {box, pieces} of this.graph.spans) {
      const from = box.top + box.height,
        [start] = pieces;
      const chosen = box.users.some(user => user.number === this.selected && user.layer > box.layer + 1);
      this.edgeStyle(box.number, chosen ? this.selected : null);
      pieces.forEach((piece, i) => {
        if (
          piece.x < left - kBox.width ||
          piece.x > right + kBox.width ||
          piece.bottom < top ||
          piece.top - kBox.gapY > bottom
        )
          return;
        if (i === 0 && start.top > from - kBox.gapY) this.curve(box.x, from, piece.x, Math.max(piece.top, from + 8));
        context.beginPath();
        context.moveTo(piece.x, i === 0 && start.top > from - kBox.gapY ? Math.max(piece.top, from + 8) : piece.top);
        context.lineTo(piece.x, piece.bottom);
        context.stroke();
        if (i > 0) this.toNextColumn(pieces[i - 1].x, pieces[i - 1].bottom, piece.x, piece.top);
      });
      if (start.top <= from - kBox.gapY) this.toNextColumn(box.x, from, start.x, start.top);
    }
  }
  // Draws a line from the bottom of a column through the gutter to the top of the next one.
  toNextColumn(x0, y0, x1, y1) {
    const {columns, left} = this.graph,
      column = columns.find(other => other.x + left > x0) || columns[columns.length - 1];
    const gutter = column.x + left - kBox.gutter / 2,
      context = this.context;
    context.beginPath();
    context.moveTo(x0, y0);
    for (const [x, y] of [
      [x0, y0 + 10],
      [gutter, y0 + 10],
      [gutter, y1 - 10],
      [x1, y1 - 10],
      [x1, y1],
    ])
      context.lineTo(x, y);
    context.stroke();
  }
  drawEdges(box) {
    for (const number of box.node.inputs) {
      const from = this.graph.boxes[number];
      this.edgeStyle(number, box.number);
      const {layers, columns} = this.graph,
        {column} = layers[box.layer];
      if (box.layer > from.layer + 1) {
        this.curve(from.lane.right + columns[column].x, box.top - kBox.gapY / 2, box.x, box.top);
      } else if (layers[from.layer].column === column) {
        this.curve(from.x, from.top + from.height, box.x, box.top);
      } else {
        this.toNextColumn(from.x, from.top + from.height, box.x, box.top);
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
    const {x, top, height, node} = box,
      context = this.context,
      left = x - kBox.width / 2,
      k = this.transform.k;
    if (left > this.shown.right || left + kBox.width < this.shown.left) return;
    const isChosen = box.number === this.selected,
      isFound = this.found.has(box.number);
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
    const {node, top, height} = box,
      context = this.context,
      inner = kBox.width - 24,
      isSmall = this.transform.k < 0.5;
    const plain = "12px system-ui, 'DejaVu Sans', sans-serif",
      right = left + kBox.width - 10;
    this.text(node.title, left + 14, top + 17, inner, "ink", "600 13px system-ui, 'DejaVu Sans', sans-serif");
    if (isSmall) return;
    node.operators.slice(0, kBox.mostRows).forEach((operator, i) => {
      const y = top + kBox.head + 12 + i * kBox.row;
      const used = this.text(operator.label, left + 14, y, inner * 0.62, "ink", plain);
      this.text(operator.place, right, y, inner - used - 14, "faint", plain, "right");
    });
    if (node.operators.length > kBox.mostRows)
      this.text(
        `… ${node.operators.length - kBox.mostRows} more`,
        left + 14,
        top + kBox.head + 12 + kBox.mostRows * kBox.row,
        inner,
        "faint",
        plain,
      );
    const foot = top + height - 7,
      used = node.weightsText ? this.text(node.weightsText, right, foot, inner / 2, "faint", plain, "right") + 10 : 0;
    this.text(node.type, left + 14, foot, inner - used, "faint", "11px ui-monospace, 'DejaVu Sans Mono', monospace");
  }
  // Draws a text that is cut to the width; returns the width that it takes.
  text(text, x, y, width, colorName, font, align = "left") {
    const context = this.context;
    context.font = font;
    context.textAlign = align;
    context.fillStyle = this.colors[colorName];
    let full = context.measureText(text).width;
    if (full > width) {
      let length = Math.max(1, Math.floor((text.length * width) / full) - 1);
      while (length > 1 && context.measureText(shortened(text, length + 1)).width > width) --length;
      text = shortened(text, length + 1);
      full = width;
    }
    context.fillText(text, x, y);
    return full;
  }

  drawStrip() {
    const context = this.strip.getContext("2d"),
      scale = this.height / this.graph.flow;
    context.clearRect(0, 0, 26, this.height);
    for (const layer of this.graph.layers) {
      const wide = 20 / layer.boxes.length;
      layer.boxes.forEach((box, i) => {
        context.fillStyle = this.found.has(box.number) ? this.colors.ink : this.colorOf(box.node);
        context.fillRect(3 + i * wide, layer.flow * scale, Math.max(1, wide - 1), Math.max(1, box.height * scale - 1));
      });
    }
  }
}
