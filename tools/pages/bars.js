// Time by kernel: a bar each, the longest first, with the least time that the machine allows as its dark part.
"use strict";

function drawBars(place, profile, {onChoose}) {
  const kMost = 18,
    width = 590,
    row = 21,
    names = 230,
    values = 104;
  const kernels = profile.kernels.slice().sort((a, b) => timeOf(b) - timeOf(a)),
    total = d3.sum(kernels, timeOf);
  const rest = kernels.slice(kMost);
  const rows = kernels
    .slice(0, kMost)
    .map(kernel => ({
      kernel,
      time: timeOf(kernel),
      limit: kernel.limit_us * kernel.calls_per_run,
      name: kernel.nodes || kernel.kernel,
    }));
  if (rest.length)
    rows.push({
      kernel: null,
      time: d3.sum(rest, timeOf),
      limit: d3.sum(rest, kernel => kernel.limit_us * kernel.calls_per_run),
      name: `${format.count(rest.length, "other kernel")} together`,
    });
  const x = d3
    .scaleLinear()
    .domain([0, d3.max(rows, item => Math.max(item.time, item.limit)) || 1])
    .range([0, width - names - values]);
  const svg = d3
    .select(place)
    .append("svg")
    .attr("viewBox", `0 0 ${width} ${rows.length * row + 4}`)
    .attr("role", "img")
    .attr("aria-label", "time by kernel");
  const items = svg
    .selectAll("g")
    .data(rows)
    .enter()
    .append("g")
    .attr("transform", (_, i) => `translate(0,${i * row})`)
    .attr("class", item => (item.kernel ? "mark" : ""))
    .on("click", item => item.kernel && onChoose(item.kernel));
  items
    .append("text")
    .attr("x", names - 8)
    .attr("y", 14)
    .attr("text-anchor", "end")
    .attr("class", item => (item.kernel ? "" : "faint"))
    .text(item => cutText(item.name, names - 10));
  const bars = items
    .append("rect")
    .attr("x", names)
    .attr("y", 2)
    .attr("height", row - 5)
    .attr("width", item => Math.max(1, x(item.time)))
    .attr("fill", "var(--product)")
    .attr("fill-opacity", 0.45);
  items
    .append("rect")
    .attr("x", names)
    .attr("y", 2)
    .attr("height", row - 5)
    .attr("width", item => x(Math.min(item.limit, item.time)))
    .attr("fill", "var(--product)");
  items
    .append("text")
    .attr("x", item => names + x(item.time) + 6)
    .attr("y", 14)
    .text(item => `${format.time(item.time)}  ${format.share(item.time / total)}`);
  withTips(items, item => (item.kernel ? linesOf(item.kernel, total) : [item.name]));
  return {choose: kernel => bars.classed("chosen", item => item.kernel === kernel)};
}
