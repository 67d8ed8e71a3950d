// Time by kernel: a bar each, the longest first, with the least time that the machine allows as its dark part. Where the
// bars would be a small part of all, kernels of one name are one bar.
"use strict";

function drawBars(place, profile, {onChoose}) {
  const kMost = 18,
    width = 590,
    row = 21,
    names = 230,
    values = 104;
  const total = d3.sum(profile.kernels, timeOf);
  // A row of kernels that are looked at together; a click chooses the first.
  const rowOf = (kernels, name) => ({
    kernel: kernels[0],
    time: d3.sum(kernels, timeOf),
    limit: d3.sum(kernels, kernel => kernel.limit_us * kernel.calls_per_run),
    name: kernels.length > 1 ? `${kernels.length} × ${name}` : name,
    lines: kernels.length > 1 ? [name, `${format.count(kernels.length, "place")} in the model`] : linesOf(kernels[0], total),
  });
  const longest = rows => rows.sort((a, b) => b.time - a.time);
  let rows = longest(profile.kernels.map(kernel => rowOf([kernel], kernel.nodes || kernel.kernel)));
  if (d3.sum(rows.slice(0, kMost), row => row.time) < total / 2)
    rows = longest(
      d3
        .nest()
        .key(kernel => kernel.kernel)
        .entries(profile.kernels)
        .map(({key, values}) => rowOf(values, key)),
    );
  const rest = rows.splice(kMost);
  const x = d3
    .scaleLinear()
    .domain([0, d3.max(rows, item => Math.max(item.time, item.limit)) || 1])
    .range([0, width - names - values]);
  if (rest.length)
    rows.push({
      kernel: null,
      time: d3.sum(rest, row => row.time),
      limit: 0,
      name: `${format.count(rest.length, "other kernel")} together`,
    });
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
    .attr("width", item => (item.kernel ? Math.max(1, x(item.time)) : 0))
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
    .attr("x", item => names + (item.kernel ? x(item.time) : 0) + 6)
    .attr("y", 14)
    .text(item => `${format.time(item.time)}  ${format.share(item.time / total)}`);
  withTips(items, item => item.lines || [item.name]);
  return {choose: kernel => bars.classed("chosen", item => item.kernel === kernel)};
}
