// Where the boxes of a graph lie. Networks are long and narrow: each box is in the layer behind the last of those on
// which it depends, layers lie below each other, and an edge that passes layers runs in a lane beside their boxes, so
// that no edge crosses a box. A long graph is folded into columns, as text is in a newspaper, so that a window shows
// the whole of it. Everything is linear in the graph but for the search of free lanes.
"use strict";

const kBox = {
  width: 350,
  head: 26,
  row: 17,
  foot: 20,
  gapX: 28,
  gapY: 34,
  lane: 12,
  mostRows: 8,
  gutter: 90,
  longest: 1500,
};

function heightOf(node) {
  const rows = Math.min(node.operators.length, kBox.mostRows) + (node.operators.length > kBox.mostRows ? 1 : 0);
  return kBox.head + rows * kBox.row + (node.type || node.weights.length ? kBox.foot : 6);
}

function layersOf(nodes) {
  const layers = nodes.map(() => 0);
  nodes.forEach((node, i) => {
    for (const from of node.inputs) layers[i] = Math.max(layers[i], layers[from] + 1);
  });
  // A box without inputs lies right before the first that uses it.
  const first = nodes.map(() => Infinity);
  nodes.forEach((node, i) => {
    for (const from of node.inputs) first[from] = Math.min(first[from], layers[i]);
  });
  return layers.map((layer, i) => (nodes[i].inputs.length === 0 && first[i] < Infinity ? first[i] - 1 : layer));
}

// Gives the boxes of a layer places as near as they can be to those on which they depend.
function placeLayer(layer, boxes) {
  const wanted = box => (box.node.inputs.length ? d3.mean(box.node.inputs, from => boxes[from].x) : 0);
  const order = layer.map(box => ({box, x: wanted(box)})).sort((a, b) => a.x - b.x);
  const step = kBox.width + kBox.gapX;
  let least = -Infinity;
  for (const item of order) {
    item.box.x = Math.max(item.x, least);
    least = item.box.x + step;
  }
  const shift = d3.mean(order, item => item.x - item.box.x);
  for (const item of order) item.box.x += shift;
}

// Gives each box whose result is used behind the next layer a lane down to the last use: its distance from the right
// edge of the layers beside it.
function placeLanes(boxes, layers) {
  const spans = [];
  for (const box of boxes) {
    const last = d3.max(box.users, user => user.layer) || 0;
    if (last > box.layer + 1) spans.push({box, first: box.layer + 1, last: last - 1});
  }
  spans.sort((a, b) => a.last - a.first - (b.last - b.first));
  const lanes = []; // for each lane the spans in it
  for (const span of spans) {
    let number = 0;
    const meets = other => other.first <= span.last && span.first <= other.last;
    while (number < lanes.length && lanes[number].some(meets)) ++number;
    if (number === lanes.length) lanes.push([]);
    lanes[number].push(span);
    span.right = 0;
    for (let l = span.first; l <= span.last; ++l) span.right = Math.max(span.right, layers[l].right);
    span.right += 22 + number * kBox.lane;
    span.box.lane = span;
  }
  return spans;
}

// Cuts the layers into columns of about one height and moves each to its place. Returns the columns: their layers
// [first, last), left and right edge, and `x`, by which everything in them has moved.
function foldLayers(layers, width, height) {
  const step = width + kBox.gutter;
  const count = height <= kBox.longest ? 1 : Math.max(1, Math.ceil(Math.sqrt((height * 1.7) / step)));
  const columns = [];
  let first = 0;
  for (let c = 0; c < count && first < layers.length; ++c) {
    const start = layers[first].flow,
      x = c * step;
    let last = first;
    while (last < layers.length && (c + 1 === count || last === first || layers[last].flow - start < height / count))
      ++last;
    for (let l = first; l < last; ++l) {
      Object.assign(layers[l], {column: c, top: layers[l].flow - start, bottom: layers[l].bottom - start});
      for (const box of layers[l].boxes) Object.assign(box, {top: layers[l].top, x: box.x + x});
    }
    columns.push({first, last, x});
    first = last;
  }
  return columns;
}

// Returns {boxes, layers, spans, columns, left, right, height, flow}: a box has its center x, and top, height and layer; a
// layer has top, bottom, its boxes, and `flow`, its top as if all were one column of the height `flow`.
function layoutGraph(nodes) {
  const layerOf = layersOf(nodes);
  const boxes = nodes.map((node, i) => ({node, number: i, layer: layerOf[i], height: heightOf(node), users: [], x: 0}));
  const layers = d3.range((d3.max(layerOf) || 0) + 1).map(() => ({boxes: []}));
  for (const box of boxes) {
    layers[box.layer].boxes.push(box);
    for (const from of box.node.inputs) boxes[from].users.push(box);
  }
  let top = 0;
  for (const layer of layers) {
    placeLayer(layer.boxes, boxes);
    layer.flow = top;
    layer.bottom = top + (d3.max(layer.boxes, box => box.height) || 0);
    layer.left = (d3.min(layer.boxes, box => box.x) || 0) - kBox.width / 2;
    layer.right = (d3.max(layer.boxes, box => box.x) || 0) + kBox.width / 2;
    top = layer.bottom + kBox.gapY;
  }
  const spans = placeLanes(boxes, layers);
  const left = d3.min(layers, layer => layer.left) || 0;
  const right = Math.max(d3.max(layers, layer => layer.right) || 0, d3.max(spans, span => span.right) || 0);
  const columns = foldLayers(layers, right - left, top);
  for (const span of spans) span.pieces = piecesOf(span, layers, columns);
  const height = d3.max(layers, layer => layer.bottom) || 1;
  return {
    boxes,
    layers,
    spans,
    columns,
    left,
    right: right + (columns.length ? columns[columns.length - 1].x : 0),
    height,
    flow: Math.max(1, top - kBox.gapY),
  };
}

// Returns the vertical lines of a lane, one in each column that it passes.
function piecesOf(span, layers, columns) {
  const pieces = [];
  for (let c = layers[span.first].column; c <= layers[span.last + 1].column; ++c) {
    const column = columns[c],
      isFirst = c === layers[span.first].column,
      isLast = c === layers[span.last + 1].column;
    pieces.push({
      x: span.right + column.x,
      top: (isFirst ? layers[span.first].top : 0) - kBox.gapY / 2,
      bottom: (isLast ? layers[span.last + 1].top : layers[column.last - 1].bottom + kBox.gapY) - kBox.gapY / 2,
    });
  }
  return pieces;
}
