// Where the boxes of a graph lie. Networks are long and narrow: each box is in the layer behind the last of those on
// which it depends, layers lie below each other, and an edge that passes layers runs in a lane beside their boxes, so
// that no edge crosses a box. Everything is linear in the graph but for the search of free lanes.
"use strict";

const kBox = {width: 350, head: 26, row: 17, foot: 20, gapX: 28, gapY: 34, lane: 12, mostRows: 8};

function heightOf(node) {
  const rows = Math.min(node.operators.length, kBox.mostRows) + (node.operators.length > kBox.mostRows ? 1 : 0);
  return kBox.head + rows * kBox.row + (node.type ? kBox.foot : 6);
}

function layersOf(nodes) {
  const layers = nodes.map(() => 0);
  nodes.forEach((node, i) => { for (const from of node.inputs) layers[i] = Math.max(layers[i], layers[from] + 1); });
  // A box without inputs lies right before the first that uses it.
  const first = nodes.map(() => Infinity);
  nodes.forEach((node, i) => { for (const from of node.inputs) first[from] = Math.min(first[from], layers[i]); });
  return layers.map((layer, i) => nodes[i].inputs.length === 0 && first[i] < Infinity ? first[i] - 1 : layer);
}

// Gives the boxes of a layer places as near as they can be to those on which they depend.
function placeLayer(layer, boxes) {
  const wanted = box => box.node.inputs.length ? d3.mean(box.node.inputs, from => boxes[from].x) : 0;
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

// Gives each box whose result is used behind the next layer a lane down to the last use.
function placeLanes(boxes, layers) {
  const spans = [];
  for (const box of boxes) {
    const last = d3.max(box.users, user => user.layer) || 0;
    if (last > box.layer + 1) spans.push({box, first: box.layer + 1, last: last - 1});
  }
  spans.sort((a, b) => (a.last - a.first) - (b.last - b.first));
  const lanes = [];  // for each lane the spans in it
  for (const span of spans) {
    let number = 0;
    const meets = other => other.first <= span.last && span.first <= other.last;
    while (number < lanes.length && lanes[number].some(meets)) ++number;
    if (number === lanes.length) lanes.push([]);
    lanes[number].push(span);
    let right = 0;
    for (let l = span.first; l <= span.last; ++l) right = Math.max(right, layers[l].right);
    span.x = right + 22 + number * kBox.lane;
    span.top = layers[span.first].top - kBox.gapY / 2;
    span.bottom = layers[span.last + 1].top - kBox.gapY / 2;
    span.box.lane = span;
  }
  return spans;
}

// Returns {boxes, layers, spans, width, height}: a box has its center x, and top, height and layer; a layer has top,
// bottom and its boxes.
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
    layer.top = top;
    layer.bottom = top + (d3.max(layer.boxes, box => box.height) || 0);
    layer.left = (d3.min(layer.boxes, box => box.x) || 0) - kBox.width / 2;
    layer.right = (d3.max(layer.boxes, box => box.x) || 0) + kBox.width / 2;
    for (const box of layer.boxes) box.top = top;
    top = layer.bottom + kBox.gapY;
  }
  const spans = placeLanes(boxes, layers);
  const left = d3.min(layers, layer => layer.left) || 0;
  const right = Math.max(d3.max(layers, layer => layer.right) || 0, d3.max(spans, span => span.x) || 0);
  return {boxes, layers, spans, left, right, height: Math.max(1, top - kBox.gapY)};
}
