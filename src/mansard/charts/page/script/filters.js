// What the reader of a report can choose, and which kernels pass.

/** Value of a filter for launches outside any phase, or of unknown rank. */
const NONE = "(none)";

const FILTERS = ["q", "family", "bound", "path", "is", "advice", "phase", "rank"];

/** What the filter "is" asks of a kernel, as mansard.charts.page.summary.IS. */
const IS = {
  zero: ["without FLOP", (row) => row.zero_flop_launches > 0],
  near: ["next to no FLOP", (row) => row.near_zero_flop_launches > 0],
  short: ["short", (row) => row.short_launches > 0],
  tiny: ["too small to judge", (row) => row.tiny],
  above: ["above the roof", (row) => row.launches_above_roof > 0 || isAbove(row)],
  unknown: ["FLOP or time unknown", (row) => row.flop === null || row.duration_s === null],
};

const DEFAULTS = {
  q: "", family: "", bound: "", path: "", is: "", advice: "", phase: "", rank: "",
  select: "", by: "kernel", sort: "", theme: "",
};

/** A phase or rank as a filter value. */
function choiceOf(value) {
  return value === null ? NONE : String(value);
}

/** Rows of the chosen phase and rank: kernels that belong there whole, and parts of the others. */
function sourceRows(kernels, parts) {
  const chosen = ["phase", "rank"].filter((by) => state[by]);
  if (!chosen.length) return kernels;
  const keyOf = (place, by, values) => JSON.stringify([place, by, ...values]);
  const valuesOf = (part) => ["phase", "rank"].filter((by) => part.by.includes(by)).map((by) => choiceOf(part[by]));
  const known = new Map(parts.map((part) => [keyOf(part.place, part.by, valuesOf(part)), part]));
  const rows = kernels.flatMap((kernel) => {
    const divided = chosen.filter((by) => !kernel.only.includes(by));
    if (chosen.some((by) => kernel.only.includes(by) && choiceOf(kernel[by]) !== state[by])) return [];
    if (!divided.length) return [kernel];
    return known.get(keyOf(kernel.place, divided.join(""), divided.map((by) => state[by]))) ?? [];
  });
  return rows.sort((a, b) => b.duration_s - a.duration_s);
}

/** Rows that pass the filters. */
function filterRows(rows) {
  const asks = IS[state.is]?.[1];
  const advised = state.advice ? page.advised[state.advice - 1] ?? new Set() : null;
  return rows.filter((row) => {
    if (state.family && row.family !== state.family) return false;
    if (state.bound && boundOf(row) !== state.bound) return false;
    if (state.path && !(row.flop_by_path[state.path] > 0)) return false;
    if (asks && !asks(row)) return false;
    if (advised && !advised.has(row.place)) return false;
    return hasWords(row.name);
  });
}
