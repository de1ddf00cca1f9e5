// Tables and the report as files, with the same columns and numbers as the command line writes.

/** A cell that starts like this is a formula to a spreadsheet; some also take the wide forms. */
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
/** Terminal escapes and marks that turn the direction of text. */
const CONTROLS = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;
const MOST_LETTERS = 30000;
const HEAD = 20000;
const TAIL = 9000;

/** A cell that a spreadsheet takes: the middle of a longer one is left out, and said to be. */
function boundedCell(value) {
  if (value.length <= MOST_LETTERS) return value;
  const letters = Array.from(value);
  if (letters.length <= MOST_LETTERS) return value;
  const said = ` [... ${letters.length - HEAD - TAIL} letters left out here; the JSON report has them all ...] `;
  return letters.slice(0, HEAD).join("") + said + letters.slice(-TAIL).join("");
}

function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const text = boundedCell(value).replace(CONTROLS, "\uFFFD");
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function pathColumn(path) {
  return `${/^tensor int\d/.test(path) ? "op" : "flop"}_${path.replaceAll(" ", "_")}`;
}

/** Columns of a table as (header, value of a row), as mansard.charts.csv_report.kernels_csv. */
function csvColumns(rows, by) {
  const keys = (pick) => Object.keys(pick(page.report.totals)).filter((key) => rows.some((row) => key in pick(row)));
  const levels = page.byte_levels;
  return [
    ["number", (row) => row.place + 1],
    [by === "kernel" ? "name" : by, (row) => (by === "kernel" ? row.name : row[by])],
    ...(by === "kernel" ? ["short_name", "family", "shapes"].map((name) => [name, (row) => row[name]]) : []),
    ["launches", (row) => row.launches],
    ["kernels", (row) => row.kernels ?? 1],
    ["duration_s", (row) => row.duration_s],
    ["share_of_time", shareOf],
    ["flop", (row) => row.flop],
    ["flop_complete", (row) => (row.flop_complete ? "yes" : "no")],
    ...keys((row) => row.flop_by_path).map((path) => [pathColumn(path), (row) => row.flop_by_path[path]]),
    ["op_int", (row) => row.op_int],
    ...levels.map((level) => [`bytes_${level}`, (row) => row.bytes[level]]),
    ...levels.map((level) => [`intensity_${level}_flop_per_byte`, (row) => row.intensity[level]]),
    ["flop_per_s", (row) => row.flop_per_s],
    ["zero_flop_launches", (row) => row.zero_flop_launches],
    ["zero_flop_duration_s", (row) => row.zero_flop_duration_s],
    ...keys((row) => row.floors_s).map((name) => [`floor_${name}_s`, (row) => row.floors_s[name]]),
    ["floor_s", (row) => row.floor_s],
    ["bound", (row) => row.bound],
    ["efficiency", (row) => row.efficiency],
    ["recoverable_s", (row) => row.recoverable_s],
    ["launches_above_roof", (row) => row.launches_above_roof],
    ["untimed_launches", (row) => row.untimed_launches],
  ];
}

/** The rows of the table as they stand there, as CSV (RFC 4180). */
function tableCsv(rows, by) {
  const columns = csvColumns(rows, by);
  const lines = [columns.map(([name]) => csvCell(name)), ...rows.map((row) => columns.map(([, valueOf]) => csvCell(valueOf(row))))];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

/** The report as `mansard report --json` prints it; filters do not change it. */
function reportJson(kernels) {
  const own = new Set(["place", "others", "only", "phase", "rank", "near_zero_flop_launches", "short_launches"]);
  const rows = kernels.map((row) => Object.fromEntries(Object.entries(row).filter(([key]) => !own.has(key))));
  return `${JSON.stringify({ ...page.report, kernels: rows }, null, 2)}\n`;
}

/** A file name after the run's label. */
function fileName(ending) {
  return `${stem(page.report.run.label || "run")}${ending}`;
}
