// The panel of one kernel: its floors against its time, its launches, where it runs, its numbers.

/** Kernels named while none is chosen. */
const LONGEST = 20;

function showKernel(row, shown) {
  const body = document.querySelector("#kernel .body");
  // Without a kernel beside it the table takes the whole width.
  document.querySelector(".views").classList.toggle("chosen", Boolean(row));
  document.getElementById("kernel-title").textContent = row ? `Kernel ${row.place + 1}` : "Kernel";
  if (!row) {
    body.replaceChildren(paragraph("The longest kernels, as numbered on the charts. Choose one here, on a chart or in the table: its floors, launches and numbers then stand here.", "soft"), longest(shown));
    return;
  }
  body.replaceChildren(
    nameOf(row),
    facts(row),
    ...floorsOf(row),
    ...launchesOf(row),
    ...partsOf(row),
    ...callersOf(row),
    numbersOf(row),
  );
}

/** The key of the charts: number, name and share of the time of the longest kernels shown. */
function longest(shown) {
  const table = document.createElement("table");
  table.className = "key";
  const body = table.createTBody();
  for (const row of [...shown].sort((a, b) => (b.duration_s ?? 0) - (a.duration_s ?? 0)).slice(0, LONGEST)) {
    const line = body.insertRow();
    const button = document.createElement("button");
    button.type = "button";
    button.className = "link";
    button.textContent = titleOf(row);
    button.title = printable(row.name, 1000);
    button.addEventListener("click", () => update({ select: String(row.place + 1) }));
    const name = cell("th");
    name.scope = "row";
    name.append(button);
    line.append(cell("td", String(row.place + 1)), name, cell("td", formatShare(shareOf(row))));
  }
  return table;
}

function paragraph(text, kind = "") {
  const made = document.createElement("p");
  made.className = kind;
  made.textContent = text;
  return made;
}

function heading(text) {
  const made = document.createElement("h3");
  made.textContent = text;
  return made;
}

function nameOf(row) {
  const name = document.createElement("p");
  name.className = "name";
  name.textContent = printable(row.name, 4000);
  return name;
}

function facts(row) {
  const shapes = row.shapes > 1 ? ` of ${row.shapes} shapes` : "";
  const mean = row.launches > 1 && row.duration_s !== null ? `, ${formatSi(row.duration_s / row.launches, "s")} each` : "";
  const parts = [
    `${row.family}, ${countText(row.launches, "launch")}${shapes}: ${formatSi(row.duration_s, "s")}${mean}, ${formatShare(shareOf(row))} of the time.`,
  ];
  if (row.untimed_launches) parts.push(`${countText(row.untimed_launches, "launch")} without a time, so no rate.`);
  if (isAbove(row) || row.launches_above_roof) parts.push(`Faster than the roof allows (${countText(row.launches_above_roof, "launch")}): something is wrong. Look at: ${page.above_roof.causes}.`);
  else if (row.floor_s !== null) parts.push(`Bound ${boundLabel(row)}, efficiency ${efficiencyLabel(row)}, recoverable ${recoverableLabel(row)}.`);
  if (row.tiny) parts.push("Its launches are too small to judge: starting them counts more than their work.");
  return paragraph(parts.join(" "));
}

function floorsOf(row) {
  const resources = Object.keys(page.resources).filter((name) => name in row.floors_s);
  if (!resources.length) return [];
  const part = (time) => (row.duration_s > 0 && time !== null ? formatShare(time / row.duration_s) : "-");
  const place = document.createElement("div");
  showBars(place, [
    { name: "measured", frame: row.duration_s, fill: null, figures: [formatSi(row.duration_s, "s"), ""], strong: true },
    ...resources.map((name) => ({
      name: page.resources[name],
      frame: null,
      fill: row.floors_s[name],
      figures: [formatSi(row.floors_s[name], "s"), part(row.floors_s[name])],
      strong: name === row.bound,
    })),
  ], ["floor of", "", "time", "of measured"]);
  const unknown = resources.filter((name) => row.floors_s[name] === null).map((name) => page.resources[name]);
  const highest = d3.max(resources, (name) => row.floors_s[name]);
  const differ = row.floor_s > highest && part(row.floor_s) !== part(highest);
  return [heading("Floors"), place, ...(differ ? [paragraph(page.launches_differ, "soft")] : []), ...(unknown.length ? [paragraph(`Unknown, not 0: ${unknown.join(", ")}.`, "soft")] : [])];
}

/** Histogram of the launches on a logarithmic axis of time. */
function launchesOf(row) {
  if (!(row.launches > 1) || row.duration_min_s === null) return [];
  const range = `from ${formatSi(row.duration_min_s, "s")} to ${formatSi(row.duration_max_s, "s")}`;
  const found = [heading("Launches"), paragraph(`${row.launches} launches ${range}, mean ${formatSi(row.duration_s / row.launches, "s")}.`)];
  const bars = page.spreads[row.place];
  if (!bars || row.by) return found;
  const step = 10 ** (1 / 20);
  const [width, height, foot] = [340, 90, 18];
  const x = d3.scaleLog([bars[0][0] / step, bars.at(-1)[0] * step * step], [4, width - 4]);
  const y = d3.scaleLinear([0, d3.max(bars, (bar) => bar[1])], [height - foot, 4]);
  const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("class", "histogram")
    .attr("aria-label", `Histogram of ${row.launches} launches ${range}; most, ${d3.max(bars, (bar) => bar[1])}, near ${formatSi(d3.greatest(bars, (bar) => bar[1])[0], "s")}`);
  svg.selectAll("rect").data(bars).join("rect").attr("class", "fill")
    .attr("x", (bar) => x(bar[0])).attr("width", (bar) => Math.max(1, x(bar[0] * step) - x(bar[0]) - 0.5))
    .attr("y", (bar) => y(bar[1])).attr("height", (bar) => height - foot - y(bar[1]))
    .append("title").text((bar) => `${countText(bar[1], "launch")} of ${formatSi(bar[0], "s")} to ${formatSi(bar[0] * step, "s")}`);
  svg.append("line").attr("class", "axis").attr("x1", 0).attr("x2", width).attr("y1", height - foot).attr("y2", height - foot);
  for (const [value, anchor, at] of [[row.duration_min_s, "start", 2], [row.duration_max_s, "end", width - 2]]) {
    svg.append("text").attr("x", at).attr("y", height - 4).attr("text-anchor", anchor).text(formatSi(value, "s"));
  }
  return [...found, svg.node()];
}

/** Where the kernel runs: bars by phase and by rank. */
function partsOf(row) {
  const own = page.parts.filter((part) => part.place === row.place);
  return ["phase", "rank"].flatMap((by) => {
    const parts = own.filter((part) => part.by === by);
    if (parts.length < 2) return [];
    const place = document.createElement("div");
    const shown = parts.slice(0, 16);
    showBars(place, shown.map((part) => {
      const name = choiceOf(part[by]);
      return {
        name: printable(name, 30), frame: part.duration_s, fill: part.floor_s,
        figures: [formatSi(part.duration_s, "s"), efficiencyLabel(part)], choose: () => update({ [by]: name }),
      };
    }), [by, "", "time", "eff."]);
    const more = parts.length > shown.length ? [paragraph(`and ${parts.length - shown.length} more`, "soft")] : [];
    return [heading(by === "phase" ? "Phases" : "Ranks"), place, ...more];
  });
}

function callersOf(row) {
  const callers = page.callers[row.place];
  if (!callers) return [];
  const list = document.createElement("ul");
  for (const [op, module, launches, duration] of callers) {
    const words = [op, module].filter((word) => word !== null).map((word) => printable(word, 120)).join(" in ");
    list.append(cell("li", `${words}: ${countText(launches, "launch")}, ${formatSi(duration, "s")}`));
  }
  return [heading("Launched by"), list];
}

/** Every number of the kernel with what it counts, as a table. */
function numbersOf(row) {
  const details = document.createElement("details");
  details.append(cell("summary", "All numbers and what they count"));
  const scroll = details.appendChild(document.createElement("div"));
  scroll.className = "scroll";
  const table = scroll.appendChild(document.createElement("table"));
  table.className = "plain";
  const head = table.createTHead().insertRow();
  for (const text of ["quantity", "value", "counted as"]) head.append(cell("th", text));
  const body = table.createTBody();
  const { definitions, missing } = page.report.run;
  const add = (name, value, column) => {
    const line = body.insertRow();
    const defined = definitions[column];
    const needs = missing[column]?.length ? `not collected; needs ${missing[column].join(", ")}` : "";
    const meaning = defined ? `${defined.formula}${defined.meaning ? `: ${defined.meaning}` : ""}` : needs;
    line.append(cell("th", name), cell("td", value), cell("td", printable(meaning, 600)));
  };
  add("time", formatSi(row.duration_s, "s"), "duration_s");
  add("FLOP", (row.flop_complete ? "" : "at least ") + formatSi(row.flop, "FLOP"), "");
  for (const [path, work] of Object.entries(row.flop_by_path)) {
    const column = `${path.includes(" int") ? "op" : "flop"}_${path.replaceAll(" ", "_")}`;
    if (work !== 0) add(path, formatSi(work, column.startsWith("op") ? "OP" : "FLOP"), column);
  }
  const work = onlyInteger(row) ? "OP" : "FLOP";
  add("rate", formatSi(rateOf(row), `${work}/s`), "");
  for (const [level, moved] of Object.entries(row.bytes)) {
    if (moved === null && !page.levels.includes(level)) continue;
    add(page.resources[level] ?? level, `${formatSi(moved, "B")}, ${formatIntensity(intensityOf(row, level))} ${work}/byte`, `bytes_${level}`);
  }
  return details;
}
