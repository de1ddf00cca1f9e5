// The table of kernels, families, phases or ranks: sorted by its heads, a page of rows at a time.

const FIRST_ROWS = 40;
const MORE_ROWS = 200;
const BY = { kernel: "Kernels", family: "Families", phase: "Phases", rank: "Ranks" };

class Table {
  constructor(groups) {
    this.groups = groups;
    this.element = document.getElementById("table");
    this.most = FIRST_ROWS;
    this.columns = [
      { key: "place", head: "#", text: (row) => String(row.place + 1), up: true },
      { key: "name", head: "name", text: (row) => titleOf(row), up: true, value: (row) => titleOf(row).toLowerCase() },
      { key: "family", head: "family", text: (row) => row.family ?? "", up: true, only: "kernel" },
      { key: "launches", head: "launches", text: (row) => String(row.launches) },
      { key: "duration_s", head: "time", text: (row) => formatSi(known(row.duration_s) ? row.duration_s : null, "s") },
      { key: "share", head: "share", text: (row) => formatShare(shareOf(row)), value: shareOf },
      { key: "flop_per_s", head: "FLOP/s", text: (row) => formatSi(row.flop_per_s) },
      ...page.levels.map((level) => ({
        key: `intensity.${level}`, head: `${page.resources[level]} FLOP/B`, text: (row) => formatIntensity(row.intensity[level]), value: (row) => row.intensity[level],
      })),
      { key: "bound", head: "bound", text: boundLabel, up: true },
      { key: "efficiency", head: "eff.", text: efficiencyLabel },
      { key: "recoverable_s", head: "recov.", text: recoverableLabel, value: (row) => (isAbove(row) ? null : row.recoverable_s) },
    ];
    document.getElementById("more").addEventListener("click", () => {
      this.most += MORE_ROWS;
      this.draw();
    });
  }

  /** Take the filtered kernels; groups are always of the whole run. */
  show(kernels) {
    this.most = FIRST_ROWS;
    this.kernels = kernels;
    this.draw();
  }

  /** The rows in the order in which they stand in the table. */
  sorted() {
    const rows = state.by === "kernel" ? this.kernels : this.groups[state.by];
    const [key, direction] = state.sort.split(":");
    const column = this.columns.find((entry) => entry.key === key);
    if (!column) return rows;
    const valueOf = column.value ?? ((row) => row[column.key]);
    const sign = direction === "up" ? 1 : -1;
    // Unknown values stand last, whichever way the others are sorted.
    return [...rows].sort((a, b) => {
      const [x, y] = [valueOf(a) ?? null, valueOf(b) ?? null];
      if (x === null || y === null) return (x === null) - (y === null);
      return sign * (x < y ? -1 : x > y ? 1 : 0);
    });
  }

  draw() {
    const rows = this.sorted();
    const columns = this.columns.filter((column) => !column.only || column.only === state.by);
    document.getElementById("table-title").textContent = BY[state.by];
    document.getElementById("table-note").textContent = state.by === "kernel" ? "" : "of the whole run; choose one to see its kernels";
    this.drawHead(columns);
    const body = this.element.tBodies[0];
    body.replaceChildren(...rows.slice(0, this.most).map((row) => this.line(row, columns)));
    const rest = rows.length - Math.min(rows.length, this.most);
    document.getElementById("more").hidden = rest === 0;
    const left = rest ? `and ${rest} more, ${formatShare(d3.sum(rows.slice(this.most), (row) => shareOf(row) ?? 0))} of the time` : "";
    document.getElementById("shown").textContent = rows.length ? left : "nothing passes the filters";
  }

  drawHead(columns) {
    const head = this.element.tHead;
    const focused = document.activeElement?.dataset?.key;
    const line = document.createElement("tr");
    const [sortKey, direction] = state.sort.split(":");
    for (const column of columns) {
      const th = cell("th");
      th.scope = "col";
      if (column.key === sortKey) th.setAttribute("aria-sort", direction === "up" ? "ascending" : "descending");
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.key = column.key;
      button.textContent = column.head;
      button.addEventListener("click", () => this.sortBy(column));
      th.append(button);
      th.className = column.key.split(".")[0];
      line.append(th);
    }
    head.replaceChildren(line);
    if (focused) head.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  sortBy(column) {
    const [key, direction] = state.sort.split(":");
    const first = column.up ? "up" : "down";
    const next = key !== column.key ? first : direction === first ? (first === "up" ? "down" : "up") : null;
    update({ sort: next === null ? "" : `${column.key}:${next}` });
  }

  line(row, columns) {
    const line = document.createElement("tr");
    line.dataset.place = row.place;
    const isKernel = state.by === "kernel";
    line.classList.toggle("chosen", isKernel && String(row.place + 1) === state.select);
    for (const column of columns) {
      const made = cell(column.key === "name" ? "th" : "td");
      made.className = column.key.split(".")[0];
      if (column.key === "name") {
        made.scope = "row";
        const button = document.createElement("button");
        button.type = "button";
        button.className = "link";
        button.textContent = column.text(row);
        button.title = printable(row.name, 1000);
        button.addEventListener("click", () => this.choose(row));
        made.append(button);
      } else {
        made.textContent = column.text(row);
      }
      line.append(made);
    }
    return line;
  }

  choose(row) {
    if (state.by === "kernel") update({ select: String(row.place + 1) });
    else if (canFilter(state.by)) update({ [state.by]: row.name, by: "kernel" });
  }
}
