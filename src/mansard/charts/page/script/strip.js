// The strip of a step in time: launches by stream, and the gaps in which nothing ran.

const LANE = 22;
const MOST_LANES = 8;

class Strip {
  constructor(section, line, kernels) {
    section.hidden = false;
    this.line = line;
    let start = 0;
    line.start_s = line.start_ns.map((later) => (start += later) * 1e-9);
    line.duration_s = line.duration_ns.map((length) => length * 1e-9);
    this.kernels = kernels;
    this.stage = section.querySelector(".stage");
    this.canvas = this.stage.appendChild(document.createElement("canvas"));
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", "Launches in time by stream; the longest gaps stand in the table below");
    this.canvas.tabIndex = 0;
    const streams = [...new Set(line.stream)].sort((a, b) => a - b);
    this.lanes = new Map(streams.map((stream, place) => [stream, Math.min(place, MOST_LANES - 1)]));
    this.count = Math.min(streams.length, MOST_LANES);
    this.transform = d3.zoomIdentity;
    this.families = [...new Set(kernels.map((row) => row.family))];
    this.describe(section);
    this.zoom = d3.zoom().scaleExtent([1, 5000])
      .filter((event) => (event.type === "wheel" ? event.ctrlKey || event.metaKey || document.activeElement === this.canvas : !event.button))
      .on("zoom", ({ transform }) => {
        this.transform = transform;
        this.paint();
      });
    d3.select(this.canvas).call(this.zoom).on("dblclick.zoom", () => this.reset())
      .on("pointermove", (event) => this.point(event))
      .on("pointerleave", () => showTip(null))
      .on("click", (event) => {
        const launch = this.nearest(d3.pointer(event, this.canvas));
        if (launch >= 0 && line.kernel[launch] !== null) update({ select: String(line.kernel[launch] + 1) });
      });
    this.canvas.addEventListener("keydown", (event) => {
      const canvas = d3.select(this.canvas);
      if (event.key === "+") canvas.call(this.zoom.scaleBy, 1.5);
      else if (event.key === "-") canvas.call(this.zoom.scaleBy, 1 / 1.5);
      else if (event.key === "ArrowLeft") canvas.call(this.zoom.translateBy, 80 / this.transform.k, 0);
      else if (event.key === "ArrowRight") canvas.call(this.zoom.translateBy, -80 / this.transform.k, 0);
      else if (event.key === "0") this.reset();
      else return;
      event.preventDefault();
    });
    new ResizeObserver(() => this.isPrinting || this.resize()).observe(this.stage);
  }

  describe(section) {
    const { line } = this;
    const rank = line.rank === null ? "" : ` of rank ${line.rank}`;
    const step = line.step === null ? "" : `, step ${line.step}`;
    const drawn = line.start_s.length < line.launches ? ` The ${line.start_s.length} longest are drawn.` : "";
    section.querySelector("p").textContent = `${countText(line.launches, "launch")}${rank}${step} in ${formatSi(line.span_s, "s")}; the GPU is busy ${formatShare(line.busy_s / line.span_s)} of it.${drawn} One lane per stream, one colour per family; shaded: one of the longest gaps.`;
    const name = (place) => (place === null ? "-" : titleOf(this.kernels[place], 60));
    section.querySelector("tbody").replaceChildren(...line.gaps.map(([start, length, after, before]) => {
      const row = document.createElement("tr");
      row.append(cell("td", formatSi(start, "s")), cell("td", formatSi(length, "s")), cell("td", name(after)), cell("td", name(before)));
      return row;
    }));
  }

  resize(scale = window.devicePixelRatio || 1) {
    const width = this.stage.clientWidth;
    if (!width) return;
    Object.assign(this, { width, scale, height: this.count * LANE + 34 });
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.x0 = d3.scaleLinear([0, this.line.span_s], [8, width - 8]);
    this.zoom.extent([[8, 0], [width - 8, this.height]]).translateExtent([[8, 0], [width - 8, this.height]]);
    this.reset();
  }

  reset() {
    d3.select(this.canvas).call(this.zoom.transform, d3.zoomIdentity);
  }

  paint() {
    if (!this.width) return;
    const { line, height, width } = this;
    const ctx = this.canvas.getContext("2d");
    const x = this.transform.rescaleX(this.x0);
    const foot = height - 26;
    ctx.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    if (!this.isPrinting) ctx.clearRect(0, 0, width, height);
    ctx.fillStyle = palette.grid;
    for (const [start, length] of line.gaps) ctx.fillRect(x(start), 2, Math.max(0.5, x(start + length) - x(start)), foot - 2);
    const colours = ["l1", "l2", "dram", "shared", "soft", "accent"];
    for (let launch = 0; launch < line.start_s.length; launch += 1) {
      const left = x(line.start_s[launch]);
      const right = x(line.start_s[launch] + line.duration_s[launch]);
      if (right < 0 || left > width) continue;
      const kernel = this.kernels[line.kernel[launch]];
      const isChosen = kernel && String(kernel.place + 1) === state.select;
      ctx.fillStyle = isChosen ? palette.ink : kernel ? palette[colours[this.families.indexOf(kernel.family) % colours.length]] : palette.faint;
      ctx.fillRect(left, 4 + this.lanes.get(line.stream[launch]) * LANE, Math.max(0.6, right - left), LANE - 4);
    }
    ctx.fillStyle = ctx.strokeStyle = palette.ink;
    ctx.font = `${TEXT}px ${FONT}`;
    ctx.textBaseline = "top";
    ctx.textAlign = "center";
    ctx.beginPath();
    ctx.moveTo(0, foot + 0.5);
    ctx.lineTo(width, foot + 0.5);
    const ticks = x.ticks(Math.max(2, Math.floor(width / 110)));
    for (const tick of ticks) { ctx.moveTo(sharp(x(tick)), foot); ctx.lineTo(sharp(x(tick)), foot + 5); }
    ctx.stroke();
    for (const tick of ticks) if (x(tick) > 20 && x(tick) < width - 20) ctx.fillText(formatSi(Number(tick.toPrecision(6)), "s", 4).replace(/\.?0+(?= )/, ""), x(tick), foot + 7);
  }

  /** The launch under a point, else the nearest in its lane within a few pixels; -1 for none. */
  nearest([px, py]) {
    const { line } = this;
    const x = this.transform.rescaleX(this.x0);
    const lane = Math.floor((py - 4) / LANE);
    let best = -1;
    let least = 6;
    for (let launch = 0; launch < line.start_s.length; launch += 1) {
      if (this.lanes.get(line.stream[launch]) !== lane) continue;
      const distance = Math.max(x(line.start_s[launch]) - px, px - x(line.start_s[launch] + line.duration_s[launch]), 0);
      if (distance < least) [best, least] = [launch, distance];
    }
    return best;
  }

  point(event) {
    const { line } = this;
    const launch = this.nearest(d3.pointer(event, this.canvas));
    if (launch < 0) {
      showTip(null);
      return;
    }
    const kernel = this.kernels[line.kernel[launch]];
    showTip([
      kernel ? `${kernel.place + 1}  ${titleOf(kernel, 90)}` : "another kernel",
      `${formatSi(line.duration_s[launch], "s")} from ${formatSi(line.start_s[launch], "s", 4)}, stream ${line.stream[launch] ?? "-"}`,
    ], event);
  }
}
