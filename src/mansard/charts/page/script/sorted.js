// A table that is sorted by its heads and shows some rows at a time.

const FIRST_ROWS = 40;
const MORE_ROWS = 200;

class SortedTable {
  /**
   * @param element the table; its head and body are filled here
   * @param more the button that shows more rows
   * @param left where it stands what is not shown
   */
  constructor(element, more, left) {
    this.element = element;
    this.more = more;
    this.left = left;
    this.most = FIRST_ROWS;
    more.addEventListener("click", () => {
      this.most += MORE_ROWS;
      this.draw();
    });
  }

  /** Columns as they stand now: {key, head, text(row), value(row), up}. */
  columnsNow() {
    return this.columns;
  }

  /** The rows in the order in which they stand in the table. */
  sorted() {
    const rows = this.rows();
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
    const columns = this.columnsNow();
    const shown = rows.slice(0, this.most);
    const rest = rows.slice(this.most);
    this.drawHead(columns);
    this.element.tBodies[0].replaceChildren(...shown.flatMap((row) => this.lines(row, columns)));
    this.more.hidden = rest.length === 0;
    const words = rest.length ? `and ${rest.length} more, ${this.restText(rest)}` : "";
    this.left.textContent = rows.length ? words : "nothing passes the filters";
  }

  drawHead(columns) {
    const head = this.element.tHead;
    const focused = head.contains(document.activeElement) ? document.activeElement.dataset.key : null;
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

  /** The direction that people want first, then the other, then the order of the rows. */
  sortBy(column) {
    const [key, direction] = state.sort.split(":");
    const first = column.up ? "up" : "down";
    const next = key !== column.key ? first : direction === first ? (first === "up" ? "down" : "up") : null;
    update({ sort: next === null ? "" : `${column.key}:${next}` });
  }

  /** The lines of a row. */
  lines(row, columns) {
    const line = document.createElement("tr");
    line.dataset.place = row.place;
    for (const column of columns) {
      const made = cell(column.key === "name" ? "th" : "td");
      made.className = column.key.split(".")[0];
      if (column.key === "name") {
        made.scope = "row";
        made.append(this.button(row, column.text(row)));
      } else {
        made.textContent = column.text(row);
      }
      line.append(made);
    }
    return [line];
  }

  /** The name of a row, which can be chosen. */
  button(row, text) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "link";
    button.textContent = text;
    button.title = printable(row.name, 1000);
    button.addEventListener("click", () => this.choose(row));
    return button;
  }
}
