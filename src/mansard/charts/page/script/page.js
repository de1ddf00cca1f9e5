// Puts the page to work: fills the controls, ties charts, panel and table to what is chosen.

let page = null;

/** Whether kernels can be filtered by a word: not by modules, and parts by phase or rank may be absent. */
function canFilter(by) {
  return FILTERS.includes(by) && (!["phase", "rank"].includes(by) || choicesOf(by).length > 0);
}

/** The phases or ranks that kernels can be filtered by. */
function choicesOf(by) {
  const own = page.kernels.filter((row) => row.only.includes(by));
  const values = [...own, ...page.parts.filter((part) => part.by === by)].map((row) => choiceOf(row[by]));
  const order = page.report[`${by}s`].map((group) => choiceOf(group[by]));
  return [...new Set(values)].sort((a, b) => order.indexOf(a) - order.indexOf(b));
}

/** Choices of the filters, from what the kernels have. */
function fillFilters(form, kernels) {
  const counted = (valueOf, words = (value) => value) => [...d3.rollup(kernels, (rows) => rows.length, valueOf)]
    .sort((a, b) => b[1] - a[1]).map(([value, count]) => [value, `${printable(words(value), 60)} (${count})`]);
  const paths = Object.keys(page.report.totals.flop_by_path).filter((path) => page.report.totals.flop_by_path[path] > 0);
  const asks = Object.entries(IS).filter(([, [, asks]]) => kernels.some(asks)).map(([key, [words]]) => [key, words]);
  const named = (by) => choicesOf(by).map((value) => [value, printable(value, 60)]);
  const choices = {
    family: counted((row) => row.family),
    bound: page.report.machine === null ? [] : counted(boundOf, (value) => (value === "?" ? "undecided" : page.resources[value] ?? value)),
    path: paths.map((path) => [path, path]),
    is: asks,
    advice: page.advised.flatMap((places, at) => (places.size ? [[String(at + 1), `${at + 1} ${page.report.advice[at].rule} (${places.size})`]] : [])),
    phase: named("phase"),
    rank: named("rank"),
  };
  for (const [name, listed] of Object.entries(choices)) {
    form.elements[name].closest("label").hidden = listed.length === 0;
    fillSelect(form.elements[name], [["", "all"], ...listed]);
  }
  tieFilters(form);
}

/** Buttons that show and hide memory levels and compute roofs. */
function fillToggles(figure, view, repaint) {
  const roofs = page.roofline.roofs.filter((roof) => roof.kind === "compute").map((roof) => roof.name);
  for (const [kind, names, chosen] of [["levels", page.levels, view.levels], ["paths", roofs, view.paths]]) {
    figure.querySelector(`[data-toggle="${kind}"]`).replaceChildren(...names.map((name) => {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.name = name;
      button.setAttribute("aria-pressed", String(chosen.has(name)));
      if (kind === "levels") button.append(glyph(name));
      button.append(page.resources[name] ?? name);
      if (kind === "paths") {
        const roof = page.roofline.roofs.find((each) => each.kind === "compute" && each.name === name);
        const [letter, value] = [cell("strong", letterOf(roof)), cell("span", roof.label.slice(name.length + 1))];
        for (const word of [letter, value]) word.className = "only-narrow";
        button.prepend(letter);
        button.append(value);
      }
      button.addEventListener("click", () => {
        if (!chosen.delete(name)) chosen.add(name);
        button.setAttribute("aria-pressed", String(chosen.has(name)));
        repaint();
      });
      return button;
    }));
  }
}

/** The marker of a level as a small picture. */
function glyph(level) {
  const path = d3.path();
  path.closePath = path.closePath.bind(path);
  shape(path, level, 7, 7, 4.6);
  return d3.create("svg").attr("viewBox", "0 0 14 14").attr("class", `glyph ${level}`).attr("aria-hidden", "true")
    .call((svg) => svg.append("path").attr("d", path.toString())).node();
}

function countKernels(rows, source) {
  const all = source.length;
  const time = formatShare(d3.sum(rows, (row) => shareOf(row) ?? 0));
  document.getElementById("count").textContent = rows.length === all && source === page.kernels
    ? `all ${countText(all, "kernel")}` : `${rows.length} of ${countText(page.kernels.length, "kernel")}, ${time} of the time`;
}

function describe(plot, words) {
  plot.over.setAttribute("aria-label", `${words}: ${countText(new Set(plot.marks.row.subarray(0, plot.marks.count)).size, "kernel")} drawn. The table of kernels below holds the same numbers. Keys: plus and minus zoom, arrows move, 0 resets, n and p go through the kernels, Enter chooses.`);
}

/** Draw for paper: light, sharp, every marker at once; paper then scales the pictures. */
function forPrint(charts, isPrinting) {
  openForPrint(isPrinting);
  readPalette();
  for (const chart of charts) {
    chart.isPrinting = isPrinting;
    chart.resize(isPrinting ? 2 : undefined);
    chart.paint(isPrinting ? Infinity : undefined);
  }
}

async function main() {
  page = await readPage();
  const { kernels, parts } = rowsOf(page);
  const groups = { kernel: kernels, ...groupsOf(page.report) };
  Object.assign(page, { kernels, parts, advised: adviceOf(page.report, kernels) });
  const form = document.getElementById("filters");
  fillFilters(form, kernels);
  const several = GROUPS.map(([, by]) => by).filter((by) => groups[by].length > 1 || (by === "family" && groups[by].length));
  fillSelect(document.getElementById("by"), ["kernel", ...several].map((by) => [by, BY[by].toLowerCase()]));
  fillSelect(document.getElementById("overview-by"), [...(page.report.machine ? ["bound"] : []), ...several].map((by) => [by, by]));
  readPalette();

  const rooflineFigure = document.getElementById("roofline");
  const timeFigure = document.getElementById("time");
  const roofline = new Plot(rooflineFigure, new RooflineView());
  const time = new Plot(timeFigure, new TimeView());
  const plots = [roofline, time];
  fillToggles(rooflineFigure, roofline.view, () => {
    roofline.place();
    roofline.request();
  });
  for (const [figure, notes] of [[rooflineFigure, page.roofline.notes], [timeFigure, page.time.notes]]) {
    figure.querySelector(".notes").replaceChildren(...notes.map((note) => cell("li", note)));
  }
  const table = new Table(groups);
  const strip = page.strip ? new Strip(document.getElementById("strip"), page.strip, kernels) : null;
  let source = kernels;
  let shown = kernels;

  const show = (changed) => {
    if (changed.has("theme")) {
      applyTheme();
      readPalette();
    }
    if (FILTERS.some((key) => changed.has(key))) {
      source = sourceRows(kernels, parts);
      shown = filterRows(source);
      for (const key of FILTERS) if (form.elements[key].value !== state[key]) form.elements[key].value = state[key];
      countKernels(shown, source);
      for (const plot of plots) plot.show(shown);
      describe(roofline, "Roofline chart");
      describe(time, "Time chart");
      table.show(shown);
      showOverview(shown, groups);
    } else {
      for (const plot of plots) plot.request();
      if (changed.has("by") || changed.has("sort") || changed.has("select")) table.draw();
    }
    if (changed.has("by")) document.getElementById("by").value = state.by;
    const place = Number(state.select) - 1;
    showKernel(source.find((row) => row.place === place) ?? kernels[place] ?? null, shown);
    strip?.paint();
  };

  readAddress();
  listen(show);
  show(new Set([...FILTERS, "by", "theme"]));
  for (const plot of plots) plot.resize();
  // The panel stays below the bar of filters, however many lines that takes.
  new ResizeObserver(() => document.documentElement.style.setProperty("--bar", `${form.offsetHeight}px`)).observe(form);
  window.addEventListener("hashchange", readAddress);
  for (const link of document.querySelectorAll("a.filter")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      history.pushState(null, "", link.hash);
      readAddress();
      // What the sentence speaks of is further down.
      form.scrollIntoView();
    });
  }
  document.getElementById("by").addEventListener("change", (event) => update({ by: event.target.value, sort: "" }));
  document.getElementById("overview-by").addEventListener("change", () => showOverview(shown, groups));
  tieTools();
  document.getElementById("export-csv").addEventListener("click", () => save(tableCsv(table.sorted(), state.by), fileName(`-${state.by}.csv`), "text/csv"));
  document.getElementById("export-json").addEventListener("click", () => save(reportJson(kernels), fileName(".json"), "application/json"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show(new Set(["theme"])));
  window.addEventListener("beforeprint", () => forPrint([...plots, ...(strip ? [strip] : [])], true));
  window.addEventListener("afterprint", () => forPrint([...plots, ...(strip ? [strip] : [])], false));

  // For the console and for tests: what is shown, and the functions that write it.
  window.mansard = Object.freeze({
    page, plots: { roofline, time }, strip, state, update, rows: () => table.sorted(),
    formatSi, formatShare, formatIntensity, printable, slopeLabels, csv: () => tableCsv(table.sorted(), state.by), json: () => reportJson(kernels),
  });
  document.documentElement.dataset.ready = "yes";
}

main().catch(failed);
