// The page of `relaxc compare --html`: two profiles side by side. A row is the kernels of both that compute the same
// nodes of the model.
"use strict";

(() => {
  const {a, b, rows} = data,
    page = document.getElementById("page");
  page.className = "report";
  const ratio = b.median_ms / a.median_ms;
  const words = value =>
    value < 1 ? `${(1 / value).toPrecision(3)} times as fast` : `${value.toPrecision(3)} times the time`;
  // Colours stand for differences that are no chance, as the runs say.
  const isClear = /^(faster|slower)/.test(data.verdict);
  const style = value => (!isClear ? "" : value < 0.98 ? "faster" : value > 1.02 ? "slower" : "");
  const tile = (value, text, name = "") =>
    element("div", {className: "tile"}, element("b", {className: name}, value), element("span", {}, text));
  page.append(
    element("h1", {}, `${a.name}  and  ${b.name}`),
    element(
      "div",
      {className: "tiles"},
      tile(format.time(a.median_ms * 1000), `A: ${a.name}, median`),
      tile(format.time(b.median_ms * 1000), `B: ${b.name}, median`),
      tile(
        `${ratio.toPrecision(3)}`,
        `B / A: B takes ${words(ratio)}`.replace("takes", ratio < 1 ? "is" : "takes"),
        style(ratio),
      ),
      tile(`${format.time(a.kernels_us)} / ${format.time(b.kernels_us)}`, "in kernels, A / B, in other runs with the profiler"),
      tile(`${format.time(a.limit_ms * 1000)} / ${format.time(b.limit_ms * 1000)}`, "the machine's limit, A / B"),
    ),
  );
  page.append(element("p", {className: "faint", style: "margin-top: 10px"}, `B against A: ${data.verdict}.`));
  const differing = data.settings.filter(setting => setting.a !== setting.b);
  if (differing.length)
    page.append(
      element(
        "p",
        {className: "slower", style: "margin-top: 10px"},
        `Measured under different conditions: ${differing.map(setting => `${setting.name} ${setting.a} and ${setting.b}`).join("; ")}.`,
      ),
    );

  const section = (title, text) => {
    const made = element("section", {}, element("h2", {}, title), element("p", {className: "faint"}, text));
    page.append(made);
    return made;
  };
  const kMost = 24,
    height = 40,
    names = 380,
    values = 190,
    width = 1190;
  const sorted = rows.slice().sort((p, q) => Math.abs(q.b_us - q.a_us) - Math.abs(p.b_us - p.a_us)),
    shown = sorted.slice(0, kMost);
  const chart = section(
    "Where the difference is",
    `${rows.length > kMost ? `The ${kMost} of ${rows.length} rows` : "Those"} that differ most come first. A row is the kernels that compute the same nodes.`,
  );
  chart.append(legendOf({product: "A", second: "B"}));
  const x = d3
    .scaleLinear()
    .domain([0, d3.max(shown, row => Math.max(row.a_us, row.b_us)) || 1])
    .range([0, width - names - values]);
  const svg = d3
    .select(chart)
    .append("svg")
    .attr("viewBox", `0 0 ${width} ${shown.length * height}`)
    .attr("role", "img")
    .attr("aria-label", "times of A and B");
  const items = svg
    .selectAll("g")
    .data(shown)
    .enter()
    .append("g")
    .attr("transform", (_, i) => `translate(0,${i * height})`);
  items
    .append("text")
    .attr("x", names - 10)
    .attr("y", 16)
    .attr("text-anchor", "end")
    .text(row => cutText(row.nodes, names - 14));
  items
    .append("text")
    .attr("x", names - 10)
    .attr("y", 30)
    .attr("text-anchor", "end")
    .attr("class", "faint")
    .text(row => cutText(kernelsText(row), names - 14));
  [
    ["a_us", "product", 4],
    ["b_us", "second", 19],
  ].forEach(([key, name, top]) => {
    items
      .append("rect")
      .attr("x", names)
      .attr("y", top)
      .attr("height", 13)
      .attr("width", row => (row[key] ? Math.max(1, x(row[key])) : 0))
      .attr("fill", `var(--${name})`)
      .attr("fill-opacity", 0.75);
    items
      .append("text")
      .attr("x", row => names + x(row[key]) + 6)
      .attr("y", top + 11)
      .text(row => (row[key] ? format.time(row[key]) : "none"));
  });
  items
    .append("text")
    .attr("x", width)
    .attr("y", 23)
    .attr("text-anchor", "end")
    .style("font-weight", 600)
    .style("fill", row => (!isClear ? "var(--faint)" : row.b_us > row.a_us ? "var(--warn)" : "var(--elementwise)"))
    .text(row => difference(row));
  withTips(items, row => [
    row.nodes,
    `A: ${row.a_kernels.join(", ") || "none"}`,
    `B: ${row.b_kernels.join(", ") || "none"}`,
    `${format.time(row.a_us)} and ${format.time(row.b_us)}, limits ${format.time(row.a_limit_us)} and ${format.time(row.b_limit_us)}`,
  ]);

  function kernelsText(row) {
    const [first, second] = [row.a_kernels.join(" + "), row.b_kernels.join(" + ")];
    return first === second ? first : `${first || "none"} | ${second || "none"}`;
  }
  function difference(row) {
    return `${row.b_us > row.a_us ? "+" : "−"}${format.time(Math.abs(row.b_us - row.a_us))}`;
  }
  const columns = [
    {title: "nodes", words: true, value: row => row.nodes, text: row => row.nodes},
    {title: "A", value: row => row.a_us, text: row => format.time(row.a_us)},
    {title: "B", value: row => row.b_us, text: row => format.time(row.b_us)},
    {
      title: "B − A",
      value: row => row.b_us - row.a_us,
      text: difference,
      style: row => style((row.b_us + 0.01) / (row.a_us + 0.01)),
    },
    {
      title: "B / A",
      value: row => row.b_us / row.a_us || 0,
      text: row => (row.a_us && row.b_us ? (row.b_us / row.a_us).toPrecision(3) : ""),
    },
    {title: "limit A", value: row => row.a_limit_us, text: row => format.time(row.a_limit_us)},
    {title: "limit B", value: row => row.b_limit_us, text: row => format.time(row.b_limit_us)},
    {title: "kernels of A | of B", words: true, value: kernelsText, text: kernelsText},
  ];
  section("All rows", "The head of a column sorts.").append(new SortedTable(columns, rows, {by: 1}).node);
  document.body.dataset.ready = `${rows.length} rows`;
})();
