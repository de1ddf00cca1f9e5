// The table of a comparison: a row a kernel, family, phase, ...; a row that is chosen opens.

const BY = { kernel: "Kernels", family: "Families", phase: "Phases", module: "Modules", layer: "Layers", operator: "Operators" };

class ChangesTable extends SortedTable {
  /** @param section where the table stands; @param tables by what their rows are; @param pair its place */
  constructor(section, tables, pair) {
    super(section.querySelector("table"), section.querySelector(".more button"), section.querySelector(".left"));
    this.section = section;
    this.tables = tables;
    this.pair = pair;
  }

  get table() {
    return this.tables[state.by] ?? Object.values(this.tables)[0];
  }

  get columns() {
    const { metrics } = this.table;
    const ofKernels = this.table.report.by === "kernel";
    const time = (key) => (row) => row.gpu_time[key];
    const beside = metrics.filter((metric) => metric !== "gpu_time" && metric !== "short_launches");
    const columns = [
      { key: "place", head: "#", text: (row) => String(row.place + 1), up: true },
      { key: "name", head: "name", text: (row) => row.name, value: (row) => row.name.toLowerCase(), up: true },
      ofKernels && { key: "family", head: "family", text: (row) => row.family ?? "", up: true },
      { key: "before", head: "before", text: time("before"), value: time("a") },
      { key: "after", head: "after", text: time("after"), value: time("b") },
      { key: "change", head: "change", text: time("marked"), value: time("relative") },
      { key: "error", head: "noise", text: time("error"), value: time("noise") },
      { key: "moved_s", head: "moved", text: (row) => row.moved },
      ...beside.map((metric) => ({
        key: `of.${metric}`, head: page.words[metric], text: (row) => shortly(metric, row[metric]), value: (row) => row[metric].relative,
      })),
    ];
    return columns.filter(Boolean);
  }

  rows() {
    return passing(this.table.rows);
  }

  restText(rows) {
    const moved = rows.reduce((sum, row) => sum + Math.abs(row.moved_s ?? 0), 0);
    return `which moved ${formatSi(moved, "s")} in all`;
  }

  draw() {
    this.section.querySelector("h2").textContent = BY[this.table.report.by];
    const { left_out: left } = this.table;
    this.section.querySelector(".table-note").textContent = left ? `the ${this.table.rows.length} that moved most; ${left} more stand in the JSON` : "choose one to see all of it";
    super.draw();
  }

  lines(row, columns) {
    const [line] = super.lines(row, columns);
    const chosen = state.select === this.nameOf(row);
    line.classList.toggle("chosen", chosen);
    line.querySelector("button").setAttribute("aria-expanded", String(chosen));
    if (!chosen) return [line];
    const opened = document.createElement("tr");
    opened.className = "opened";
    const inside = cell("td");
    inside.colSpan = columns.length;
    inside.append(...detailOf(row, this.table.metrics));
    opened.append(inside);
    return [line, opened];
  }

  nameOf(row) {
    return `${this.pair + 1}.${row.place + 1}`;
  }

  choose(row) {
    update({ select: state.select === this.nameOf(row) ? "" : this.nameOf(row) });
  }
}

/** A change in a cell: counts as they were and are, all else in percent. */
function shortly(metric, change) {
  if (!metric.endsWith("launches") || change.before === change.after) return metric.endsWith("launches") ? change.before : change.marked;
  return `${change.before} \u2192 ${change.after}`;
}

/** Everything of a row: its names on both sides, and each quantity. */
function detailOf(row, metrics) {
  const names = document.createElement("dl");
  for (const [word, listed] of [["before", row.names_a], ["after", row.names_b]]) {
    names.append(cell("dt", word));
    if (!listed.length) names.append(cell("dd", "not there"));
    for (const name of listed.slice(0, 20)) names.append(cell("dd", name === null ? "(none)" : printable(name, 1000)));
    if (listed.length > 20) names.append(cell("dd", `and ${listed.length - 20} more`));
  }
  const table = document.createElement("table");
  table.className = "plain";
  const head = table.createTHead().insertRow();
  for (const text of ["quantity", "before", "after", "change", "noise", "so it is"]) head.append(cell("th", text));
  const body = table.createTBody();
  for (const metric of metrics) {
    const change = row[metric];
    const line = body.insertRow();
    line.append(cell("th", page.words[metric]));
    for (const text of [change.before, change.after, change.marked, change.error, VERDICTS[change.verdict]]) line.append(cell("td", text));
  }
  return [names, table];
}
