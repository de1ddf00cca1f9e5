// A chart on two logarithmic axes: canvas, zoom by wheel, drag, box and keys, nearest marker.
// What is drawn comes from a view: frame, margins, marks(), back(), mark(), front(), join(), tip().

/** Time for markers per frame, and markers between two looks at the clock. */
const PAINT_MS = 7;
const PAINT_BATCH = 150;

/** Farthest distance, in pixels, at which the pointer finds a marker. */
const REACH = 14;

let palette = {};

/** Read the colours of the theme: canvases cannot use CSS variables. */
function readPalette() {
  const probe = document.createElement("span");
  document.body.append(probe);
  palette = {};
  for (const name of ["ink", "soft", "faint", "grid", "ground", "accent", "warn", "shared", "l1", "l2", "dram", "link"]) {
    probe.style.color = `var(--${name})`;
    palette[name] = getComputedStyle(probe).color;
  }
  probe.remove();
}

class Plot {
  constructor(figure, view) {
    this.figure = figure;
    this.view = view;
    this.stage = figure.querySelector(".stage");
    this.base = this.stage.appendChild(document.createElement("canvas"));
    this.over = this.stage.appendChild(document.createElement("canvas"));
    this.over.tabIndex = 0;
    this.over.setAttribute("role", "application");
    this.transform = d3.zoomIdentity;
    this.rows = [];
    this.marks = emptyMarks();
    this.hover = -1;
    this.boxFrom = null;
    this.listenToPointer();
    this.over.addEventListener("keydown", (event) => this.key(event));
    figure.querySelector(".reset").addEventListener("click", () => this.reset());
    new ResizeObserver(() => this.isPrinting || this.resize()).observe(this.stage);
  }

  /** Lay out for the width that the stage has now. */
  resize(scale = window.devicePixelRatio || 1) {
    const width = this.stage.clientWidth;
    if (!width) return;
    const height = Math.round(Math.min(Math.max(width * 0.64, 340), 760));
    if (width === this.width && height === this.height && scale === this.scale) return;
    Object.assign(this, { width, height, scale });
    this.figure.classList.toggle("narrow", width < NARROW);
    const margin = this.view.margin(width);
    this.area = { left: margin.left, top: margin.top, right: width - margin.right, bottom: height - margin.bottom };
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const [xMin, xMax, yMin, yMax] = this.view.frame;
    this.x0 = d3.scaleLog([xMin, xMax], [this.area.left, this.area.right]);
    this.y0 = d3.scaleLog([yMin, yMax], [this.area.bottom, this.area.top]);
    const extent = [[this.area.left, this.area.top], [this.area.right, this.area.bottom]];
    this.zoom.extent(extent).translateExtent(extent);
    this.place();
    this.reset();
  }

  /** Take other rows; the view stays where it is. */
  show(rows) {
    this.rows = rows;
    this.hover = -1;
    this.place();
    this.request();
  }

  /** Put the markers of the rows at their pixels in the unzoomed chart. */
  place() {
    if (this.width) this.marks = this.view.marks(this);
  }

  /** Draw at the next frame; several requests are one. */
  request() {
    if (!this.pending) {
      this.pending = requestAnimationFrame(() => {
        this.pending = 0;
        this.paint();
      });
    }
  }

  reset() {
    d3.select(this.over).call(this.zoom.transform, d3.zoomIdentity);
    this.request();
  }

  paint(allowed = PAINT_MS) {
    if (!this.width) return;
    cancelAnimationFrame(this.continued);
    this.x = this.transform.rescaleX(this.x0);
    this.y = this.transform.rescaleY(this.y0);
    const ctx = this.start(this.base);
    this.view.back(this, ctx);
    this.cursor = 0;
    this.paintMarks(ctx, allowed);
    this.paintOver();
  }

  /** Draw markers, longest kernel first, for a moment; go on in the next frame. */
  paintMarks(ctx, allowed) {
    const until = performance.now() + allowed;
    ctx.save();
    clip(ctx, this.markArea(), 12);
    const { count } = this.marks;
    while (this.cursor < count && performance.now() < until) {
      const end = Math.min(count, this.cursor + PAINT_BATCH);
      for (; this.cursor < end; this.cursor += 1) {
        const [x, y] = this.at(this.cursor);
        const r = this.marks.r[this.cursor];
        if (this.isInside(x, y, r)) this.view.mark(ctx, this.marks, this.cursor, x, y, this);
      }
    }
    ctx.restore();
    if (this.cursor < count) this.continued = requestAnimationFrame(() => this.paintMarks(ctx, allowed));
  }

  /** Draw what changes with the pointer: numbers, the joined markers of one kernel, the box. */
  paintOver() {
    const ctx = this.start(this.over);
    this.view.front(this, ctx);
    const chosen = this.rows.findIndex((row) => String(row.place + 1) === state.select);
    for (const index of new Set([chosen, this.hover])) if (index >= 0) this.view.join(this, ctx, index);
    if (this.boxFrom && this.boxTo) {
      ctx.strokeStyle = palette.accent;
      ctx.setLineDash([4, 3]);
      ctx.strokeRect(...this.boxFrom, this.boxTo[0] - this.boxFrom[0], this.boxTo[1] - this.boxFrom[1]);
    }
  }

  start(canvas) {
    const ctx = canvas.getContext("2d");
    ctx.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    // Paper keeps the strokes, not the pixels: clearing one canvas would clear what lies below it.
    if (!this.isPrinting) ctx.clearRect(0, 0, this.width, this.height);
    ctx.setLineDash([]);
    ctx.lineJoin = "round";
    return ctx;
  }

  /** Where a marker is on the screen. */
  at(mark) {
    return [this.transform.applyX(this.marks.x[mark]), this.view.screenY(this, this.marks, mark)];
  }

  isInside(x, y, r = 0) {
    const { left, top, right, bottom } = this.markArea();
    return x > left - r - 1 && x < right + r + 1 && y > top - r - 1 && y < bottom + r + 1;
  }

  /** Where markers may lie: the chart, and the strip below it if the view has one. */
  markArea() {
    return { ...this.area, bottom: this.area.bottom + (this.view.strip ?? 0) };
  }

  /** The row whose marker is nearest to a point, or -1. A marker within reach beats a large one around it. */
  nearest(x, y) {
    let best = -1;
    let least = Infinity;
    for (let mark = 0; mark < this.marks.count; mark += 1) {
      const [mx, my] = this.at(mark);
      const distance = Math.hypot(mx - x, my - y);
      const r = this.marks.r[mark];
      if (distance > Math.max(REACH, r) || !this.isInside(mx, my)) continue;
      const cost = distance <= REACH ? distance : REACH + r;
      if (cost < least) [best, least] = [this.marks.row[mark], cost];
    }
    return best;
  }

  listenToPointer() {
    const canvas = d3.select(this.over);
    this.zoom = d3.zoom().scaleExtent([1, 2000])
      .filter((event) => this.mayZoom(event))
      .on("zoom", ({ transform }) => {
        this.transform = transform;
        this.request();
      });
    canvas.call(this.zoom).on("dblclick.zoom", () => this.reset());
    canvas.on("pointerdown", (event) => {
      this.down = d3.pointer(event, this.over);
      if (event.shiftKey) {
        this.boxFrom = this.down;
        this.over.setPointerCapture(event.pointerId);
      }
    });
    canvas.on("pointermove", (event) => {
      const point = d3.pointer(event, this.over);
      if (this.boxFrom) {
        this.boxTo = point;
        this.paintOver();
      } else if (!event.buttons) {
        this.point(this.nearest(...point), event);
      }
    });
    canvas.on("pointerleave", () => this.point(-1));
    canvas.on("pointerup pointercancel", (event) => {
      if (this.boxFrom && this.boxTo) this.zoomTo(this.boxFrom, this.boxTo);
      this.boxFrom = this.boxTo = null;
    });
    canvas.on("click", (event) => {
      const [x, y] = d3.pointer(event, this.over);
      if (!this.down || Math.hypot(x - this.down[0], y - this.down[1]) > 4) return;
      const row = this.nearest(x, y);
      if (row >= 0) update({ select: String(this.rows[row].place + 1) });
    });
  }

  /** A page with charts must still scroll: the wheel zooms where the chart was clicked, or with Ctrl. */
  mayZoom(event) {
    if (event.type === "wheel") {
      const wanted = event.ctrlKey || event.metaKey || document.activeElement === this.over;
      return wanted && !(event.deltaY > 0 && this.transform.k <= 1);
    }
    if (event.type === "touchstart") return event.touches.length > 1 || this.transform.k > 1;
    return !event.shiftKey && !event.button;
  }

  zoomTo([ax, ay], [bx, by]) {
    const [width, height] = [Math.abs(bx - ax), Math.abs(by - ay)];
    if (width < 6 || height < 6) return;
    const { left, top, right, bottom } = this.area;
    const k = Math.min((right - left) / width, (bottom - top) / height) * this.transform.k;
    const [x, y] = this.transform.invert([(ax + bx) / 2, (ay + by) / 2]);
    const target = d3.zoomIdentity.translate((left + right) / 2, (top + bottom) / 2).scale(Math.min(k, 2000)).translate(-x, -y);
    d3.select(this.over).call(this.zoom.transform, target);
  }

  key(event) {
    const canvas = d3.select(this.over);
    const step = 60 / this.transform.k;
    const moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") canvas.call(this.zoom.scaleBy, 1.4);
    else if (event.key === "-") canvas.call(this.zoom.scaleBy, 1 / 1.4);
    else if (event.key === "0") this.reset();
    else if (event.key in moves) canvas.call(this.zoom.translateBy, ...moves[event.key]);
    else if (event.key === "n") this.walk(1);
    else if (event.key === "p") this.walk(-1);
    else if (event.key === "Enter" && this.hover >= 0) update({ select: String(this.rows[this.hover].place + 1) });
    else if (event.key === "Escape") update({ select: "" });
    else return;
    event.preventDefault();
  }

  /** Go to the next or previous kernel that has a marker, and say it. */
  walk(step) {
    const placed = [...new Set(this.marks.row.subarray(0, this.marks.count))].sort((a, b) => a - b);
    if (!placed.length) return;
    const here = placed.indexOf(this.hover);
    const next = here < 0 ? (step > 0 ? 0 : placed.length - 1) : (here + step + placed.length) % placed.length;
    this.point(placed[next]);
    say(this.view.tip(this.rows[placed[next]]).join(", "));
  }

  /** Join the markers of a row, and show what it is beside the pointer. */
  point(row, event) {
    if (row !== this.hover) {
      this.hover = row;
      this.paintOver();
    }
    showTip(row < 0 || !event ? null : this.view.tip(this.rows[row]), event);
    this.over.style.cursor = row < 0 ? "grab" : "pointer";
  }
}

function emptyMarks(count = 0) {
  return {
    count,
    x: new Float64Array(count), y: new Float64Array(count), r: new Float32Array(count),
    row: new Int32Array(count), kind: new Uint8Array(count),
  };
}

function clip(ctx, area, more = 0) {
  ctx.beginPath();
  ctx.rect(area.left - more, area.top - more, area.right - area.left + 2 * more, area.bottom - area.top + 2 * more);
  ctx.clip();
}

/** Tell a screen reader. */
function say(text) {
  document.getElementById("say").textContent = text;
}

/** Show lines of text beside the pointer; null hides them. */
function showTip(lines, event) {
  const tip = document.getElementById("tip");
  tip.hidden = lines === null;
  if (lines === null) return;
  tip.replaceChildren(...lines.map((line) => {
    const element = document.createElement("div");
    element.textContent = line;
    return element;
  }));
  const { width, height } = tip.getBoundingClientRect();
  const right = event.clientX + 16 + width < innerWidth;
  const x = right ? event.clientX + 14 : Math.max(4, event.clientX - width - 14);
  const y = Math.min(Math.max(4, event.clientY + 14), innerHeight - height - 4);
  tip.style.transform = `translate(${x}px, ${y}px)`;
}
