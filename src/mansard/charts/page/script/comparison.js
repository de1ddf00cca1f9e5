// Puts the page of a comparison to work: tables of rows that can be filtered, sorted and opened.

let page = null;

/** The other half of mansard.charts.page.changes_data: rows with their names. */
function rowsOfTable(table) {
  return expand(table.rows).map((row, place) => {
    const [namesA, namesB] = table.names[place] ?? [[row.key], [row.key]];
    return Object.assign(row, { place, names_a: namesA, names_b: namesB, full: [...namesA, ...namesB].join(" ") });
  });
}

/** The comparison as `mansard compare --json` prints it. */
function comparisonJson(table) {
  const metrics = Object.keys(table.report.totals).filter((metric) => table.rows.length && metric in table.rows[0]);
  const numbers = ["a", "b", "relative", "noise", "verdict", "repeats", "repeats_a", "repeats_b"];
  const pick = (source, keys) => Object.fromEntries(keys.map((key) => [key, source[key]]));
  const rows = table.rows.map((row) => ({
    ...pick(row, ["key", "short_name", "family", "matched_by", "names_a", "names_b", "moved_s"]),
    changes: Object.fromEntries(metrics.map((metric) => [metric, pick(row[metric], numbers)])),
  }));
  const { unlike, warnings, ...first } = table.report;
  return { ...first, rows, unlike, warnings };
}

/** What the JSON button hands over: the rows that the table shows the kind of, unfiltered. */
function json() {
  const found = page.pairs.map((tables) => comparisonJson(tables[state.by] ?? Object.values(tables)[0]));
  return `${JSON.stringify(found.length === 1 ? found[0] : found, null, 2)}\n`;
}

function fillChoices(form) {
  const rows = page.pairs.flatMap((tables) => Object.values(tables).flatMap((table) => table.rows));
  const listed = (valueOf, words) => Object.keys(words).filter((key) => rows.some((row) => valueOf(row) === key)).map((key) => [key, words[key]]);
  const families = [...new Set(rows.map((row) => row.family).filter(Boolean))].sort();
  const choices = {
    family: families.map((family) => [family, printable(family, 60)]),
    verdict: listed((row) => row.gpu_time.verdict, VERDICTS),
    matched: listed((row) => row.matched_by, MATCHES),
  };
  for (const [name, found] of Object.entries(choices)) {
    form.elements[name].closest("label").hidden = found.length < 2;
    fillSelect(form.elements[name], [["", "all"], ...found]);
  }
  // What one pair lacks, another may have.
  const kinds = [...new Set(page.pairs.flatMap(Object.keys))];
  fillSelect(form.elements.by, kinds.map((by) => [by, BY[by].toLowerCase()]));
  form.elements.by.closest("label").hidden = kinds.length < 2;
  tieFilters(form);
}

/** How many rows pass, and what they moved. */
function countRows(tables) {
  const all = tables.reduce((sum, table) => sum + table.table.rows.length, 0);
  const shown = tables.flatMap((table) => table.rows());
  const moved = shown.reduce((sum, row) => sum + (row.moved_s ?? 0), 0);
  const words = `${moved > 0 ? "+" : ""}${formatSi(moved, "s")} in all`;
  document.getElementById("count").textContent = `${shown.length === all ? "all" : `${shown.length} of`} ${countText(all, "row")}, ${words}`;
}

async function main() {
  page = await readPage();
  for (const tables of page.pairs) for (const table of Object.values(tables)) table.rows = rowsOfTable(table);
  // The rows that the comparison was made by come first.
  DEFAULTS.by = Object.keys(page.pairs[0])[0];
  state.by = DEFAULTS.by;
  const form = document.getElementById("filters");
  fillChoices(form);
  const tables = [...document.querySelectorAll("section.rows")].map((section, place) => new ChangesTable(section, page.pairs[place], place));

  const show = (changed) => {
    if (changed.has("theme")) applyTheme();
    if (changed.has("by") && !page.pairs.some((pair) => state.by in pair)) state.by = DEFAULTS.by;
    for (const name of ["by", ...FILTERS]) if (form.elements[name].value !== state[name]) form.elements[name].value = state[name];
    if ([...FILTERS, "by"].some((key) => changed.has(key))) for (const table of tables) table.most = FIRST_ROWS;
    countRows(tables);
    const chosen = document.activeElement?.closest("tr[data-place]");
    for (const table of tables) table.draw();
    // The button that was pressed has been made anew.
    if (chosen && !chosen.isConnected) document.querySelector(`tr.chosen button, tr[data-place="${chosen.dataset.place}"] button`)?.focus();
  };

  readAddress();
  listen(show);
  show(new Set([...FILTERS, "by", "theme"]));
  window.addEventListener("hashchange", readAddress);
  form.elements.by.addEventListener("change", () => update({ select: "", sort: "" }));
  tieTools();
  const name = Object.values(page.pairs[0])[0].report;
  document.getElementById("export-json").addEventListener("click", () => save(json(), `${stem(name.a.label ?? "a")}-${stem(name.b.label ?? "b")}.json`, "application/json"));
  window.addEventListener("beforeprint", () => openForPrint(true));
  window.addEventListener("afterprint", () => openForPrint(false));
  window.mansard = Object.freeze({ page, state, update, json, rows: () => tables[0].sorted() });
  document.documentElement.dataset.ready = "yes";
}

main().catch(failed);
