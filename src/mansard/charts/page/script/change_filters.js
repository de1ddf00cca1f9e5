// What the reader of a comparison can choose, and which rows pass.

const FILTERS = ["q", "family", "verdict", "matched"];

const DEFAULTS = { q: "", family: "", verdict: "", matched: "", select: "", by: "", sort: "", theme: "" };

const VERDICTS = {
  changed: "changed", "within noise": "within the noise", "noise unknown": "noise unknown", same: "the same", unknown: "unknown",
};

const MATCHES = {
  name: "name", "short name": "short name", "family and shape": "family and shape", "only a": "nothing: gone", "only b": "nothing: new",
};

/** Rows that pass the filters. */
function passing(rows) {
  return rows.filter((row) => {
    if (state.family && row.family !== state.family) return false;
    if (state.verdict && row.gpu_time.verdict !== state.verdict) return false;
    if (state.matched && row.matched_by !== state.matched) return false;
    return hasWords(row.full);
  });
}
