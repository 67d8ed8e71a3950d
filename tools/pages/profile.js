// The page of `relaxc bench --html`: figures, roofline, time by kernel, memory, and a table of everything.
"use strict";

(() => {
  const {figures, model} = data,
    {profile, memory} = figures;
  const page = document.getElementById("page");
  page.className = "report";
  const tile = (value, text) => element("div", {className: "tile"}, element("b", {}, value), element("span", {}, text));
  const total = d3.sum(profile.kernels, timeOf),
    dims = Object.entries(figures.dims)
      .map(([name, size]) => `${name} = ${size}`)
      .join(", ");
  page.append(
    element("h1", {}, model),
    element(
      "div",
      {className: "faint"},
      [`relaxc ${figures.version}`, `for ${figures.target}`, format.count(figures.threads, "thread"), dims]
        .filter(text => text)
        .join(", "),
    ),
    element(
      "div",
      {className: "tiles"},
      tile(format.time(figures.median_ms * 1000), `a run, median of ${figures.runs} without the profiler`),
      tile(`${figures.runs_per_s.toPrecision(4)} / s`, "runs"),
      tile(format.time(total), "in kernels of a run, their medians in other runs with the profiler"),
      tile(
        format.time(profile.limit_ms * 1000),
        `the machine's limit, ${format.share((profile.limit_ms * 1000) / total)} of that`,
      ),
      tile(memory.arena_bytes === undefined ? "?" : format.bytes(memory.arena_bytes), "arena"),
      tile(format.bytes(memory.weights_bytes), "weights"),
    ),
  );

  const section = (title, text) => {
    const made = element("section", {}, element("h2", {}, title), element("p", {className: "faint"}, text));
    page.append(made);
    return made;
  };
  const pair = element("div", {className: "pair"});
  page.append(pair);
  const left = section("Roofline", "A circle is a kernel, its area its time. On a roof it is at the machine's limit."),
    right = section("Time by kernel", "Full colour: the least time that the machine allows. Click one to find it everywhere.");
  pair.append(left, right);
  const charts = [];
  const choose = kernel => {
    for (const chart of charts) chart.choose(kernel);
  };
  charts.push(drawRoofline(left, profile, {onChoose: choose}), drawBars(right, profile, {onChoose: choose}));
  const below = section(
    "Memory over time",
    memory.notes.length
      ? `Note: ${memory.notes.join("; ")}.`
      : "Tensors that do not live at the same time share the bytes of the arena.",
  );
  new MemoryChart(below, memory);

  const columns = [
    {
      title: "nodes, kernel",
      words: true,
      value: kernel => kernel.nodes || kernel.kernel,
      text: kernel => (kernel.nodes ? `${kernel.nodes} (${kernel.kernel})` : kernel.kernel),
    },
    {title: "calls", value: kernel => kernel.calls_per_run, text: kernel => kernel.calls_per_run},
    {title: "of a run", value: timeOf, text: kernel => format.time(timeOf(kernel))},
    {title: "share", value: timeOf, text: kernel => format.share(timeOf(kernel) / total)},
    {
      title: "GFLOP/s",
      value: kernel => kernel.operations / kernel.median_us,
      text: kernel => (kernel.operations === null ? "?" : (kernel.operations / kernel.median_us / 1e3).toFixed(1)),
    },
    {
      title: "GB/s",
      value: kernel => kernel.bytes / kernel.median_us,
      text: kernel => (kernel.bytes / kernel.median_us / 1e3).toFixed(1),
    },
    {
      title: "of limit",
      value: kernel => kernel.limit_us / kernel.median_us,
      text: kernel => format.share(kernel.limit_us / kernel.median_us),
    },
    {title: "bound by", value: kernel => kernel.bound, text: kernel => kernel.bound},
    {
      title: "tensors, rule",
      words: true,
      value: kernel => kernel.tensors,
      text: kernel => [kernel.tensors, kernel.rule].filter(text => text).join("; "),
    },
  ];
  const table = new SortedTable(columns, profile.kernels, {by: 2, onChoose: choose});
  section("All kernels", "Figures of a run: of each kernel the median of ten runs. The head of a column sorts.").append(table.node);
  charts.push(table);
  document.body.dataset.ready = `${profile.kernels.length} kernels, ${memory.tensors.length} tensors`;
})();
