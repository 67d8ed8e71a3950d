// The roofline plot (Williams, Waterman, Patterson, 2009): speed over arithmetic intensity, below the limits that the
// processor's arithmetic and each level of memory set.
"use strict";

const kBounds = {
  compute: "product",
  L2: "elementwise",
  L3: "elementwise",
  memory: "movement",
  imbalance: "runtime",
  overhead: "border",
};

function drawRoofline(place, profile, {onChoose}) {
  const width = 590,
    height = 420,
    margin = {left: 54, right: 16, top: 14, bottom: 44};
  const points = profile.kernels
    .filter(kernel => kernel.operations > 0 && kernel.bytes > 0)
    .map(kernel => ({kernel, x: kernel.operations / kernel.bytes, y: kernel.operations / kernel.median_us / 1e3}));
  // The roof is that of the fastest products in the profile; peaks of others are lines below it.
  const peaks = Object.entries(profile.product_gflops).filter(([name]) => profile.kernels.some(kernel => kernel.products === name));
  if (!points.length || !peaks.length) {
    place.append(element("p", {className: "faint"}, "No kernel does arithmetic whose operations are known, so that there is nothing to plot."));
    return {choose: () => {}};
  }
  const peak = d3.max(peaks, ([, gflops]) => gflops),
    slowest = d3.min(profile.memory, level => level.gb_per_s);
  const xs = [...points.map(point => point.x), peak / slowest];
  const x = d3
    .scaleLog()
    .domain([Math.min(0.05, d3.min(xs) / 1.5), d3.max(xs) * 3])
    .range([margin.left, width - margin.right]);
  const least = d3.min([...points.map(point => point.y), x.domain()[0] * slowest]);
  const y = d3
    .scaleLog()
    .domain([least / 1.5, peak * 1.7])
    .range([height - margin.bottom, margin.top]);
  const svg = d3
    .select(place)
    .append("svg")
    .attr("viewBox", `0 0 ${width} ${height}`)
    .attr("role", "img")
    .attr("aria-label", "roofline plot: GFLOP/s over operations per byte");
  const axis = (make, scale) => make(scale).ticks(6, "~g");
  svg
    .append("g")
    .attr("transform", `translate(0,${height - margin.bottom})`)
    .call(axis(d3.axisBottom, x));
  svg.append("g").attr("transform", `translate(${margin.left},0)`).call(axis(d3.axisLeft, y));
  svg
    .append("text")
    .attr("x", width - margin.right)
    .attr("y", height - 8)
    .attr("text-anchor", "end")
    .text("arithmetic intensity: operations per byte");
  svg
    .append("text")
    .attr("x", margin.left + 8)
    .attr("y", margin.top + 4)
    .text("GFLOP/s");

  const [low, high] = x.domain();
  for (const level of profile.memory) {
    const ridge = peak / level.gb_per_s,
      corner = Math.min(Math.max(ridge, low), high);
    svg
      .append("path")
      .attr("class", "roof")
      .attr(
        "d",
        d3
          .line()
          .x(d => x(d[0]))
          .y(d => y(d[1]))([
          [low, low * level.gb_per_s],
          [corner, corner * level.gb_per_s],
          [high, Math.min(peak, high * level.gb_per_s)],
        ]),
      );
    // The name runs along the roof, a little above it.
    const from = Math.max(low * 1.3, (y.domain()[0] * 1.3) / level.gb_per_s);
    const angle =
      (Math.atan2(y(from * 10 * level.gb_per_s) - y(from * level.gb_per_s), x(from * 10) - x(from)) * 180) / Math.PI;
    svg
      .append("text")
      .attr("class", "faint")
      .attr("dy", -5)
      .attr("transform", `translate(${x(from)},${y(from * level.gb_per_s)}) rotate(${angle})`)
      .text(`${level.name} ${level.gb_per_s} GB/s`);
  }
  const fastestLevel = d3.max(profile.memory, level => level.gb_per_s);
  for (const [name, gflops] of peaks) {
    svg
      .append("text")
      .attr("class", "faint")
      .attr("x", width - margin.right)
      .attr("y", y(gflops) - 6)
      .attr("text-anchor", "end")
      .text(`products of ${name} ${gflops} GFLOP/s`);
    if (gflops < peak)
      svg
        .append("line")
        .attr("class", "roof")
        .attr("x1", x(Math.max(low, gflops / fastestLevel)))
        .attr("x2", x(high))
        .attr("y1", y(gflops))
        .attr("y2", y(gflops));
  }

  const total = d3.sum(profile.kernels, timeOf);
  const marks = svg
    .append("g")
    .selectAll("circle")
    .data(points)
    .enter()
    .append("circle")
    .attr("class", "mark")
    .attr("cx", point => x(point.x))
    .attr("cy", point => y(point.y))
    .attr("r", point => 3.5 + 26 * Math.sqrt(timeOf(point.kernel) / total))
    .attr("fill", point => `var(--${kBounds[point.kernel.bound]})`)
    .attr("fill-opacity", 0.55)
    .attr("stroke", point => `var(--${kBounds[point.kernel.bound]})`)
    .on("click", point => onChoose(point.kernel));
  withTips(marks, point => [
    ...linesOf(point.kernel, total),
    `${point.x.toPrecision(3)} operations per byte, ${point.y.toPrecision(3)} GFLOP/s`,
  ]);
  const left = profile.kernels.length - points.length;
  const legend = legendOf({
    product: "bound by arithmetic",
    elementwise: "by a cache",
    movement: "by memory",
    runtime: "by idle threads",
    border: "by the call itself",
  });
  if (left) legend.append(element("span", {}, `${format.count(left, "kernel")} without arithmetic, or whose operations are not known: not in the plot`));
  place.append(legend);
  return {choose: kernel => marks.classed("chosen", point => point.kernel === kernel)};
}

// Returns the microseconds that a kernel takes of a run.
function timeOf(kernel) {
  return kernel.median_us * kernel.calls_per_run;
}
function linesOf(kernel, total) {
  return [
    kernel.kernel,
    kernel.nodes,
    kernel.tensors,
    `${format.time(timeOf(kernel))} of a run, ${format.share(timeOf(kernel) / total)}; limit ${format.time(kernel.limit_us * kernel.calls_per_run)}; bound by ${kernel.bound}`,
    kernel.rule ? `rule ${kernel.rule}` : "",
  ];
}
