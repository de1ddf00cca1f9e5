// Rows of bars as a table: a name, a frame for the measured time with its floor filled, figures.

const BAR_WIDTH = 200;
const BAR_HEIGHT = 16;

/**
 * Show bars in an element.
 *
 * @param rows [{name, frame, fill, figures, strong, choose}]: lengths in the same unit or null;
 *   figures is a list of texts; choose is called when the row is chosen.
 * @param heads texts above the columns: name, bars, each figure
 */
function showBars(element, rows, heads) {
  const longest = d3.max(rows, (row) => Math.max(row.frame ?? 0, row.fill ?? 0)) || 1;
  const width = (length) => Math.max(0, ((length ?? 0) / longest) * (BAR_WIDTH - 2));
  const table = document.createElement("table");
  table.className = "bars";
  const head = table.createTHead().insertRow();
  for (const text of heads) head.append(cell("th", text));
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    line.classList.toggle("strong", Boolean(row.strong));
    const name = cell("th");
    name.scope = "row";
    if (row.choose) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "link";
      button.textContent = row.name;
      button.addEventListener("click", row.choose);
      name.append(button);
    } else {
      name.textContent = row.name;
    }
    line.append(name);
    const svg = d3.select(line.insertCell()).append("svg")
      .attr("viewBox", `0 0 ${BAR_WIDTH} ${BAR_HEIGHT}`).attr("preserveAspectRatio", "none").attr("aria-hidden", "true");
    if (row.fill !== null) svg.append("rect").attr("class", "fill").attr("x", 1).attr("y", 2).attr("width", width(row.fill)).attr("height", BAR_HEIGHT - 4);
    if (row.frame !== null) svg.append("rect").attr("class", "frame").attr("x", 1).attr("y", 2).attr("width", width(row.frame)).attr("height", BAR_HEIGHT - 4);
    for (const text of row.figures) line.append(cell("td", text));
  }
  element.replaceChildren(table);
}
