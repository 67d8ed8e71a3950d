// Memory over time: the bytes that live, and below them the arena as the compiler has planned it. A rectangle is a
// tensor: its bytes from bottom to top, its life from left to right.
"use strict";

class MemoryChart {
  constructor(place, memory) {
    this.memory = memory;
    this.width = 1190;
    this.margin = {left: 66, right: 14};
    this.byTime = memory.calls.some(call => "start_us" in call);
    this.zoomed = d3.zoomIdentity;
    this.arena = memory.tensors.filter(tensor => tensor.place === "arena");
    this.node = element("div", {});
    const zoomBy = factor => d3.select(this.svg.node()).call(this.zoom.scaleBy, factor);
    const tools = element(
      "div",
      {className: "tools"},
      element("button", {onclick: () => zoomBy(1.6), "aria-label": "zoom in"}, "+"),
      element("button", {onclick: () => zoomBy(1 / 1.6), "aria-label": "zoom out"}, "−"),
      element("button", {onclick: () => d3.select(this.svg.node()).call(this.zoom.transform, d3.zoomIdentity)}, "all"),
    );
    if (this.byTime) {
      const axis = element(
        "select",
        {
          "aria-label": "horizontal axis",
          onchange: () => {
            this.byTime = axis.selectedIndex === 0;
            this.draw();
          },
        },
        element("option", {}, "time"),
        element("option", {}, "calls of kernels"),
      );
      tools.append(element("label", {}, "over ", axis));
    }
    tools.append(
      element("span", {className: "faint"}, "drag moves, Ctrl and the wheel zoom"),
      legendOf({
        product: "made by a product or convolution",
        elementwise: "by other arithmetic",
        movement: "by moving data",
      }),
    );
    place.append(tools, this.node);
    this.zoom = d3
      .zoom()
      .scaleExtent([1, 4000])
      .filter(() => d3.event.type !== "wheel" || d3.event.ctrlKey)
      .translateExtent([
        [0, 0],
        [this.width, 1],
      ])
      .extent([
        [0, 0],
        [this.width, 1],
      ])
      .on("zoom", () => {
        this.zoomed = d3.event.transform;
        this.redraw();
      });
    this.draw();
  }

  // Returns for each call, and for the end, where it begins on the axis.
  positions() {
    const {calls} = this.memory;
    if (!this.byTime) return {begin: d3.range(calls.length + 1), end: d3.range(1, calls.length + 2)};
    const begin = [],
      end = [];
    let now = 0;
    for (const call of calls) {
      begin.push("start_us" in call ? call.start_us : now);
      now = "end_us" in call ? call.end_us : now;
      end.push(now);
    }
    (begin.push(now), end.push(now));
    return {begin, end};
  }

  // Returns [{at, bytes}], the bytes that live from each change on.
  liveBytes() {
    const changes = d3.range(this.memory.calls.length + 2).map(() => 0);
    for (const tensor of this.memory.tensors) {
      changes[tensor.first] += tensor.bytes;
      changes[Math.min(tensor.last, this.memory.calls.length) + 1] -= tensor.bytes;
    }
    let live = 0;
    return changes.slice(0, -1).map(change => (live += change));
  }

  draw() {
    const {width, margin} = this,
      top = 14,
      curve = 120,
      gap = 34,
      plan = this.arena.length ? 320 : 0;
    const height = top + curve + gap + plan + 26;
    const {begin, end} = this.positions();
    const live = this.liveBytes(),
      last = end[end.length - 1] || 1;
    this.x0 = d3
      .scaleLinear()
      .domain([begin[0] || 0, last])
      .range([margin.left, width - margin.right]);
    const yLive = d3
      .scaleLinear()
      .domain([0, d3.max([...live, this.memory.arena_bytes || 0]) || 1])
      .range([top + curve, top])
      .nice();
    const arenaBytes = d3.max([
      this.memory.arena_bytes || 0,
      ...this.arena.map(tensor => tensor.offset + tensor.bytes),
    ]);
    const yPlan = d3
      .scaleLinear()
      .domain([0, arenaBytes || 1])
      .range([top + curve + gap + plan, top + curve + gap]);
    this.node.replaceChildren();
    const svg = (this.svg = d3
      .select(this.node)
      .append("svg")
      .attr("viewBox", `0 0 ${width} ${height}`)
      .attr("role", "img")
      .attr("aria-label", "memory over time"));
    svg
      .append("clipPath")
      .attr("id", "inside")
      .append("rect")
      .attr("x", margin.left)
      .attr("y", 0)
      .attr("width", width - margin.left - margin.right)
      .attr("height", height);
    svg
      .append("rect")
      .attr("x", margin.left)
      .attr("y", 0)
      .attr("width", width - margin.left - margin.right)
      .attr("height", height)
      .attr("fill", "transparent");
    const bytesAxis = scale =>
      d3
        .axisLeft(scale)
        .tickValues(byteTicks(scale.domain()[1], scale === yLive ? 4 : 6))
        .tickFormat(format.bytes);
    svg.append("g").attr("transform", `translate(${margin.left},0)`).call(bytesAxis(yLive));
    svg
      .append("text")
      .attr("x", margin.left + 8)
      .attr("y", top)
      .text("bytes that live: arena, results, others");
    if (plan) {
      svg.append("g").attr("transform", `translate(${margin.left},0)`).call(bytesAxis(yPlan));
      svg
        .append("text")
        .attr("x", margin.left)
        .attr("y", top + curve + gap - 10)
        .text(
          `the arena, ${format.bytes(this.memory.arena_bytes)}: a rectangle is a tensor; its height is its bytes, its width its life`,
        );
    }
    const inside = svg.append("g").attr("clip-path", "url(#inside)");
    this.axis = svg.append("g").attr("transform", `translate(0,${height - 24})`);
    svg
      .append("text")
      .attr("x", width - margin.right)
      .attr("y", top + curve + gap - 10)
      .attr("text-anchor", "end")
      .attr("class", "faint")
      .text(this.byTime ? "time of the fastest profiled run" : "calls in order");
    this.area = inside
      .append("path")
      .attr("fill", "var(--elementwise)")
      .attr("fill-opacity", 0.3)
      .attr("stroke", "var(--elementwise)");
    this.curveOf = x => {
      const points = live.flatMap((bytes, i) => [
        [begin[i], bytes],
        [i + 1 < begin.length ? begin[i + 1] : end[i], bytes],
      ]);
      return d3
        .area()
        .x(d => x(d[0]))
        .y0(yLive(0))
        .y1(d => yLive(d[1]))(points);
    };
    const arenaLine = this.memory.arena_bytes;
    if (arenaLine)
      svg
        .append("line")
        .attr("x1", margin.left)
        .attr("x2", width - margin.right)
        .attr("y1", yLive(arenaLine))
        .attr("y2", yLive(arenaLine))
        .attr("stroke", "var(--border)")
        .attr("stroke-dasharray", "5 4");
    this.drawTensors(inside, yPlan, begin, end);
    svg.call(this.zoom).on("dblclick.zoom", null);
    this.redraw();
  }

  drawTensors(inside, y, begin, end) {
    const writer = tensor => this.memory.calls[tensor.first] || {name: "", nodes: ""};
    const place = tensor => [begin[tensor.first], end[Math.min(tensor.last, end.length - 1)]];
    const boxes = inside
      .selectAll("g")
      .data(this.arena.map(tensor => ({tensor, place: place(tensor), color: `var(--${workOf(writer(tensor).name)})`})))
      .enter()
      .append("g");
    this.rects = boxes
      .append("rect")
      .attr("y", item => y(item.tensor.offset + item.tensor.bytes))
      .attr("height", item => Math.max(0.6, y(item.tensor.offset) - y(item.tensor.offset + item.tensor.bytes)))
      .attr("fill", item => item.color)
      .attr("fill-opacity", 0.4)
      .attr("stroke", item => item.color)
      .attr("stroke-width", 0.8);
    this.labels = boxes
      .append("text")
      .attr("pointer-events", "none")
      .attr("y", item => y(item.tensor.offset + item.tensor.bytes / 2) + 4);
    this.heightOf = item => y(item.tensor.offset) - y(item.tensor.offset + item.tensor.bytes);
    withTips(this.rects, ({tensor}) => {
      const first = writer(tensor),
        lastCall = this.memory.calls[tensor.last];
      return [
        tensor.type,
        `${format.bytes(tensor.bytes)} at offset ${format.bytes(tensor.offset)}`,
        `made by ${first.nodes || first.name || "the begin"}`,
        lastCall && `last used by ${lastCall.nodes || lastCall.name}`,
        `lives for ${format.count(tensor.last - tensor.first + 1, "call")}`,
      ];
    });
  }

  redraw() {
    const x = this.zoomed.rescaleX(this.x0),
      right = this.width - this.margin.right;
    this.axis.call(
      d3
        .axisBottom(x)
        .ticks(10)
        .tickFormat(value => (this.byTime ? format.time(value) : `${value}`)),
    );
    this.area.attr("d", this.curveOf(x));
    this.rects
      .attr("x", item => x(item.place[0]))
      .attr("width", item => Math.max(0.8, x(item.place[1]) - x(item.place[0])));
    this.labels
      .attr("x", item => Math.max(x(item.place[0]), this.margin.left) + 4)
      .text(item => {
        const wide = Math.min(x(item.place[1]), right) - Math.max(x(item.place[0]), this.margin.left) - 8;
        return this.heightOf(item) < 13 || wide < 40 ? "" : cutText(item.tensor.type, wide);
      });
  }
}

// Returns round numbers of bytes up to the most.
function byteTicks(most, count) {
  let step = 1;
  while (most / step > count) step *= 2;
  return d3.range(0, most + 1, step);
}
