// What the page holds: its data element read, columns turned into rows, rates worked out.

/** Read the data element; large ones are a zlib stream in base64. */
async function readPage() {
  const element = document.getElementById("data");
  if (element.dataset.encoding !== "deflate") return JSON.parse(element.textContent);
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser cannot unpack the data of a large page; use one made after 2022");
  }
  const packed = atob(element.textContent);
  const bytes = new Uint8Array(packed.length);
  for (let place = 0; place < packed.length; place += 1) bytes[place] = packed.charCodeAt(place);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** The other half of mansard.charts.page.compact.table: rows with nested values. */
function expand(table) {
  const rows = Array.from({ length: table.rows }, () => ({}));
  const fill = (name, valueOf) => {
    const dot = name.indexOf(".");
    if (dot < 0) {
      rows.forEach((row, place) => { row[name] = valueOf(place); });
      return;
    }
    const outer = name.slice(0, dot);
    const inner = name.slice(dot + 1);
    rows.forEach((row, place) => { (row[outer] ??= {})[inner] = valueOf(place); });
  };
  for (const [name, value] of Object.entries(table.same)) fill(name, () => value);
  for (const [name, column] of Object.entries(table.columns)) {
    const words = table.words[name];
    fill(name, words ? (place) => words[column[place]] : (place) => column[place]);
  }
  return rows;
}

function quotient(numerator, denominator) {
  return numerator === null || denominator === null || denominator === 0 ? null : numerator / denominator;
}

/** Add what the report divides: as in mansard.model.analysis.Group. */
function derive(row) {
  row.partial_levels = row.partial_levels === "" ? [] : row.partial_levels.split(" ");
  row.flop_per_s = row.untimed_launches ? null : quotient(row.flop, row.duration_s);
  row.intensity = {};
  for (const [level, moved] of Object.entries(row.bytes ?? {})) {
    row.intensity[level] = row.partial_levels.includes(level) ? null : quotient(row.flop, moved);
  }
  row.floors_s ??= {};
  row.efficiency = quotient(row.floor_s, row.duration_s);
  row.recoverable_s = row.floor_s === null || row.duration_s === null ? null : Math.max(0, row.duration_s - row.floor_s);
  return row;
}

/** Kernels, and their parts by phase and rank, as rows that know their place in the analysis. */
function rowsOf(page) {
  const kernels = expand(page.kernels).map(derive);
  kernels.forEach((row, place) => {
    row.place = place;
    row.others = page.others && place === kernels.length - 1;
  });
  const identity = ({ name, short_name, family, shapes, place, others }) => ({ name, short_name, family, shapes, place, others });
  const parts = [
    ...expand(page.wholes).map((whole) => ({ ...kernels[whole.kernel], ...whole })),
    ...expand(page.parts).map((part) => derive(Object.assign(part, identity(kernels[part.kernel])))),
  ].sort((a, b) => b.duration_s - a.duration_s);
  return { kernels, parts };
}

/** Phases, families and ranks of the report: bytes stand flat there, as in its groups. */
function groupsOf(report) {
  const made = {};
  for (const [list, word] of [["families", "family"], ["phases", "phase"], ["ranks", "rank"]]) {
    made[word] = report[list].map((group, place) => {
      const bytes = {};
      for (const [key, value] of Object.entries(group)) {
        if (key.startsWith("bytes_")) bytes[key.slice(6)] = value;
      }
      return { ...group, name: group[word] ?? NONE, short_name: group[word] ?? NONE, bytes, place };
    });
  }
  return made;
}

/** Whether a group as a whole ran faster than its floor allows. */
function isAbove(row) {
  return row.efficiency !== null && row.efficiency > page.above_roof.limit;
}

/** What bounds a row, as a filter value: "?" when undecided, "-" without a machine. */
function boundOf(row) {
  if (row.bound === null) return "-";
  return row.bound.startsWith("unknown") ? "?" : row.bound;
}

/** What bounds a row, in words. */
function boundLabel(row) {
  const bound = boundOf(row);
  return page.resources[bound] ?? printable(bound, 24);
}

/** The efficiency in percent, as the terminal writes it. */
function efficiencyLabel(row) {
  if (isAbove(row)) return "> roof";
  const text = formatShare(row.efficiency);
  return row.tiny && text !== "-" ? `~${text.replace(" ", "")}` : text;
}

/** Recoverable time in words: above its roof the floor itself is in doubt. */
function recoverableLabel(row) {
  return isAbove(row) ? "-" : formatSi(row.recoverable_s, "s");
}

/** A row's part of the time of the whole run. */
function shareOf(row) {
  const total = page.report.totals.duration_s;
  return known(row.duration_s) && total > 0 ? row.duration_s / total : null;
}

function titleOf(row, limit = 200) {
  return printable(row.short_name || row.name, limit);
}
