// The table of kernels, families, phases, ranks, modules, ... of a report.

const BY = { kernel: "Kernels", family: "Families", phase: "Phases", rank: "Ranks", module: "Modules", layer: "Layers", operator: "Operators" };

class Table extends SortedTable {
  constructor(groups) {
    super(...["table", "more", "shown"].map((id) => document.getElementById(id)));
    this.groups = groups;
    this.columns = [
      { key: "place", head: "#", text: (row) => String(row.place + 1), up: true },
      { key: "name", head: "name", text: (row) => titleOf(row), up: true, value: (row) => titleOf(row).toLowerCase() },
      { key: "family", head: "family", text: (row) => row.family ?? "", up: true, only: "kernel" },
      { key: "launches", head: "launches", text: (row) => String(row.launches) },
      { key: "duration_s", head: "time", text: (row) => formatSi(known(row.duration_s) ? row.duration_s : null, "s") },
      { key: "efficiency", head: "eff.", text: efficiencyLabel },
      { key: "recoverable_s", head: "recov.", text: recoverableLabel, value: (row) => (isAbove(row) ? null : row.recoverable_s) },
      { key: "bound", head: "bound", text: boundLabel, up: true },
      { key: "share", head: "share", text: (row) => formatShare(shareOf(row)), value: shareOf },
      { key: "flop_per_s", head: "FLOP/s", text: rateText, value: rateOf },
      ...page.levels.map((level) => ({
        key: `intensity.${level}`, head: `${page.resources[level]} FLOP/B`, text: (row) => formatIntensity(intensityOf(row, level)), value: (row) => intensityOf(row, level),
      })),
    ];
  }

  /** Take the filtered kernels; groups are always of the whole run. */
  show(kernels) {
    this.most = FIRST_ROWS;
    this.kernels = kernels;
    this.draw();
  }

  rows() {
    return state.by === "kernel" ? this.kernels : this.groups[state.by];
  }

  columnsNow() {
    return this.columns.filter((column) => !column.only || column.only === state.by);
  }

  restText(rows) {
    return `${formatShare(d3.sum(rows, (row) => shareOf(row) ?? 0))} of the time`;
  }

  draw() {
    document.getElementById("table-title").textContent = BY[state.by];
    const choose = canFilter(state.by) ? "; choose one to see its kernels" : "";
    const notes = state.by === "kernel" ? [] : [`of the whole run${choose}`];
    if (this.rows().some(onlyInteger)) notes.push(page.integer.note);
    document.getElementById("table-note").textContent = notes.join(". ");
    super.draw();
  }

  lines(row, columns) {
    const [line] = super.lines(row, columns);
    line.classList.toggle("chosen", state.by === "kernel" && String(row.place + 1) === state.select);
    return [line];
  }

  button(row, text) {
    if (state.by === "kernel" || canFilter(state.by)) return super.button(row, text);
    const plain = cell("span", text);
    plain.title = printable(row.name, 1000);
    return plain;
  }

  choose(row) {
    if (state.by === "kernel") update({ select: String(row.place + 1) });
    else if (canFilter(state.by)) update({ [state.by]: row.name, by: "kernel" });
  }
}
