// The strip of a step in time: launches by stream and family, and the gaps in which nothing ran.
// A row tells the family, so that the picture needs no colours to be read.

const ROW = 15;
const LABEL_SIZE = 11;
const MOST_STREAMS = 8;
const MOST_FAMILIES = 7;

/** The families with the most time, each a row; all others share the last one. */
function familiesOf(line, kernels) {
  const time = d3.rollup(d3.range(line.start_s.length), (launches) => d3.sum(launches, (launch) => line.duration_s[launch]), (launch) => kernels[line.kernel[launch]]?.family ?? null);
  time.delete(null);
  return [...time].sort((a, b) => b[1] - a[1]).slice(0, MOST_FAMILIES).map(([family]) => family);
}

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
    this.transform = d3.zoomIdentity;
    this.families = familiesOf(line, kernels);
    this.layOut();
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

  /** Rows: for each stream a head if there are several, then the families that run there. */
  layOut() {
    const { line } = this;
    const streams = [...new Set(line.stream)].sort((a, b) => a - b);
    const most = streams.length > MOST_STREAMS ? MOST_STREAMS - 1 : streams.length;
    const laneOf = new Map(streams.map((stream, place) => [stream, Math.min(place, most)]));
    const familyOf = (launch) => {
      const place = this.families.indexOf(this.kernels[line.kernel[launch]]?.family);
      return place < 0 ? this.families.length : place;
    };
    const used = new Set();
    const keys = line.stream.map((stream, launch) => {
      const key = laneOf.get(stream) * (MOST_FAMILIES + 1) + familyOf(launch);
      used.add(key);
      return key;
    });
    this.rows = [];
    const rowOf = new Map();
    let lane = -1;
    for (const key of [...used].sort((a, b) => a - b)) {
      const own = Math.floor(key / (MOST_FAMILIES + 1));
      const family = key % (MOST_FAMILIES + 1);
      if (own !== lane && streams.length > 1) this.rows.push({ head: own < most ? `stream ${streams[own] ?? "-"}` : "other streams" });
      lane = own;
      rowOf.set(key, this.rows.length);
      this.rows.push({ family, label: this.families[family] ?? "all others" });
    }
    this.rowOf = keys.map((key) => rowOf.get(key));
  }

  describe(section) {
    const { line } = this;
    const rank = line.rank === null ? "" : ` of rank ${line.rank}`;
    const step = line.step === null ? "" : `, step ${line.step}`;
    const drawn = line.start_s.length < line.launches ? ` The ${line.start_s.length} longest are drawn.` : "";
    section.querySelector("p").textContent = `${countText(line.launches, "launch")}${rank}${step} in ${formatSi(line.span_s, "s")}; the GPU is busy ${formatShare(line.busy_s / line.span_s)} of it.${drawn} One row per family of kernels${this.rows.some((row) => row.head) ? " and stream" : ""}; shaded: one of the longest gaps.`;
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
    Object.assign(this, { width, scale, height: this.rows.length * ROW + 34 });
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(this.height * scale);
    const ctx = this.canvas.getContext("2d");
    ctx.font = `${LABEL_SIZE}px ${FONT}`;
    this.left = Math.ceil(d3.max(this.rows, (row) => ctx.measureText(printable(row.label ?? row.head, 20)).width)) + 12;
    this.x0 = d3.scaleLinear([0, this.line.span_s], [this.left, width - 8]);
    this.zoom.extent([[this.left, 0], [width - 8, this.height]]).translateExtent([[this.left, 0], [width - 8, this.height]]);
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
    ctx.save();
    ctx.beginPath();
    ctx.rect(this.left, 0, width - this.left, height);
    ctx.clip();
    ctx.fillStyle = palette.grid;
    for (const [start, length] of line.gaps) ctx.fillRect(x(start), 2, Math.max(0.5, x(start + length) - x(start)), foot - 2);
    const colours = ["l1", "l2", "dram", "shared", "soft", "accent"];
    for (let launch = 0; launch < line.start_s.length; launch += 1) {
      const left = x(line.start_s[launch]);
      const right = x(line.start_s[launch] + line.duration_s[launch]);
      if (right < this.left || left > width) continue;
      const kernel = this.kernels[line.kernel[launch]];
      const isChosen = kernel && String(kernel.place + 1) === state.select;
      const row = this.rowOf[launch];
      ctx.fillStyle = isChosen ? palette.ink : palette[colours[this.rows[row].family % colours.length]];
      ctx.fillRect(left, 4 + row * ROW, Math.max(0.6, right - left), ROW - 4);
    }
    ctx.restore();
    this.paintLabels(ctx);
    ctx.fillStyle = ctx.strokeStyle = palette.ink;
    ctx.font = `${TEXT}px ${FONT}`;
    ctx.textBaseline = "top";
    ctx.textAlign = "center";
    ctx.beginPath();
    ctx.moveTo(this.left, foot + 0.5);
    ctx.lineTo(width, foot + 0.5);
    const ticks = x.ticks(Math.max(2, Math.floor((width - this.left) / 110)));
    for (const tick of ticks) { ctx.moveTo(sharp(x(tick)), foot); ctx.lineTo(sharp(x(tick)), foot + 5); }
    ctx.stroke();
    for (const tick of ticks) if (x(tick) > this.left + 14 && x(tick) < width - 20) ctx.fillText(formatSi(Number(tick.toPrecision(6)), "s", 4).replace(/\.?0+(?= )/, ""), x(tick), foot + 7);
  }

  /** What runs in each row, and faint lines between them, for the eye to follow. */
  paintLabels(ctx) {
    ctx.textBaseline = "middle";
    ctx.strokeStyle = palette.grid;
    ctx.lineWidth = 1;
    this.rows.forEach((row, place) => {
      const y = 2 + (place + 0.5) * ROW;
      ctx.font = `${row.head ? "bold " : ""}${LABEL_SIZE}px ${FONT}`;
      ctx.fillStyle = row.head ? palette.soft : palette.ink;
      ctx.textAlign = row.head ? "left" : "right";
      ctx.fillText(printable(row.head ?? row.label, 20), row.head ? 0 : this.left - 6, y);
      ctx.beginPath();
      ctx.moveTo(row.head ? 0 : this.left, sharp(2 + place * ROW));
      ctx.lineTo(this.width, sharp(2 + place * ROW));
      ctx.stroke();
    });
  }

  /** The launch under a point, else the nearest in its row within a few pixels; -1 for none. */
  nearest([px, py]) {
    const { line } = this;
    const x = this.transform.rescaleX(this.x0);
    const row = Math.floor((py - 2) / ROW);
    let best = -1;
    let least = 6;
    for (let launch = 0; launch < line.start_s.length; launch += 1) {
      if (this.rowOf[launch] !== row) continue;
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
