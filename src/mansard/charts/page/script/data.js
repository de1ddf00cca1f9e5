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

/** Stands for a value that follows from others, until `follow` has put it there. */
const FOLLOWS = NaN;

/** The other half of mansard.charts.page.compact.packed. */
function unpack({ kinds, digits, long }) {
  let place = 0;
  let next = 0;
  return Array.from(kinds, (kind) => {
    if (kind === "?") return null;
    if (kind === "0") return 0;
    if (kind === "=") return FOLLOWS;
    if (kind === "*") {
      next += 1;
      return long[next - 1];
    }
    place += 5;
    return Number(`${digits.slice(place - 5, place)}e${kind.charCodeAt(0) - 109}`);
  });
}

/** The other half of mansard.charts.page.compact.table: rows with nested values. */
function expand(table) {
  const outer = [];
  const nested = new Map();
  const add = (name, valueOf) => {
    const dot = name.indexOf(".");
    if (dot < 0) {
      outer.push([name, valueOf]);
      return;
    }
    const group = name.slice(0, dot);
    if (!nested.has(group)) nested.set(group, []);
    nested.get(group).push([name.slice(dot + 1), valueOf]);
  };
  for (const [name, value] of Object.entries(table.same)) add(name, () => value);
  for (const [name, column] of Object.entries(table.packed)) {
    const values = unpack(column);
    add(name, (place) => values[place]);
  }
  for (const [name, column] of Object.entries(table.columns)) {
    const words = table.words[name];
    add(name, words ? (place) => words[column[place]] : (place) => column[place]);
  }
  // Row by row and in one order, so that the browser gives all rows one shape.
  const made = (members, place) => {
    const row = {};
    for (const [name, valueOf] of members) row[name] = valueOf(place);
    return row;
  };
  for (const [group, members] of nested) outer.push([group, (place) => made(members, place)]);
  return Array.from({ length: table.rows }, (_, place) => made(outer, place));
}

/** Work out what follows from a row's other values, as mansard.charts.page.digits.following. */
function follow(row) {
  if (Number.isNaN(row.duration_min_s)) row.duration_min_s = row.duration_s / row.launches;
  if (Number.isNaN(row.duration_max_s)) row.duration_max_s = row.duration_s - (row.launches - 1) * row.duration_min_s;
  if (Number.isNaN(row.zero_flop_duration_s)) row.zero_flop_duration_s = row.zero_flop_launches === row.launches ? row.duration_s : 0;
  if (Number.isNaN(row.flop)) {
    row.flop = 0;
    for (const path in row.flop_by_path) if (!path.startsWith("tensor int")) row.flop += row.flop_by_path[path] ?? 0;
  }
  let largest = null;
  for (const name in row.floors_s) {
    if (Number.isNaN(row.floors_s[name])) row.floors_s[name] = floorOf(row, name);
    if (row.floors_s[name] !== null && (largest === null || row.floors_s[name] > largest)) largest = row.floors_s[name];
  }
  if (Number.isNaN(row.floor_s)) row.floor_s = largest;
  return row;
}

function floorOf(row, name) {
  if (name === "launch") return page.rates.launch * row.launches;
  if (name in row.bytes) return row.bytes[name] / page.rates[name];
  let total = 0;
  for (const path in row.flop_by_path) {
    const work = row.flop_by_path[path];
    if (work > 0 && path.startsWith(`${name} `)) total += work / page.rates[path];
  }
  return total;
}

function quotient(numerator, denominator) {
  return numerator === null || denominator === null || denominator === 0 ? null : numerator / denominator;
}

/** Add what the report divides: as in mansard.model.analysis.Group. */
function derive(row) {
  row.partial_levels = row.partial_levels === "" ? [] : row.partial_levels.split(" ");
  row.flop_per_s = row.untimed_launches ? null : quotient(row.flop, row.duration_s);
  row.intensity = {};
  for (const level in row.bytes) {
    row.intensity[level] = row.partial_levels.includes(level) ? null : quotient(row.flop, row.bytes[level]);
  }
  row.efficiency = quotient(row.floor_s, row.duration_s);
  row.recoverable_s = row.floor_s === null || row.duration_s === null ? null : Math.max(0, row.duration_s - row.floor_s);
  return row;
}

/** Kernels, and what they did in one of their phases or ranks, as rows that know their place. */
function rowsOf(page) {
  const whole = (row) => derive(follow(Object.assign(row, { floors_s: row.floors_s ?? {}, bytes: row.bytes ?? {} })));
  const kernels = expand(page.kernels).map((row, place) => whole(Object.assign(row, {
    name: page.names[2 * place],
    short_name: page.names[2 * place + 1],
    place,
    others: page.others && place === page.kernels.rows - 1,
  })));
  const parts = expand(page.parts).map((part) => {
    const { name, short_name, family, shapes, place, others } = kernels[part.kernel];
    return whole(Object.assign(part, { name, short_name, family, shapes, place, others }));
  });
  return { kernels, parts };
}

/** Put the kernels of each advice into it by name, as in the report; return their places. */
function adviceOf(report, kernels) {
  const placed = (told) => {
    let place = 0;
    const places = told.kernels.map((step) => (place += step));
    told.kernels = places.map((at) => kernels[at].name);
    return new Set(places);
  };
  return report.advice.map((advice) => {
    advice.also.forEach(placed);
    return placed(advice);
  });
}

/** Phases, families, ranks, modules, ... of the report: bytes stand flat there, as in its groups. */
const GROUPS = [["families", "family"], ["phases", "phase"], ["ranks", "rank"], ["modules", "module"], ["layers", "layer"], ["operators", "operator"]];

function groupsOf(report) {
  const made = {};
  for (const [list, word] of GROUPS) {
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

/** Whether a row did integer operations and no FLOP; its rates are then of those. */
function onlyInteger(row) {
  return row.flop === 0 && row.op_int > 0;
}

/** FLOP/s, or OP/s of a row that did only integer operations. */
function rateOf(row) {
  if (!onlyInteger(row)) return row.flop_per_s;
  return row.untimed_launches ? null : quotient(row.op_int, row.duration_s);
}

/** FLOP/byte of a level, or OP/byte of a row that did only integer operations. */
function intensityOf(row, level) {
  if (!onlyInteger(row) || row.partial_levels.includes(level)) return row.intensity[level];
  return quotient(row.op_int, row.bytes[level] ?? null);
}

/** The rate as a cell, marked where it is of integer operations. */
function rateText(row) {
  const rate = rateOf(row);
  return formatSi(rate) + (onlyInteger(row) && rate !== null ? page.integer.mark : "");
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
