// Where the time goes: measured time with its floor, by what bounds the kernels, family, phase, rank.

const OVERVIEW_ROWS = 10;

/** Sums of rows by a key, longest first. */
function sumsBy(rows, keyOf) {
  const found = new Map();
  for (const row of rows) {
    const key = keyOf(row);
    const sum = found.get(key) ?? { key, duration_s: 0, floor_s: null, recoverable_s: null };
    sum.duration_s += row.duration_s ?? 0;
    if (row.floor_s !== null) sum.floor_s = (sum.floor_s ?? 0) + row.floor_s;
    if (row.recoverable_s !== null) sum.recoverable_s = (sum.recoverable_s ?? 0) + row.recoverable_s;
    found.set(key, sum);
  }
  return [...found.values()].sort((a, b) => b.duration_s - a.duration_s);
}

function showOverview(kernels, groups) {
  const by = document.getElementById("overview-by").value;
  const sums = by === "bound"
    ? sumsBy(kernels, boundOf).map((sum) => ({ ...sum, words: sum.key === "?" ? "undecided" : sum.key === "-" ? "no machine" : page.resources[sum.key] ?? sum.key }))
    : groups[by].map((group) => ({ ...group, key: group.name, words: printable(group.name, 40) }));
  if (by !== "phase" && by !== "rank") sums.sort((a, b) => (b.duration_s ?? 0) - (a.duration_s ?? 0));
  const shown = sums.slice(0, by === "rank" ? 64 : OVERVIEW_ROWS);
  const element = document.querySelector("#overview .bars");
  showBars(element, shown.map((sum) => ({
    name: sum.words,
    frame: sum.duration_s,
    fill: sum.floor_s,
    figures: [formatSi(sum.duration_s, "s"), formatShare(shareOf(sum)), formatSi(sum.recoverable_s, "s")],
    choose: canFilter(by) ? () => update({ [by]: sum.key }) : null,
  })), [by, "", "time", "share", "recov."]);
  if (sums.length > shown.length) element.append(paragraph(`and ${sums.length - shown.length} more: see the table`, "soft"));
}
